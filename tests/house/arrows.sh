#!/bin/sh
# SPDX-License-Identifier: MIT
# Do the arrows point one way? Checks every #include against the table below:
# tools, examples, backends -> include/wq; shell -> core -> data structures.
set -eu
cd "$(dirname "$0")/../.."

# The first line whose path is a prefix of a file's path applies to the file.
#
#   ours    which of our headers it may include, by prefix. Its own directory
#           ("x.h") is always allowed.
#   system  which others: any; c11, the C library without clocks and threads;
#           core, what a pure state machine needs; or a header by name.
table='
path              | ours                           | system
include/wq/       | wq/                            | any
src/core/audit.c  | core/ wq/wq.h wq/inspect.h wq/version.h | core stdio.h
src/core/mem.c    | core/ wq/wq.h wq/inspect.h wq/version.h | core stdlib.h
src/core/         | core/ wq/wq.h wq/inspect.h wq/version.h | core
src/error/        | error/ wq/                     | c11
src/config/       | config/ core/mem.h core/sized.h error/ wq/ | c11
src/memory/       | memory/ config/ core/ clock/ error/ limit/ metrics/ port/ wq/ | c11
src/front/        | front/ config/ error/ core/result.h core/sized.h port/cancel.h port/load.h port/lock.h wq/ | c11
src/text/         | text/ wq/                      | c11
src/inspect/      | inspect/ text/ wq/             | c11
src/port/         | port/ wq/                      | any
src/layer/        | layer/ config/ core/ clock/ error/ front/check.h limit/ port/ wq/ | c11
src/limit/        | limit/ config/read.h core/ clock/ error/ port/ wq/ | c11
src/clock/        | clock/ core/ error/ port/ wq/  | c11
src/metrics/      | metrics/ config/read.h text/ core/ error/ port/ wq/ | c11
src/shared/       | shared/ config/ core/ clock/ error/ limit/ metrics/ port/ text/ wq/ | c11
src/workers/      | workers/ config/read.h core/ clock/ error/ port/ wq/ | c11
src/              |                                |
backends/sqlite/include/ | wq/                     | any
backends/sqlite/  | shared/ config/ core/ clock/ error/ limit/ port/ wq/ | any
backends/redis/include/ | wq/                      | any
backends/redis/   | shared/ config/ core/ clock/ error/ limit/ port/ wq/ | any
backends/         | wq/                            | any
tools/wq/base/    | base/ text/ wq/                | any
tools/wq/options/ | options/ base/ wq/             | any
tools/wq/process/ | process/ options/ base/ wq/    | any
tools/wq/input/   | input/ process/child.h process/words.h options/ base/ wq/ | any
tools/wq/output/  | output/ process/run.h process/words.h options/ base/ wq/ | any
tools/wq/queue/   | queue/ options/ base/ wq/      | any
tools/wq/log/     | log/ output/ run/view.h queue/words.h process/run.h process/words.h options/ base/ wq/ | any
tools/wq/display/ | display/ run/view.h run/failures.h process/run.h options/ base/ wq/ | any
tools/wq/http/    | http/ display/rate.h queue/server.h run/view.h run/durations.h run/failures.h process/run.h options/ base/ wq/ | any
tools/wq/verbs/   | verbs/ display/printable.h queue/ input/records.h options/ base/ wq/ | any
tools/wq/run/     | run/ http/listen.h display/ log/ output/ input/ queue/ process/ options/ base/ wq/ | any
tools/wq/main.c   | run/runner.h verbs/verbs.h options/ base/ wq/ | any
tools/            |                                |
examples/         | wq/                            | any
bench/sides/naive.c | core/core.h wq/              | any
bench/sides/floor.c | core/core.h wq/              | any
bench/shared/     | shared/ config/ port/ support/ wq/ | any
bench/stores/     | stores/ wq/                    | any
bench/sqlite/     | shared/ stores/ wq/            | any
bench/redis/      | shared/ stores/ support/ wq/   | any
bench/            | wq/                            | any
tests/behaviour/  | support/ wq/                   | any
tests/conformance/| support/ behaviour/fixture.h wq/ | any
tests/scenarios/  | support/ scenarios/ wq/        | any
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
            "workers|text|inspect|error|shared)/"
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
function may_include(list, h,    word, n, i) {
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
        ok = quoted || may_include(system_[rule], h)
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
