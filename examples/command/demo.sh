#!/bin/sh
# SPDX-License-Identifier: MIT
# A ten-second demo of `wq run`: services report changes in bursts; a handler
# restarts them, and fails now and then. At the end it prints a table.
#
#     demo.sh [BURSTS]    one every 0.6 s; 7 by default
set -eu
bursts=${1:-7}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

# A burst: 12 services report ten times each, in mixed order.
report() {
    awk -v seed="$1" 'BEGIN {
        n = split("api auth billing cache cron db dns mail queue search web " \
                  "www", name, " ")
        for (i = 0; i < 10 * n; i++)
            print name[1 + (i * 7 + seed) % n]
    }'
}

reports() {
    i=0
    while [ "$i" -lt "$bursts" ]; do
        report "$i"
        sleep 0.6
        i=$((i + 1))
    done
}

# db succeeds at the third attempt, dns at the second, mail never.
cat >restart <<'HANDLER'
#!/bin/sh
sleep 0.1
case $1:$WQ_ATTEMPT in
db:1 | db:2) exit 1 ;;
dns:1) exit 75 ;;
mail:*) exit 65 ;;
esac
HANDLER
chmod +x restart

# Counts the events, for each key and for all, and prints them.
print_table() {
    awk '
    function field(name,    s) {
        if (!match($0, "\"" name "\":\"?[^,\"}]*"))
            return ""
        s = substr($0, RSTART, RLENGTH)
        sub(/^[^:]*:"?/, "", s)
        return s
    }
    { event = field("event"); key = field("key") }
    event == "added" {
        adds[key]++; adds[""]++
        if (!(key in seen)) { seen[key] = 1; names[++n] = key }
    }
    event == "started" {
        runs[key]++; runs[""]++
        if (++now[key] > most) most = now[key]
    }
    event == "finished" {
        now[key]--
        count[key, field("outcome")]++; count["", field("outcome")]++
    }
    function line(name, key) {
        printf "  %-8s %8d %6d %8d %5d %7d\n", name, adds[key], runs[key], \
            count[key, "retry"], count[key, "ok"], count[key, "failed"]
    }
    END {
        printf "\n  %-8s %8s %6s %8s %5s %7s\n", "service", "reports", "runs", \
            "retries", "ok", "failed"
        while (++i <= n)
            line(names[i], names[i])
        line("all", "")
        printf "\n%d reports became %d runs, %d of them retries; the same " \
               "service\nwas never restarted twice at a time (at most: %d).\n", \
               adds[""], runs[""], count["", "retry"], most
        exit most != 1
    }' events
}

cat <<'TEXT'
Twelve services report changes in bursts; four slots restart them:

    reports | wq run -P4 --debounce=50ms --backoff=100ms,1s \
        --no-retry-codes=65 -- ./restart {}

db fails twice before it succeeds, dns exits with 75 (try again) once, mail
always fails. This takes some seconds.

TEXT
progress=auto
[ -t 2 ] || progress=always
status=0
reports | wq run -P4 --debounce=50ms --backoff=100ms,1s --no-retry-codes=65 \
    --progress="$progress" --json=events -- ./restart {} || status=$?
print_table
if [ "$status" -eq 123 ]; then
    echo "Exit status 123: mail failed and was not retried."
else
    echo "Exit status $status: expected 123." >&2
    exit 1
fi
