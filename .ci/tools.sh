#!/bin/bash
# Installs the tools that are missing: compilers and linker tools for C and C++, Python with venv, rustfmt and clippy.
set -euo pipefail

packages=()
command -v gcc >/dev/null || packages+=(gcc libc6-dev)
command -v c++ >/dev/null || packages+=(g++)
command -v objcopy >/dev/null || packages+=(binutils)
command -v pkg-config >/dev/null || packages+=(pkg-config)
command -v git >/dev/null || packages+=(git)
command -v python3 >/dev/null || packages+=(python3)
python3 -c 'import ensurepip, venv' 2>/dev/null || packages+=(python3-venv)
if [ "${#packages[@]}" -gt 0 ]; then
    export DEBIAN_FRONTEND=noninteractive
    apt-get update
    apt-get install --yes --no-install-recommends "${packages[@]}"
fi

cargo fmt --version || rustup component add rustfmt
cargo clippy --version || rustup component add clippy
cargo fetch --locked
