#!/bin/bash
# Runs a bundle (scripts/bundle.sh) on a machine with a GPU: the device suite as it is, with the driver alone, with
# the toolkit hidden, under compute-sanitizer, and the benchmarks. One call, under ten minutes; a table comes last. The
# part pytorch is what PyTorch needs for buffers, graphs and copies, and records a memory trace; fuse, reduce and moving
# are in turns with it by themselves.
#
#   gpu_suite.sh [PART ...]     parts: info capi benches pytorch memory launcher gemm fuse reduce moving rows attention sorting burst catalogue classifier native driver_only hidden python memcheck
#                               initcheck seeded host (all of these without arguments), and soak, which is run only by
#                               its name
#
# Environment:
#   OUT              where the logs and results go (./gpu_suite_out): summary.txt and suite.tar.gz,
#                    which holds results/*.json (for benches/results), logs/*.log and a recorded memory trace
#   BUDGET           seconds for everything (580): each part gets what it needs of what is left
#   SUITE_ARGUMENTS  more arguments for every run of the suite, such as a filter. Without any, native, driver_only and
#                    hidden run it in processes beside each other (device_suite.sh), for which 80 GB of device memory
#                    are enough; with any, in one process
#   SANITIZER_SKIP   tests that the sanitizers leave out, by substring: those that fault on purpose or start another
#                    process ("fault lost child seeded without_a_pool_memory later_work_waits")
#   SANITIZER_ONLY   tests that the sanitizers run, by substring (all without it)
#   SEEDED           the ignored test that writes out of bounds on purpose (seeded_out_of_bounds)
#   SANITIZER        the program (found on PATH and in /usr/local/cuda*/bin)
#   BENCH_ARGUMENTS  arguments for the GPU benchmarks of the thin layer
#   MEMORY_ARGUMENTS arguments for those of memory and graphs (--only with all that need the device, and replay_recorded)
#   LAUNCHER_ARGUMENTS  arguments for those of the launcher
#   GEMM_ARGUMENTS   arguments for those of matrix products (--only with all but random, which takes as long again)
#   FUSE_ARGUMENTS   arguments for those of elementwise expressions
#   REDUCE_ARGUMENTS, MOVING_ARGUMENTS  arguments for those of reductions and of indexed copies
#   ATTENTION_ARGUMENTS  arguments for those of attention (--only with all that need the device)
#   SELVEDGE_BENCH_PYTHON  the Python that has the PyTorch which takes turns with ours (python3); none to leave it out
#   SOAK_SECONDS     how long the part soak goes on (420)
#   TRACE            a memory trace to replay; without it, the one that the part pytorch recorded
#
# Exit code: 0 where every part passed or could not run here and says so; 1 otherwise.
set -u

# The folders of the linker's search path that hold the driver: some machines have it nowhere else.
driver_folders=
IFS=: read -r -a folders <<<"${LD_LIBRARY_PATH:-}"
for folder in "${folders[@]}"; do
    [ -n "$folder" ] && [ -e "$folder/libcuda.so.1" ] && driver_folders=$driver_folders${driver_folders:+:}$folder
done

# Runs a command where no variable points at a toolkit.
bare_environment=(env -u CUDA_PATH -u CUDA_HOME -u CUDA_ROOT -u VIRTUAL_ENV -u CONDA_PREFIX -u PYTHONPATH
    LD_LIBRARY_PATH="$driver_folders" PATH=/usr/bin:/bin)

# Every file of the toolkit and its wheels that a loader could find, wherever it is.
toolkit_files() {
    find / \( -path /proc -o -path /sys -o -path /dev \) -prune -o \
        \( -name 'libnvrtc*.so*' -o -name 'libcublas*.so*' -o -name 'libnccl*.so*' -o -name 'libcupti*.so*' -o -name 'libcudart*.so*' \
        -o -name 'libnvJitLink*.so*' -o -path '*/stubs/libcuda.so*' \) -type f -print 2>/dev/null
}

