#!/bin/sh
# Runs the tests of the folders that changed, in under three minutes once they are built.
#
#   scripts/quick.sh [PATH ...]
#   scripts/quick.sh --dry-run [PATH ...]   prints the commands alone
#   scripts/quick.sh --list                 prints the table: a folder, its tests, and those that it leaves to .ci/run
#   scripts/quick.sh --help
#
# PATH is a file or folder of the table, or in one of its folders, from the repository's root. Without PATH it takes the files that differ from the commit
# where this branch left origin/main or main, and new files. Formatting and the tests of layers and documents always run.
# All commands have the features of --all-features, so nothing is compiled twice. CARGO is honoured. Errors: 1 where a
# command fails, 2 for wrong arguments.
set -eu

cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}

# A row: folder | tests | what it leaves to .ci/run. The longest folder that a path begins with counts, and `NAME` also
# stands for the file NAME.rs. A test is
#   TARGET             a whole test target; `lib` and `bins` are the unit tests of the library and of the program
#   TARGET:FILTER      its tests whose names contain the filter
#   TARGET:@           its tests that are named like the changed file, if there are any
#   generate:NAME      scripts/generate.sh --check NAME
#   benches            the benchmarks compile
#   examples           .ci/examples.sh
#   gpu-build          the device suite compiles
#   python             .ci/python.sh quick
#   -                  no more than what always runs
# tests/documents.rs reads this table: every module of src has a row.
table() {
    cat <<'TABLE'
src/attention | nn:attention fake:emulated::attention_sequences | fake emulated::attention, tests/gpu
src/bin | bins cli | nvrtc with other releases
src/burst | lib:burst burst fake:emulated::burst_goldens capi:burst | the other tests of emulated::burst, tests/gpu
src/capi | lib:capi capi fake:capi:: capi_c:every_function capi_c:headers generate:header generate:operations | the rest of capi_c, .ci/c_abi.sh
src/capi/nn | lib:capi capi:models capi_c:every_function generate:header | the rest of capi_c, .ci/c_abi.sh
src/catalogue | catalogue | capi_c, tests/gpu
src/classifier | lib:classifier classifier cli:classify capi:classifier fake:emulated::classifier | tests/gpu
src/collective | lib:collective collective fake:nccl | nothing
src/cublas | lib:gemm::cublas fake:cublas fake:gemm:: | tests/gpu
src/driver | lib:driver fake:self_check fake:contexts fake:losses fake:resets fake:timeouts fake:foreign fake:concurrency | fake random, faults, versions, compile_fail, tests/gpu
src/driver/graph | lib:driver fake:graphs fake:graph_edges | fake random_graphs, tests/gpu
src/driver/image | lib:driver::image fake:kernels fake:launcher | tests/gpu foreign_images
src/driver/memory | lib:driver::memory fake:pool fake:transfers fake:staging fake:drops | fake random, soak, tests/gpu
src/error | tensor:errors fake:losses io cli:errors | every other suite
src/fuse | lib:fuse parity:add:: parity:exp:: parity:reduce::sum parity:rows::softmax parity:rules tensor:fused | the other tables of parity, scripts/check_fuse.py
src/fuse/cpu | lib:fuse parity:native parity:add:: parity:reduce::sum parity:scan::sum parity:rows::softmax parity:random:: | the other tables of parity
src/fuse/explain | parity:rows::sched parity:tiles cli:expr cli:ptx | the other tables of parity
src/fuse/language | lib:fuse parity:add:: parity:pow:: parity:exp:: parity:rules parity:vectors tensor:gradients tensor:fused generate:operations generate:methods | the other operations of parity
src/fuse/plan | lib:fuse parity:tiles parity:reduce::sum parity:rows::layer_norm parity:row_ parity:scan::sum | the other tables of parity
src/fuse/ptx | lib:fuse parity:add:: parity:tiles parity:reduce::sum parity:rows::softmax parity:row_ parity:scan::sum | the other tables of parity, scripts/check_fuse.py
src/gemm | lib:gemm gemm fake:gemm:: fake:emulated::chains tensor:matmul generate:activations | fake emulated, tests/gpu
src/images | lib:images images fake:launcher | images from their sources
src/io | lib:io:: io tensor:files | .ci/numpy.sh
src/launcher | lib:launcher fake:launcher fake:compute | nvrtc, tests/gpu
src/lib.rs | lib tensor:errors | every other suite, cargo doc
src/nn | nn fake:training fake:backend | tests/gpu, cli train
src/nccl | fake:nccl | nothing
src/nvrtc | lib:nvrtc nvrtc fake:compute cli:compile | .ci/nvrtc.sh
src/sort | lib:sort tensor:sorting fake:emulated::sorts fake:emulated::firsts fake:emulated::selections | tests/gpu
src/srt | lib:srt srt fake:srt:: fake:emulated::srt parity:symbolic capi:srt | tests/gpu
src/sys | lib:sys sys generate:bindings | fake versions
src/tensor | lib:tensor:: tensor fake:tensor:: generate:methods | fake, nn, tests/gpu
src/tensor/attention | nn:attention tensor:matmul generate:methods | fake emulated::attention, tests/gpu
src/tensor/dlpack | tensor:dlpack fake:dlpack | tests/capi/dlpack_device.py
src/tensor/indexing | lib:tensor::indexing tensor:index tensor:accumulation fake:indexing nn:gradients generate:methods | tests/gpu
src/tensor/matmul | lib:tensor::matmul tensor:matmul fake:gemm:: nn:linear_layers generate:methods | fake emulated, tests/gpu
src/tensor/random | tensor:random fake:tensor:: nn:checkpointing generate:methods | tests/gpu
src/tensor/losses | tensor:row nn:losses nn:gradients parity:rows::softmax generate:methods | the other tables of parity, tests/gpu
src/tensor/normalization | tensor:row nn:losses nn:gradients parity:rows::softmax generate:methods | the other tables of parity, tests/gpu
src/tensor/sorting | tensor:sorting tensor:statistics fake:emulated::sorts generate:methods | tests/gpu
src/threads | lib:threads tensor:iteration gemm parity:many_blocks | .ci/thread_sanitizer.sh
src/trace | lib:trace fake:trace cli:trace | fake, tests/gpu
src/types | lib:types tensor:conversions tensor:values:: parity:rules parity:cast::f32 | the rest of tensor and parity
csrc/bench | benches | benchmarks on a GPU
csrc/emulation | fake:emulated::chains fake:emulated::sorts fake:emulated::burst_goldens | fake emulated
csrc/examples | capi_c:examples | .ci/c_abi.sh
csrc/fake_cublas | fake:cublas | tests/gpu
csrc/fake_nccl | fake:nccl | nothing
csrc/fake_driver | fake:self_check fake:graphs fake:pool | the rest of fake
csrc/images.txt | images | images from their sources
csrc/include | nvrtc images | .ci/nvrtc.sh, tests/gpu
csrc/kernels | images fake:emulated::chains fake:emulated::derivatives generate:activations | images from their sources, fake emulated, tests/gpu
csrc/kernels/attention | images fake:emulated::attention_sequences | images from their sources, fake emulated::attention, tests/gpu
csrc/kernels/burst | images fake:emulated::burst_goldens fake:emulated::burst_behaviours | images from their sources, tests/gpu
csrc/kernels/classifier | images fake:emulated::classifier | images from their sources, tests/gpu
csrc/kernels/e8 | images fake:emulated::e8 | images from their sources, tests/gpu
csrc/kernels/gather | images fake:indexing | images from their sources, tests/gpu
csrc/kernels/histogram | images fake:emulated::histograms | images from their sources, tests/gpu
csrc/kernels/scatter | images fake:indexing | images from their sources, tests/gpu
csrc/kernels/select | images fake:emulated::selections | images from their sources, tests/gpu
csrc/kernels/sort | images fake:emulated::sorts | images from their sources, tests/gpu
csrc/kernels/srt | images fake:emulated::srt | images from their sources, tests/gpu
csrc/kernels/topk | images fake:emulated::firsts | images from their sources, tests/gpu
csrc/reports | - | a run on a GPU
ptx | images lib:images | images from their sources
include | capi_c:headers capi_c:cpp generate:header | the rest of capi_c, .ci/c_abi.sh
python | python | the rest of .ci/python.sh
benches | benches results pytorch | benchmarks on a GPU
benches/results | results | benchmarks on a GPU
docs | - | cargo doc
examples | examples | a run on a GPU
examples/languages | capi_c:training | .ci/python.sh
data | nn:text classifier | cli train
build | sys images generate:bindings | the clean release build
build.rs | sys images generate:bindings | the clean release build
wrapper.h | sys generate:bindings | fake versions
Cargo.toml | - | everything
Cargo.lock | - | everything
CMakeLists.txt | - | .ci/c_abi.sh
CHANGELOG.md | - | nothing
CONTRIBUTING.md | - | nothing
README.md | - | .ci/readme_commands.sh
LICENSE-APACHE | - | .ci/package.sh
LICENSE-MIT | - | .ci/package.sh
rustfmt.toml | - | nothing
scripts | - | the step that runs the script
scripts/generate.sh | generate:operations generate:methods generate:results | images and bindings
scripts/header | generate:header | .ci/c_abi.sh
.ci | - | everything
.cargo | - | everything
.gitignore | - | nothing
tests/burst | burst | nothing
tests/capi | capi capi_c:every_function capi_c:cpp | the rest of capi_c
tests/capi_c | capi_c | nothing
tests/cases | nn gemm tensor:values | fake emulated, tests/gpu
tests/catalogue | catalogue | nothing
tests/classifier | classifier | nothing
tests/cli | cli | nothing
tests/collective | collective | nothing
tests/common | gemm fake:self_check parity:add:: | every other suite
tests/compile_fail | - | compile_fail, which builds the library without these features
tests/data | images sys nn:reference parity:vectors | tests/gpu
tests/documents | documents | nothing
tests/fake | fake:self_check fake:@ | the rest of fake
tests/gemm | gemm | nothing
tests/gpu | gpu-build | a run on a GPU
tests/images | images | nothing
tests/interpreter | parity:interpreter parity:add:: parity:reduce::sum | the rest of parity
tests/io | io | nothing
tests/layers | layers | nothing
tests/nn | nn | nothing
tests/nvrtc | nvrtc | .ci/nvrtc.sh
tests/parity | parity:@ parity:add:: parity:reduce::sum parity:rows::softmax | the rest of parity
tests/pytorch | pytorch | nothing
tests/results | results | nothing
tests/srt | srt | nothing
tests/sys | sys | nothing
tests/tensor | tensor | nothing
TABLE
}

