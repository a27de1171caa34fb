#!/bin/bash
# array_api.sh ENVIRONMENT: runs a tenth of the array API standard's suite, data-apis/array-api-tests, on the package of a virtual
# environment; a seed chooses the tenth, SELVEDGE_TESTS_SEED or the commit's hash. SELVEDGE_CI=all runs the whole.
# SELVEDGE_ARRAY_API_TESTS names the suite's folder; without it the suite is fetched. A failure that
# python/tests/array_api_xfails.txt does not list fails, and so does one that it lists and that passes.
set -euo pipefail

environment=$(realpath "$1")
commit=55fcc60
suite=${SELVEDGE_ARRAY_API_TESTS:-$environment/array-api-tests-$commit}

left_out() {
    echo "$1: the array API's suite is left out"
    exit 0
}

fetch_suite() {
    rm -rf "$suite.part"
    export GIT_TERMINAL_PROMPT=0
    timeout 60 git clone --quiet --no-checkout https://github.com/data-apis/array-api-tests "$suite.part" &&
        git -C "$suite.part" checkout --quiet "$commit" &&
        timeout 60 git -C "$suite.part" submodule --quiet update --init --depth 1 &&
        mv "$suite.part" "$suite"
}

if [ -n "${SELVEDGE_ARRAY_API_TESTS:-}" ]; then
    [ -d "$suite/array_api_tests" ] || { echo "SELVEDGE_ARRAY_API_TESTS=$suite has no folder array_api_tests" >&2; exit 1; }
elif [ ! -d "$suite" ]; then
    message=$(fetch_suite 2>&1) || left_out "git could not fetch data-apis/array-api-tests (${message%%$'\n'*})"
fi
"$environment/bin/pip" install --quiet --disable-pip-version-check hypothesis ndindex pytest-json-report ||
    left_out "pip could not install hypothesis, ndindex and pytest-json-report"

seed=${SELVEDGE_TESTS_SEED:-$(git rev-parse --verify --quiet --short=12 HEAD || echo 0)}
share=(--share="$(($(cksum <<<"$seed" | cut -d ' ' -f 1) % 10))")
[ "${SELVEDGE_CI:-}" != all ] || share=()
echo "array API's suite: SELVEDGE_TESTS_SEED=$seed ${share[*]:-whole}"
HYPOTHESIS_STORAGE_DIRECTORY=$environment/hypothesis PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=python/tests \
    ARRAY_API_TESTS_MODULE=selvedge.array_api "$environment/bin/pytest" --quiet -p array_api_share -p no:cacheprovider \
    --disable-warnings -o xfail_strict=true --max-examples=3 --disable-deadline --hypothesis-derandomize "${share[@]}" \
    --skips-file=python/tests/array_api_skips.txt --xfails-file=python/tests/array_api_xfails.txt --rootdir="$suite" \
    "$suite/array_api_tests"
