#!/bin/bash
# Installs a C compiler for 64-bit Arm where there is none.
set -euo pipefail

if ! command -v aarch64-linux-gnu-gcc >/dev/null; then
    export DEBIAN_FRONTEND=noninteractive
    apt-get update
    apt-get install --yes --no-install-recommends gcc-aarch64-linux-gnu
fi
