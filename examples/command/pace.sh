#!/bin/sh
# SPDX-License-Identifier: MIT
# Which keys run first, and how fast?
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

pace() {
    # begin: priority
    printf '%s\n' '{"key":"nightly"}' '{"key":"page","priority":10}' \
        '{"key":"later","after":"300ms","priority":20}' |
        wq run --input=jsonl --rate=20/s -- echo
    # end: priority
}

# The first key starts at once; the others are ordered by priority.
pace >out
[ "$(tail -n 1 out)" = later ]
sort out | tr '\n' ' ' | grep -qx 'later nightly page '
