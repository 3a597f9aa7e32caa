#!/bin/sh
# SPDX-License-Identifier: MIT
# What does a controller in shell look like? It converges hosts.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
mkdir hosts
touch hosts/alpha hosts/beta

# begin: handler
cat >converge <<'HANDLER'
#!/bin/sh
# Compare the actual state with the desired one, and act. It does not matter why
# or how often this runs.
[ -e "hosts/$1" ] || exit 0 # it was removed: nothing to do
echo converged >"hosts/$1"
# Run again in a while, and add another key.
echo requeue-after=100ms >&"$WQ_RESULT_FD"
[ "$1" = summary ] || echo add=summary >&"$WQ_RESULT_FD"
HANDLER
chmod +x converge
# end: handler

# The test ends after six successful runs.
wq() {
    shift
    command wq run --halt=soon,success=6 --json=events "$@"
}

controller() {
    # begin: reconcile
    wq run --list='ls hosts' --resync=10m --retries=inf --rate=20/s:50 \
        -- ./converge {}
    # end: reconcile
}

controller
grep -q converged hosts/alpha && grep -q converged hosts/beta
grep -q '"event":"finished".*"key":"summary"' events
