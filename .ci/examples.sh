#!/bin/bash
# Runs every example: without a device each says so, and none may fail.
set -euo pipefail

cargo build --quiet --examples --all-features
folder=${CARGO_TARGET_DIR:-target}/debug/examples
count=0
for source in examples/*.rs; do
    name=$(basename "$source" .rs)
    echo "-- $name"
    "$folder/$name"
    count=$((count + 1))
done
[ "$count" -gt 0 ]
