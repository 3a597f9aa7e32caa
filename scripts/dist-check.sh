#!/bin/sh
# SPDX-License-Identifier: MIT
# Does the tarball of scripts/dist.sh build, and do its tests pass, where there is
# no git? Unpacks it, hides git, builds as shipped and runs the tests of the
# kinds below, and `make install` of it.
#
#     dist-check.sh [DIR]    default: build/dist
set -eu
cd "$(dirname "$0")/.."
out=$(cd "${1:-build/dist}" && pwd)
kinds='unit|behaviour|house|consumer'

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(cd "$out" && sha256sum -c SHA256SUMS)
tar -xf "$out"/wq-[0-9]*[0-9].tar.xz -C "$work"
cd "$work"/wq-*
mkdir "$work/bin"
printf '#!/bin/sh\necho "git was called: $*" >&2\nexit 127\n' >"$work/bin/git"
chmod +x "$work/bin/git"
PATH=$work/bin:$PATH
export PATH

scripts/build.sh release -DWQ_TESTS=ON
ctest --preset release -j"${JOBS:-$(nproc)}" -L "$kinds" >"$work/log" 2>&1 || {
    grep -vE '^ +Start +[0-9]+:| Passed +[0-9.]+ sec$' "$work/log"
    exit 1
}
grep -E 'tests passed|\*\*\*Skipped' "$work/log"
make --no-print-directory install DESTDIR="$work/stage" PREFIX=/usr >"$work/log" 2>&1 || {
    cat "$work/log"
    exit 1
}
[ "$(echo key | LD_LIBRARY_PATH=$(dirname "$(find "$work/stage" -name libwq.so)") \
    "$work/stage/usr/bin/wq" run -q -- echo)" = key ]
echo "dist-check: the tarball builds, passes its tests and installs without git"
