#!/bin/sh
# SPDX-License-Identifier: MIT
# Does the dashboard show every metric there is, and no other? Three lists must
# be the same: what the header promises, what is written, what is shown. (M-09)
#
#     dashboard.sh SAY
set -eu
export LC_ALL=C # one order for sort and comm
say=$1
cd "$(dirname "$0")/../.."
dashboard=docs/grafana/wq-dashboard.json
lists=$(mktemp -d)
trap 'rm -rf "$lists"' EXIT

# Names of families, from any text; a histogram's parts are one.
families() {
    grep -o 'workqueue_[a-z_]*' | sed 's/_\(bucket\|sum\|count\)$//' | sort -u
}

"$say" json "$dashboard"
families <include/wq/metrics.h >"$lists/header"
"$say" prometheus | grep -v '^# HELP' | families >"$lists/text"
families <"$dashboard" >"$lists/dashboard"

status=0
# same A B: says what only one of the two lists has.
same() {
    comm -23 "$lists/$1" "$lists/$2" | sed "s|\$|: in the $1, not in the $2|"
    comm -13 "$lists/$1" "$lists/$2" | sed "s|\$|: in the $2, not in the $1|"
    cmp -s "$lists/$1" "$lists/$2" || status=1
}
[ -s "$lists/text" ] || {
    echo "no metric found in what $say says"
    status=1
}
same text header
same text dashboard
exit $status
