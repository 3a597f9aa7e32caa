#!/bin/sh
# SPDX-License-Identifier: MIT
# Does each public header compile alone, in C11, C++11 and C++17, and fit into 80
# columns? Do all of them compile together, in C and C++ from then until now?
set -eu
# shellcheck source=tests/support/script.sh
. "$(dirname "$0")/../support/script.sh"
cd "$(dirname "$0")/../.."
: "${CC:=cc}" "${CXX:=c++}"

# alone COMPILER LANGUAGE STANDARD [WARNING...]
alone() {
    compiler=$1 language=$2 standard=$3
    shift 3
    for header in include/wq/*.h; do
        # A header of macros alone would be an empty file, which C forbids; and
        # a macro is checked where it is used.
        printf "#include <wq/%s>\n#include <wq/wq.h>\n%s\n" "${header##*/}" \
            "enum { SOME = WQ_SECONDS(1) / WQ_MS(1) };" |
            "$compiler" -x "$language" "-std=$standard" -Wall -Wextra \
                -Wpedantic -Werror "$@" -Iinclude -c -o /dev/null - || {
            echo "$header: does not compile alone as $standard"
            status=1
        }
    done
}

# A UTF-8 character is one column: the bytes that continue it do not count.
# clang-format does not break a line within a comment.
too_wide() {
    for header in include/wq/*.h; do
        LC_ALL=C tr -d '\200-\277' <"$header" |
            LC_ALL=C awk -v file="$header" '
            length($0) > 80 {
                printf "%s:%d: wider than 80 columns\n", file, FNR
                wide = 1
            }
            END { exit wide }' || status=1
    done
}

# together COMPILER LANGUAGE STANDARD...: all headers in one file.
together() {
    compiler=$1 language=$2
    shift 2
    for standard; do
        for header in include/wq/*.h; do
            echo "#include <wq/${header##*/}>"
        done | "$compiler" -x "$language" "-std=$standard" -Wall -Wextra \
            -Wpedantic -Werror -Iinclude -c -o /dev/null - || {
            echo "the headers do not compile together as $standard"
            status=1
        }
    done
}

status=0
too_wide
alone "$CC" c c11
together "$CC" c c17 c2x
if command -v "$CXX" >/dev/null; then
    alone "$CXX" c++ c++11 -Wold-style-cast
    alone "$CXX" c++ c++17 -Wold-style-cast
    together "$CXX" c++ c++14 c++20 c++2b
elif [ $status -eq 0 ]; then
    skip "$CXX is not installed: C++ was not checked"
fi
exit $status
