#!/bin/sh
# SPDX-License-Identifier: MIT
# Which part of the library do the tests run? Prints the share of lines and
# branches of each file of src/ and backends/, and of each of these as a whole,
# from the counts of the cov build.
#
#     cov.sh            the shares
#     cov.sh --missed   the lines that no test runs, as FILE:LINE: text
#
# Fails if less than 95 % of the lines of src/ run.
set -eu
cd "$(dirname "$0")/.."
root=$PWD

if [ "${1:-}" = --missed ]; then
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    cd "$work"
    find "$root/build/cov/src" "$root/build/cov/backends" -name "*.gcno" -print0 |
        xargs -0 gcov --preserve-paths --hash-filenames >/dev/null 2>&1
    # A line: count, number, text; the first names the file. A file that is
    # compiled twice (headers) runs if it runs in one of them.
    awk -F: '
        / 0:Source:/ { file = $NF; sub(/^.*\/(src|backends)\//, "&", file)
            if (match(file, /(src|backends)\/.*\.c$/))
                file = substr(file, RSTART)
            else
                file = "" }
        file && $1 ~ /#####|=====/ {
            line = $2; gsub(/ /, "", line)
            text = $0; sub(/^[^:]*:[^:]*:/, "", text)
            print file ":" line ":" text
        }' ./*.gcov | sort -t: -k1,1 -k2,2n
    exit 0
fi

find build/cov/src build/cov/backends -name '*.gcno' | sort |
    while read -r counts; do
        gcov --no-output --branch-probabilities "$counts" 2>/dev/null
    done | awk '
    /^File / {
        file = $2
        gsub(/\x27/, "", file)
        if (match(file, /(src|backends)\/.*\.c$/))
            file = substr(file, RSTART)
        else
            file = ""
        room = file
        sub(/^src\/.*/, "src", room)
        if (room != "src")
            sub(/\/[^\/]*$/, "", room)
    }
    file && /^Lines executed/ {
        split($0, part, /[:% ]+/)
        lines[file] = part[3]
        all[room] += $NF; hit[room] += $NF * part[3] / 100
    }
    file && /^Taken at least once/ {
        split($0, part, /[:% ]+/)
        branches[file] = part[5]
        ways[room] += $NF; taken[room] += $NF * part[5] / 100
    }
    /^$/ { file = "" }
    END {
        for (file in lines)
            printf "%-28s lines %6.2f %%   branches %6.2f %%\n",
                file, lines[file], branches[file] | "sort"
        close("sort")
        for (room in all)
            printf "all of %-21s lines %6.2f %% of %d   branches %6.2f %% of %d\n",
                room, 100 * hit[room] / all[room], all[room],
                100 * taken[room] / ways[room], ways[room] | "sort"
        close("sort")
        if (!all["src"] || hit["src"] < 0.95 * all["src"]) {
            print "cov: less than 95 % of the lines of src/ run"
            exit 1
        }
    }'
