#!/bin/sh
# Writes the generated files of this repository from their sources, or checks that they are what the sources give.
#
#   scripts/generate.sh [NAME ...]                            writes the files of each NAME
#   scripts/generate.sh --check [--since COMMIT] [NAME ...]   changes nothing; names the files that differ, and fails
#   scripts/generate.sh --list                                prints the names, their files and their sources
#   scripts/generate.sh --help
#
# Without NAME it takes the names that need cargo and fetched wheels alone (`always`), in an order in which sources come before
# what is made of them. --since COMMIT, for a check, trusts the images that ptx/manifest has at COMMIT, and also compares
# the C ABI with that of COMMIT. CARGO and PYTHON are honoured. Errors: 1 where a file differs or was not written, 2 for wrong
# arguments.
#
# .ci/run checks every name that is `always`, and losses: images, bindings, header and losses by this script, the others by
# `cargo test`, whose tests are the ones that this script runs.
set -eu

cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
python=${PYTHON:-python3}

# A row: name | when | files | source. Files of a row are separated by spaces. tests/documents.rs reads this table.
table() {
    cat <<'TABLE'
activations | always | csrc/kernels/activations.cuh | the table of src/gemm/activation.rs
images | always | ptx | csrc/kernels, csrc/images.txt, by scripts/build_images.py
bindings | always | src/sys/driver.rs src/sys/nvrtc.rs src/sys/cublas.rs src/sys/cublaslt.rs src/sys/nccl.rs src/sys/cupti.rs src/sys/cupti13.rs src/sys/generated.sums | wrapper.h and the CUDA headers, by scripts/build_bindings.py
operations | always | src/capi/tensor/operations.rs | `ops!` of src/fuse/language/operation.rs
header | always | include/selvedge.h include/selvedge.symbols | src/capi, by scripts/header
methods | always | docs/tensor-methods.md | src/tensor, by tests/documents.rs
faces | always | docs/faces.md | tests/documents/faces, by tests/documents.rs
results | always | benches/RESULTS.md benches/results | benches/results/*.json and benches/notes.json, by benches/ground
refusals | named | tests/compile_fail | the programs of tests/compile_fail, by the Rust release that tests/compile_fail.rs names
coefficients | named | src/fuse/language/lower/coefficients.rs | scripts/make_polynomials.py
functions | named | tests/data/fuse/functions.zst | scripts/make_function_vectors.py
normal | named | tests/data/fuse/normal.txt | scripts/make_normal_quantile.py
derivatives | named | tests/data/fuse/derivatives.txt | scripts/make_derivatives.py; needs mpmath
losses | named | tests/data/training/losses.json | tests/data/training/reference.py; needs NumPy
TABLE
}

# Files that other tools made, which this script cannot fetch.
others() {
    cat <<'OTHERS'
tests/data/gpu/*.ptx      scripts/make_test_kernels.py, with the toolkit's wheels in a folder
tests/data/gpu/foreign    scripts/make_foreign_images.py, with nvcc, Triton, numba-cuda and CuPy
tests/data/gpt2           tests/data/gpt2/make_reference.py, with PyTorch and transformers
tests/data/training       weights.safetensors and batches.safetensors: the ignored test of tests/nn/reference.rs
OTHERS
}

fail() {
    echo "generate.sh: $1" >&2
    exit 2
}

# The third field of a name's row.
files() {
    table | sed -n "s/^$1 | [a-z]* | \(.*\) | .*/\1/p"
}

check=
since=
names=
while [ $# -gt 0 ]; do
    case $1 in
        --help | -h)
            sed -n '2,/^set /s/^# \{0,1\}//p' "$0"
            exit 0
            ;;
        --list)
            table
            printf '\nnot by this script:\n'
            others
            exit 0
            ;;
        --check) check=yes ;;
        --since)
            [ $# -ge 2 ] || fail "--since: the commit is missing"
            since=$2
            shift
            ;;
        -*) fail "unknown option $1; --help lists the options" ;;
        *)
            [ -n "$(files "$1")" ] || fail "nothing is called $1; the names are $(table | sed 's/ .*//' | tr '\n' ' ')"
            names="$names $1"
            ;;
    esac
    shift
done
[ -z "$since" ] || [ -n "$check" ] || fail "--since is for --check"
[ -n "$names" ] || names=$(table | sed -n 's/ | always | .*//p')