fail() {
    echo "quick.sh: $1" >&2
    exit 2
}

# Prints the row of a path, its folder first, or nothing.
row() {
    table | awk -F ' [|] ' -v path="$1" '
        path == $1 || index(path, $1 "/") == 1 || index(path, $1 ".") == 1 ||
            ($1 ~ /^csrc\/kernels\/./ && index(path, $1) == 1) {
            if (length($1) > length(best)) { best = $1; found = $0 }
        }
        END { print found }'
}

changed() {
    for main in origin/main main; do
        if base=$(git merge-base HEAD "$main" 2>/dev/null); then
            git diff --name-only "$base"
            git ls-files --others --exclude-standard
            return 0
        fi
    done
    fail "there is no branch main to compare with: name the paths that changed"
}

dry=
paths=
while [ $# -gt 0 ]; do
    case $1 in
        --help | -h)
            sed -n '2,/^set /s/^# \{0,1\}//p' "$0"
            exit 0
            ;;
        --list)
            table
            exit 0
            ;;
        --dry-run) dry=yes ;;
        -*) fail "unknown option $1; --help lists the options" ;;
        *) paths="$paths ${1#./}" ;;
    esac
    shift
done
if [ -z "$paths" ]; then
    paths=$(changed)
    [ -n "$paths" ] || {
        echo "nothing differs from the main branch"
        exit 0
    }
