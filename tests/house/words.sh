#!/bin/sh
# SPDX-License-Identifier: MIT
# Is the source free of paths of a developer's machine, and of marks of
# unfinished work? (The brackets keep this file from finding itself.)
set -eu
cd "$(dirname "$0")/../.."

scripts/files.sh | {
    status=0
    while read -r file; do
        if grep -InHE '(^|[^A-Za-z0-9_.-])/([w]ork|[r]oot|[f]arm)/' "$file" ||
            grep -InHwE '[T]ODO|[F]IXME|[X]XX' "$file"; then
            status=1
        fi
    done
    exit $status
}
