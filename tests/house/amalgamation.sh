#!/bin/sh
# SPDX-License-Identifier: MIT
# Does the library work as one file? Makes wq.c and wq.h, compiles them without a
# warning by each compiler that is installed, links programs, and runs them.
# `make test-amalgamation` runs the behaviour tests against it.
#
#     amalgamation.sh [WARNING...]    options for the compilers
set -eu
# shellcheck source=tests/support/script.sh
. "$(dirname "$0")/../support/script.sh"
cd "$(dirname "$0")/../.."
need python3
make_work
python3 -B scripts/amalgamate.py "$work"

for compiler in gcc clang; do
    command -v $compiler >/dev/null || {
        echo "$compiler is not installed: left out"
        continue
    }
    # Warnings of gcc alone are not errors of clang.
    $compiler -std=c11 -O0 -Werror "$@" -Wno-unknown-warning-option \
        -c "$work/wq.c" -o "$work/$compiler.o"
    $compiler -std=c11 -O0 -Werror -I"$work" tests/consumer/consumer.c \
        "$work/$compiler.o" -o "$work/$compiler" -pthread -ldl
    "$work/$compiler"
    # Only functions of wq.h are for others.
    nm --defined-only "$work/$compiler.o" |
        awk '$2 == "T" && $3 !~ /^wq_[a-z]/ { print "public: " $3; bad = 1 }
            END { exit bad }'
done
! command -v c++ >/dev/null || {
    c++ -std=c++17 -I"$work" tests/consumer/consumer.cc "$work/gcc.o" \
        -o "$work/cxx" -pthread -ldl
    "$work/cxx"
}
