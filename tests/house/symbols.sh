#!/bin/sh
# SPDX-License-Identifier: MIT
# Does the shared library export what the headers declare, no more, no less?
# Three lists must be the same: functions marked WQ_API in the public headers, or
# WQ__STORE_API in src/ (what libraries of stores use), names in the map, symbols
# the library defines.
#
#     symbols.sh LIBRARY [MAP DIRECTORY]    default: src/wq.map include/wq
set -eu
# shellcheck source=tests/support/script.sh
. "$(dirname "$0")/../support/script.sh"
export LC_ALL=C # one order for sort and comm
library=$1
map=${2:-src/wq.map}
headers=${3:-include/wq}
cd "$(dirname "$0")/../.."
inside=
[ "$map" != src/wq.map ] || inside=$(echo src/*/*.h)
make_work

# In a declaration the function is the first name before a parenthesis.
# shellcheck disable=SC2086 # several files
cat "$headers"/*.h $inside | awk '
    /^#/ { next }
    { text = text " " $0 }
    END {
        gsub(/\/\*([^*]|\*+[^*\/])*\*+\//, " ", text)
        n = split(text, declaration, /[;{}]/)
        for (i = 1; i <= n; i++)
            if (declaration[i] ~ /WQ_API|WQ__STORE_API/ &&
                match(declaration[i], /wq_[a-z0-9_]+ *(\(|$)/))
                print substr(declaration[i], RSTART, RLENGTH)
    }' | tr -d ' (' | sort >"$work/headers"

awk '/global:/ { on = 1; next } /local:|}/ { on = 0 } on' "$map" |
    tr -d ' ;' | sort >"$work/map"

# Type A is the name of a version node, not a symbol.
nm -D --defined-only "$library" |
    awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort >"$work/library"

same_lists map headers library
