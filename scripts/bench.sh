#!/bin/sh
# SPDX-License-Identifier: MIT
# How fast is wq? Builds the Go sides, if Go and the modules they import are
# available, and runs the benchmark of the release build.
#
#     bench.sh [OPTION...]    options of wq_bench (wq_bench --help)
set -eu
cd "$(dirname "$0")/.."
bench=build/release/bench
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# Without cgo, like programs for Kubernetes.
build_go() {
    cd bench/peers/go
    CGO_ENABLED=0 go build -trimpath -buildvcs=false \
        -o "../../../$bench/bench_go" . >"$log" 2>&1
}

PATH=$PATH:/usr/local/go/bin
if ! command -v go >/dev/null; then
    echo "bench: Go is not installed; measuring without client-go and controller-runtime"
    rm -f "$bench/bench_go"
else
    echo "bench: building bench/peers/go"
    (build_go) || {
        cat "$log"
        echo "bench: cannot build the Go sides; measuring without them"
        rm -f "$bench/bench_go"
    }
fi

"$bench/wq_bench" "$@"
