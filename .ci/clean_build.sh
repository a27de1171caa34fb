#!/bin/bash
# clean_build.sh LIMIT: builds the library from nothing, and fails past LIMIT seconds on two cores. Counted is the processor
# time of both, halved, because the wall clock of a busy machine says nothing of the build; both are printed.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
TIMEFORMAT='%R %U %S'
times=$({ time cargo build --quiet --release --lib --locked --target-dir "$folder"; } 2>&1 | tail -n 1)
read -r wall user system <<<"$times"
awk -v wall="$wall" -v busy="$(awk "BEGIN { print ($user + $system) / 2 }")" -v limit="$1" -v cores="$(nproc)" 'BEGIN {
    printf "%.1f s on two cores (at most %d s); %.1f s by the clock, on %d cores\n", busy, limit, wall, cores
    exit busy > limit
}'