# `hidden` starts this part in a namespace of its own: an empty file is mounted over each of the toolkit's, so that no
# search path, cache of the linker, wheel or environment variable reaches one. Outside of it nothing changes. It is
# given the namespace of its caller, and refuses to run there: in it the mounts would hide the files from everybody.
namespace=$(readlink /proc/self/ns/mnt 2>/dev/null)
if [ "${1:-}" = --hide-and-run ]; then
    case "${2:-}" in
        "$namespace" | "") refused=yes ;;
        mnt:*) refused=no ;;
        *) refused=yes ;;
    esac
    if [ "$refused" = yes ] || [ -z "$namespace" ]; then
        echo "gpu_suite.sh: --hide-and-run is for a mount namespace of its own" >&2
        exit 2
    fi
    shift 2
    hidden=0
    left=0
    while IFS= read -r file; do
        if mount --bind /dev/null "$file"; then hidden=$((hidden + 1)); else left=$((left + 1)); fi
    done < <(toolkit_files)
    echo "hidden: $hidden files of the toolkit, each under an empty one; $left could not be"
    exec "${bare_environment[@]}" "$@"
fi

here=$(cd "$(dirname "$0")" && pwd)
out=${OUT:-$PWD/gpu_suite_out}
budget=${BUDGET:-580}
# A run of the suite takes 222 s if the driver has no kernel in its cache (H100, 16 cores), and more on fewer cores.
suite_limit=560
seeded=${SEEDED:-seeded_out_of_bounds}
skip=${SANITIZER_SKIP:-fault lost child seeded without_a_pool_memory later_work_waits other_threads_go_on}
read -r -a only <<<"${SANITIZER_ONLY:-}"
read -r -a suite_arguments <<<"${SUITE_ARGUMENTS:-}"
read -r -a bench_arguments <<<"${BENCH_ARGUMENTS:-}"
read -r -a memory_arguments <<<"${MEMORY_ARGUMENTS:---only allocation,graph_launch,graph,overlap,batch,replay_recorded}"
GEMM_ARGUMENTS=${GEMM_ARGUMENTS:---only first,square,gpt,gradients,fused,small,skinny,batched,plain}
ATTENTION_ARGUMENTS=${ATTENTION_ARGUMENTS:---only attention_composed,attention_forward,attention_backward}
soak=${SOAK_SECONDS:-420}
parts=${*:-info capi benches pytorch memory launcher gemm fuse reduce moving rows attention sorting burst catalogue classifier native driver_only hidden python memcheck initcheck seeded host}

mkdir -p "$out" || exit 1
out=$(cd "$out" && pwd)
# Only one archive is left there: some machines bring back few files.
work=$(mktemp -d)
mkdir -p "$work/logs" "$work/results" "$work/traces"
trace=${TRACE:-}
[ -z "$trace" ] || trace=$(realpath "$trace")
trap 'rm -rf "$work"' EXIT
started=$SECONDS
summary="$work/summary.txt"
failed=0

# The library's settings of the caller must not leak into the parts.
unset SELVEDGE_POOL SELVEDGE_SOAK_SECONDS SELVEDGE_LIBNVRTC SELVEDGE_LIBCUBLAS SELVEDGE_LIBNCCL SELVEDGE_LIBCUPTI SELVEDGE_ARCH SELVEDGE_IMAGE \
    SELVEDGE_GEMM

line() { printf '%-12s %-8s %5s  %s\n' "$@" >>"$summary"; }

# part NAME LIMIT WANTED-CODE program...: runs it with what is left of the time, and enters a line. WANTED-CODE is the
# exit code that counts as success.
part() {
    local name=$1 limit=$2 wanted=$3 left begin code verdict note
    shift 3
    left=$((budget - (SECONDS - started)))
    if [ "$left" -lt 5 ]; then
        line "$name" "NOT RUN" 0s "the time was spent"
        failed=1
        return 1
    fi
    [ "$limit" -lt "$left" ] || limit=$left
    echo "== $name"
    begin=$SECONDS
    timeout --kill-after=5 "$limit" "$@" >"$work/logs/$name.log" 2>&1
    code=$?
    note=$(grep -E 'test result:|ERROR SUMMARY|no device|^soak:' "$work/logs/$name.log" | tail -n 2 | tr '\n' ' ' | cut -c 1-150)
    if [ "$code" -eq "$wanted" ]; then
        verdict=passed
    else
        verdict=FAILED
        failed=1
        case $code in
            124 | 137) note="stopped after $limit s; $note" ;;
            *) note="exit code $code, wanted $wanted; $note" ;;
        esac
        tail -n "${shown:-40}" "$work/logs/$name.log"
    fi
    line "$name" "$verdict" "$((SECONDS - begin))s" "$note"
    [ "$verdict" = passed ]
}

