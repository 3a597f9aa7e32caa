#!/bin/sh
# SPDX-License-Identifier: MIT
# Does the shared library offer what the headers promise, no more, no less?
# Three lists must be the same: functions marked WQ_API in include/wq, names in
# src/wq.map, symbols the library defines.
#
#     symbols.sh LIBRARY
set -eu
export LC_ALL=C # one order for sort, comm and join
library=$1
cd "$(dirname "$0")/../.."
lists=$(mktemp -d)
trap 'rm -rf "$lists"' EXIT

# In a declaration the function is the first name with a parenthesis behind.
cat include/wq/*.h | awk '
    /^#/ { next }
    { text = text " " $0 }
    END {
        gsub(/\/\*([^*]|\*+[^*\/])*\*+\//, " ", text)
        n = split(text, declaration, /[;{}]/)
        for (i = 1; i <= n; i++)
            if (declaration[i] ~ /WQ_API/ &&
                match(declaration[i], /wq_[a-z0-9_]+ *\(/))
                print substr(declaration[i], RSTART, RLENGTH - 1)
    }' | sort >"$lists/headers"

awk '/global:/ { on = 1; next } /local:/ { on = 0 } on' src/wq.map |
    tr -d ' ;' | sort >"$lists/map"

# Type A is the name of a version node, not a symbol.
nm -D --defined-only "$library" |
    awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort >"$lists/library"

status=0
# same A B: says what only one of the two lists has.
same() {
    comm -23 "$lists/$1" "$lists/$2" | sed "s|\$|: in the $1, not in the $2|"
    comm -13 "$lists/$1" "$lists/$2" | sed "s|\$|: in the $2, not in the $1|"
    cmp -s "$lists/$1" "$lists/$2" || status=1
}
[ -s "$lists/headers" ] || {
    echo "no WQ_API function found in include/wq"
    status=1
}
same headers map
same map library
exit $status
