#!/bin/sh
# SPDX-License-Identifier: MIT
# Is this build compatible with the last release (scripts/abi.sh), and does that
# script notice what is not? Edits copies of the headers and of the map.
#
#     abi.sh BUILD
set -eu
# shellcheck source=tests/support/script.sh
. "$(dirname "$0")/../support/script.sh"
build=$1
cd "$(dirname "$0")/../.."
scripts/abi.sh check "$build" # ends this test, too, if it is skipped
make_work
mkdir "$work/build"
ln -s "$build/libwq.so" "$work/build"

status=0
# try yes|no TITLE FILE EDIT: edits a copy of the tree with sed; is the result
# compatible?
try() {
    rm -rf "$work/tree"
    mkdir -p "$work/tree/src" "$work/tree/scripts"
    cp -R include abi "$work/tree"
    cp src/wq.map "$work/tree/src"
    cp scripts/abi.sh "$work/tree/scripts"
    sed "$4" "$3" >"$work/tree/$3"
    ! cmp -s "$3" "$work/tree/$3" || {
        echo "$2: the edit changes nothing"
        status=1
    }
    answer=yes
    CI='' "$work/tree/scripts/abi.sh" check "$work/build" >"$work/log" 2>&1 ||
        answer=no
    [ "$answer" = "$1" ] || {
        echo "$2: compatible? expected $1, got $answer"
        cat "$work/log"
        status=1
    }
}

header=include/wq/wq.h
try yes "a field at the end of a struct with size" $header \
    's/^} wq_config;/int extra; } wq_config;/'
try no "a field in the middle" $header \
    's/^    const wq_allocator \*allocator;/int extra; &/'
try no "a field at the end of a struct without size" $header \
    's/^} wq_key;/int extra; } wq_key;/'
try no "another number of an error" $header 's/X(WQ_EINVAL, 1,/X(WQ_EINVAL, 99,/'
try no "another type of an argument" $header \
    's/ wq_len(wq_queue \*q);/ wq_len(wq_queue *q, int more);/'
try no "a function that is gone" src/wq.map '/^    wq_len;/d'
try no "a symbol that is gone" abi/libwq.symbols '1a wq_a@@WQ_0.1'
try yes "another SONAME" abi/libwq.symbols \
    '1s/0.1/0.0/; 1a wq_a@@WQ_0.1'
exit $status