scratch=$(mktemp -d)
saved=
# Puts a file back that a check let a program write.
restore() {
    [ -z "$saved" ] || cp -p "$scratch/saved" "$saved"
    saved=
}
trap 'restore; rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM

# passes NAME ARGUMENT...: runs one test by its full name with these arguments of cargo. A test that is not there fails.
passes() {
    test=$1
    shift
    if "$cargo" test --quiet "$@" -- --exact "$test" >"$scratch/log" 2>&1 &&
        grep '^test result: ok\. 1 passed' "$scratch/log" >/dev/null; then
        return 0
    fi
    cat "$scratch/log" >&2
    return 1
}

# writes VARIABLE NAME ARGUMENT...: the same test, which writes its file while the variable is set.
writes() {
    variable=$1
    shift
    (export "$variable=1" && passes "$@")
}

# remade FILE COMMAND...: whether the command writes the file as it is.
remade() {
    cp -p "$1" "$scratch/saved"
    saved=$1
    shift
    code=0
    "$@" >"$scratch/log" 2>&1 || code=1
    [ "$code" -eq 0 ] || cat "$scratch/log" >&2
    cmp "$saved" "$scratch/saved" >&2 || code=1
    restore
    return "$code"
}

# made FILE COMMAND...: has the command write the file, or check it.
made() {
    if [ -n "$check" ]; then
        remade "$@"
    else
        shift
        "$@"
    fi
}

# tested VARIABLE NAME ARGUMENT...: has the test write its file, or check it.
tested() {
    if [ -n "$check" ]; then
        shift
        passes "$@"
    else
        writes "$@"
    fi
}

generate() {
    # A list of options that may be empty.
    options=${check:+--check}
    case $1 in
        activations)
            tested SELVEDGE_WRITE_ACTIVATIONS \
                gemm::activation::tests::the_header_of_the_kernels_is_written_from_the_table --all-features --lib
            ;;
        images)
            # shellcheck disable=SC2086
            "$python" scripts/build_images.py $options ${since:+--since "$since"}
            ;;
        bindings)
            # shellcheck disable=SC2086
            "$python" scripts/build_bindings.py --if-changed $options
            ;;
        operations)
            tested SELVEDGE_WRITE_OPERATIONS \
                capi::tensor::elementwise::tests::operations_are_those_of_the_list --all-features --lib
            ;;
        header)
            older=
            # The first list has no older one.
            if [ -n "$since" ] && git show "$since:include/selvedge.symbols" >"$scratch/symbols" 2>/dev/null; then
                older=$scratch/symbols
            fi
            # shellcheck disable=SC2086
            "$cargo" run --quiet --manifest-path scripts/header/Cargo.toml -- $options ${older:+--since "$older"}
            ;;
        methods)
            tested SELVEDGE_UPDATE_DOCS the_page_of_tensor_methods_is_that_of_the_source \
                --all-features --test documents
            ;;
        faces)
            tested SELVEDGE_UPDATE_DOCS faces::the_page_of_faces_is_that_of_the_table --all-features --test documents
            ;;
        results)
            if [ -n "$check" ]; then
                passes the_page_is_rendered_from_the_results --all-features --test results
            else
                "$cargo" bench --quiet --bench ground -- render
            fi
            ;;
        refusals)
            # Without further features, whose types would be in the compiler's lists of candidates.
            tested SELVEDGE_UPDATE_DOCS programs_that_break_a_guarantee_do_not_compile --test compile_fail
            ;;
        coefficients) made "$(files "$1")" "$python" scripts/make_polynomials.py ;;
        functions) made "$(files "$1")" "$python" scripts/make_function_vectors.py ;;
        normal) made "$(files "$1")" "$python" scripts/make_normal_quantile.py ;;
        derivatives) made "$(files "$1")" "$python" scripts/make_derivatives.py ;;
        losses)
            # shellcheck disable=SC2086
            "$python" tests/data/training/reference.py $options
            ;;
        *) fail "$1 has a row and no command" ;;
    esac
}

differing=
for name in $names; do
    echo "-- $name: $(files "$name")"
    if generate "$name"; then
        continue
    fi
    [ -n "$check" ] || {
        echo "generate.sh: $name was not written" >&2
        exit 1
    }
    differing="$differing $name"
done
if [ -n "$differing" ]; then
    echo "generate.sh: these failed, of files that differ or for the reason above:" >&2
    for name in $differing; do
        echo "  $(files "$name"): scripts/generate.sh $name" >&2
    done
    exit 1
fi
