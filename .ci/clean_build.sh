#!/bin/bash
# clean_build.sh LIMIT: builds the library from nothing, and fails past LIMIT seconds.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
begin=$(date +%s%N)
cargo build --quiet --release --lib --locked --target-dir "$folder"
tenths=$((($(date +%s%N) - begin) / 100000000))
echo "$((tenths / 10)).$((tenths % 10)) s on $(nproc) cores (at most $1 s)"
[ "$tenths" -le $(($1 * 10)) ]
