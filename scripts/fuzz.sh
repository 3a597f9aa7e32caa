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
: "${FUZZ_SEED:=0}" # 0: another one each time
export UBSAN_OPTIONS=print_stacktrace=1

command -v clang >/dev/null || exit 0 # scripts/deps.sh has reported it
scripts/build.sh fuzz

mkdir -p build/fuzz/found
started=build/fuzz/started
touch $started
failed=
[ $# -gt 0 ] || {
    set -- fuzz/fuzz_*.c
    for source; do
        shift
        name=$(basename "$source" .c)
        set -- "$@" "${name#fuzz_}"
    done
}
for name; do
    [ -e "fuzz/fuzz_$name.c" ] || {
        echo "fuzz: there is no target '$name'" >&2
        exit 2
    }
done
for name; do
    program=fuzz_$name
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
        -max_total_time="$FUZZ_SECONDS" -seed="$FUZZ_SEED" \
        -timeout=10 -print_final_stats=1 -verbosity=0 \
        -artifact_prefix="build/fuzz/found/$name-" || failed="$failed $name"
done
[ -z "$failed" ] || {
    # Of CI's output often only the end is left, and none of its files.
    find build/fuzz/found -type f -newer $started | while read -r input; do
        echo "fuzz: $input, to be put back with 'base64 -d | gunzip':"
        gzip -9 <"$input" | base64
    done
    echo "fuzz: failed:$failed; run one again with scripts/fuzz.sh NAME"
    exit 1
}
