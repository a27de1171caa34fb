# Which files changed since the last landed commit. Sourced by .ci/run after steps.sh.
#
# SELVEDGE_CI_BASE names that commit. Without it, it is where this branch left origin/main or main; on main itself, the
# one that .ci/landed names, which whoever knows of a landing writes there; else the commit twenty before, or the last one from
# twelve hours before if that is older. If none of these is known, everything counts as changed. SELVEDGE_CI=all runs every step.

changes_base=""

# find_base: sets `changes_base`, or leaves it empty where everything counts as changed.
find_base() {
    local head name base
    [ "${SELVEDGE_CI:-}" != all ] || return 0
    head=$(git rev-parse --verify --quiet HEAD) || return 0
    if [ -n "${SELVEDGE_CI_BASE:-}" ]; then
        # A wrong name is an error: it would run less than was meant.
        changes_base=$(git rev-parse --verify "$SELVEDGE_CI_BASE^{commit}")
        return 0
    fi
    for name in origin/main main; do
        base=$(git merge-base HEAD "$name" 2>/dev/null) || continue
        if [ "$base" != "$head" ]; then
            changes_base=$base
            return 0
        fi
    done
    if [ -f .ci/landed ] && base=$(git rev-parse --verify --quiet "$(cat .ci/landed)^{commit}") &&
        [ "$base" != "$head" ] && git merge-base --is-ancestor "$base" HEAD; then
        changes_base=$base
        return 0
    fi
    changes_base=$(git rev-parse --verify --quiet HEAD~20) || changes_base=""
    local date older
    date=$(git log -1 --format=%ct HEAD)
    older=$(git rev-list -1 --before="$((date - 12 * 3600))" HEAD)
    # A landing can have more than twenty commits; two landings are hours apart.
    if [ -n "$older" ] && git merge-base --is-ancestor "$older" "${changes_base:-HEAD}"; then
        changes_base=$older
    fi
}

# changed PATH...: succeeds where a file under one of the paths differs from the base, is untracked, or no base is known.
changed() {
    [ -n "$changes_base" ] || return 0
    local differing
    differing=$(git diff --name-only "$changes_base" -- "$@") || return 0
    [ -z "$differing" ] || return 0
    [ -n "$(git ls-files --others --exclude-standard -- "$@")" ]
}

# only_for PATHS NAME: succeeds where the step NAME must run; else says why it is skipped. PATHS is one word list.
only_for() {
    local paths=$1 name=$2
    # The lists have no spaces or patterns in a name.
    # shellcheck disable=SC2086
    if changed $paths .ci ':(exclude).ci/landed'; then
        return 0
    fi
    skip "$name" "none of its sources changed since ${changes_base:0:12}; SELVEDGE_CI=all runs it"
    return 1
}

# whole_sets: the sets of tests whose own sources changed, for SELVEDGE_TESTS (docs/testing.md).
whole_sets() {
    local sets=sample
    if [ -z "$changes_base" ]; then
        # Nothing to compare with, or everything was asked for.
        [ "${SELVEDGE_CI:-}" != all ] || sets=all
        echo "$sets"
        return
    fi
    ! changed tests/parity tests/interpreter || sets+=,parity
    ! changed tests/fake/random.rs tests/fake/random_graphs.rs tests/fake/model.rs csrc/fake_driver || sets+=,random
    ! changed tests/fake/emulated csrc/emulation || sets+=,emulated
    ! changed tests/fake/capi/fuzz.rs tests/fake/capi/saved.rs || sets+=,damaged
    echo "$sets"
}
