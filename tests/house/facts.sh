#!/bin/sh
# SPDX-License-Identifier: MIT
# Is every numbered behaviour tested, and does every cited number exist?
# docs/semantics.md defines them, on lines that begin `* **Q-01**`; comments in
# tests/ and include/wq/ cite them, and so do the comments of scenarios.
set -eu
# shellcheck source=tests/support/script.sh
. "$(dirname "$0")/../support/script.sh"
export LC_ALL=C # one order for sort, comm and join
cd "$(dirname "$0")/../.."
make_work

# Prints "NUMBER FILE:LINE" for each number in a comment of the files given.
citations() {
    [ $# -eq 0 ] || awk '
    FNR == 1 { inside = 0 }
    {
        text = $0; comment = ""
        if (FILENAME ~ /\.scenario$/) {
            comment = text ~ /#/ ? text : ""
            sub(/^[^#]*/, "", comment)
            text = ""
        }
        while (text != "")
            if (inside) {
                end = index(text, "*/")
                comment = comment " " (end ? substr(text, 1, end - 1) : text)
                text = end ? substr(text, end + 2) : ""
                inside = !end
            } else {
                start = index(text, "/*")
                text = start ? substr(text, start + 2) : ""
                inside = start > 0
            }
        gsub(/[^A-Za-z0-9_-]+/, " ", comment)
        n = split(comment, word, " ")
        for (i = 1; i <= n; i++)
            if (word[i] ~ /^[A-Z]+-[0-9][0-9]$/)
                print word[i], FILENAME ":" FNR
    }' "$@"
}

[ -f docs/semantics.md ] || {
    echo "docs/semantics.md: not found"
    exit 1
}
sed -n 's/^\* \*\*\([A-Z]\{1,\}-[0-9][0-9]\)\*\*.*/\1/p' docs/semantics.md |
    sort >"$work/defined"

# shellcheck disable=SC2046 # our names hold no spaces
citations $(scripts/files.sh '*.[ch]' '*.cc' '*.scenario' |
    grep '^tests/') >"$work/tests"
# shellcheck disable=SC2046
citations $(scripts/files.sh '*.h' | grep '^include/') >"$work/headers"

{
    [ -s "$work/defined" ] || echo "docs/semantics.md: no numbered behaviour found"
    uniq -d "$work/defined" | sed "s|\$|: defined twice|"
    cut -d" " -f1 "$work/tests" | sort -u >"$work/cited"
    uniq "$work/defined" | comm -23 - "$work/cited" |
        sed "s|\$|: no test cites it|"
    sort "$work/tests" "$work/headers" | join -v1 - "$work/defined" |
        awk '{ print $2 ": " $1 " is not in docs/semantics.md" }'
} >"$work/complaints"
cat "$work/complaints"
[ ! -s "$work/complaints" ]
