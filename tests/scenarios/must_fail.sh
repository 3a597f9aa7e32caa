#!/bin/sh
# SPDX-License-Identifier: MIT
# Does every scenario of must_fail.txt fail? Then the steps notice wrong results.
#
#     must_fail.sh PROGRAM
set -eu

status=0
for name in $("$1" --list); do
    if "$1" "$name" >/dev/null 2>&1; then
        echo "$name passes, and must fail"
        status=1
    fi
done
exit $status
