#!/bin/sh
# SPDX-License-Identifier: MIT
# How fast are queues in Redis? Runs the benchmark of the release build, with a
# server of its own, beside those peers that are available: asynq, if Go and its
# modules are; BullMQ, if Node.js and its packages are; beanstalkd, if it is
# installed.
#
#     bench-redis.sh [OPTION...]    options of bench_redis
set -eu
cd "$(dirname "$0")/.."
bench=$PWD/build/release/bench
log=$(mktemp)
trap 'rm -f "$log"' EXIT
PATH=$PATH:/usr/local/go/bin

if [ ! -x "$bench/bench_redis" ] || ! command -v redis-server >/dev/null; then
    echo "bench-redis: no libwq-redis, or no redis-server; nothing to measure"
    exit 0
fi

build_asynq() {
    command -v go && cd bench/peers/redis &&
        CGO_ENABLED=0 go build -trimpath -buildvcs=false -o "$bench/bench_asynq" .
}

# Beside the build: packages of other languages are not installed elsewhere.
install_bullmq() {
    command -v node && { [ -d "$bench/bullmq/node_modules/ioredis" ] ||
        npm install --prefix "$bench/bullmq" --no-audit --no-fund \
            bullmq@6.7.0 ioredis@5.11.1; }
}

# without PEER: says what is missing, and why.
without() {
    cat "$log"
    echo "bench-redis: measuring without $1"
}

if (build_asynq) >"$log" 2>&1; then
    set -- --asynq "$bench/bench_asynq" "$@"
else
    without asynq
fi
if (install_bullmq) >"$log" 2>&1; then
    set -- --bullmq "env NODE_PATH='$bench/bullmq/node_modules' node bench/peers/bullmq.js" "$@"
else
    without BullMQ
fi
if command -v beanstalkd >"$log"; then
    set -- --beanstalkd beanstalkd "$@"
else
    without beanstalkd
fi

"$bench/bench_redis" "$@"
