#!/bin/sh
# SPDX-License-Identifier: MIT
# Is the code in the documents the code that is compiled and run? A block of C
# below a line `<!-- FILE -->` must be that file, less its opening comments; below
# `<!-- FILE#PART -->`, what stands between the lines `/* begin: PART */` and
# `/* end: PART */` in it. Every block of C must have such a line. A block of
# shell may have one: `# begin: PART` and `# end: PART` in a script, indented as
# the part is.
#
#     quoted.sh            says what differs
#     quoted.sh --mend     writes what the files say into the documents
set -eu
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Prints what FILE or FILE#PART stands for.
quote() {
    case $1 in
    *.sh#*) awk -v part="${1#*#}" '
        { text = $0; sub(/^ +/, "", text) }
        text == "# end: " part { inside = 0 }
        inside { print substr($0, indent + 1) }
        text == "# begin: " part { inside = 1; indent = length - length(text) }
    ' "${1%%#*}" ;;
    *#*) awk -v part="${1#*#}" '
        $0 == "/* end: " part " */" { inside = 0 }
        inside { print }
        $0 == "/* begin: " part " */" { inside = 1 }
    ' "${1%%#*}" ;;
    *) awk '
        !started && inside { if (/\*\//) inside = 0; next }
        !started && /^\/\*/ { inside = !/\*\//; next }
        !started && /^$/ { next }
        /^\/\* (begin|end): .* \*\/$/ { next }
        { started = 1; print }
    ' "$1" ;;
    esac
}

# Prints the document with every block as the files have it.
mended() {
    name='' inside=''
    while IFS= read -r line; do
        case $line in
        '<!-- '*' -->')
            name=${line#<!-- }
            name=${name% -->}
            ;;
        '```c' | '```sh')
            if [ ! "$name" ] && [ "$line" = '```sh' ]; then
                printf '%s\n' "$line"
                continue
            elif [ ! "$name" ]; then
                echo "$1: a block of C does not say which file it quotes" >&2
                return 1
            elif [ ! -f "${name%%#*}" ]; then
                echo "$1: quotes $name, which is not there" >&2
                return 1
            fi
            printf '%s\n' "$line"
            quote "$name"
            inside=1
            continue
            ;;
        '```'*) inside='' name='' ;;
        *[!\ ]*) [ "$inside" ] || name='' ;;
        esac
        [ "$inside" ] || printf '%s\n' "$line"
    done <"$1"
}

status=0
for document in $(scripts/files.sh '*.md'); do
    mended "$document" >"$work/mended" || {
        status=1
        continue
    }
    cmp -s "$document" "$work/mended" && continue
    if [ "${1:-}" = --mend ]; then
        cat "$work/mended" >"$document"
    else
        echo "$document: what it quotes has changed (quoted.sh --mend):"
        diff "$document" "$work/mended" || status=1
    fi
done
exit $status
