#!/bin/bash
# Runs the tests of tests/nvrtc, and those of the program that compile, with NVRTC 11.8, 12.0, 12.9 and 13.0, each from its wheel in .venv, beside
# the toolkit's headers of the same release. Of these 11.8 is the one that an index may no longer have; then it is said and left out.
# SELVEDGE_TESTS_SEED chooses one of 12.0 and 12.9; SELVEDGE_CI=all takes both.
set -euo pipefail

# wheel PACKAGE VERSION: fetches it as scripts/build_images.py does, and prints its folder.
wheel() {
    python3 - "$@" <<'PYTHON' | tail -n 1
import sys

sys.path.insert(0, "scripts")
from build_images import wheel

print(wheel(*sys.argv[1:]))
PYTHON
}

# survives COMMAND...: runs tests, and again where a signal ended them, three times at most. NVRTC has ended a run by a fault of
# its own, once in some hundreds, which did not come back when it was looked for; a failed test fails at once.
survives() {
    local log attempt code
    log=$(mktemp)
    for attempt in 1 2 3; do
        code=0
        "$@" 2>&1 | tee "$log" || code=$?
        if [ "$code" -eq 0 ] || ! grep -q '(signal: ' "$log"; then
            break
        fi
        echo "-- a signal ended the tests (run $attempt of 3)"
    done
    rm -f "$log"
    return "$code"
}

# try VERSION LIBRARY INCLUDE...: the tests, which fail where NVRTC is another than said.
try() {
    local version=$1 library=$2
    shift 2
    export SELVEDGE_TEST_NVRTC=$version SELVEDGE_LIBNVRTC=$library SELVEDGE_TEST_CUDA_INCLUDE
    SELVEDGE_TEST_CUDA_INCLUDE=$(IFS=:; echo "$*")
    echo "-- NVRTC $version"
    survives cargo test --quiet --test nvrtc
    survives cargo test --quiet --all-features --test cli -- compile:: images:: on_the_fake_driver::
}

cargo test --quiet --test nvrtc --no-run
cargo test --quiet --all-features --test cli --no-run

if nvrtc=$(wheel nvidia-cuda-nvrtc-cu11 11.8.89) && runtime=$(wheel nvidia-cuda-runtime-cu11 11.8.89); then
    try 11.8 "$nvrtc/cuda_nvrtc/lib/libnvrtc.so.11.2" "$runtime/cuda_runtime/include"
else
    echo "NVRTC 11.8 cannot be fetched here"
fi

all=
[ "${SELVEDGE_CI:-}" != all ] && [ -n "${SELVEDGE_TESTS_SEED:-}" ] || all=yes
chosen=$(($(cksum <<<"${SELVEDGE_TESTS_SEED:-}" | cut -d ' ' -f 1) % 2))
if [ -n "$all" ] || [ "$chosen" -eq 0 ]; then
    nvrtc=$(wheel nvidia-cuda-nvrtc-cu12 12.0.76)
    runtime=$(wheel nvidia-cuda-runtime-cu12 12.0.107)
    try 12.0 "$nvrtc/cuda_nvrtc/lib/libnvrtc.so.12" "$runtime/cuda_runtime/include"
fi
if [ -n "$all" ] || [ "$chosen" -eq 1 ]; then
    nvrtc=$(wheel nvidia-cuda-nvrtc-cu12 12.9.86)
    runtime=$(wheel nvidia-cuda-runtime-cu12 12.9.79)
    cccl=$(wheel nvidia-cuda-cccl-cu12 12.9.27)
    try 12.9 "$nvrtc/cuda_nvrtc/lib/libnvrtc.so.12" "$runtime/cuda_runtime/include" "$cccl/cuda_cccl/include"
fi

nvrtc=$(wheel nvidia-cuda-nvrtc 13.0.88)
runtime=$(wheel nvidia-cuda-runtime 13.0.96)
cccl=$(wheel nvidia-cuda-cccl 13.0.85)
try 13.0 "$nvrtc/cu13/lib/libnvrtc.so.13" "$runtime/cu13/include" "$cccl/cu13/include/cccl"
