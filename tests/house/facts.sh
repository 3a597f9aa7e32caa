#!/bin/sh
# SPDX-License-Identifier: MIT
# Is every numbered behaviour tested, and every number cited one that exists?
# docs/semantics.md defines them, on lines that begin `* **Q-01**`; comments in
# tests/ and include/wq/ cite them.
set -eu
export LC_ALL=C # one order for sort, comm and join
cd "$(dirname "$0")/../.."
lists=$(mktemp -d)
trap 'rm -rf "$lists"' EXIT

# Prints "NUMBER FILE:LINE" for each number in a C comment of the files given.
citations() {
    [ $# -eq 0 ] || awk '
    FNR == 1 { inside = 0 }
    {
        text = $0; said = ""
        while (text != "")
            if (inside) {
                end = index(text, "*/")
                said = said " " (end ? substr(text, 1, end - 1) : text)
                text = end ? substr(text, end + 2) : ""
                inside = !end
            } else {
                start = index(text, "/*")
                text = start ? substr(text, start + 2) : ""
                inside = start > 0
            }
        gsub(/[^A-Za-z0-9_-]+/, " ", said)
        n = split(said, word, " ")
        for (i = 1; i <= n; i++)
            if (word[i] ~ /^[A-Z]+-[0-9][0-9]$/)
                print word[i], FILENAME ":" FNR
    }' "$@"
}

[ -f docs/semantics.md ] || {
    echo "docs/semantics.md: not there"
    exit 1
}
sed -n 's/^\* \*\*\([A-Z]\{1,\}-[0-9][0-9]\)\*\*.*/\1/p' docs/semantics.md |
    sort >"$lists/defined"

# shellcheck disable=SC2046 # our names hold no spaces
citations $(scripts/files.sh '*.[ch]' '*.cc' | grep '^tests/') >"$lists/tests"
# shellcheck disable=SC2046
citations $(scripts/files.sh '*.h' | grep '^include/') >"$lists/headers"

{
    [ -s "$lists/defined" ] || echo "docs/semantics.md: no fact found"
    uniq -d "$lists/defined" | sed "s|\$|: defined twice|"
    cut -d" " -f1 "$lists/tests" | sort -u >"$lists/cited"
    uniq "$lists/defined" | comm -23 - "$lists/cited" |
        sed "s|\$|: no test cites it|"
    sort "$lists/tests" "$lists/headers" | join -v1 - "$lists/defined" |
        awk '{ print $2 ": " $1 " is not in docs/semantics.md" }'
} >"$lists/complaints"
cat "$lists/complaints"
[ ! -s "$lists/complaints" ]
