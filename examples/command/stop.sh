#!/bin/sh
# SPDX-License-Identifier: MIT
# How is it stopped, and what becomes of keys that were not run?
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat >push <<'HANDLER'
#!/bin/sh
[ "$1" != 3 ] || kill -TERM "$PPID" # somebody presses Ctrl-C, more or less
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
