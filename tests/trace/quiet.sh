#!/bin/sh
# SPDX-License-Identifier: MIT
# Is the queue quiet when it has nothing to say? (O-12, by strace)
#
#     quiet.sh PROGRAM cycle   no system call while nobody sleeps: 100,000 rounds
#                              make fewer than 100, the start of a process
#     quiet.sh PROGRAM metrics the same with metrics and two threads
#     quiet.sh PROGRAM hour    no periodic wake-up while a key waits for an hour:
#                              the sleeping thread makes a handful in 2 seconds
set -eu
program=$1 mode=$2

command -v strace >/dev/null || {
    echo "skipped: no strace"
    [ "${CI:-}" = true ] && exit 1
    exit 77
}
log=$(mktemp)
trap 'rm -f "$log"' EXIT

strace -f -o "$log" "$program" "$mode" || {
    grep -q "ptrace" "$log" || exit 1
    echo "skipped: strace may not trace here"
    exit 77
}
if grep -q '^[0-9]* *membarrier(' "$log"; then
    echo "$mode: membarrier interrupts the other processors"
    exit 1
fi
if [ "$mode" = hour ]; then
    # Lines of the thread that the program started: not of the first process.
    first=$(awk 'NR == 1 { print $1 }' "$log")
    calls=$(awk -v first="$first" '$1 != first' "$log" | wc -l)
    most=20
else
    # A debug build lets others run now and then, on purpose (relax.h).
    calls=$(grep -vc sched_yield "$log")
    most=100
fi
echo "$mode: $calls system calls"
[ "$calls" -le "$most" ] || {
    cut -d'(' -f1 "$log" | sort | uniq -c | sort -rn | head
    exit 1
}
