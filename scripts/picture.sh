#!/bin/sh
# SPDX-License-Identifier: MIT
# What does the dashboard look like? Draws the panels of
# docs/grafana/wq-dashboard.json with the metrics of a controller that runs for
# some seconds (examples/metrics_live.c).
#
#     picture.sh [SECONDS] >docs/grafana/wq-dashboard.svg
#
# Rates and quantiles are computed over half a second, as Grafana does over
# $__rate_interval.
set -eu
cd "$(dirname "$0")/.."
scripts/build.sh release -DWQ_TESTS=OFF >&2

build/release/examples/metrics_live "${1:-6}" |
    awk -v window=5 '
# ---- the dashboard: panel p has a title, and lines with a metric and a kind
FNR == NR {
    if ($1 == "\"title\":" && /^      "/) {
        title[++panels] = text($0)
    } else if ($1 == "\"expr\":") {
        line = ++lines[panels]
        match($0, /workqueue_[a-z_]+/)
        metric[panels, line] = substr($0, RSTART, RLENGTH)
        kind[panels, line] = /quantile\(0.99/ ? 0.99 : /quantile/ ? 0.5 : \
                             /rate\(/ ? "rate" : "gauge"
    }
    next
}

function text(s) {
    sub(/^[^:]*: "/, "", s)
    sub(/".*/, "", s)
    return s
}

# ---- the samples: value[series, n], and buckets of histograms by their bound
$1 == "#" {
    if ($2 == "TIME")
        n++
    next
}
{
    name = $1
    sub(/{.*/, "", name)
    if (match($1, /le="[^"]*"/)) {
        le = substr($1, RSTART + 4, RLENGTH - 5)
        if (!((name, le) in seen)) {
            seen[name, le] = 1
            bound[name, ++bounds[name]] = le
        }
        value[name, le, n] = $2
    } else {
        if (match($1, /priority="[^"]*"/) && !(($1) in seen)) {
            seen[$1] = 1
            priority[++priorities] = substr($1, RSTART + 10, RLENGTH - 11)
        }
        if (name ~ /priority/)
            name = name priority_of($1)
        value[name, n] = $2
    }
}

function priority_of(s) {
    match(s, /priority="[^"]*"/)
    return "/" substr(s, RSTART + 10, RLENGTH - 11)
}

# What the panel shows at sample i.
function shown(m, k, i,    from) {
    from = i > window ? i - window : 1
    if (k == "gauge")
        return value[m, i] + 0
    if (k == "rate")
        return i > from ? (value[m, i] - value[m, from]) / ((i - from) / 10) : 0
    return quantile(m, k, i, from)
}

# Like histogram_quantile(): by linear interpolation within a bucket.
function quantile(m, q, i, from,    b, total, rank, below, here, low) {
    total = delta(m, "+Inf", i, from)
    if (total == 0)
        return 0
    rank = q * total
    for (b = 1; b <= bounds[m]; b++) {
        here = delta(m, bound[m, b], i, from)
        if (here >= rank)
            break
        below = here
        low = bound[m, b]
    }
    if (bound[m, b] == "+Inf" || here == below)
        return low + 0
    return low + (bound[m, b] - low) * (rank - below) / (here - below)
}

function delta(m, le, i, from) {
    return value[m, le, i] - (i > from ? value[m, le, from] : 0)
}

# ---- the picture: three panels side by side
function draw(m, k, label, x, y, color, max,    i, points) {
    points = ""
    for (i = 1; i <= n; i++)
        points = points sprintf("%.1f,%.1f ", x + 12 + (i - 1) * 276 / (n - 1), \
                                y + 138 - 100 * shown(m, k, i) / max)
    printf "<polyline points=\"%s\" fill=\"none\" stroke=\"%s\" " \
           "stroke-width=\"1.5\"/>\n", points, color
    printf "<text x=\"%d\" y=\"%d\" fill=\"%s\" font-size=\"11\">%s</text>\n", \
           legend, y + 156, color, label
    legend += 70
}

function largest(m, k,    i, v, max) {
    for (i = 1; i <= n; i++)
        if ((v = shown(m, k, i)) > max)
            max = v
    return max
}

function panel(p, x, y,    l, i, max, m) {
    printf "<rect x=\"%d\" y=\"%d\" width=\"300\" height=\"166\" rx=\"3\" " \
           "fill=\"#181b1f\"/>\n", x, y
    printf "<text x=\"%d\" y=\"%d\" fill=\"#ccccdc\">%s</text>\n", \
           x + 12, y + 22, title[p]
    if (metric[p, 1] ~ /priority/) { # a line for each priority
        for (i = 1; i <= priorities; i++) {
            metric[p, i] = "workqueue_priority_depth/" priority[i]
            kind[p, i] = "gauge"
            name_of[p, i] = "priority " priority[i]
        }
        lines[p] = priorities
    }
    for (l = 1; l <= lines[p]; l++)
        if ((m = largest(metric[p, l], kind[p, l])) > max)
            max = m
    printf "<text x=\"%d\" y=\"%d\" fill=\"#8e8e9e\" font-size=\"11\" " \
           "text-anchor=\"end\">max %.3g</text>\n", x + 288, y + 22, max
    legend = x + 12
    for (l = 1; l <= lines[p]; l++)
        draw(metric[p, l], kind[p, l], \
             (p, l) in name_of ? name_of[p, l] : \
             kind[p, l] > 0 && kind[p, l] < 1 ? "p" kind[p, l] * 100 : "pods", \
             x, y, l == 1 ? "#73bf69" : "#f2cc0c", max > 0 ? max : 1)
}

END {
    rows = int((panels + 2) / 3)
    printf "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"936\" " \
           "height=\"%d\" font-family=\"sans-serif\" font-size=\"13\">\n", \
           rows * 174 + 8
    print "<!-- SPDX-License-Identifier: MIT -->"
    printf "<rect width=\"936\" height=\"%d\" fill=\"#111217\"/>\n", \
           rows * 174 + 8
    for (p = 1; p <= panels; p++)
        panel(p, 8 + (p - 1) % 3 * 308, 8 + int((p - 1) / 3) * 174)
    print "</svg>"
}' docs/grafana/wq-dashboard.json -
