#!/bin/sh
# SPDX-License-Identifier: MIT
# How does a controller look in shell? It brings hosts to what is wanted.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
mkdir hosts
touch hosts/alpha hosts/beta

# begin: handler
cat >converge <<'HANDLER'
#!/bin/sh
# Compare what is with what should be, and act. It does not matter why we were
# called, or how often.
[ -e "hosts/$1" ] || exit 0 # it is gone: nothing to do
echo converged >"hosts/$1"
# Look again in a while, and let somebody else know.
echo requeue-after=100ms >&"$WQ_RESULT_FD"
[ "$1" = summary ] || echo add=summary >&"$WQ_RESULT_FD"
HANDLER
chmod +x converge
# end: handler

# For the test it ends when six runs went well.
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

status=0
controller || status=$?
[ "$status" -eq 124 ] # stopped early
grep -q converged hosts/alpha && grep -q converged hosts/beta
grep -q '"event":"finished".*"key":"summary"' events
