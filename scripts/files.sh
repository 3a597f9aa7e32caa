#!/bin/sh
# SPDX-License-Identifier: MIT
# Which files belong to the source? Prints them, one per line, relative to the
# root: those that git tracks or does not ignore; without git, all but build/.
#
#     files.sh [PATTERN...]    only names that match a pattern: '*.c' 'Makefile'
set -eu
cd "$(dirname "$0")/.."

all() {
    git ls-files --cached --others --exclude-standard 2>/dev/null ||
        find . -type d \( -name .git -o -path ./build \) -prune -o \
            -type f -print | sed 's|^\./||'
}

all | sort -u | while read -r file; do
    [ -f "$file" ] || continue
    [ $# -gt 0 ] || echo "$file"
    for pattern; do
        # shellcheck disable=SC2254 # a pattern is meant as one
        case ${file##*/} in
        $pattern)
            echo "$file"
            break
            ;;
        esac
    done
done
