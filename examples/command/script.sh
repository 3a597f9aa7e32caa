#!/bin/sh
# SPDX-License-Identifier: MIT
# How does a script take keys itself?
# shellcheck disable=SC1010 # `done` is a verb of wq
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
export WQ_QUEUE=sqlite:queue.db
wq add one two three

handle() {
    echo "$1" >>handled
    [ "$1" != two ] || [ -e again ] || {
        touch again
        return 1
    }
}

# begin: loop
while key=$(wq get --timeout=2s); do
    if handle "$key"; then
        wq done -- "$key"
    else
        wq done --retry --backoff=100ms -- "$key"
    fi
done
# end: loop

sort handled >sorted
cmp - sorted <<'EXPECTED'
one
three
two
two
EXPECTED
