#!/bin/sh
# SPDX-License-Identifier: MIT
# Where does the output of runs go?
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
exec >all

# begin: results
printf '%s\n' alpha beta |
    wq run -P2 --tag --results=out --json=events -- sh -c 'echo "up 3 days"'
cat out/1/alpha/stdout
grep '"event":"finished"' events
# end: results

# The two runs may finish in either order.
grep -v event all | sort >sorted
cmp - sorted <<EXPECTED
alpha	up 3 days
beta	up 3 days
up 3 days
EXPECTED
[ "$(grep -c '"outcome":"ok"' all)" -eq 2 ]
