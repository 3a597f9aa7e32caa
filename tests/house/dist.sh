#!/bin/sh
# SPDX-License-Identifier: MIT
# Is a release the same, bit by bit, wherever and whenever it is made? Makes it
# twice (scripts/dist.sh), from clones at different paths, with different times
# of the files, time zones, languages and permissions.
set -eu
# shellcheck source=tests/support/script.sh
. "$(dirname "$0")/../support/script.sh"
cd "$(dirname "$0")/../.."
for tool in xz python3; do
    need $tool
done
need_git
make_work

git clone --quiet --no-hardlinks . "$work/one"
mkdir -p "$work/another/place"
git clone --quiet --no-hardlinks . "$work/another/place/two"
# The scripts of the working tree, which may not be committed yet.
for clone in one another/place/two; do
    cp scripts/dist.sh "$work/$clone/scripts/dist.sh"
done
find "$work/another" -name '*.c' -exec touch -d 2001-02-03 {} +

export XZ_LEVEL=-0 # fast; the level is the same on both sides
(umask 022 && TZ=UTC LC_ALL=C "$work/one/scripts/dist.sh" "$work/a") |
    grep -v 'uncommitted'
(umask 077 && TZ=Asia/Tokyo LC_ALL=C.UTF-8 \
    "$work/another/place/two/scripts/dist.sh" "$work/b") >/dev/null
diff -r "$work/a" "$work/b"
cd "$work/a" && sha256sum --quiet -c SHA256SUMS
for file in ./*.tar.xz; do
    tar -tvf "$file" | awk '$2 != "0/0" || $1 ~ /^.....w|^........w/ {
        print "owner or permissions: " $0
        bad = 1
    } END { exit bad }'
done
