#!/bin/sh
# SPDX-License-Identifier: MIT
# How can a browser follow a run?
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
if wq run --listen=127.0.0.1:0 -- true </dev/null 2>&1 |
    grep -q 'not available'; then
    echo "skipped: wq was built without libmicrohttpd"
    exit 77
fi
# The port of the example may be taken: let the kernel choose another one.
wq() {
    shift 2
    command wq run --listen=127.0.0.1:0 "$@"
}
# shellcheck disable=SC2016 # for the script
printf '#!/bin/sh\necho "$1" >>shipped\n' >ship
chmod +x ship

# begin: listen
seq 1000 | wq run --listen=127.0.0.1:9109 -P4 -- ./ship {}
# end: listen

[ "$(sort -n shipped | tail -n 1)" = 1000 ]
