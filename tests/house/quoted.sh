#!/bin/sh
# SPDX-License-Identifier: MIT
# Is the code in the documents the code that is compiled and run? A block of C
# below a line `<!-- FILE -->` must be that file without its opening comments;
# below `<!-- FILE#PART -->`, the text between the lines `/* begin: PART */` and
# `/* end: PART */` in it. Every block of C must have such a line. A block of
# shell or ini may have one; the marks in a script or a unit are `# begin: PART`
# and `# end: PART`, indented as the part.
#
# In the manual page of the command the line is `.\" FILE#PART`, and the block
# .Bd -literal.
#
#     quoted.sh            print the differences
#     quoted.sh --mend     copy the text of the files into the documents
set -eu
# shellcheck source=tests/support/script.sh
. "$(dirname "$0")/../support/script.sh"
cd "$(dirname "$0")/../.."
make_work

# Prints the text of FILE or FILE#PART.
quote() {
    case $1 in
    *.sh#* | *.service#*) awk -v part="${1#*#}" '
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

# Prints the document with the files' text in every block.
mended() {
    name='' inside=''
    while IFS= read -r line; do
        case $line in
        '<!-- '*' -->')
            name=${line#<!-- }
            name=${name% -->}
            ;;
        '```c' | '```sh' | '```ini')
            if [ ! "$name" ] && [ "$line" != '```c' ]; then
                printf '%s\n' "$line"
                continue
            elif [ ! "$name" ]; then
                echo "$1: a block of C without a line that names its file" >&2
                return 1
            elif [ ! -f "${name%%#*}" ]; then
                echo "$1: quotes $name, which does not exist" >&2
                return 1
            fi
            printf '%s\n' "$line"
            quote "$name"
            inside=1
            continue
            ;;
        '.\" examples/'*) name=${line#'.\" '} ;;
        '.Bd -literal'*)
            printf '%s\n' "$line"
            [ "$name" ] || continue
            quote "$name" | sed 's/\\/\\e/g'
            inside=1
            continue
            ;;
        '```'* | .Ed) inside='' name='' ;;
        *[!\ ]*) [ "$inside" ] || name='' ;;
        esac
        [ "$inside" ] || printf '%s\n' "$line"
    done <"$1"
}

status=0
for document in $(scripts/files.sh '*.md' wq.1); do
    mended "$document" >"$work/mended" || {
        status=1
        continue
    }
    cmp -s "$document" "$work/mended" && continue
    if [ "${1:-}" = --mend ]; then
        cat "$work/mended" >"$document"
    else
        echo "$document: differs from the files it quotes (fix: quoted.sh --mend):"
        diff "$document" "$work/mended" || status=1
    fi
done
exit $status
