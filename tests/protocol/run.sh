#!/bin/sh
# SPDX-License-Identifier: MIT
# Do the protocols hold in every interleaving? Checks the models of this
# directory with spin, exhaustively; see README.md.
#
#     run.sh [--quick] [NAME...]    --quick: all but the lines marked `full`
#                                   NAME: only these lines
#
# Prints a line for each check. Fails if a model that must hold does not, if a
# search was not exhaustive, or if a mutant is not caught. The files of a check
# stay in build/protocol/NAME; trail.txt is the sequence of steps to an error.
# JOBS checks run at a time.
set -eu
cd "$(dirname "$0")/../.."

# holds: there must be no error. fails: a mutant, there must be one, of the kind
# named: `assert`, or `stuck`, a thread that waits for ever.
table='
name                   when   model  expected      options
lock-2-threads         quick  lock   holds         THREADS=2 ROUNDS=4 INTERRUPTS=2
lock-3-threads         full   lock   holds         THREADS=3 ROUNDS=2
lock-4-threads         full   lock   holds         THREADS=4 ROUNDS=1
lock-3-threads-once    quick  lock   holds         THREADS=3 ROUNDS=1
lock-wake-stale        quick  lock   fails:stuck   THREADS=2 WAKE_ON_STALE_READ
lock-sleep-no-compare  quick  lock   fails:stuck   THREADS=2 SLEEP_WITHOUT_COMPARE
lock-woken-sets-1      quick  lock   fails:stuck   THREADS=3 ROUNDS=1 WOKEN_SETS_1
lock-relaxed-release   quick  lock   fails:assert  THREADS=2 RELAXED_RELEASE
lock-no-acquire        quick  lock   fails:assert  THREADS=2 NO_ACQUIRE
lock-no-wake           quick  lock   fails:stuck   THREADS=2 NO_WAKE
sleep                  quick  sleep  holds
sleep-once             quick  sleep  holds         ONE_SHOT
sleep-spin             quick  sleep  holds         SPIN
sleep-spin-once        quick  sleep  holds         SPIN ONE_SHOT
sleep-spin-real-time   quick  sleep  holds         SPIN REAL_TIME
sleep-spin-3-getters   full   sleep  holds         SPIN ONE_SHOT GETTERS=3
sleep-spin-4-keys      full   sleep  holds         SPIN KEYS=2
sleep-stuck            quick  sleep  holds         SPIN STUCK
sleep-stuck-once       quick  sleep  holds         SPIN STUCK ONE_SHOT
sleep-stuck-real-time  quick  sleep  holds         SPIN STUCK REAL_TIME
sleep-stuck-3-getters  full   sleep  holds         SPIN STUCK GETTERS=3
sleep-stuck-2-spared   full   sleep  holds         SPIN STUCK SPARED=2 KEYS=2
sleep-timeout          full   sleep  holds         SPIN TIMEOUTS
sleep-timeout-1-key    quick  sleep  holds         SPIN TIMEOUTS PRODUCERS=1
sleep-interrupt        full   sleep  holds         SPIN INTERRUPTS=1
sleep-timekeeper           quick  sleep  holds         DELAYED=2 PRODUCERS=0 TIMEOUTS
sleep-timekeeper-spin      full   sleep  holds         SPIN DELAYED=2 PRODUCERS=1
sleep-timekeeper-stuck     quick  sleep  holds         SPIN STUCK DELAYED=2 PRODUCERS=0
sleep-timekeeper-interrupt full   sleep  holds         SPIN DELAYED=1 PRODUCERS=1 INTERRUPTS=1
sleep-nap              quick  sleep  holds         PATIENCE PRODUCERS=1 KEYS=2
sleep-nap-once         quick  sleep  holds         PATIENCE ONE_SHOT
sleep-nap-spin         full   sleep  holds         PATIENCE SPIN
sleep-nap-stuck        full   sleep  holds         PATIENCE SPIN STUCK
sleep-nap-3-getters    full   sleep  holds         PATIENCE ONE_SHOT GETTERS=3
sleep-nap-timeout      full   sleep  holds         PATIENCE TIMEOUTS
sleep-nap-interrupt    full   sleep  holds         PATIENCE INTERRUPTS=1
sleep-nap-timekeeper   full   sleep  holds         PATIENCE DELAYED=2 PRODUCERS=1
sleep-nap-loop         quick  sleep  holds         PATIENCE LOOP GETTERS=1 ONE_SHOT
sleep-loop             quick  sleep  holds         LOOP GETTERS=0 DELAYED=1
sleep-loop-getter      quick  sleep  holds         LOOP GETTERS=1 SPIN
sleep-loop-ends        quick  sleep  holds         LOOP GETTERS=1 SPIN ONE_SHOT LOOP_KEYS=1
sleep-relaxed          quick  sleep  fails:assert  ONE_SHOT RELAXED_WAKE_FROM
sleep-no-publish       quick  sleep  fails:assert  ONE_SHOT GETTERS=1 PRODUCERS=1 NO_PUBLISH
sleep-publish-late     quick  sleep  fails:assert  SPIN STUCK PUBLISH_BY_SLEEPER_ONLY
sleep-no-publish-spin  quick  sleep  fails:assert  SPIN TIMEOUTS PRODUCERS=1 PUBLISH_BY_SLEEPER_ONLY NO_PUBLISH_AFTER_SPIN
sleep-no-last-look     quick  sleep  fails:assert  ONE_SHOT NO_LAST_LOOK
sleep-no-second-key    quick  sleep  fails:assert  SPIN STUCK NO_SECOND_KEY
sleep-spinner-all      quick  sleep  fails:assert  SPIN STUCK SPINNER_TAKES_ALL
sleep-spinner-ready    quick  sleep  fails:assert  SPIN STUCK SPINNER_IGNORES_READY
sleep-spinner-watches  quick  sleep  fails:assert  SPIN STUCK DELAYED=2 PRODUCERS=0 SPINNER_WATCHES
sleep-no-timekeeper-check  quick  sleep  fails:assert  GETTERS=1 PRODUCERS=0 DELAYED=2 NO_TIMEKEEPER_CHECK
sleep-no-nap           quick  sleep  fails:assert  PATIENCE ONE_SHOT NO_NAP
sleep-nap-unwatched    quick  sleep  fails:assert  PATIENCE ONE_SHOT NAP_UNWATCHED
sleep-no-beacon        quick  sleep  fails:assert  LOOP GETTERS=0 NO_BEACON_PUBLISH
'

