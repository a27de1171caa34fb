#!/bin/bash
# clean_build.sh LIMIT: builds the library from nothing, and fails past LIMIT seconds on two cores.
#
# Counted is the processor time of both, halved, because the wall clock of a busy machine says nothing of the build. Even that
# varies by half where others share the processor. The dependencies are the measure of it: their versions are locked, so
# what they take here, beside what they take on a quiet machine, is how much slower this one is at the moment.
set -euo pipefail

dependencies_quiet=18   # Seconds on two quiet cores, of the versions in Cargo.lock; to be measured again where those change.

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
TIMEFORMAT='%U %S'
build=(cargo build --quiet --release --lib --locked --target-dir "$folder")
mapfile -t dependencies < <(cargo tree --locked --edges normal --depth 1 --prefix none --format "{p}" |
    awk 'NR > 1 { sub("^v", "", $2); print "--package=" $1 "@" $2 }')

# processor_time COMMAND...: its seconds on two cores.
processor_time() {
    { time "$@" >&3 2>&3; } 2>&1 | awk '{ print ($1 + $2) / 2 }'
}
exec 3>&2
others=$(processor_time "${build[@]}" "${dependencies[@]}")
own=$(processor_time "${build[@]}")
awk -v others="$others" -v own="$own" -v quiet="$dependencies_quiet" -v limit="$1" 'BEGIN {
    slower = others / quiet
    seconds = (others + own) / slower
    printf "%.1f s on two quiet cores (at most %d s); ", seconds, limit
    printf "here %.1f s for the dependencies and %.1f s for the library, %.2f times that\n", others, own, slower
    exit seconds > limit
}'
