#!/bin/bash
# readme_commands.sh COMMAND...: fails unless these are the first commands that README.md shows.
set -euo pipefail

shown=$(awk '/^```sh/ { inside = 1; next } /^```/ { inside = 0 } inside && NF { sub(/ *#.*/, ""); print }' README.md |
    head -n "$#")
wanted=$(printf '%s\n' "$@")
if [ "$shown" != "$wanted" ]; then
    printf 'README.md begins with\n%s\nand not with\n%s\n' "$shown" "$wanted"
    exit 1
fi
echo "$shown"
