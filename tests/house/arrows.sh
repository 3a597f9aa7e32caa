#!/bin/sh
# SPDX-License-Identifier: MIT
# Do the arrows point one way? Holds every #include against the table below:
# tools, examples, backends -> include/wq; shell -> core -> data structures.
set -eu
cd "$(dirname "$0")/../.."

# A file is judged by the first line whose path it begins with.
#
#   ours    what it may include of ours, by prefix. Its own directory ("x.h")
#           is always allowed.
#   system  what else: any; c11, the C library without clocks and threads; core,
#           what a pure state machine needs; or a header by name.
table='
path              | ours                           | system
include/wq/       | wq/                            | any
src/core/audit.c  | core/ wq/wq.h wq/inspect.h wq/version.h | core stdio.h
src/core/mem.c    | core/ wq/wq.h wq/inspect.h wq/version.h | core stdlib.h
src/core/         | core/ wq/wq.h wq/inspect.h wq/version.h | core
src/error/        | error/ wq/                     | c11
src/config/       | config/ core/mem.h core/sized.h error/ wq/ | c11
src/memory/       | memory/ config/ core/ clock/ error/ limit/ metrics/ port/ wq/ | c11
src/front/        | front/ config/read.h error/ core/sized.h port/cancel.h wq/ | c11
src/text/         | text/ wq/                      | c11
src/inspect/      | inspect/ text/ wq/             | c11
src/port/         | port/ wq/                      | any
src/layer/        | layer/ config/ core/ clock/ error/ limit/ port/ wq/ | c11
src/limit/        | limit/ config/read.h core/ clock/ error/ port/ wq/ | c11
src/clock/        | clock/ core/ error/ port/ wq/  | c11
src/metrics/      | metrics/ config/read.h text/ core/ error/ port/ wq/ | c11
src/workers/      | workers/ config/read.h core/ clock/ error/ port/ wq/ | c11
src/              |                                |
backends/         | wq/                            | any
tools/            | wq/                            | any
examples/         | wq/                            | any
bench/sides/naive.c | core/core.h wq/              | any
bench/sides/floor.c | core/core.h wq/              | any
bench/            | wq/                            | any
tests/behaviour/  | support/ wq/                   | any
tests/conformance/| support/ conformance/ wq/      | any
tests/consumer/   | wq/                            | any
'

scripts/files.sh '*.[ch]' '*.cc' | awk -v table="$table" '
BEGIN {
    sets["core"] = "assert.h limits.h stdalign.h stdbool.h stddef.h stdint.h " \
                   "inttypes.h string.h"
    sets["c11"] = sets["core"] " ctype.h errno.h fenv.h float.h iso646.h " \
                  "math.h setjmp.h stdarg.h stdatomic.h stdio.h stdlib.h " \
                  "stdnoreturn.h"

    lines = split(table, line, "\n")
    for (i = 3; i < lines; i++) {    # after the empty one and the heading
        split(line[i], cell, "|")
        rules++
        path[rules] = trim(cell[1])
        ours[rules] = trim(cell[2])
        system_[rules] = trim(cell[3])
    }
    rooms = "^(wq|config|core|memory|front|port|layer|limit|clock|metrics|" \
            "workers|text|inspect|error)/"
}

function trim(s) {
    gsub(/^ +| +$/, "", s)
    return s
}

function begins(s, prefix) {
    return substr(s, 1, length(prefix)) == prefix
}

# Is header `h`, one of ours, under a prefix of the list?
function may_use(list, h,    word, n, i) {
    n = split(list, word, " ")
    for (i = 1; i <= n; i++)
        if (begins(h, word[i]))
            return 1
    return 0
}

# Is header `h`, not one of ours, in a set of the list or named there?
function may_ask(list, h,    word, n, i) {
    n = split(list, word, " ")
    for (i = 1; i <= n; i++)
        if (word[i] == "any" || word[i] == h ||
            index(" " sets[word[i]] " ", " " h " "))
            return 1
    return 0
}

function rule_for(file,    i) {
    for (i = 1; i <= rules; i++)
        if (begins(file, path[i]))
            return i
    return 0
}

function check(file, number, text, rule,    h, quoted, ok) {
    sub(/^[ \t]*#[ \t]*include[ \t]*/, "", text)
    quoted = substr(text, 1, 1) == "\""
    h = substr(text, 2)
    sub(/[">].*/, "", h)
    if (h ~ rooms || (quoted && h ~ /\//))
        ok = may_use(ours[rule], h)
    else
        ok = quoted || may_ask(system_[rule], h)
    if (!ok) {
        printf "%s:%d: room %s must not include %s\n",
            file, number, path[rule], h
        bad = 1
    }
}

{
    file = $0
    rule = rule_for(file)
    if (!rule)
        next
    number = 0
    while ((getline text < file) > 0) {
        number++
        if (text ~ /^[ \t]*#[ \t]*include/)
            check(file, number, text, rule)
    }
    close(file)
}

END { exit bad }
'