# suite NAME program...: runs the device suite, by a program that starts another if one is given.
suite() {
    # Of a run that fails, its log of all processes, which has the ends of those that failed.
    local name=$1 shown=1000
    shift
    part "$name" "$suite_limit" 0 "$@" bash "$here/device_suite.sh" "$work/logs/$name" "$here/gpu" "${suite_arguments[@]}"
}

absent() {
    echo "== $1: $2"
    line "$1" skipped 0s "$2"
}

wants() { case " $parts " in *" $1 "*) return 0 ;; *) return 1 ;; esac; }

# How far the toolkit can be put out of reach here.
command=("${bare_environment[@]}")
hidden_by="the environment alone, because unshare is not permitted here"
if [ -n "$namespace" ] && unshare -m mount --bind /dev/null "$0" 2>/dev/null; then
    command=(unshare -m bash "$here/gpu_suite.sh" --hide-and-run "$namespace")
    hidden_by="a mount namespace"
elif [ -n "$namespace" ] && unshare -r -m mount --bind /dev/null "$0" 2>/dev/null; then
    command=(unshare -r -m bash "$here/gpu_suite.sh" --hide-and-run "$namespace")
    hidden_by="a mount namespace of a user namespace"
fi

sanitizer=${SANITIZER:-$(command -v compute-sanitizer || ls -d /usr/local/cuda*/bin/compute-sanitizer 2>/dev/null | tail -n 1)}

sanitized() {
    local tool=$1 arguments=() word
    for word in $skip; do arguments+=(--skip "$word"); done
    # Calls that fail on purpose are part of the suite, so only what kernels do is reported.
    SELVEDGE_POOL=none part "$tool" 300 0 "$sanitizer" --tool "$tool" --report-api-errors no --error-exitcode 99 \
        "$here/gpu" --test-threads 1 "${suite_arguments[@]}" "${arguments[@]}" "${only[@]}"
}

export SELVEDGE_BENCH_COMMIT
SELVEDGE_BENCH_COMMIT=${SELVEDGE_BENCH_COMMIT:-$(cat "$here/commit" 2>/dev/null || echo unknown)}
cd "$work" || exit 1

if wants info && [ -x "$here/selvedge" ]; then
    part info 60 0 "$here/selvedge" info
    cat "$work/logs/info.log" 2>/dev/null
