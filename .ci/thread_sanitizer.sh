#!/bin/bash
# Runs what uses several threads with ThreadSanitizer: the C ABI from Rust and from C programs, and the runtime on the fake driver.
#
#   .ci/thread_sanitizer.sh
#
# Rust's nightly with its sources is there: the standard library is built with the sanitizer, too. The runtime is that of Rust;
# the C compiler only instruments. The sanitizer sees no access of machine code, so expressions are interpreted. The fake driver
# is not instrumented, and its locks are seen all the same. A race fails a test by its process's status; no race is suppressed.
set -euo pipefail
cd "$(dirname "$0")/.."
export SELVEDGE_TEST_SANITIZER=thread SELVEDGE_CPU=interpreter RUSTFLAGS=-Zsanitizer=thread
export CARGO_UNSTABLE_BUILD_STD=std CARGO_BUILD_TARGET=x86_64-unknown-linux-gnu

# tests ARGUMENT...: builds and runs tests.
tests() {
    cargo +nightly test --target-dir target/thread_sanitizer --features capi "$@" || return 1
}
tests --test capi
tests --test capi_c -- threads examples
for filter in concurrency drops staging; do
    tests --test fake -- "$filter"
done