# options MODEL OPTIONS: prints them as -D options. Fails if the model has no
# such option.
options() {
    for option in $2; do
        grep -qE "^#.*\<${option%%=*}\>" "tests/protocol/$1.pml" || return 1
        printf ' -D%s' "$option"
    done
}

# verdict FILE: prints the result of a search in one word: `incomplete` unless
# it visited every state, or found an error.
verdict() {
    if grep -q 'errors: 1' "$1"; then
        if grep -q 'assertion violated' "$1"; then
            echo assert
        elif grep -q 'invalid end state' "$1"; then
            echo stuck
        else
            echo error
        fi
    elif grep -q 'errors: 0' "$1" && ! grep -qE \
        'too small|not completed|MEMLIM|out of memory' "$1"; then
        echo holds
    else
        echo incomplete
    fi
}

# check NAME WHEN MODEL EXPECTED [OPTION...]
check() {
    name=$1 model=$3 expected=$4
    optimise=-O2
    [ "$2" = full ] || optimise=-O0 # compiling takes longer than searching
    shift 4
    dir=build/protocol/$name
    rm -rf "$dir"
    mkdir -p "$dir"
    flags=$(options "$model" "$*") || {
        echo "protocol: $name: $model.pml has no option of $*"
        return 1
    }
    cp "tests/protocol/$model.pml" "$dir"
    start=$(date +%s)
    # shellcheck disable=SC2086 # flags are words
    (cd "$dir" && spin -a $flags "$model.pml" &&
        cc $optimise -w -DSAFETY -DNOFAIR -DCOLLAPSE -DMEMLIM=6000 -o pan pan.c) \
        >"$dir/build.txt" 2>&1 || {
        echo "protocol: $name: cannot build it; see $dir/build.txt"
        return 1
    }
    (cd "$dir" && ./pan -m100000) >"$dir/search.txt" 2>&1 || true
    seconds=$(($(date +%s) - start))
    states=$(awk '/states, stored/ { print $1; exit }' "$dir/search.txt")
    found=$(verdict "$dir/search.txt")
    if [ "$found" != holds ] && [ -e "$dir/$model.pml.trail" ]; then
        # shellcheck disable=SC2086
        (cd "$dir" && spin -t -p -g $flags "$model.pml" >trail.txt 2>&1) || true
    fi
    case $expected:$found in
    holds:holds) result="holds" ;;
    fails:*:"${expected#fails:}") result="caught" ;;
    holds:incomplete) result="SEARCH INCOMPLETE, see $dir/search.txt" ;;
    holds:*) result="FAILS ($found), see $dir/trail.txt" ;;
    *) result="NOT CAUGHT ($found)" ;;
    esac
    printf 'protocol: %-23s %10s states %4s s  %s\n' \
        "$name" "${states:-no}" "$seconds" "$result"
    case $result in holds | caught) ;; *) return 1 ;; esac
}

if [ "${1:-}" = --check ]; then # one line of the table; xargs below runs this
    shift
    check "$@"
    exit
fi

command -v spin >/dev/null || {
    [ "${CI:-}" != true ] || {
        echo "protocol: spin is not installed, which is an error with CI=true" >&2
        exit 1
    }
    echo "skipped: spin is not installed"
    exit 0
}

quick=
[ "${1:-}" != --quick ] || {
    quick=yes
    shift
}
chosen=$(echo "$table" | sed '/^$/d; /^name /d' | while read -r name when rest; do
    [ "$quick$when" != yesfull ] || continue
    case " $* " in "  " | *" $name "*) ;; *) continue ;; esac
    echo "$name $when $rest"
done)
[ "$chosen" ] || {
    echo "protocol: no such check: $*" >&2
    exit 1
}
echo "$chosen" | xargs -P "${JOBS:-$(nproc)}" -L 1 "tests/protocol/run.sh" --check