fi
if wants capi && [ -d "$here/capi" ]; then
    for program in "$here"/capi/*; do
        [ "${program##*.so.}" = "$program" ] || continue
        part "c_$(basename "$program")" 60 0 "$program"
        cat "$work/logs/c_$(basename "$program").log" 2>/dev/null
    done
fi
if wants capi && [ -d "$here/dlpack" ]; then
    # DLPack with each library that the Python has.
    python=${SELVEDGE_BENCH_PYTHON:-python3}
    for name in torch cupy jax; do
        if ! "$python" -c "import $name" 2>/dev/null; then
            absent "dlpack_$name" "no $name for $python here"
            continue
        fi
        part "dlpack_$name" 120 0 "$python" -B "$here/dlpack/dlpack_device.py" "$here"/capi/libselvedge.so.* \
            "$here/dlpack/selvedge.h" "$name"
        cat "$work/logs/dlpack_$name.log" 2>/dev/null
        line "" "" "" "$(grep -E "not run|left out" "$work/logs/dlpack_$name.log" | tail -n 1 | cut -c 1-150)"
    done
fi
if wants benches && [ -x "$here/ground" ]; then
    # First, while nothing else runs and the card is as it was found.
    part benches 150 0 "$here/ground" --out "$work/results" "${bench_arguments[@]}"
    cat "$work/logs/benches.log" 2>/dev/null
fi
if wants pytorch; then
    if python3 -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null; then
        part pytorch 120 0 python3 "$here/pytorch_figures.py" "$work/results" "$work/traces/pytorch.json"
        cat "$work/logs/pytorch.log" 2>/dev/null
    else
        absent pytorch "no PyTorch with a device here"
    fi
fi
if wants memory && [ -x "$here/memory" ]; then
    [ -n "$trace" ] || [ ! -f "$work/traces/pytorch.json" ] || trace=$work/traces/pytorch.json
    part memory 150 0 "$here/memory" --out "$work/results" ${trace:+--trace "$trace"} "${memory_arguments[@]}"
    cat "$work/logs/memory.log" 2>/dev/null
fi
for bench in launcher gemm fuse reduce moving rows attention sorting burst catalogue classifier; do
    if wants $bench && [ -x "$here/$bench" ]; then
        # LAUNCHER_ARGUMENTS and its like.
        arguments_of=${bench^^}_ARGUMENTS
        read -r -a bench_arguments <<<"${!arguments_of:-}"
        part $bench 240 0 "$here/$bench" --out "$work/results" "${bench_arguments[@]}"
        cat "$work/logs/$bench.log" 2>/dev/null
    fi
done
if wants soak; then
    SELVEDGE_SOAK_SECONDS=$soak part soak $((soak * 5 / 4 + 60)) 0 "$here/gpu" soak --nocapture
fi
wants native && suite native
wants driver_only && suite driver_only env SELVEDGE_LIBNVRTC=none SELVEDGE_LIBCUBLAS=none SELVEDGE_LIBNCCL=none SELVEDGE_LIBCUPTI=none
if wants hidden; then
    suite hidden "${command[@]}"
    line "" "" "" "hidden by $hidden_by; $(grep -m 1 '^hidden:' "$work/logs/hidden.log")"
    if [ -x "$here/selvedge" ]; then
        # Record what the program finds then.
        "${command[@]}" "$here/selvedge" info >"$work/logs/hidden_info.log" 2>&1
    fi
fi
if wants python && [ -d "$here/python" ]; then
    python=${SELVEDGE_BENCH_PYTHON:-python3}
    # Without an index: the wheel needs nothing else.
    if ! "$python" -c 'import numpy, pytest' 2>/dev/null; then
        absent python "no NumPy and pytest for $python here"
    elif part python_wheel 60 0 "$python" -m pip install --quiet --no-index --no-deps --target "$work/wheel" \
        "$here"/python/*.whl; then
        package=(env PYTHONPATH="$work/wheel" PYTHONDONTWRITEBYTECODE=1)
        part python 150 0 "${package[@]}" SELVEDGE_CONVERSIONS=1000000 "$python" -m pytest -q -rs -p no:cacheprovider \
            "$here/python/tests"
        tail -n 20 "$work/logs/python.log" 2>/dev/null
        line "" "" "" "$(tail -n 1 "$work/logs/python.log" 2>/dev/null | cut -c 1-150)"
        if "$python" -c 'import torch.testing._internal.common_methods_invocations' 2>/dev/null; then
            part python_torch 150 0 "${package[@]}" "$python" "$here/python/tests/torch_samples.py" --device cuda
            line "" "" "" "$(tail -n 1 "$work/logs/python_torch.log" 2>/dev/null | cut -c 1-150)"
        else
            absent python_torch "no PyTorch with its testing modules for $python here"
        fi
    fi
fi
if [ -n "$sanitizer" ]; then
    wants memcheck && sanitized memcheck
    wants initcheck && sanitized initcheck
    if wants seeded; then
        # The wanted code is the sanitizer's own: a run in which it sees nothing, or in which the test is not there, fails.
        SELVEDGE_POOL=none part seeded 60 99 "$sanitizer" --tool memcheck --error-exitcode 99 \
            "$here/gpu" --ignored "$seeded"
        grep -q 'Invalid __global__ write' "$work/logs/seeded.log" 2>/dev/null ||
            { line "" FAILED "" "the log of seeded names no invalid write"; failed=1; }
    fi
else
    for name in memcheck initcheck seeded; do
        wants "$name" && absent "$name" "no compute-sanitizer here"
    done
fi
if wants host && [ -x "$here/host" ]; then
    CRITERION_HOME="$work/criterion" part host 60 0 "$here/host" --bench --noplot
    grep -E 'time:' "$work/logs/host.log" 2>/dev/null
fi

{
    echo
    nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null
    echo "commit $SELVEDGE_BENCH_COMMIT, $((SECONDS - started)) s"
    cat "$summary"
} | tee "$out/summary.txt"
tar -C "$work" -czf "$out/suite.tar.gz" logs results traces
exit "$failed"
