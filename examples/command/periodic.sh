#!/bin/sh
# SPDX-License-Identifier: MIT
# How does a queue in a file replace a crontab?
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

# begin: jobs
mkdir -p jobs
cat >jobs/backup <<'JOB'
# every 100ms
echo backup >>ran
JOB
cat >jobs/report <<'JOB'
# every 24h
echo report >>ran
JOB
# end: jobs

# begin: handler
cat >job <<'HANDLER'
#!/bin/sh
# Run a job, and run it again after the time that its first line names.
[ -e "jobs/$1" ] || exit 0 # it was removed: that was the last time
sh "jobs/$1" || exit       # it failed: it is retried
echo "requeue-after=$(sed -n 's/^# every //p' "jobs/$1")" >&"$WQ_RESULT_FD"
HANDLER
chmod +x job
# end: handler

# begin: add
export WQ_QUEUE=sqlite:jobs.db
wq add backup report
# end: add

work() {
    # begin: work
    wq work -P4 --retries=inf -- ./job {}
    # end: work
}

# Two workers, one after the other: the times go on.
for times in 2 5; do
    work 2>/dev/null &
    worker=$!
    while [ ! -e ran ] || [ "$(grep -c backup ran)" -lt $times ]; do
        sleep 0.05
    done
    kill "$(cat "/proc/$worker/task/$worker/children")"
    wait "$worker" || true
done
[ "$(grep -c report ran)" -eq 1 ]

list() {
    # begin: list
    wq list
    # end: list
}
# The backup may be due by now.
list | sed 's/^.*  backup$/WAITING                0         0            47ms  backup/' \
    >told
cmp - told <<'EXPECTED'
STATE    NOTE   PRIORITY  FAILURES   SINCE     DUE  KEY
WAITING                0         0            47ms  backup
WAITING                0         0          23h59m  report
EXPECTED

# begin: remove
rm jobs/report
wq remove report
# end: remove
[ "$(wq list -0)" = "$(printf backup)" ]
