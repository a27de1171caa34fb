#!/bin/sh
# Builds the wheel of the Python package for a release, and checks it: one wheel for CPython 3.11 and later on Linux with glibc 2.28 or
# later (manylinux_2_28), which needs no compiler where it is installed.
#
#   scripts/build_wheel.sh FOLDER
#
# FOLDER gets the wheel; `twine upload FOLDER/*.whl` publishes it. The linker is zig of PyPI's `ziglang`, which links to an older glibc than
# this machine's. The checks: auditwheel finds no newer symbol, the wheel has less than 16 MB, twine accepts the metadata, and the wheel
# runs in an empty virtual environment, where `import selvedge` takes less than 60 ms beside the start of the interpreter.
# CARGO_TARGET_DIR and PYTHON (python3 without it) are honoured. The build takes about ten minutes on two cores.
set -eu

if [ $# -ne 1 ]; then
    sed -n 's/^#   //p' "$0" >&2
    exit 2
fi
mkdir -p "$1"
folder=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
python=${PYTHON:-python3}

if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    echo "build_wheel.sh: Python 3.11 or later is needed; found $("$python" --version 2>&1)" >&2
    exit 1
fi
tools=$target/wheel/tools
[ -x "$tools/bin/python" ] || "$python" -m venv "$tools"
"$tools/bin/python" -m pip install --quiet --disable-pip-version-check "maturin>=1.9,<2" ziglang auditwheel twine
tools=$(cd "$tools" && pwd)

# maturin looks for `python -m ziglang` on the path.
rm -f "$folder"/selvedge-*.whl
PATH=$tools/bin:$PATH "$tools/bin/maturin" build --release --strip --zig --compatibility manylinux_2_28 \
    --manifest-path python/Cargo.toml --out "$folder"
wheel=$(echo "$folder"/selvedge-*.whl)

# This fails for a wheel whose symbols its name does not allow.
"$tools/bin/auditwheel" show "$wheel"
case $wheel in
*-cp311-abi3-manylinux_2_28_*.whl) ;;
*) echo "build_wheel.sh: found $(basename "$wheel"); wanted cp311-abi3-manylinux_2_28" >&2; exit 1 ;;
esac
bytes=$(wc -c <"$wheel")
echo "$(basename "$wheel"): $bytes bytes"
if [ "$bytes" -ge 16000000 ]; then
    echo "build_wheel.sh: the wheel has $bytes bytes; wanted less than 16000000" >&2
    exit 1
fi
"$tools/bin/twine" check --strict "$wheel"

empty=$target/wheel/empty
rm -rf "$empty"
"$python" -m venv "$empty"
# Without a compiler: nothing but the wheel may be installed.
CC=false CXX=false "$empty/bin/python" -m pip install --quiet --disable-pip-version-check --no-index "$wheel"
"$empty/bin/python" - <<'CHECK'
import statistics
import subprocess
import sys
import time


def milliseconds(code):
    """Returns the median time of ten processes, after one that reads the files."""
    times = []
    for _ in range(11):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times[1:])


subprocess.run([sys.executable, "-c", "import selvedge; assert (selvedge.ones(2) + 1).tolist() == [2, 2]"], check=True)
start = milliseconds("pass")
took = milliseconds("import selvedge") - start
print(f"import selvedge: {took:.1f} ms beside the interpreter's {start:.1f} ms")
if took >= 60:
    sys.exit(f"build_wheel.sh: the import takes {took:.1f} ms; wanted less than 60")
CHECK
