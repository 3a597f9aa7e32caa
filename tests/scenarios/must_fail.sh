#!/bin/sh
# SPDX-License-Identifier: MIT
# Does every scenario of must_fail.txt fail? Then the steps notice wrong results.
#
#     must_fail.sh COMMAND...    the program, after its emulator if it needs one
set -eu

names=$("$@" --list)
[ "$names" ] || {
    echo "there is no scenario"
    exit 1
}
status=0
for name in $names; do
    if "$@" "$name" >/dev/null 2>&1; then
        echo "$name passes, and must fail"
        status=1
    fi
done
exit $status
