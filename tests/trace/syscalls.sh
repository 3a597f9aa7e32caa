#!/bin/sh
# SPDX-License-Identifier: MIT
# Does the queue make system calls that it does not need? (O-12, by strace)
#
#     syscalls.sh PROGRAM cycle    none while no thread sleeps: 100,000 cycles
#                                  make fewer than 200, those of the program's
#                                  start
#     syscalls.sh PROGRAM metrics  the same with metrics and two threads
#     syscalls.sh PROGRAM hour     no periodic wake-up while a key is due in an
#                                  hour: the sleeping thread makes a handful in 2
#                                  seconds
set -eu
# shellcheck source=tests/support/script.sh
. "$(dirname "$0")/../support/script.sh"
program=$1 mode=$2

need strace
make_work
log=$work/log

strace -f -o "$log" "$program" "$mode" || {
    grep -q "ptrace" "$log" || exit 1
    skip_even_in_ci "strace is not permitted"
}
if grep -q '^[0-9]* *membarrier(' "$log"; then
    echo "$mode: a call of membarrier(), which interrupts the other processors"
    exit 1
fi
if [ "$mode" = hour ]; then
    # Lines of the thread that the program started, not of the first one.
    first=$(awk 'NR == 1 { print $1 }' "$log")
    calls=$(awk -v first="$first" '$1 != first' "$log" | wc -l)
    most=20
else
    # A debug build yields now and then, on purpose (relax.h).
    calls=$(grep -vc sched_yield "$log")
    most=200 # the dynamic linker makes most of them
fi
echo "$mode: $calls system calls"
[ "$calls" -le "$most" ] || {
    cut -d'(' -f1 "$log" | sort | uniq -c | sort -rn | head
    exit 1
}
