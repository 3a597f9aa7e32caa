#!/bin/sh
# SPDX-License-Identifier: MIT
# Does Prometheus' own checker accept the text without a warning? (O-41)
#
#     promtool.sh PRINT_METRICS
#
# promtool reads OpenMetrics only to store it, which needs a time in each line.
set -eu
# shellcheck source=tests/support/script.sh
. "$(dirname "$0")/../support/script.sh"
print_metrics=$1

need promtool
make_work

"$print_metrics" prometheus >"$work/prometheus"
promtool check metrics <"$work/prometheus"

"$print_metrics" openmetrics | awk '/^#/ { print; next } { print $0 " 1700000000" }' \
    >"$work/openmetrics"
promtool tsdb create-blocks-from openmetrics "$work/openmetrics" "$work/tsdb" |
    tee "$work/blocks"

# Every line has become a series: the number is in the last but one column,
# below "NUM SERIES".
sent=$(grep -vc '^#' "$work/openmetrics")
stored=$(awk 'NR == 2 { print $(NF - 1) }' "$work/blocks")
echo "sent $sent series, stored $stored"
[ "$sent" -gt 0 ]
[ "$sent" = "$stored" ]
