#!/bin/bash
# Installs clang where there is none.
set -euo pipefail

if ! command -v clang++ >/dev/null; then
    export DEBIAN_FRONTEND=noninteractive
    apt-get update
    apt-get install --yes --no-install-recommends clang
fi
