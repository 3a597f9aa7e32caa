#!/bin/sh
# SPDX-License-Identifier: MIT
# How do processes of several machines share a queue?
# shellcheck disable=SC1010 # `done` is a verb of wq
set -eu
if ! command -v redis-server >/dev/null; then
    echo "skipped: redis-server is not installed"
    [ "${CI:-}" != true ] || exit 1
    exit 77
fi
dir=$(mktemp -d)
stop() {
    # shellcheck disable=SC2046 # none, one or several
    kill $(jobs -p) 2>/dev/null || true
    kill "$(cat server.pid)" || true
    while [ -e server.pid ]; do sleep 0.05; done # it removes it at its end
    wait
    rm -rf "$dir"
}
trap stop EXIT
trap "exit 1" HUP INT TERM
cd "$dir"

# begin: server
mkdir -p data
redis-server --port 0 --unixsocket "$PWD/redis.sock" --dir "$PWD/data" \
    --appendonly yes --pidfile "$PWD/server.pid" --logfile log --daemonize yes
export WQ_QUEUE="redis+unix://$PWD/redis.sock?queue=photos&lease=5s"
until wq status >/dev/null 2>&1; do sleep 0.1; done
# end: server

# begin: handler
cat >thumbnail <<'HANDLER'
#!/bin/sh
[ "$1" != slow.jpg ] || [ -e go ] || sleep 60
echo "$1 $WQ_FENCE" >>made
HANDLER
chmod +x thumbnail
# end: handler

# begin: add
wq add cat.jpg dog.jpg slow.jpg
# end: add

work() {
    # begin: work
    wq work -P2 -- ./thumbnail {}
    # end: work
}
work 2>/dev/null &
worker=$!
until wq list --state=held | grep -q slow.jpg; do sleep 0.05; done

status() {
    # begin: status
    wq status
    # end: status
}
until [ -e made ] && [ "$(wc -l <made)" -eq 2 ]; do sleep 0.05; done
until status | grep -q '^HELD  *1 '; do sleep 0.05; done
status | sed "s|$dir|/srv/photos|; s|sock, .* [0-9.]*,|sock, Redis 7.0.15,|
    s|longest for .*|longest for 3s|" >told
cmp - told <<'EXPECTED'
queue    redis+unix:///srv/photos/redis.sock?queue=photos&lease=5s
server   /srv/photos/redis.sock, Redis 7.0.15, primary
READY           0
HELD            1  by 1 holder, the longest for 3s
WAITING         0
DEAD            0
EXPECTED

# A machine fails: the shell and wq, its only child, are killed. Other workers get
# the key when the lease ends.
kill -9 "$(cat "/proc/$worker/task/$worker/children")" "$worker"
wait "$worker" 2>/dev/null || true
touch go
wq work -q --until-empty -- ./thumbnail {}
[ "$(wc -l <made)" -eq 3 ]

wq add bird.jpg
# begin: script
handle() { echo "$1" >>handled; }
while key=$(wq get --timeout=1s); do
    if handle "$key"; then
        wq done -- "$key"
    else
        wq done --retry -- "$key"
    fi
done
# end: script
grep -qx bird.jpg handled

wq fsck | grep -qx 'no problems'
# begin: bytes
memory() {
    redis-cli -s redis.sock info memory |
        sed -n 's/^used_memory:\([0-9]*\).*/\1/p'
}
before=$(memory)
seq 100000 200000 | wq add
echo "$((($(memory) - before) / 100000)) bytes for each key"
# end: bytes
