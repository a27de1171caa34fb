#!/bin/bash
# Tests scripts/device_suite.sh, and gpu_suite.sh with it, with an executable that imitates the device suite's arguments.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp scripts/gpu_suite.sh scripts/device_suite.sh "$folder"

# FAKE_FAILS, FAKE_HANGS and FAKE_CRASHES name a test each; FAKE_MODULES are the modules that may run beside others.
cat >"$folder/gpu" <<'END'
#!/bin/bash
all="fuse::a fuse::b rows::a rows::b rows::c pool::a pool::b soak::a"
if [ "${1:-}" = --modules-beside-others ]; then
    printf '%s\n' ${FAKE_MODULES-fuse rows}
    exit
fi
filter= skip=()
while [ $# -gt 0 ]; do
    case $1 in
        --skip) skip+=("$2"); shift ;;
        --test-threads) shift ;;
        *) filter=$1 ;;
    esac
    shift
done
passed=0 failed=0 ignored=0
for name in $all; do
    [[ $name == *"$filter"* ]] || continue
    for word in "${skip[@]}"; do [[ $name != *"$word"* ]] || continue 2; done
    [ "$name" != "${FAKE_CRASHES:-}" ] || kill -SEGV $$
    [ "$name" != "${FAKE_HANGS:-}" ] || { echo $$ >"$FAKE_PID"; sleep 60; }
    case $name in
        "${FAKE_FAILS:-}") failed=$((failed + 1)); echo "test $name ... FAILED" ;;
        soak::a) ignored=1; echo "test $name ... ignored" ;;
        *) passed=$((passed + 1)); echo "test $name ... ok" ;;
    esac
done
[ "$failed" -eq 0 ] || printf '\nfailures:\n\n---- %s ----\na reason, with libnvrtc %s\n' "$FAKE_FAILS" "${SELVEDGE_LIBNVRTC:-on}"
printf '\ntest result: ok. %s passed; %s failed; %s ignored; 0 measured; 0 filtered out; finished in 0.01s\n\n' $passed $failed $ignored
printf 'slowest:\n    0.01 s  x\n'
[ "$failed" -eq 0 ] || exit 101
END
chmod +x "$folder/gpu"

# run WANTED-CODE NAME=VALUE... PART...: runs parts of gpu_suite.sh; what it prints and the archive's logs go to the folder.
run() {
    local wanted=$1 code=0
    shift
    rm -rf "$folder/out"
    (cd "$folder" && env OUT="$folder/out" BUDGET=30 bash -c 'exec env "${@:1:$#-1}" bash ./gpu_suite.sh ${!#}' - "$@") \
        >"$folder/printed" 2>&1 </dev/null || code=$?
    mkdir -p "$folder/out/unpacked"
    tar -C "$folder/out/unpacked" -xzf "$folder/out/suite.tar.gz"
    [ "$code" -eq "$wanted" ] || fails "exit code $code of $*, wanted $wanted"
}

fails() {
    cat "$folder/printed"
    echo "device_suite.sh: $1" >&2
    exit 1
}

# has EXPRESSION and lacks EXPRESSION: about what the last run printed.
has() { grep -qE -- "$1" "$folder/printed" || fails "printed no line like '$1'"; }
lacks() { ! grep -qE -- "$1" "$folder/printed" || fails "printed a line like '$1'"; }
logs() {
    local found
    found=$(cd "$folder/out/unpacked/logs" && echo *)
    [ "$found" = "$1" ] || fails "the logs are $found, wanted $1"
}

echo "every test runs once, and the sums are those of all processes"
run 0 "native driver_only"
has '^native +passed +[0-9]+s  test result: ok\. 7 passed; 0 failed; 1 ignored;.* finished in [0-9]+\.00s'
has '^driver_only +passed +[0-9]+s  test result: ok\. 7 passed; 0 failed; 1 ignored;'
logs "driver_only.log driver_only_fuse.log driver_only_rest.log driver_only_rows.log native.log native_fuse.log native_rest.log native_rows.log"
grep -q 'test pool::a' "$folder/out/unpacked/logs/native_rest.log" || fails "the rest lacks a test"
! grep -qE 'test (fuse|rows)::' "$folder/out/unpacked/logs/native_rest.log" || fails "the rest has a module's tests, too"

echo "the end of a failing process is shown, and the others still run"
run 1 FAKE_FAILS=rows::b driver_only
has '^driver_only +FAILED +[0-9]+s  exit code 1, wanted 0; test result: FAILED\. 6 passed; 1 failed; 1 ignored;'
has '^rows +2 passed +1 failed +0 ignored .*FAILED with exit code 101'
has '^a reason, with libnvrtc none$'
run 1 FAKE_FAILS=pool::a native
has '^-- the end of native_rest\.log$'
has '^a reason, with libnvrtc on$'
lacks 'the end of native_rows'

echo "a process that a signal ends fails, whatever passed before"
run 1 FAKE_CRASHES=rows::c native
has '^rows +2 passed +0 failed .*FAILED with exit code 139'
has 'test result: FAILED\. 6 passed; 0 failed; 1 ignored;'

echo "the time limit ends all processes, and what passed until then counts"
# gpu_suite.sh starts a part if it has 5 s, and on a slow machine some pass before it.
run 1 FAKE_HANGS=rows::b FAKE_PID="$folder/pid" BUDGET=12 native
has '^native +FAILED +[0-9]+s  stopped after [0-9]+ s; test result: FAILED\. 3 passed; 0 failed; 0 ignored;'
has '^rows +1 passed .*STOPPED$'
has '^rest +NOT RUN$'
! kill -0 "$(cat "$folder/pid")" 2>/dev/null || fails "a process is left"

echo "a filter runs one process"
run 0 SUITE_ARGUMENTS=rows:: native
has '^native +passed +[0-9]+s  test result: ok\. 3 passed; 0 failed; 0 ignored;'
logs native.log

echo "a module without tests, and an executable that names none, fail"
run 1 FAKE_MODULES="fuse sorting" native
has '^sorting +0 passed .*FAILED: it has no test$'
run 1 FAKE_MODULES= native
has 'names no module'
