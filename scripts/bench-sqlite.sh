#!/bin/sh
# SPDX-License-Identifier: MIT
# How fast are queues in SQLite files? Builds goqite, if Go, a C compiler and the
# modules are available, installs litequeue beside the build, if Python and the
# package are, and runs the benchmark of the release build.
#
#     bench-sqlite.sh [OPTION...]    options of bench_sqlite
set -eu
cd "$(dirname "$0")/.."
bench=$PWD/build/release/bench
log=$(mktemp)
trap 'rm -f "$log"' EXIT

if [ ! -x "$bench/bench_sqlite" ]; then
    echo "bench-sqlite: the build has no libwq-sqlite; nothing to measure"
    exit 0
fi

# mattn/go-sqlite3 contains SQLite: its first build takes a minute.
build_goqite() {
    cd bench/peers/sqlite
    CGO_ENABLED=1 go build -trimpath -buildvcs=false \
        -o "$bench/bench_goqite" . >"$log" 2>&1
}

install_litequeue() {
    python3 -m venv "$bench/litequeue" >"$log" 2>&1 &&
        "$bench/litequeue/bin/pip" install -q litequeue==0.9 >>"$log" 2>&1
}

PATH=$PATH:/usr/local/go/bin
if command -v go >/dev/null && (build_goqite); then
    set -- --goqite "$bench/bench_goqite" "$@"
else
    cat "$log"
    echo "bench-sqlite: cannot build bench/peers/sqlite; measuring without goqite"
fi
python=$bench/litequeue/bin/python3
if "$python" -c 'import litequeue' 2>/dev/null || install_litequeue; then
    set -- --litequeue "$python bench/peers/litequeue.py" "$@"
else
    cat "$log"
    echo "bench-sqlite: cannot install litequeue; measuring without it"
fi

"$bench/bench_sqlite" "$@"
