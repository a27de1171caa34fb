#!/bin/sh
# Bundles what runs on a machine with a GPU and no cargo: the device test suite, the benchmarks, the program
# `selvedge`, the C baseline and the script that runs them all.
#
#   scripts/bundle.sh [FOLDER]        (.carry without it; git ignores that)
#
# Copy the folder to the other machine and run `FOLDER/gpu_suite.sh` there. Nothing in it reads a source path; the
# machine needs the driver and a C library at least as new as this machine's.
# CARGO_TARGET_DIR and CARGO are honoured. PARTS chooses among "suite benches gemm cli" (these four without it), "capi",
# the C library with its examples, and "python", the wheel with its tests and benchmarks, by the maturin of MATURIN (that of
# .ci/python.sh without it).
#
#   PARTS=all scripts/bundle.sh [FOLDER]
#
# bundles every test executable, the examples and the program instead, in FOLDER/1, FOLDER/2 and so on, each with a script
# `run.sh` that runs them (scripts/run_tests.sh). It needs python3, xz and a C++ compiler; scripts/bundle_tests.py lists
# its settings.
set -eu

case ${1:-} in
-h | --help)
    # The comment at the head of this file.
    sed -n '2,/^set -eu$/{ /^#/ { s/^# \{0,1\}//; p; }; }' "$0"
    exit ;;
-*)
    echo "bundle.sh: no option $1; the argument is a folder (see --help)" >&2
    exit 2 ;;
esac
if [ $# -gt 1 ]; then
    echo "bundle.sh: $# arguments; one folder at most (see --help)" >&2
    exit 2
fi

cd "$(dirname "$0")/.."
out=${1:-.carry}
cargo=${CARGO:-cargo}
parts=${PARTS:-suite benches gemm cli}
# One set for all, so that the library is built once.
features=gpu,cli
mkdir -p "$out"

if [ "$parts" = all ]; then
    python3 scripts/bundle_tests.py "$out"
    echo "bundled in $out:"
    du -ah "$out"/[0-9]* | sort -k 2
    exit
fi

# The path of the executable that cargo's messages (on stdin) name for target $1.
executable() {
    sed -n "s/.*\"target\":{[^}]*\"name\":\"$1\"[^}]*}.*\"executable\":\"\([^\"]*\)\".*/\1/p" | tail -n 1
}

# place TARGET NAME cargo-arguments...: builds and copies one executable.
place() {
    target=$1
    name=$2
    shift 2
    echo "building $name"
    path=$("$cargo" "$@" --message-format=json-render-diagnostics | executable "$target")
    if [ -z "$path" ]; then
        echo "bundle.sh: cargo named no executable for $target" >&2
        exit 1
    fi
    # Replaced and not overwritten, in case one of them runs.
    rm -f "$out/$name"
    cp "$path" "$out/$name"
    strip "$out/$name" 2>/dev/null || true
}

case " $parts " in *" suite "*)
    place gpu gpu test --release --features "$features" --test gpu --no-run ;;
esac
case " $parts " in *" benches "*)
    place ground ground bench --features "$features" --bench ground --no-run
    place memory memory bench --features "$features" --bench memory --no-run
    place launcher launcher bench --features "$features" --bench launcher --no-run
    place fuse fuse bench --features "$features" --bench fuse --no-run
    place reduce reduce bench --features "$features" --bench reduce --no-run
    place moving moving bench --features "$features" --bench moving --no-run
    place rows rows bench --features "$features" --bench rows --no-run
    place attention attention bench --features "$features" --bench attention --no-run
    place models models bench --features "$features" --bench models --no-run
    place training training bench --features "$features" --bench training --no-run
    place sorting sorting bench --features "$features" --bench sorting --no-run
    place burst burst bench --features "$features" --bench burst --no-run
    place catalogue catalogue bench --features "$features" --bench catalogue --no-run
    place classifier classifier bench --features "$features" --bench classifier --no-run
    place host host bench --features "$features" --bench host --no-run
    "${CC:-cc}" -O2 -Wa,-Icsrc/bench -o "$out/first_result_c" csrc/bench/first_result.c -ldl
    strip "$out/first_result_c" 2>/dev/null || true ;;
esac
case " $parts " in *" gemm "*)
    place gemm gemm bench --features "$features" --bench gemm --no-run ;;
esac
case " $parts " in *" cli "*)
    place selvedge selvedge build --release --features "$features" --bin selvedge ;;
esac
case " $parts " in *" capi "*)
    # The C library and its examples, which find it beside them.
    folder=$out/capi
    rm -rf "$folder"
    scripts/build_library.sh "$folder" release shared
    for source in csrc/examples/*.c; do
        "${CC:-cc}" -std=c99 -O2 -Iinclude "$source" -L"$folder" -lselvedge -lm -Wl,-rpath,'$ORIGIN' \
            -o "$folder/$(basename "$source" .c)"
    done
    # One file under the name that programs look for, in place of links.
    name=$(readlink "$folder/libselvedge.so")
    mv "$(readlink -f "$folder/libselvedge.so")" "$folder/library"
    rm "$folder"/libselvedge.so*
    mv "$folder/library" "$folder/$name"
    # DLPack with other libraries, by their Python.
    rm -rf "$out/dlpack"
    mkdir "$out/dlpack"
    cp tests/capi/dlpack_ctypes.py tests/capi/dlpack_device.py include/selvedge.h "$out/dlpack" ;;
esac
case " $parts " in *" python "*)
    maturin=${MATURIN:-${CARGO_TARGET_DIR:-target}/python/bin/maturin}
    if ! command -v "$maturin" >/dev/null; then
        echo "bundle.sh: the part python needs maturin; found none at $maturin. .ci/python.sh installs it, or set MATURIN" >&2
        exit 1
    fi
    folder=$out/python
    rm -rf "$folder"
    mkdir "$folder"
    "$maturin" build --quiet --release --strip --manifest-path python/Cargo.toml --out "$folder"
    cp -R python/tests python/benches "$folder"
    # The fixture `repository` is two folders above the tests.
    mkdir -p "$folder/package/selvedge" "$folder/examples" "$out/docs"
    cp python/package/selvedge/*.py* "$folder/package/selvedge"
    cp python/examples/*.py "$folder/examples"
    cp docs/tensor-methods.md "$out/docs"
    find "$folder" -name __pycache__ -prune -exec rm -rf {} + ;;
esac
cp scripts/gpu_suite.sh scripts/device_suite.sh "$out"
cp scripts/pytorch_figures.py "$out/pytorch_figures.py"
git describe --always --dirty --abbrev=10 >"$out/commit" 2>/dev/null || echo unknown >"$out/commit"

echo "bundled in $out:"
du -ah "$out" | sort -k 2
