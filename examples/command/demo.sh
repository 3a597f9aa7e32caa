#!/bin/sh
# SPDX-License-Identifier: MIT
# What does `wq run` look like at work? Services report that they have changed,
# in bursts; a handler restarts them, and fails now and then. After some seconds
# it says what became of all that.
#
#     demo.sh [BURSTS]    one every 0.6 s; 7 if not said
set -eu
bursts=${1:-7}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

# A burst: 12 services report ten times each, in an order that looks random.
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

# db needs three attempts, dns asks for more time once, mail cannot be helped.
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

# Reads the events and counts, for each key and for all.
tell() {
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
               "service\nwas never restarted by two at once (at most: %d).\n", \
               adds[""], runs[""], count["", "retry"], most
        exit most != 1
    }' events
}

cat <<'SAY'
Twelve services report changes in bursts; four slots restart them:

    reports | wq run -P4 --debounce=50ms --backoff=100ms,1s \
        --no-retry-codes=65 -- ./restart {}

db fails twice before it works, dns asks for more time once, mail cannot be
helped. Some seconds, please.

SAY
progress=auto
[ -t 2 ] || progress=always
status=0
reports | wq run -P4 --debounce=50ms --backoff=100ms,1s --no-retry-codes=65 \
    --progress="$progress" --json=events -- ./restart {} || status=$?
tell
if [ "$status" -eq 123 ]; then
    echo "Exit status 123: mail failed for good, every time."
else
    echo "Exit status $status: not what this was made to show." >&2
    exit 1
fi
