#!/bin/bash
# Runs the device suite in processes beside each other, because the driver assembles one kernel after another in a process:
# one for each module that may run beside others, all at the same time, and then one for the rest.
#
#   device_suite.sh LOGS GPU [ARGUMENT ...]
#
#   LOGS      how the names of the logs begin: LOGS_MODULE.log, and LOGS_rest.log
#   GPU       the executable (tests/gpu)
#   ARGUMENT  a filter, for example. With any, one process runs the suite as that executable does
#
# It prints a line for each process, the end of the log of each that failed, and the sums in libtest's words, which
# gpu_suite.sh and run.sh read. SIGTERM, as timeout sends it, ends all processes and still has the sums printed.
# Exit code: 0 where every process passed, 1 otherwise.
set -u

if [ $# -lt 2 ]; then
    echo "device_suite.sh: the arguments are LOGS GPU [ARGUMENT ...]" >&2
    exit 2
fi
logs=$1 gpu=$2
shift 2
[ $# -eq 0 ] || exec "$gpu" "$@"

# Tests at a time in each process of a module: all of these processes share the host's cores.
threads=4
started=$SECONDS

# The executable knows which modules may run beside others, and says if there is no device.
if ! listed=$("$gpu" --modules-beside-others) || [ -z "$listed" ]; then
    echo "device_suite.sh: $gpu --modules-beside-others names no module" >&2
    exit 1
fi
read -r -d '' -a modules <<<"$listed"

declare -A pids=() codes=()
stopped=no
trap 'stopped=yes; kill "${pids[@]}" 2>/dev/null' TERM

# start NAME ARGUMENT...: starts a process and its log.
start() {
    local name=$1
    shift
    "$gpu" "$@" >"${logs}_$name.log" 2>&1 </dev/null &
    pids[$name]=$!
}

# finish NAME: waits for a process. A signal's trap ends a wait early, so it goes on until the process has ended.
finish() {
    local code
    [ -n "${pids[$1]:-}" ] || return
    while :; do
        wait "${pids[$1]}"
        code=$?
        kill -0 "${pids[$1]}" 2>/dev/null || break
    done
    codes[$1]=$code
    unset "pids[$1]"
}

rest=()
for module in "${modules[@]}"; do
    [ "$stopped" = yes ] || start "$module" "$module::" --test-threads "$threads"
    rest+=(--skip "$module::")
done
for module in "${modules[@]}"; do finish "$module"; done
if [ "$stopped" = no ]; then
    start rest "${rest[@]}"
    finish rest
fi

# counts LOG: passed, failed and ignored tests and the seconds. A process that was ended has no sums, but a line for each
# of its tests that ended.
counts() {
    local sums
    sums=$(sed -nE 's/^test result: .* ([0-9]+) passed; ([0-9]+) failed; ([0-9]+) ignored;.* finished in ([0-9.]+)s.*/\1 \2 \3 \4/p' \
        "$1" | tail -n 1)
    if [ -z "$sums" ]; then
        sums="$(grep -cE '^test .* \.\.\. ok$' "$1") $(grep -cE '^test .* \.\.\. FAILED$' "$1")"
        sums+=" $(grep -cE '^test .* \.\.\. ignored' "$1") -"
    fi
    echo "$sums"
}

total=(0 0 0)
result=ok
failures=()
for name in "${modules[@]}" rest; do
    if [ -z "${codes[$name]:-}" ]; then
        printf '%-14s NOT RUN\n' "$name"
        result=FAILED
        continue
    fi
    read -r passed failed ignored seconds < <(counts "${logs}_$name.log")
    total=($((total[0] + passed)) $((total[1] + failed)) $((total[2] + ignored)))
    verdict=
    if [ "$stopped" = yes ] && [ "${codes[$name]}" -gt 128 ] && [ "$failed" -eq 0 ]; then
        verdict=STOPPED
        result=FAILED
    elif [ "${codes[$name]}" -ne 0 ]; then
        verdict="FAILED with exit code ${codes[$name]}"
    elif [ $((passed + failed + ignored)) -eq 0 ]; then
        verdict="FAILED: it has no test"
    fi
    if [[ $verdict == FAILED* ]]; then
        failures+=("$name")
        result=FAILED
    fi
    printf '%-14s %4s passed %4s failed %4s ignored %8s s  %s\n' "$name" "$passed" "$failed" "$ignored" "$seconds" "$verdict"
done
for name in "${failures[@]}"; do
    echo "-- the end of $(basename "${logs}_$name.log")"
    # Without its sums and the list of slow tests, which come after the failures.
    sed '/^slowest:/,$d; /^test result:/d' "${logs}_$name.log" | tail -n 30
done
echo
echo "test result: $result. ${total[0]} passed; ${total[1]} failed; ${total[2]} ignored; 0 measured; 0 filtered out; finished in $((SECONDS - started)).00s"
[ "$result" = ok ]
