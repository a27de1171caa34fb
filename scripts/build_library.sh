#!/bin/sh
# Builds the C library: libselvedge.so.VERSION with its links, and libselvedge.a.
#
#   scripts/build_library.sh FOLDER [dev|release] [shared|all]
#
# FOLDER gets the files, and `private_libraries`, the linker's arguments that a program of the static library needs. With
# `shared` only the shared library is made. FEATURES names features of Cargo.toml beside `capi`: FEATURES=models adds the
# tokenizers of published models. CARGO and CARGO_TARGET_DIR are honoured.
#
# The name in programs is libselvedge.so.N with the ABI's version N, so that a program never runs on another ABI. Calls
# inside of the library stay inside of it where a process holds two copies. The library is never unloaded: its threads may
# still run after dlclose. The static library has one object, whose only global symbols are sv_*, so that it links
# beside other Rust code.
set -eu

if [ $# -lt 1 ]; then
    sed -n 's/^#   //p' "$0" >&2
    exit 2
fi
mkdir -p "$1"
folder=$(cd "$1" && pwd)
profile=${2:-release}
kind=${3:-all}
cd "$(dirname "$0")/.."

version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
abi=$(sed -n 's/^abi //p' include/selvedge.symbols)
types=cdylib
[ "$kind" = shared ] || types=cdylib,staticlib
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# Functions inline at the size that LLVM allows where it optimizes for size: the library is a fourteenth smaller, and sums,
# scans, sorts, products and small operations on the CPU are as fast.
# Cargo names the files in its messages.
"${CARGO:-cargo}" rustc --lib --profile "$profile" --features "capi ${FEATURES:-}" --crate-type "$types" \
    --message-format=json-render-diagnostics -- \
    -C llvm-args=-inline-threshold=50 -C link-arg="-Wl,-soname,libselvedge.so.$abi" -C link-arg=-Wl,-Bsymbolic-functions -C link-arg=-Wl,-z,nodelete \
    >"$log"
built() {
    tr ',[]' '\n\n\n' <"$log" | sed -n "s/^\"\(.*\/libselvedge\.$1\)\"$/\1/p" | tail -n 1
}

shared=libselvedge.so.$version
# Replaced and not overwritten, in case a program uses it.
rm -f "$folder/$shared"
cp "$(built so)" "$folder/$shared"
ln -sf "$shared" "$folder/libselvedge.so.$abi"
ln -sf "libselvedge.so.$abi" "$folder/libselvedge.so"
[ "$kind" != shared ] || exit 0

object=$folder/selvedge.o
${CC:-cc} -r -nostdlib -Wl,--whole-archive "$(built a)" -o "$object"
# The standard library's bitcode, cut together, is none that a linker's plugin can read.
objcopy --wildcard --keep-global-symbol='sv_*' --strip-debug --remove-section .llvmbc --remove-section .llvmcmd "$object"
rm -f "$folder/libselvedge.a"
ar rcs "$folder/libselvedge.a" "$object"
rm "$object"
rustc --print native-static-libs --crate-type staticlib --crate-name empty -o "$log" - 2>&1 </dev/null |
    sed -n 's/^note: native-static-libs: //p' >"$folder/private_libraries"
[ -s "$folder/private_libraries" ]
