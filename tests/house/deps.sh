#!/bin/sh
# SPDX-License-Identifier: MIT
# What does scripts/deps.sh do on a machine without packages? It runs with a PATH
# that has a shell's tools alone, and an apt-get that notes how it is called and
# installs nothing.
set -eu
# shellcheck source=tests/support/script.sh
. "$(dirname "$0")/../support/script.sh"
cd "$(dirname "$0")/../.."
make_work
unset DEPS # of a make that runs this test
mkdir "$work/bin"
for tool in sh awk cat env mktemp rm sort; do
    ln -s "$(command -v $tool)" "$work/bin/$tool"
done
printf '#!/bin/sh\necho "$*" >>"%s"\n' "$work/calls" >"$work/bin/apt-get"
printf '#!/bin/sh\necho 0\n' >"$work/bin/id" # root: no sudo
chmod +x "$work/bin/apt-get" "$work/bin/id"

status=0
# run EXPECTED GROUP...: runs it; its output goes to $work/out.
run() {
    expected=$1 got=0
    shift
    rm -f "$work/calls"
    PATH="$work/bin" CI='' scripts/deps.sh "$@" >"$work/out" 2>&1 || got=$?
    [ "$got" = "$expected" ] || {
        echo "deps.sh $*: exit status $got, expected $expected"
        cat "$work/out"
        status=1
    }
}

# shows TEXT: the output has it.
shows() {
    grep -qE -- "$1" "$work/out" || {
        echo "no line matches '$1' in:"
        cat "$work/out"
        status=1
    }
}

run 1 build test
shows '^deps: about to install with apt-get \(DEPS=no'
shows '^  libcmocka-dev +for make test \(required\)$'
shows '^  gcc +for make \(required\)$'
shows '^  valgrind +for make, make test$'
shows '^deps: please install: .*gcc'
grep -q '^install --yes .*libcmocka-dev' "$work/calls"

run 0 musl
shows '^  musl-tools +for make test-musl$'

run 0 protocol # optional: goes on without
shows '^  spin +for make protocol$'
shows '^deps: continuing without spin$'

export DEPS=no
run 1 build
shows '^deps: missing, and not installed because of DEPS=no:$'
shows '^deps: please install: .*gcc'
[ ! -e "$work/calls" ] || {
    echo "DEPS=no: apt-get was called: $(cat "$work/calls")"
    status=1
}
run 0 protocol
unset DEPS

# Another system than Debian, or a user without sudo.
rm "$work/bin/apt-get"
run 1 build
shows "^deps: missing, and not installed because there is no apt-get"
shows "Debian's names; see docs/dependencies.md"
shows '^  libsqlite3-dev +for make$'
shows '^deps: please install: .*gcc'
printf '#!/bin/sh\n' >"$work/bin/apt-get"
printf '#!/bin/sh\necho 1000\n' >"$work/bin/id"
chmod +x "$work/bin/apt-get"
run 1 build
shows '^deps: missing, and not installed because there is no sudo:$'

export DEPS=maybe
run 2 protocol
shows "DEPS is 'maybe'; use yes or no"
exit $status
