#!/bin/sh
# SPDX-License-Identifier: MIT
# What does `wq run` do with keys?
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
exec >out 2>err

# begin: first
printf '%s\n' nginx redis nginx nginx | wq run -- echo restart
# end: first

printf 'restart %s\n' nginx redis | cmp - out
cmp - err <<'EXPECTED'
wq: 2 keys, 2 ok, 0 failed, 0 left; 4 adds (50% deduplicated); 0 retries
EXPECTED
