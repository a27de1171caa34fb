#!/bin/bash
# python.sh [quick]: builds the Python package into a virtual environment, target/python, and runs its tests on the CPU, with
# SELVEDGE_ARRAY_API_TESTS or SELVEDGE_CI=all the array API's suite (.ci/array_api.sh), and the tests that need a device on the
# fake driver. `quick` stops after the tests on the CPU, and leaves clippy out.
set -euo pipefail

case ${1:-} in
    '' | quick) ;;
    *) echo "python.sh: unknown argument $1" >&2; exit 2 ;;
esac

environment=${CARGO_TARGET_DIR:-target}/python
if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    echo "the Python package needs Python 3.11 or newer; found $(python3 --version 2>&1)"
    exit 1
fi
[ -x "$environment/bin/python" ] || python3 -m venv "$environment"
if ! "$environment/bin/pip" install --quiet --disable-pip-version-check "maturin>=1.9,<2" numpy pytest; then
    echo "pip could not install maturin, numpy and pytest, which the tests of the Python package need"
    exit 1
fi
# The reference of the array API's namespace, whose test says so and is left out without it; dtypes that NumPy lacks; and
# checkers of types.
for package in "array-api-strict>=2.3" ml_dtypes mypy pyright; do
    "$environment/bin/pip" install --quiet --disable-pip-version-check "$package" ||
        echo "pip could not install $package: its tests are left out"
done

cargo fmt --package selvedge-python --check
[ "${1:-}" = quick ] || cargo clippy --package selvedge-python --package selvedge-program -- -D warnings
VIRTUAL_ENV=$(realpath "$environment") "$environment/bin/maturin" develop --quiet \
    --manifest-path python/Cargo.toml
"$environment/bin/pytest" python
[ "${1:-}" != quick ] || exit 0
# The suite is fetched by git, and its values depend on the version of hypothesis: it runs where it is asked for.
if [ -n "${SELVEDGE_ARRAY_API_TESTS:-}" ] || [ "${SELVEDGE_CI:-}" = all ]; then
    .ci/array_api.sh "$environment"
else
    echo "the array API's suite is left out: SELVEDGE_ARRAY_API_TESTS and SELVEDGE_CI=all ask for it"
fi

# As `pip install ./python`, but with the profile of the build above, so that cargo has nothing to do. The metadata is that of the
# wheel of a release (scripts/build_wheel.sh).
installed=$(realpath "$environment")/installed
wheels=$(realpath "$environment")/wheels
rm -rf "$installed" "$wheels"
PATH=$(realpath "$environment")/bin:$PATH "$environment/bin/pip" wheel --quiet --disable-pip-version-check --no-build-isolation \
    --no-deps --wheel-dir "$wheels" --config-settings=build-args="--profile dev" ./python
if "$environment/bin/pip" install --quiet --disable-pip-version-check twine; then
    "$environment/bin/twine" check --strict "$wheels"/*.whl
else
    echo "pip could not install twine: the wheel's metadata is not checked"
fi
"$environment/bin/pip" install --quiet --disable-pip-version-check --no-index --no-deps --target "$installed" "$wheels"/*.whl
PYTHONPATH=$installed "$environment/bin/python" -c "
import selvedge, selvedge.array_api, selvedge.burst, selvedge.srt
assert selvedge.__file__.startswith('$installed') and selvedge.ones(2).tolist() == [1, 1]"
PYTHONPATH=$installed "$environment/bin/python" -m selvedge --version

# The fake driver of tests/fake/variant.rs, as a driver of CUDA 13.0 with all of its functions.
driver=$(realpath "$environment")/fake_driver
mkdir -p "$driver"
sources=()
for source in csrc/fake_driver/*.c; do
    [ "${source##*/}" = self_test.c ] || sources+=("$source")
done
"${CC:-cc}" -std=gnu11 -O1 -fPIC -pthread -fvisibility=hidden -shared -Wl,-Bsymbolic -Wl,-soname,libcuda.so.1 -Wl,-z,nodelete \
    -DFAKE_DEFAULT_VERSION=13000 -DFAKE_STUB=0 '-DFAKE_OMIT="  "' "${sources[@]}" -o "$driver/libcuda.so.1"
# Other code may use the default streams.
FAKE_DEFAULT_STREAMS=1 SELVEDGE_LIBCUDA=$driver/libcuda.so.1 "$environment/bin/pytest" -rs python/tests/test_{cuda,kernel,streams}.py
