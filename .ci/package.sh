#!/bin/bash
# package.sh LIMIT: publishes without uploading, and holds the package's size against LIMIT (in MB).
set -euo pipefail

# A working copy that is being changed can be packaged too; a fresh clone has nothing to allow.
options=(--locked)
[ -z "$(git status --porcelain)" ] || options+=(--allow-dirty)
if cargo publish --dry-run "${options[@]}"; then
    # That leaves no package behind.
    cargo package --quiet --no-verify "${options[@]}"
else
    # Publishing asks the registry about the name; packaging needs only its crates.
    echo "cargo publish could not run to its end; the package alone:"
    cargo package "${options[@]}"
fi
package=$(ls -t "${CARGO_TARGET_DIR:-target}"/package/selvedge-*.crate | head -n 1)
bytes=$(wc -c <"$package")
echo "$(basename "$package"): $bytes bytes"
if [ "$bytes" -ge $(($1 * 1000000)) ]; then
    echo "over $1 MB; the largest files:"
    tar -tvzf "$package" | sort -rnk 3 | awk 'NR <= 10'
    exit 1
fi
