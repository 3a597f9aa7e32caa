#!/bin/sh
# SPDX-License-Identifier: MIT
# Do random inputs break a law? Builds the fuzz targets and runs each for
# FUZZ_SECONDS (60), starting from the corpus in fuzz/corpus/<name>. New inputs
# go to build/fuzz/corpus/<name>; one that breaks a law, to build/fuzz/found/.
#
#     fuzz.sh [NAME...]    these targets; none: all
#
# A dictionary fuzz/<name>.dict has words that the fuzzer would hardly find.
set -eu
cd "$(dirname "$0")/.."
: "${FUZZ_SECONDS:=60}"
export UBSAN_OPTIONS=print_stacktrace=1

command -v clang >/dev/null || exit 0 # scripts/deps.sh has reported it
scripts/build.sh fuzz

mkdir -p build/fuzz/found
status=0
[ $# -gt 0 ] || {
    set -- fuzz/fuzz_*.c
    for source; do
        shift
        name=$(basename "$source" .c)
        set -- "$@" "${name#fuzz_}"
    done
}
for name; do
    program=fuzz_$name
    [ -e "fuzz/$program.c" ] || {
        echo "fuzz: there is no target '$name'" >&2
        exit 2
    }
    [ -x "build/fuzz/fuzz/$program" ] || {
        echo "fuzz: $name is not built: its backend is not"
        continue
    }
    new=build/fuzz/corpus/$name kept=fuzz/corpus/$name
    mkdir -p "$new"
    [ -d "$kept" ] || kept=
    dict=
    [ ! -e "fuzz/$name.dict" ] || dict=-dict=fuzz/$name.dict
    echo "fuzz: $name, $FUZZ_SECONDS s"
    # The output of the command is not of interest; libFuzzer keeps its own.
    # shellcheck disable=SC2086 # no word at all without a corpus or dictionary
    "build/fuzz/fuzz/$program" "$new" $kept $dict -close_fd_mask=3 \
        -max_total_time="$FUZZ_SECONDS" \
        -timeout=10 -print_final_stats=1 -verbosity=0 \
        -artifact_prefix="build/fuzz/found/$name-" || status=1
done
exit $status
