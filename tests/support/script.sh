# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# What do scripts that are tests share? To be sourced.

# skip REASON: ends the test as skipped; with CI=true as failed.
skip() {
    echo "skipped: $1"
    [ "${CI:-}" != true ] || exit 1
    exit 77
}

# skip_even_in_ci REASON: ends the test as skipped, also with CI=true.
skip_even_in_ci() {
    echo "skipped: $1"
    exit 77
}

# need COMMAND: skips the test unless the command exists.
need() {
    command -v "$1" >/dev/null || skip "$1 is not installed"
}

# need_git: skips the test unless the source is a git repository.
need_git() {
    need git
    git rev-parse --verify --quiet HEAD >/dev/null 2>&1 ||
        skip_even_in_ci "this is not a git repository"
}

# make_work: makes the temporary directory $work, which is removed at the exit.
make_work() {
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
}

# same_lists A B C: fails unless the sorted files $work/A, $work/B and $work/C
# are the same, and not empty; prints lines that one of them lacks.
same_lists() {
    same=0
    for list in "$2" "$3"; do
        comm -23 "$work/$1" "$work/$list" |
            sed "s|\$|: in the $1, not in the $list|"
        comm -13 "$work/$1" "$work/$list" |
            sed "s|\$|: in the $list, not in the $1|"
        cmp -s "$work/$1" "$work/$list" || same=1
    done
    [ -s "$work/$1" ] || {
        echo "the $1: nothing found"
        same=1
    }
    return $same
}
