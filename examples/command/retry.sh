#!/bin/sh
# SPDX-License-Identifier: MIT
# What happens to keys that fail?
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

# begin: handler
cat >push <<'HANDLER'
#!/bin/sh
# Exit codes: 0 success, 65 do not retry, 75 retry later, other: failure.
case $1:$WQ_ATTEMPT in
busy:1 | busy:2) exit 75 ;;
flaky:1) exit 1 ;;
wrong:*) echo "no such branch" >&2; exit 65 ;;
esac
echo "$1: attempt $WQ_ATTEMPT"
HANDLER
chmod +x push
# end: handler

pushing() {
    # begin: retry
    printf '%s\n' good busy flaky wrong |
        wq run --retries=5 --backoff=50ms,1s --no-retry-codes=65 -- ./push {}
    # end: retry
}

status=0
pushing >out 2>err || status=$?
[ "$status" -eq 123 ]
sort out >sorted
cmp - sorted <<'EXPECTED'
busy: attempt 3
flaky: attempt 2
good: attempt 1
EXPECTED
# The delay is random, and so is which key fails first.
sed 's/ in [0-9]*ms$/ in 38ms/' err | LC_ALL=C sort >told
cmp - told <<'EXPECTED'
no such branch
wq:   wrong: exit 65 (attempt 1): no such branch
wq: 4 keys, 3 ok, 1 failed, 0 left; 4 adds; 3 retries (2 requested)
wq: failed keys:
wq: flaky: exit 1; retry 1 of 5 in 38ms
wq: wrong: failed: exit 65 (attempt 1)
EXPECTED
