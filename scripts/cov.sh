#!/bin/sh
# SPDX-License-Identifier: MIT
# Which part of the library do the tests run? Prints the share of lines and
# branches per file of src/, from the counts of the cov build.
set -eu
cd "$(dirname "$0")/.."

find build/cov/src -name '*.gcno' | sort | while read -r counts; do
    gcov --no-output --branch-probabilities "$counts" 2>/dev/null
done | awk '
    /^File / {
        file = $2
        gsub(/\x27/, "", file)
        sub(/^.*\/src\//, "src/", file)
    }
    /^Lines executed/ && file ~ /^src\/.*\.c$/ {
        split($0, part, /[:% ]+/)
        lines[file] = part[3]
        total += $NF; hit += $NF * part[3] / 100
    }
    /^Taken at least once/ && file ~ /^src\/.*\.c$/ {
        split($0, part, /[:% ]+/)
        branches[file] = part[5]
    }
    /^$/ { file = "" }
    END {
        for (file in lines)
            printf "%-28s lines %6.2f %%   branches %6.2f %%\n",
                file, lines[file], branches[file] | "sort"
        close("sort")
        if (total)
            printf "%-28s lines %6.2f %%\n", "all", 100 * hit / total
    }'
