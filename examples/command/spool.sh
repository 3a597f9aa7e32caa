#!/bin/sh
# SPDX-License-Identifier: MIT
# How do producers and workers share a queue, if each may be killed at any time?
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

cat >thumbnail <<'HANDLER'
#!/bin/sh
[ "$1" != slow.jpg ] || [ -e go ] || sleep 60
[ "$1" != broken.jpg ] || [ -e repaired ] || exit 65
echo "$1" >>made
HANDLER
chmod +x thumbnail

# begin: add
export WQ_QUEUE=sqlite:spool.db
wq add cat.jpg dog.jpg slow.jpg broken.jpg
find . -name '*.png' -print0 | wq add -0
# end: add

status() {
    # begin: status
    wq status
    # end: status
}
status | grep -q '^READY  *4$'

work() {
    # begin: work
    wq work -P2 --no-retry-codes=65 -- ./thumbnail {}
    # end: work
}
work 2>/dev/null &
worker=$!
while ! wq list --state=dead | grep -q broken.jpg ||
    ! wq list --state=held | grep -q slow.jpg; do sleep 0.05; done

status | sed "s|$dir|/srv/photos|; s|longest for .*|longest for 3s|" >told
cmp - told <<'EXPECTED'
queue    sqlite:/srv/photos/spool.db
READY           0
HELD            1  by 1 holder, the longest for 3s
WAITING         0
DEAD            1  see wq list --state=dead, wq retry
EXPECTED

# `worker` is a shell that waits for wq, its only child: both are killed.
kill -9 "$(cat "/proc/$worker/task/$worker/children")" "$worker"
wait "$worker" || true
wq add cat.jpg # nobody works, nothing is lost
touch go repaired

look() {
    # begin: dead
    wq list --state=dead
    wq retry broken.jpg
    # end: dead
}
look | grep -q '^DEAD .* broken.jpg$'

rest() {
    # begin: rest
    wq work -q --until-empty -- ./thumbnail {}
    # end: rest
}
rest
sort made >sorted
cmp - sorted <<'EXPECTED'
broken.jpg
cat.jpg
cat.jpg
dog.jpg
slow.jpg
EXPECTED

# begin: drain
wq drain --timeout=1m
# end: drain
wq fsck >/dev/null
