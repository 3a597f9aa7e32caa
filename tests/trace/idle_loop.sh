#!/bin/sh
# SPDX-License-Identifier: MIT
# Does an event loop sleep while its queue has nothing to say? (O-70, by strace)
#
#     idle_loop.sh PROGRAM    an example with a loop. It has had one key, waits
#                             for another, due in an hour, and makes next to no
#                             system call in a second; then it gets SIGTERM, and
#                             ends
set -eu
program=$1

command -v strace >/dev/null || {
    echo "skipped: no strace"
    [ "${CI:-}" = true ] && exit 1
    exit 77
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# shellcheck disable=SC2016 # for the inner shell
strace -f -o "$work/log" sh -c 'echo $$ >"$1"; exec "$0" --idle' \
    "$program" "$work/pid" >"$work/said" &
tracer=$!
tries=0
until grep -q begin "$work/said"; do # what it says before its loop
    tries=$((tries + 1))
    if [ $tries -gt 100 ] || ! kill -0 $tracer 2>/dev/null; then
        grep -q "ptrace" "$work/log" || exit 1
        echo "skipped: strace may not trace here"
        exit 77
    fi
    sleep 0.1
done
sleep 0.5 # the loop is set up
before=$(wc -l <"$work/log")
sleep 1
after=$(wc -l <"$work/log")
kill -TERM "$(cat "$work/pid")"
wait $tracer

calls=$((after - before))
echo "$calls system calls in a second"
[ "$calls" -le 5 ] || {
    sed -n "$before,${after}p" "$work/log" | head
    exit 1
}
