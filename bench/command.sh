#!/bin/sh
# SPDX-License-Identifier: MIT
# What does `wq run` cost per job, compared with xargs -P and GNU parallel; how
# long does it take for much output and for many lines with few keys; and how
# much memory do pending keys take? Every round runs all of them one after the
# other; the best round of each counts, since other load can only make it slower.
#
#     command.sh WQ [JOBS [ROUNDS [KEYS [MIB]]]]
#                    5000  5       1000000 1024
#
# KEYS is the number of keys that wait, and of lines; MIB is the size of the
# output. Prints "too slow" and exits with 1 if wq takes more than 1.2 times as
# long as xargs (1.3 times for output), or more than half as long as parallel
# (which may be missing). With fewer than 1000 jobs it compares nothing.
set -eu
wq=$1
jobs=${2:-5000}
rounds=${3:-5}
keys=${4:-1000000}
mib=${5:-1024}
slots=$(nproc)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
seq "$jobs" >"$work/keys"
seq "$keys" | awk '{ print "key" $1 % 100 }' >"$work/lines"

# took COMMAND...: prints how many microseconds it takes with the keys as input.
took() {
    begin=$(date +%s%N)
    "$@" <"$work/keys" >/dev/null
    end=$(date +%s%N)
    echo $(((end - begin) / 1000))
}

# A round: appends the time of each program to its file.
round() {
    took xargs -P "$slots" -n 1 /bin/true >>"$work/xargs"
    took "$wq" run -q -P "$slots" -- /bin/true >>"$work/wq"
    took "$wq" run -q -P "$slots" --ungroup -- /bin/true >>"$work/wq-ungroup"
    if command -v parallel >/dev/null; then
        took parallel -P "$slots" /bin/true >>"$work/parallel" 2>/dev/null
    fi
}

# A round of a job that writes much. A pipe, as a job writes to /dev/null for
# nothing.
output_round() {
    write="yes 'a line of output' | head -c $((mib * 1048576))"
    echo one >"$work/keys"
    # shellcheck disable=SC2016 # that shell expands it
    took sh -c 'xargs -n 1 sh -c "$0" | cat >/dev/null' "$write" \
        >>"$work/xargs-output"
    # shellcheck disable=SC2016
    took sh -c '"$1" run -q -- sh -c "$0" | cat >/dev/null' "$write" "$wq" \
        >>"$work/wq-output"
    # shellcheck disable=SC2016
    took sh -c '"$1" run -q -P 2 -- sh -c "$0" | cat >/dev/null' "$write" \
        "$wq" >>"$work/wq-stored"
}

# A round of many lines and a hundred keys: wq runs a key again that comes after
# its run.
lines_round() {
    # shellcheck disable=SC2016 # that shell expands it
    took sh -c 'sort -u "$1" | xargs -P "$0" -n 1 /bin/true' "$slots" \
        "$work/lines" >>"$work/xargs-lines"
    took "$wq" run -q --summary -P "$slots" -a "$work/lines" -- /bin/true \
        >>"$work/wq-lines" 2>"$work/summary"
}

# best NAME: prints the smallest number in a file; nothing if it is empty.
best() {
    [ ! -s "$work/$1" ] || sort -n "$work/$1" | head -n 1
}

# memory KEYS: prints how many KiB `wq run` uses while so many keys are pending.
memory() {
    rm -f "$work/events"
    mkfifo "$work/stop"
    # One key runs until it may end; the others wait for it.
    { echo first && seq "$1"; } >"$work/many"
    # shellcheck disable=SC2016 # the shell of the job expands it
    "$wq" run -q --halt=now,done=1 --json="$work/events" -a "$work/many" -- \
        sh -c 'read -r _ <"$0"' "$work/stop" &
    pid=$!
    until grep -q '"end of input"' "$work/events" 2>/dev/null; do
        sleep 0.1
    done
    awk '/^VmRSS/ { print $2 }' "/proc/$pid/status"
    echo >"$work/stop"
    wait "$pid" || true
    rm "$work/stop"
}

i=0
while [ "$i" -lt "$rounds" ]; do
    round
    i=$((i + 1))
done
i=0
while [ "$i" -lt "$rounds" ]; do
    output_round
    lines_round
    i=$((i + 1))
done
echo "$jobs x /bin/true, $slots at a time, best of $rounds:"
for name in xargs wq wq-ungroup parallel; do
    us=$(best "$name")
    [ ! "$us" ] || echo "$name $us $(best xargs)" | awk -v jobs="$jobs" '
        { printf "  %-12s %7.0f us a job   %.2f x xargs\n", $1, $2 / jobs,
            $2 / $3 }'
done

# compare TITLE XARGS NAME...: prints the times of the rows in milliseconds.
compare() {
    echo "$1, best of $rounds:"
    peer=$2
    shift
    for name in "$@"; do
        echo "$name $(best "$name") $(best "$peer")" | awk '
            { printf "  %-12s %7.0f ms         %.2f x xargs\n", $1,
                $2 / 1000, $2 / $3 }'
    done
}
compare "$mib MiB from one job" xargs-output wq-output wq-stored
compare "$keys lines, 100 keys" xargs-lines wq-lines
sed 's/^wq: /  /' "$work/summary"

few=$(memory 1)
many=$(memory "$keys")
echo "$keys keys that wait: $(((many - few) / 1024)) MiB, \
$(((many - few) * 1024 / keys)) bytes a key (and $few KiB without)"

[ "$jobs" -ge 1000 ] || exit 0
if [ $((10 * $(best wq))) -gt $((12 * $(best xargs))) ]; then
    echo "too slow: more than 1.2 x xargs"
    exit 1
fi
if [ $((10 * $(best wq-output))) -gt $((13 * $(best xargs-output))) ]; then
    echo "too slow: more than 1.3 x xargs for $mib MiB"
    exit 1
fi
parallel=$(best parallel)
if [ "$parallel" ] && [ $((2 * $(best wq))) -gt "$parallel" ]; then
    echo "too slow: more than half of parallel"
    exit 1
fi