fi

runs="layers documents"
left=
for path in $paths; do
    path=${path%/}
    found=$(row "$path")
    [ -n "$found" ] || {
        echo "quick.sh: no row for $path; the table has" >&2
        table | sed 's/ | .*//; s/^/  /' >&2
        exit 2
    }
    tests=$(echo "$found" | awk -F ' [|] ' '{ print $2 }')
    [ "$tests" != - ] || tests=
    name=${path##*/}
    name=${name%.*}
    runs="$runs $(echo "$tests" | sed "s/@/@$name::/g")"
    left="$left$(echo "$found" | awk -F ' [|] ' '{ print "  " $1 ": " $3 }')
"
done
# Each once, without the filtered runs of a target that runs whole.
runs=$(echo "$runs" | tr ' ' '\n' | awk '
    NF && !seen[$0]++ { all[++count] = $0; if ($0 !~ /:/) whole[$0] = 1 }
    END {
        for (i = 1; i <= count; i++) {
            target = all[i]
            sub(/:.*/, "", target)
            if (all[i] == target || !(target in whole)) print all[i]
        }
    }')

# The option of cargo for a test target.
option() {
    case $1 in
        lib | bins) echo "--$1" ;;
        *) echo "--test $1" ;;
    esac
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# step COMMAND...: runs it, and shows its output only where it fails.
step() {
    echo "+ $*"
    [ -z "$dry" ] || return 0
    "$@" >"$scratch/log" 2>&1 </dev/null || {
        cat "$scratch/log"
        echo "quick.sh: failed: $*" >&2
        exit 1
    }
}

# tests TARGET [FILTER]: a filter that finds nothing is an error, because the table would then hold less than it says. A
# filter that begins with `@` may find nothing: the changed file may be a helper of tests.
tests() {
    filter=${2:-}
    # An option of two words.
    # shellcheck disable=SC2046
    step "$cargo" test --quiet --all-features $(option "$1") -- ${filter:+"${filter#@}"}
    [ -z "$dry" ] || return 0
    passed=$(sed -n 's/^test result: ok\. \([0-9]*\) passed.*/\1/p' "$scratch/log" | awk '{ sum += $1 } END { print sum + 0 }')
    echo "  $passed passed"
    [ "$passed" -gt 0 ] || [ "${filter#@}" != "$filter" ] || {
        echo "quick.sh: no test of $1 is called ${filter:-anything}: correct the table of scripts/quick.sh" >&2
        exit 1
    }
}

started=$(date +%s)
step "$cargo" fmt --check
targets=$(echo "$runs" | sed 's/:.*//' | sort -u | grep -vxE 'generate|benches|examples|gpu-build|python')
options=$(for target in $targets; do option "$target"; done)
# shellcheck disable=SC2086
step "$cargo" test --quiet --all-features --no-run $options
built=$(date +%s)
for run in $runs; do
    case $run in
        generate:*) step scripts/generate.sh --check "${run#*:}" ;;
        benches) step "$cargo" check --quiet --all-features --benches ;;
        examples) step .ci/examples.sh ;;
        gpu-build) step "$cargo" test --quiet --all-features --test gpu --no-run ;;
        python) step .ci/python.sh quick ;;
        *:*) tests "${run%%:*}" "${run#*:}" ;;
        *) tests "$run" ;;
    esac
done
ended=$(date +%s)

echo
echo "left to .ci/run:"
printf '%s' "$left" | sort -u
[ -n "$dry" ] || echo "passed: $((built - started)) s to build, $((ended - built)) s of tests"
