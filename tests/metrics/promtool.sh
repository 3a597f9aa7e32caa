#!/bin/sh
# SPDX-License-Identifier: MIT
# Does Prometheus itself accept the text, and find nothing to blame? (O-41)
#
#     promtool.sh SAY
#
# promtool reads OpenMetrics only to store it, which needs a time in each line.
set -eu
say=$1

command -v promtool >/dev/null || {
    echo "skipped: no promtool"
    [ "${CI:-}" = true ] && exit 1
    exit 77
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$say" prometheus >"$work/prometheus"
promtool check metrics <"$work/prometheus"

"$say" openmetrics | awk '/^#/ { print; next } { print $0 " 1700000000" }' \
    >"$work/openmetrics"
promtool tsdb create-blocks-from openmetrics "$work/openmetrics" "$work/tsdb" |
    tee "$work/blocks"

# Every line has become a series: below "NUM SERIES", which is the last but one.
sent=$(grep -vc '^#' "$work/openmetrics")
stored=$(awk 'NR == 2 { print $(NF - 1) }' "$work/blocks")
echo "sent $sent series, stored $stored"
[ "$sent" -gt 0 ]
[ "$sent" = "$stored" ]
