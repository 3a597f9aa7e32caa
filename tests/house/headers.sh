#!/bin/sh
# SPDX-License-Identifier: MIT
# Does each public header compile alone, in C11 and in C++17?
set -eu
cd "$(dirname "$0")/../.."
: "${CC:=cc}" "${CXX:=c++}"

# alone COMPILER LANGUAGE STANDARD
alone() {
    for header in include/wq/*.h; do
        # Macros alone would make an empty file, which C forbids.
        printf "#include <wq/%s>\ntypedef int nothing_else;\n" \
            "${header##*/}" |
            "$1" -x "$2" "-std=$3" -Wall -Wextra -Wpedantic -Werror \
                -Iinclude -c -o /dev/null - || {
            echo "$header: does not compile alone as $3"
            status=1
        }
    done
}

status=0
alone "$CC" c c11
if command -v "$CXX" >/dev/null; then
    alone "$CXX" c++ c++11
    alone "$CXX" c++ c++17
elif [ "${CI:-}" = true ]; then
    echo "no $CXX: C++ was not checked"
    status=1
elif [ $status -eq 0 ]; then
    echo "skipped: no $CXX; C++ was not checked"
    status=77
fi
exit $status
