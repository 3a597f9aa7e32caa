#!/bin/sh
# SPDX-License-Identifier: MIT
# Does the Kubernetes controller survive a real API server, and what does it
# cost? Builds that server, from Kubernetes' own modules, and the same controller
# in Go; the first time it downloads them, and compiles for some minutes. The
# controller in C is that of the release build.
#
#     e2e_kubernetes.sh test     kills, cuts and drains
#     e2e_kubernetes.sh bench    C and Go side by side, a table
#
# E2E_OBJECTS=2000, E2E_ROUNDS=3 (of the benchmark)
set -eu
cd "$(dirname "$0")/.."
what=$1
out=$PWD/build/e2e
mkdir -p "$out"

PATH=$PATH:/usr/local/go/bin
if ! command -v go >/dev/null; then
    echo "e2e: needs Go, for Kubernetes' API server" >&2
    exit 1
fi

# build_go DIRECTORY PACKAGE NAME. Not with -trimpath: the server finds its
# certificate by its source path.
build_go() {
    echo "e2e: building $1"
    (cd "$1" && CGO_ENABLED=0 go build -buildvcs=false -o "$out/$3" "$2")
}

build_go tests/e2e/kubernetes/server . server
set -- "$out/server" build/release/examples/kubernetes/widgets
if [ "$what" = bench ]; then
    build_go bench/peers/go ./kubernetes widgets_go
    set -- "$@" "$out/widgets_go"
fi
exec python3 -B tests/e2e/kubernetes/e2e.py "$what" "$@"
