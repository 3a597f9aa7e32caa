#!/bin/sh
# SPDX-License-Identifier: MIT
# Does the dashboard show every metric, and no other? Three lists must be the
# same: the metrics in the header, in the text, and in the dashboard. (M-09)
#
#     dashboard.sh PRINT_METRICS
set -eu
# shellcheck source=tests/support/script.sh
. "$(dirname "$0")/../support/script.sh"
export LC_ALL=C # one order for sort and comm
print_metrics=$1
cd "$(dirname "$0")/../.."
dashboard=docs/grafana/wq-dashboard.json
make_work

# Prints the names of the families in any text; a histogram is one.
families() {
    grep -o 'workqueue_[a-z_]*' | sed 's/_\(bucket\|sum\|count\)$//' | sort -u
}

"$print_metrics" json "$dashboard"
families <include/wq/metrics.h >"$work/header"
"$print_metrics" prometheus | grep -v '^# HELP' | families >"$work/text"
families <"$dashboard" >"$work/dashboard"

same_lists text header dashboard
