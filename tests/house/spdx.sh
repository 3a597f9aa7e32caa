#!/bin/sh
# SPDX-License-Identifier: MIT
# Does every file state its license? On the first line, or the second after #!.
set -eu
cd "$(dirname "$0")/../.."

scripts/files.sh '*.c' '*.cc' '*.h' '*.sh' '*.cmake' '*.in' '*.map' \
    CMakeLists.txt Makefile run | {
    status=0
    while read -r file; do
        sed -n "1{/^#!/!p};2p" "$file" | head -n 1 |
            grep -q "SPDX-License-Identifier: MIT" || {
            echo "$file: the first line is no SPDX line"
            status=1
        }
    done
    exit $status
}
