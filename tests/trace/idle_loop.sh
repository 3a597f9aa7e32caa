#!/bin/sh
# SPDX-License-Identifier: MIT
# Does an event loop sleep while its queue is idle? (O-70, by strace)
#
#     idle_loop.sh PROGRAM    an example with a loop. It has handled one key and
#                             waits for another, due in an hour: it makes hardly
#                             any system call in a second. SIGTERM then ends it.
set -eu
# shellcheck source=tests/support/script.sh
. "$(dirname "$0")/../support/script.sh"
program=$1

need strace
make_work

# shellcheck disable=SC2016 # for the inner shell
strace -f -o "$work/log" sh -c 'echo $$ >"$1"; exec "$0" --idle' \
    "$program" "$work/pid" >"$work/output" &
tracer=$!
tries=0
until grep -q begin "$work/output"; do # its output before the loop
    tries=$((tries + 1))
    if [ $tries -gt 100 ] || ! kill -0 $tracer 2>/dev/null; then
        grep -q "ptrace" "$work/log" || exit 1
        skip_even_in_ci "strace is not permitted"
    fi
    sleep 0.1
done
sleep 0.5 # until the loop is set up
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
