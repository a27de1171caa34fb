#!/bin/bash
# c_abi.sh LIMIT [BASE]: the C ABI. The header and the list of symbols are those of src/capi, and keep what they had at the
# commit BASE. The library is installed in an empty folder, which is moved; its shared library has at most LIMIT MB and
# exports the listed functions alone; the examples are built by pkg-config and by CMake, shared and static, and run.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

since=()
[ -z "${2:-}" ] || since=(--since "$2")
cargo test --quiet --manifest-path scripts/header/Cargo.toml
scripts/generate.sh --check "${since[@]}" header

scripts/install.sh "$folder/first"
mv "$folder/first" "$folder/prefix"
prefix=$folder/prefix
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
abi=$(sed -n 's/^abi //p' include/selvedge.symbols)

shared=$prefix/lib/libselvedge.so.$version
bytes=$(wc -c <"$shared")
echo "libselvedge.so: $bytes bytes, $1 MB allowed"
[ "$bytes" -le $(($1 * 1000000)) ]
readelf -d "$shared" | grep "soname: \[libselvedge.so.$abi\]" >/dev/null
if readelf -d "$shared" | grep NEEDED | grep -E 'cuda|nvrtc|cublas|nccl'; then
    echo "the library needs a library of CUDA to load"
    exit 1
fi
sed -n 's/^function .*\(sv_[a-z0-9_]*\)(.*/\1/p' include/selvedge.symbols | sort >"$folder/listed"
nm -D --defined-only "$shared" | awk '{ print $3 }' | sort | diff "$folder/listed" -
nm --defined-only --extern-only "$prefix/lib/libselvedge.a" | awk 'NF == 3 { print $3 }' | sort | diff "$folder/listed" -

# Nothing of CUDA is seen, so that each example says why it does nothing.
export SELVEDGE_LIBCUDA=none SELVEDGE_LIBNVRTC=none SELVEDGE_LIBCUBLAS=none SELVEDGE_LIBNCCL=none SELVEDGE_LIBCUPTI=none
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
[ "$(pkg-config --modversion selvedge)" = "$version" ]
read -ra flags <<<"$(pkg-config --cflags selvedge)"
read -ra dynamic <<<"$(pkg-config --libs selvedge)"
private=()
for flag in $(pkg-config --static --libs-only-l selvedge); do
    [ "$flag" = -lselvedge ] || private+=("$flag")
done
for source in csrc/examples/*.c; do
    name=$(basename "$source" .c)
    echo "-- $name, shared and static"
    cc -std=c99 -Wall -Wextra -Wpedantic -Werror "${flags[@]}" "$source" "${dynamic[@]}" -lm -o "$folder/shared_$name"
    LD_LIBRARY_PATH=$prefix/lib "$folder/shared_$name" >"$folder/shared_output"
    cat "$folder/shared_output"
    cc -std=c99 -Wl,--gc-sections "${flags[@]}" "$source" "$prefix/lib/libselvedge.a" "${private[@]}" \
        -o "$folder/static_$name"
    "$folder/static_$name" >"$folder/static_output"
    cmp "$folder/shared_output" "$folder/static_output"
done
for source in csrc/examples/*.cpp; do
    name=$(basename "$source" .cpp)
    for standard in c++17 c++20; do
        echo "-- $name, $standard"
        c++ -std=$standard -Wall -Wextra -Wpedantic -Werror "${flags[@]}" "$source" "${dynamic[@]}" -o "$folder/$name"
        LD_LIBRARY_PATH=$prefix/lib "$folder/$name"
    done
done

# The commands of the pages, word for word, for programs in a new folder and an installation in the home folder. `./program` starts.
commands() { # PAGE START: the block of commands that begins with the line START
    awk -v start="$2" '/^```/ { inside = 0 } inside || (opened && $0 == start) { inside = 1; print } { opened = /^```sh$/ }' "$1"
}
mkdir -p "$folder/home" "$folder/page"
ln -s "$prefix" "$folder/home/.local"
cp csrc/examples/devices.c "$folder/page/program.c"
cp csrc/examples/tensors.cpp "$folder/page/program.cpp"
cp csrc/examples/try.h "$folder/page/"
for page in docs/c-abi.md docs/cpp.md; do
    commands $page 'export PKG_CONFIG_PATH="$HOME/.local/lib/pkgconfig"' >"$folder/page/commands.sh"
    [ "$(tail -n 1 "$folder/page/commands.sh")" = ./program ]
    echo "-- the commands of $page"
    (cd "$folder/page" && env -u PKG_CONFIG_PATH -u LD_LIBRARY_PATH HOME="$folder/home" sh -e commands.sh)
done

cmake=$(command -v cmake || true)
if [ -z "$cmake" ] && python3 -m venv "$folder/venv" && "$folder/venv/bin/pip" install --quiet cmake; then
    cmake=$folder/venv/bin/cmake
fi
if [ -z "$cmake" ]; then
    echo "the CMake project is left out: CMake cannot be fetched here"
else
    "$cmake" -S csrc/examples/cmake -B "$folder/build" -DCMAKE_PREFIX_PATH="$prefix" >/dev/null
    "$cmake" --build "$folder/build" >/dev/null
    "$folder/build/devices"
    "$folder/build/devices_static"
    "$folder/build/tensors" >/dev/null
    # The profile and the folder are those of the installation above, so that cargo has nothing to build.
    CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target} "$cmake" -S csrc/examples/cmake_subdirectory -B "$folder/subdirectory" >/dev/null
    "$cmake" --build "$folder/subdirectory" >/dev/null
    "$folder/subdirectory/tensors" >/dev/null
    "$folder/subdirectory/devices_static"
    CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target} "$cmake" -S csrc/examples/cmake_fetchcontent -B "$folder/fetchcontent" \
        -DFETCHCONTENT_SOURCE_DIR_SELVEDGE="$PWD" >/dev/null
    "$cmake" --build "$folder/fetchcontent" >/dev/null
    "$folder/fetchcontent/tensors" >/dev/null
fi

if command -v cargo-cinstall >/dev/null; then
    cargo cinstall --release --destdir "$folder/cargo_c" --prefix /usr --libdir /usr/lib
    [ -f "$folder/cargo_c/usr/include/selvedge.h" ] && [ -f "$folder/cargo_c/usr/include/selvedge/tensor.hpp" ] && [ -e "$folder/cargo_c/usr/lib/libselvedge.so.$abi" ]
else
    echo "cargo cinstall is left out: cargo-c is not installed"
fi
