#!/bin/sh
# SPDX-License-Identifier: MIT
# What does a race detector report about a program that uses the library as it
# is shipped? Nothing in correct.c, and in racy.c its own race and no other.
#
#     run.sh TOOL LIBRARY WORK    TOOL: tsan, helgrind or drd; LIBRARY: libwq.a or
#                                 libwq.so, not sanitized; programs go to WORK
#
# $CC is the compiler (cc). $WQ_HAVE_VALGRIND is not empty if the library was
# built with Valgrind's headers.
set -eu
# shellcheck source=tests/support/script.sh
. "$(dirname "$0")/../support/script.sh"

here=$(cd "$(dirname "$0")" && pwd)
tool=$1 library=$2 work=$3
: "${CC:=cc}"

fail() {
    echo "$1"
    cat "$work/log"
    exit 1
}

# Builds a program as users do.
build() {
    $CC -std=c11 -D_POSIX_C_SOURCE=200809L -g -O1 $sanitize \
        -I "$here/../../include" "$here/$1.c" -o "$work/$1" \
        "$library" -Wl,-rpath,"$(dirname "$library")" -pthread
}

# Runs a program; the tool's output is in $work/log. ThreadSanitizer does not
# support all layouts of the address space: if so, runs it again with a fixed
# one.
run() {
    status=0
    $valgrind "$@" >"$work/log" 2>&1 || status=$?
    if [ "$tool" = tsan ] && grep -q 'unexpected memory mapping' "$work/log"; then
        command -v setarch >/dev/null || skip "$(head -n 1 "$work/log")"
        status=0
        setarch "$(uname -m)" -R "$@" >"$work/log" 2>&1 || status=$?
    fi
    # Valgrind 3.19 cannot read the DWARF 5 of clang. A build by gcc runs this
    # test, so that CI may skip it.
    if grep -q 'Valgrind: debuginfo reader' "$work/log"; then
        skip_even_in_ci "valgrind cannot read the debug information of $CC"
    fi
}

# Prints the number of reports, and how many of them are about racy.c.
reports() {
    awk '
        /^WARNING: ThreadSanitizer/ { all++ }
        /^SUMMARY: ThreadSanitizer: data race .*racy\.c:/ { own++ }
        /ERROR SUMMARY/ { all = $7 } # Valgrind: so many different ones
        /Possible data race|Conflicting (load|store)/ { race = 1; next }
        race && / at 0x/ {
            own += /\((.*\/)?racy\.c:/
            race = 0
        }
        END { print all + 0, own + 0 }' "$work/log"
}

sanitize='' valgrind=''
case $tool in
tsan) sanitize=-fsanitize=thread ;;
*)
    need valgrind
    [ "${WQ_HAVE_VALGRIND:-}" ] || skip "the library was built without the headers of valgrind"
    valgrind="valgrind --tool=$tool --error-limit=no"
    ;;
esac
# A report must not end the program, whatever the caller has set.
export TSAN_OPTIONS=exitcode=0:halt_on_error=0

rm -rf "$work"
mkdir -p "$work"
[ "$tool" != tsan ] || echo 'int main(void) { return 0; }' |
    $CC -x c - $sanitize -o "$work/probe" 2>/dev/null ||
    skip "$CC has no -fsanitize=thread"
build correct
build racy

number=500
[ "$tool" = tsan ] || number=32
run "$work/correct" $number
[ $status -eq 0 ] || fail "correct: exit status $status"
# shellcheck disable=SC2046 # numbers are words
set -- $(reports)
echo "correct: $1 reports"
[ "$1" -eq 0 ] || fail "correct: a race is reported, and there is none"

for mistake in write_after_add write_after_done write_what_is_shared; do
    run "$work/racy" $mistake
    [ $status -eq 0 ] || fail "$mistake: exit status $status"
    # shellcheck disable=SC2046
    set -- $(reports)
    echo "$mistake: $1 reports, $2 of them in racy.c"
    [ "$2" -ge 1 ] || fail "$mistake: the race is not reported"
    [ "$1" -eq "$2" ] || fail "$mistake: another race is reported"
done
