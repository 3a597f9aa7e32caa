#!/bin/sh
# SPDX-License-Identifier: MIT
# Is the source laid out correctly, and what do the analysers find? Layout by
# clang-format and gofmt, C by clang-tidy, scripts by shellcheck. Needs the dev
# build, for its compile commands. A tool that is not installed is left out
# (scripts/deps.sh has reported it).
set -eu
cd "$(dirname "$0")/.."
log=$(mktemp)
trap 'rm -f "$log"' EXIT

status=0
# lint TOOL COMMAND...: runs the command if the tool is installed, and notes a
# failure in $status.
lint() {
    tool=$1
    shift
    command -v "$tool" >/dev/null || return 0
    echo "lint: $tool"
    "$@" || status=1
}

# once_each: how each file is compiled; the first way, if there are several: the
# fuzz targets compile files of the command, too.
# shellcheck disable=SC2317 # called by tidy
once_each() {
    python3 -c 'import json, sys
ways = {}
for way in json.load(sys.stdin):
    ways.setdefault(way["file"], way)
json.dump(list(ways.values()), sys.stdout, indent=0)'
}

# One file at a time, since each takes seconds (and with several, or one twice, the
# analyser wrongly reports an uninitialised va_list). Unless it fails, clang-tidy prints
# to stderr only how many warnings it suppressed.
# shellcheck disable=SC2317 # called by lint
tidy() {
    mkdir -p build/tidy
    once_each <build/dev/compile_commands.json \
        >build/tidy/compile_commands.json || return 1
    scripts/files.sh '*.c' | grep -E '^(src|tools|backends)/' |
        while read -r file; do # only files that are built can be analysed
            ! grep -qF "/$file\"" build/tidy/compile_commands.json || echo "$file"
        done |
        xargs -P "${JOBS:-$(nproc)}" -n 1 clang-tidy -p build/tidy --quiet \
            2>"$log" || {
        cat "$log"
        return 1
    }
}

# gofmt prints which files it would change, and succeeds even then.
# shellcheck disable=SC2317 # called by lint
tidy_go() {
    # shellcheck disable=SC2046 # our names hold no spaces
    gofmt -l $(scripts/files.sh '*.go') >"$log" || return 1
    cat "$log"
    [ ! -s "$log" ]
}

# shellcheck disable=SC2046 # our names hold no spaces
lint clang-format \
    clang-format --dry-run -Werror $(scripts/files.sh '*.[ch]' '*.cc')
lint clang-tidy tidy
lint gofmt tidy_go
# shellcheck disable=SC2046
lint shellcheck shellcheck $(scripts/files.sh '*.sh') .ci/run

exit $status
