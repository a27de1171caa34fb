#!/bin/bash
# train.sh: the README's first command with fewer steps; fails unless the loss falls and the picture is there.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cargo run --quiet --release --features cli -- train --steps 30 --every 15 --run "$folder/run" | tee "$folder/text"
# Lines of the table: step, training, validation, ids/s, time.
awk '$1 == 0 { first = $3 } $1 == 30 { last = $3 }
     END { if (!(last > 0 && last < first - 0.5)) { print "the loss does not fall: " first " to " last; exit 1 } }' "$folder/text"
grep -q '</svg>' "$folder/run/loss.svg"
