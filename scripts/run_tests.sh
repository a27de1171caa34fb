#!/bin/bash
# Runs a bundle of test executables, examples and the program (PARTS=all scripts/bundle.sh) on a machine that needs
# neither cargo nor a compiler nor the source tree. The bundle has it as run.sh. A table comes last.
#
#   run.sh [MODE ...]   modes: native (as the machine is) and driver_only (without NVRTC, cuBLAS, NCCL and CUPTI); both without
#                       arguments
#
# Environment:
#   OUT        where summary.txt and tests.tar.gz (the logs) go (./run_tests_out)
#   BUDGET     seconds for everything (570); what does not fit is NOT RUN and counts as failed
#   ONLY       names of executables, as in the file `list` (all without it)
#   ARGUMENTS  arguments for every test executable, such as a filter
#   WORK       where the bundle is unpacked (a temporary folder)
#
# Executables that measure nothing run side by side; `fake` and `gpu` run alone, `gpu` in processes beside each other
# (device_suite.sh) unless ARGUMENTS are given. A test that needs a compiler is left out
# (tests/common/mod.rs): the table counts it in a column of its own, and names it.
# Exit code: 0 where every executable passed, 1 otherwise.
set -u

here=$(cd "$(dirname "$0")" && pwd)
out=${OUT:-$PWD/run_tests_out}
budget=${BUDGET:-570}
modes=${*:-native driver_only}
read -r -a arguments <<<"${ARGUMENTS:-}"
for mode in $modes; do
    case $mode in native | driver_only) ;; *) echo "run.sh: no mode '$mode'" >&2; exit 2 ;; esac
done
mkdir -p "$out" || exit 1
out=$(cd "$out" && pwd)
started=$SECONDS

if [ -n "${WORK:-}" ]; then
    mkdir -p "$WORK" || exit 1
    work=$(cd "$WORK" && pwd)
else
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
fi
if [ ! -e "$work/unpacked" ]; then
    if command -v xz >/dev/null; then
        xz -dc "$here/files.tar.xz" | tar -C "$work" -xf - || exit 1
    else
        python3 -c 'import sys, tarfile; tarfile.open(sys.argv[1]).extractall(sys.argv[2])' \
            "$here/files.tar.xz" "$work" || exit 1
    fi
    touch "$work/unpacked"
fi
mkdir -p "$work/tmp"
rm -rf "$work/logs"

# The caller's settings of the library must not reach the tests.
for variable in $(compgen -e SELVEDGE_); do unset "$variable"; done

# run MODE NAME KIND: runs one executable; its row goes to a file, because several run at the same time.
run() {
    local mode=$1 name=$2 kind=$3 logs=$work/logs/$1 left begin code=0 seconds passed failed ignored out_of verdict=
    local words=() settings=() starter=()
    left=$((budget - (SECONDS - started)))
    if [ "$left" -lt 3 ]; then
        echo "$name $kind 0 1 0 0 0 NOT_RUN" >"$logs/$name.row"
        return
    fi
    [ "$mode" = native ] || settings=(SELVEDGE_LIBNVRTC=none SELVEDGE_LIBCUBLAS=none SELVEDGE_LIBNCCL=none SELVEDGE_LIBCUPTI=none)
    case $kind in
        example) ;;
        program) words=(info) ;;
        *) words=("${arguments[@]}") ;;
    esac
    [ "$name" != gpu ] || starter=(bash "$here/device_suite.sh" "$logs/gpu")
    begin=$(date +%s%N)
    (cd "$work/tree" && exec env CARGO_MANIFEST_DIR="$work/tree" CARGO_TARGET_TMPDIR="$work/tmp" \
        CARGO_BIN_EXE_selvedge="$work/bin/selvedge" SELVEDGE_TEST_LEFT_OUT="$logs/$name.left_out" "${settings[@]}" \
        timeout --kill-after=5 "$left" "${starter[@]}" "$work/bin/$name" "${words[@]}") >"$logs/$name.log" 2>&1 </dev/null || code=$?
    seconds=$((($(date +%s%N) - begin) / 100000000))
    out_of=0
    [ ! -e "$logs/$name.left_out" ] || out_of=$(sort -u "$logs/$name.left_out" | wc -l)
    case $kind in
        example | program)
            passed=$((code == 0)) failed=$((code != 0)) ignored=0 ;;
        *)
            # A test that starts its own executable may print the line of a child: the last one counts.
            read -r passed failed ignored < <(sed -nE \
                's/.*test result: .* ([0-9]+) passed; ([0-9]+) failed; ([0-9]+) ignored.*/\1 \2 \3/p' "$logs/$name.log" | tail -n 1)
            if [ -z "${passed:-}" ]; then passed=0 failed=1 ignored=0; fi
            passed=$((passed - out_of))
            if [ "$code" -ne 0 ] && [ "$failed" -eq 0 ]; then failed=1; fi ;;
    esac
    if [ "$code" -eq 124 ] || [ "$code" -eq 137 ]; then verdict=stopped_after_${left}_s
    elif [ "$failed" -ne 0 ]; then verdict=FAILED_with_code_$code; fi
    echo "$name $kind $passed $failed $ignored $out_of $seconds $verdict" >"$logs/$name.row"
    echo "$mode $name: $passed passed, $failed failed $verdict"
}

wanted() { case " ${ONLY:-$1} " in *" $1 "*) return 0 ;; *) return 1 ;; esac; }

for mode in $modes; do
    mkdir -p "$work/logs/$mode"
    while read -r name kind how; do
        if [ "$how" = beside ] && wanted "$name"; then run "$mode" "$name" "$kind" & fi
    done <"$here/list"
    wait
    while read -r name kind how <&3; do
        if [ "$how" = alone ] && wanted "$name"; then run "$mode" "$name" "$kind"; fi
    done 3<"$here/list"
done

failures=0
{
    for mode in $modes; do
        echo
        printf '%-22s %7s %7s %8s %9s %8s\n' "$mode" passed failed ignored "left out" seconds
        sums=(0 0 0 0)
        while read -r name _ <&3; do
            [ -e "$work/logs/$mode/$name.row" ] || continue
            read -r _ _ passed failed ignored out_of seconds verdict <"$work/logs/$mode/$name.row"
            printf '%-22s %7s %7s %8s %9s %8s  %s\n' "$name" "$passed" "$failed" "$ignored" "$out_of" \
                "$((seconds / 10)).$((seconds % 10))" "${verdict//_/ }"
            sums=($((sums[0] + passed)) $((sums[1] + failed)) $((sums[2] + ignored)) $((sums[3] + out_of)))
        done 3<"$here/list"
        printf '%-22s %7s %7s %8s %9s\n' total "${sums[@]}"
        failures=$((failures + sums[1]))
        cat "$work/logs/$mode"/*.left_out 2>/dev/null | sort -u | sed 's/^/left out: /'
        # The names of failed tests.
        grep -hE '^(test .*FAILED|---- .* ----)$' "$work/logs/$mode"/*.log 2>/dev/null | sort -u | head -n 60
    done
    echo
    nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null
    echo "commit $(cat "$here/commit" 2>/dev/null || echo unknown), $((SECONDS - started)) s, $failures failed"
} >"$out/summary.txt"
cat "$out/summary.txt"
tar -C "$work" -czf "$out/tests.tar.gz" logs
grep -q ', 0 failed$' "$out/summary.txt"
