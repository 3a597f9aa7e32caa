#!/bin/sh
# SPDX-License-Identifier: MIT
# Is the code in the documents the code that is compiled and run? A block of C
# below a line `<!-- FILE -->` must be that file, less its opening comments.
# Every block of C must have such a line.
set -eu
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Prints the file without the comments (and empty lines) it begins with.
body() {
    awk '
        !started && inside { if (/\*\//) inside = 0; next }
        !started && /^\/\*/ { inside = !/\*\//; next }
        !started && /^$/ { next }
        { started = 1; print }
    ' "$1"
}

status=0
for document in $(scripts/files.sh '*.md'); do
    rm -f "$work"/block-*
    awk -v work="$work" -v document="$document" '
        /^<!-- [^ ]+ -->$/ { file = $2; next }
        /^```c$/ {
            n++
            inside = 1
            print file == "" ? "-" : file > (work "/block-" n ".name")
            next
        }
        /^```/ { inside = 0; file = ""; next }
        inside { print > (work "/block-" n ".code") }
        !inside && /[^ ]/ { file = "" }
    ' "$document"
    for name in "$work"/block-*.name; do
        [ -e "$name" ] || continue
        file=$(cat "$name")
        if [ "$file" = - ]; then
            echo "$document: a block of C does not say which file it quotes"
            status=1
        elif [ ! -f "$file" ]; then
            echo "$document: quotes $file, which is not there"
            status=1
        elif ! body "$file" | diff - "${name%.name}.code" >"$work/diff"; then
            echo "$document: differs from $file:"
            cat "$work/diff"
            status=1
        fi
    done
done
exit $status
