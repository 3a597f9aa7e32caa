#!/bin/sh
# SPDX-License-Identifier: MIT
# A queue in a server survives its workers and the server: three workers run the
# keys of a producer; in the middle one worker is killed, and then the server,
# which is started again with its data. At the end it counts: every key that was
# added has been run, none twice at once, none is lost.
#
#     distributed.sh [KEYS [OPTION...]]    300; options of the first worker:
#                                          --listen=0 for the live page
set -eu
keys=${1:-300}
[ "$#" -eq 0 ] || shift
if ! command -v redis-server >/dev/null; then
    echo "skipped: redis-server is not installed"
    [ "${CI:-}" != true ] || exit 1
    exit 77
fi
dir=$(mktemp -d)
cd "$dir"
mkdir data lock
server=
processes=

# shellcheck disable=SC2086 # several words
end_all() {
    kill -9 $server $processes 2>/dev/null || true
    wait
    rm -rf "$dir"
}
trap end_all EXIT
trap "exit 1" HUP INT TERM

start_server() {
    redis-server --port 0 --unixsocket "$dir/socket" --dir "$dir/data" \
        --save '' --appendonly yes --appendfsync always --logfile log &
    server=$!
}

# A lock that the kernel releases when its process ends, however it ends: if it is
# taken, the key runs twice at once.
cat >handler <<'HANDLER'
#!/bin/sh
exec 9>"lock/$1"
flock -n 9 || echo "$1" >>twice
echo "$1" >>begun
sleep 0.02
echo "$1" >>ended
HANDLER
chmod +x handler
touch added begun ended twice

# What wq add has acknowledged is in the file `added`. While the server is away it
# is not, and the producer tries again.
produce() {
    i=0
    while [ "$i" -lt "$keys" ]; do
        seq "$i" $((i + 9)) | sed 's/^/key-/' >some
        until wq add -a some 2>>producer.log; do sleep 0.1; done
        cat some >>added
        i=$((i + 10))
    done
}

say() {
    printf '%5s of %s keys done: %s\n' "$(sort -u ended | wc -l)" "$keys" "$*"
}

# await PERCENT: until so many keys are done.
await() {
    while [ "$(wc -l <ended)" -lt $((keys * $1 / 100)) ]; do sleep 0.05; done
}

start_server
export WQ_QUEUE="redis+unix://$dir/socket?queue=jobs&lease=2s"
until wq status >found 2>/dev/null; do sleep 0.05; done
say "the queue is in $(sed -n 's/^server   //p' found)"

for n in 1 2 3; do
    if [ "$n" -eq 1 ]; then
        wq work -q -P4 "$@" -- ./handler {} &
    else
        wq work -q -P4 -- ./handler {} 2>>workers.log &
    fi
    processes="$processes $!"
    eval "worker$n=$!"
done
produce &
processes="$processes $!"
say "three workers with four slots each, and a producer"

await 25
# shellcheck disable=SC2154 # set by eval
kill -9 "$worker2"
say "kill -9 of a worker: its keys run again when its lease of 2 s ends"

await 50
kill -9 "$server"
wait "$server" 2>/dev/null || true
say "kill -9 of the server: all wait"
sleep 0.5
rm -f socket
start_server
say "it is started again, with its data"

await 100
wq drain --timeout=60s
until [ "$(sort -u added | wc -l)" -ge "$keys" ]; do sleep 0.05; done
wq drain --timeout=60s
wq fsck >/dev/null
say "the queue is empty"

# ---- the count ----------------------------------------------------------------
sort -u added >want
sort -u ended >have
lost=$(comm -23 want have | wc -l)
again=$(sort begun | uniq -d | wc -l)
twice=$(wc -l <twice)
cat <<COUNT

  keys added            $(wc -l <want)
  keys done             $(wc -l <have)
  lost                  $lost
  twice at once         $twice
  run a second time     $again   (their worker, or the server, was killed)
COUNT
[ "$lost" -eq 0 ] && [ "$twice" -eq 0 ] && [ "$(wc -l <want)" -ge "$keys" ]
