#!/bin/sh
# SPDX-License-Identifier: MIT
# Does examples/machines.c do what the guide says: warn, retry, give up, notice
# that a hold is lost, and stop at SIGTERM?
#
#     example.sh MACHINES WQ         the two programs
set -eu
# shellcheck source=tests/support/script.sh
. "$(dirname "$0")/../support/script.sh"

machines=$1 wq=$2 server=${WQ_REDIS_SERVER:-redis-server}
need "$server"
work=$(mktemp -d)
cd "$work"
server_pid='' worker=''
end_all() {
    # shellcheck disable=SC2086 # none or one each
    kill -9 $server_pid $worker 2>/dev/null || true
    wait
    rm -rf "$work"
}
trap end_all EXIT
trap "exit 1" HUP INT TERM

export WQ_QUEUE="redis+unix://$work/socket?queue=photos&lease=2s"

start_server() {
    rm -f socket
    "$server" --port 0 --unixsocket "$work/socket" --save '' \
        --logfile log &
    server_pid=$!
    until "$wq" status >/dev/null 2>&1; do sleep 0.05; done
}

# await COMMAND...: until it succeeds, at most a minute.
await() {
    tries=0
    until "$@"; do
        tries=$((tries + 1))
        [ $tries -lt 1200 ] || {
            echo "awaited in vain: $*"
            cat said
            exit 1
        }
        sleep 0.05
    done
}

"$machines" redis+unix:///nonexistent/socket 2>said && exit 1
grep -q '^machines: redis: ' said

start_server
"$machines" "$WQ_QUEUE" >made 2>said &
worker=$!
await grep -q '^warning: .*appendonly' said

# A file that is there, one that comes later, one that never comes.
echo cat >cat.jpg
"$wq" add cat.jpg later.jpg none.jpg
await grep -qx "cat.jpg: 4 bytes" made
echo later >later.jpg
await grep -qx "later.jpg: 6 bytes" made
await grep -q '^none.jpg: given up after 5 retries: ' said
"$wq" list --state=dead | grep -q none.jpg

# The server dies while the worker reads from a pipe. The key was lost: when the
# worker goes on, it prints nothing.
mkfifo slow.jpg
"$wq" add slow.jpg
exec 3>slow.jpg # waits for the reader
kill -9 "$server_pid"
wait "$server_pid" 2>/dev/null || true
await grep -qx 'slow.jpg: lost; another worker may have it' said
echo slow >&3
exec 3>&-

start_server
echo dog >dog.jpg
"$wq" add dog.jpg
await grep -qx "dog.jpg: 4 bytes" made
kill "$worker"
wait "$worker" # status 0
worker=''
grep slow.jpg made && exit 1
echo "as the guide says"
