#!/bin/sh
# SPDX-License-Identifier: MIT
# How fast is it? Builds the Go side beside the others, if there is Go and what
# it imports can be had, and runs the benchmark of the release build.
#
#     bench.sh [OPTION...]    as wq_bench takes them (wq_bench --help)
set -eu
cd "$(dirname "$0")/.."
bench=build/release/bench
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# Without cgo, as programs for Kubernetes are built.
build_go() {
    cd bench/peers/go
    CGO_ENABLED=0 go build -trimpath -buildvcs=false \
        -o "../../../$bench/bench_go" . >"$log" 2>&1
}

PATH=$PATH:/usr/local/go/bin
if ! command -v go >/dev/null; then
    echo "bench: no Go here; going on without client-go and controller-runtime"
    rm -f "$bench/bench_go"
else
    echo "bench: building bench/peers/go"
    (build_go) || {
        cat "$log"
        echo "bench: cannot build the Go side; going on without"
        rm -f "$bench/bench_go"
    }
fi

"$bench/wq_bench" "$@"
