#!/bin/sh
# SPDX-License-Identifier: MIT
# How is wq stopped, and what happens to keys that did not run?
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat >push <<'HANDLER'
#!/bin/sh
[ "$1" != 3 ] || kill -TERM "$PPID" # like a user who presses Ctrl-C
echo "$1" >>pushed
HANDLER
chmod +x push

pushing() {
    # begin: stop
    seq 5 | wq run --drain-timeout=30s --pending-file=left -- ./push
    # end: stop
}

status=0
pushing || status=$?
[ "$status" -eq 143 ] # 128 and SIGTERM
[ "$(tr '\0' ' ' <left)" = "4 5 " ]
# begin: go-on
wq run -0 -a left -- ./push
# end: go-on
seq 5 | cmp - pushed
