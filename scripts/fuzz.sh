#!/bin/sh
# SPDX-License-Identifier: MIT
# Do random inputs break a law? Builds the fuzz targets and runs each for
# FUZZ_SECONDS (60), starting from the corpus in fuzz/corpus/<name>. New inputs
# go to build/fuzz/corpus/<name>; one that breaks a law, to build/fuzz/found/.
set -eu
cd "$(dirname "$0")/.."
: "${FUZZ_SECONDS:=60}"
export UBSAN_OPTIONS=print_stacktrace=1

command -v clang >/dev/null || exit 0 # scripts/deps.sh has reported it
scripts/build.sh fuzz

mkdir -p build/fuzz/found
status=0
for source in fuzz/fuzz_*.c; do
    [ -e "$source" ] || {
        echo "fuzz: no targets in fuzz/"
        exit 0
    }
    program=$(basename "$source" .c)
    name=${program#fuzz_}
    new=build/fuzz/corpus/$name kept=fuzz/corpus/$name
    mkdir -p "$new"
    [ -d "$kept" ] || kept=
    echo "fuzz: $name, $FUZZ_SECONDS s"
    # shellcheck disable=SC2086 # no word at all without a kept corpus
    "build/fuzz/fuzz/$program" "$new" $kept -max_total_time="$FUZZ_SECONDS" \
        -timeout=10 -print_final_stats=1 -verbosity=0 \
        -artifact_prefix="build/fuzz/found/$name-" || status=1
done
exit $status
