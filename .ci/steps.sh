# Runs named steps, remembers how long they took, and says at the end what passed. Sourced by .ci/run.

steps_passed=0
steps_skipped=0
steps_report=""
steps_current=""
steps_folder=$(mktemp -d)
steps_log=$steps_folder/log
steps_times=$steps_folder/times
touch "$steps_times"

# A step that fails ends the run by `set -e`, and this says which it was.
finish() {
    local code=$?
    rm -rf "$steps_folder"
    if [ "$code" -ne 0 ]; then
        printf '\n%s' "$steps_report"
        echo "FAILED: ${steps_current:-before the first step}"
        echo "steps: $steps_passed passed, 1 failed, $steps_skipped skipped"
    fi
}
trap finish EXIT

report() {
    steps_report+=$(printf '%-8s %5s  %s' "$1" "$2" "$3")$'\n'
}

# loud NAME COMMAND...: shows what the command prints.
loud() {
    steps_current=$1
    shift
    local begin=$SECONDS
    echo
    echo "== $steps_current"
    "$@" </dev/null
    steps_passed=$((steps_passed + 1))
    report passed "$((SECONDS - begin))s" "$steps_current"
}

# quiet NAME COMMAND...: shows it only where the command fails.
quiet() {
    steps_current=$1
    shift
    local begin=$SECONDS code=0
    echo
    echo "== $steps_current"
    "$@" </dev/null >"$steps_log" 2>&1 || code=$?
    if [ "$code" -ne 0 ]; then
        cat "$steps_log"
        return "$code"
    fi
    steps_passed=$((steps_passed + 1))
    report passed "$((SECONDS - begin))s" "$steps_current"
}

# skip NAME REASON: leaves a step out and says why.
skip() {
    echo
    echo "== $1: skipped, $2"
    steps_skipped=$((steps_skipped + 1))
    report skipped "" "$1: $2"
}

# fetch WHAT COMMAND...: succeeds where something that not every network has could be fetched.
fetch() {
    local what=$1
    shift
    if "$@" </dev/null >"$steps_log" 2>&1; then
        return 0
    fi
    skip "$what" "it cannot be fetched here: $(grep -m 1 '^error' "$steps_log" || tail -n 1 "$steps_log")"
    return 1
}

summary() {
    steps_current="the summary"
    echo
    echo "slowest tests (of the suites fake and parity):"
    sort -rn "$steps_times" | awk 'NR <= 10 { printf "%8.1f s  %s %s\n", $1, $2, $3 }'
    echo
    echo "steps:"
    printf '%s' "$steps_report"
    echo "all steps took $SECONDS s"
    echo "steps: $steps_passed passed, 0 failed, $steps_skipped skipped"
}
