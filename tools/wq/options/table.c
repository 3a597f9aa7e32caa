/* SPDX-License-Identifier: MIT */
/* table.c: which options are there? See table.h. */
#include "options/table.h"

#include <sched.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include <wq/inspect.h>

#include "options/options.h"

/* ---------------------------------- values that only one option understands */

/* The CPUs that we may run on: taskset and containers can limit them. */
static int64_t
count_cpus(void)
{
    cpu_set_t cpus;

    if (sched_getaffinity(0, sizeof cpus, &cpus) == 0)
        return CPU_COUNT(&cpus);
    return sysconf(_SC_NPROCESSORS_ONLN); /* more than a cpu_set_t has */
}

/* An unsigned number of processes; 0: as many as there are CPUs. */
static bool
read_slots(const char *text, void *out)
{
    int64_t n;

    if (!value_number(text, 0, 1000000, &n))
        return false;
    if (n == 0)
        n = count_cpus();
    *(unsigned *)out = n > 0 ? (unsigned)n : 1;
    return true;
}

/* The name of an environment variable. */
static bool
read_variable(const char *text, void *out)
{
    *(const char **)out = text;
    return *text && !strchr(text, '=');
}

/* An int. */
static bool
read_priority(const char *text, void *out)
{
    int64_t n;

    if (!value_number(text, INT_MIN, INT_MAX, &n))
        return false;
    *(int *)out = (int)n;
    return true;
}

/* An unsigned, or "inf". */
static bool
read_retries(const char *text, void *out)
{
    int64_t n = RETRIES_FOREVER;

    if (strcmp(text, "inf") != 0 &&
        !value_number(text, 0, RETRIES_FOREVER - 1, &n))
        return false;
    *(unsigned *)out = (unsigned)n;
    return true;
}

/* A process id. */
static bool
read_pid(const char *text, void *out)
{
    int64_t n;

    if (!value_number(text, 1, INT_MAX, &n))
        return false;
    *(int *)out = (int)n;
    return true;
}

/* A count or the number of a column, an unsigned. */
static bool
read_count(const char *text, void *out)
{
    int64_t n;

    if (!value_number(text, 1, 1000000, &n))
        return false;
    *(unsigned *)out = (unsigned)n;
    return true;
}

/* Words separated by commas, or'ed into an unsigned. */
static bool
read_states(const char *text, void *out)
{
    static const struct {
        const char *name;
        unsigned    state;
    } names[] = {
        {"ready", WQ_STATE_READY},     {"held", WQ_STATE_HELD},
        {"dirty", WQ_STATE_DIRTY},     {"waiting", WQ_STATE_WAITING},
        {"backoff", WQ_STATE_BACKOFF}, {"dead", WQ_STATE_DEAD},
    };
    unsigned states = 0;

    for (;; text++) {
        const size_t len = strcspn(text, ",");
        size_t       i = 0;
        while (i < sizeof names / sizeof *names &&
               (strlen(names[i].name) != len ||
                strncasecmp(names[i].name, text, len) != 0))
            i++;
        if (i == sizeof names / sizeof *names)
            return false;
        states |= names[i].state;
        text += len;
        if (!*text)
            break;
    }
    *(unsigned *)out = states;
    return true;
}

/* ------------------------------------------------------------ the table -- */

/* The last columns of a row: what the option does with its field. */
#define AT(member) .field = offsetof(struct options, member)
#define SETS(member) .kind = FLAG, AT(member)
#define SETS_TO(member, value) .kind = CONSTANT, AT(member), .constant = (value)
#define TAKES(what, member) .kind = (what), AT(member)
#define CHOOSES(member, text) .kind = CHOICE, AT(member), .wrong = (text)
#define READS(member, reader, text)                                            \
    .kind = VALUE, AT(member), .read = (reader), .wrong = (text)
#define MAY_TAKE(member, flag_member)                                          \
    .kind = OPTIONAL, AT(member), .flag = offsetof(struct options, flag_member)

/* Which verbs take it. */
#define FOR(mask) .verbs = (mask)
#define RUN VERB(VERB_RUN)
#define WORK VERB(VERB_WORK)
#define ADD VERB(VERB_ADD)
#define GET VERB(VERB_GET)
#define DONE VERB(VERB_DONE)
#define STATUS VERB(VERB_STATUS)
#define LIST VERB(VERB_LIST)
#define SHOW VERB(VERB_SHOW)
#define REMOVE VERB(VERB_REMOVE)
#define RETRY VERB(VERB_RETRY)
#define DRAIN VERB(VERB_DRAIN)
#define FSCK VERB(VERB_FSCK)
#define CHANGE (REMOVE | RETRY)
#define EVERY (VERB(VERBS) - 1)

#define URLS "sqlite:PATH, sqlite:PATH?queue=NAME, redis://HOST?queue=NAME"
#define DURATIONS "200ms, 5s, 1h30m, or a number of seconds"

const struct row options_table[] = {
    {"Input", '0', 0, "null", NULL, NULL, NULL,
     "keys end with NUL instead of newline", SETS_TO(delimiter, '\0'),
     FOR(RUN | WORK | ADD | CHANGE)},
    {NULL, 'd', 0, "delimiter", "C",
     "one character, or \\n \\t \\0 \\xHH and the like", NULL,
     "keys end with C", READS(delimiter, value_delimiter, "is not a character"),
     FOR(RUN | WORK | ADD | CHANGE)},
    {NULL, 'a', 0, "arg-file", "FILE", NULL, "<file>",
     "read keys from FILE, not stdin (may be repeated)", .kind = APPEND,
     FOR(RUN | WORK | ADD)},
    {NULL, 0, 0, "input", "FORMAT", "text, jsonl", "text jsonl",
     "jsonl: {\"key\":\"a\",\"after\":\"5s\",\"priority\":1}",
     CHOOSES(format, "is not a format"), FOR(RUN | WORK | ADD)},
    {NULL, 0, 0, "key", "REGEX", NULL, NULL,
     "the key of a line: REGEX, or its first group", TAKES(REGEX, key),
     FOR(RUN)},
    {NULL, 0, 0, "key-column", "N", "1 to 1000000", NULL,
     "the key of a line: its column N",
     READS(key_column, read_count, "is not a column"), FOR(RUN)},
    {NULL, 0, 0, "key-const", "KEY", "any text", NULL,
     "every line adds KEY, the only key", TAKES(STRING, key_const), FOR(RUN)},
    {NULL, 0, 0, "colsep", "REGEX", NULL, NULL,
     "{1} {2} ...: columns of the line, separated by REGEX",
     TAKES(REGEX, colsep)},
    {NULL, 0, 0, "list", "CMD", NULL, "<command>",
     "read the keys that the shell command CMD prints", TAKES(STRING, list)},
    {NULL, 0, 0, "resync", "DUR", DURATIONS, NULL,
     "run --list again every DUR; do not exit", TAKES(DURATION, resync_ns)},
    {NULL, 'f', 0, "follow", NULL, NULL, NULL,
     "do not exit at the end of input", SETS(follow)},

    {"Running", 'P', 'j', "max-procs", "N",
     "0 (as many as there are CPUs) to 1000000", NULL,
     "N runs at the same time (1; 0: one per CPU)",
     READS(slots, read_slots, "is not a number of processes")},
    {NULL, 'I', 0, NULL, "REPL", "any text", NULL,
     "replace REPL by the key ({}; absent: append the key)",
     TAKES(STRING, replace)},
    {NULL, 0, 0, "no-key-arg", NULL, NULL, NULL,
     "do not append the key if COMMAND has no {}", SETS(no_key_arg)},
    {NULL, 'n', 0, "max-args", "N", "1 to 1000000", NULL,
     "one run of COMMAND for up to N keys (1)",
     READS(max_args, read_count, "is not a number of keys"), FOR(RUN)},
    {NULL, 0, 0, "load", "N[%]", "a number such as 4, or 150% of the CPUs",
     NULL, "start no run while the load average is above N",
     READS(load, value_load, "is not a load")},
    {NULL, 0, 0, "memfree", "SIZE", "bytes, or with K, M, G, T, such as 500M",
     NULL, "start no run while less memory is available",
     READS(memfree, value_size, "is not a size")},
    {NULL, 0, 0, "timeout", "DUR", DURATIONS, NULL,
     "stop a run that takes longer: it failed", TAKES(DURATION, timeout_ns)},
    {NULL, 0, 0, "kill-after", "DUR", DURATIONS, NULL,
     "kill a run DUR after the stop signal (10s)",
     TAKES(DURATION, kill_after_ns)},
    {NULL, 0, 0, "stop-signal", "SIG", "TERM, SIGTERM, 15 and the like",
     "TERM INT HUP QUIT USR1 USR2 KILL", "the signal that stops a run (TERM)",
     READS(stop_signal, value_signal, "is not a signal")},
    {NULL, 0, 0, "env-key", "NAME", "the name of a variable", NULL,
     "the variable that contains the key (WQ_KEY)",
     READS(env_key, read_variable, "is not a name")},
    {NULL, 't', 0, "verbose", NULL, NULL, NULL,
     "print each command on stderr before it is run", SETS(verbose)},
    {NULL, 0, 0, "dry-run", NULL, NULL, NULL, "print the commands, run none",
     SETS(dry_run), FOR(RUN)},

    {"Queue", 0, 0, "debounce", "DUR", DURATIONS, NULL,
     "run a key when it was not added again for DUR",
     TAKES(DURATION, debounce_ns), FOR(RUN | WORK | ADD)},
    {NULL, 0, 0, "debounce-max", "DUR", DURATIONS, NULL,
     "... but no later than DUR after its first add",
     TAKES(DURATION, debounce_max_ns), FOR(RUN | WORK | ADD)},
    {NULL, 0, 0, "after", "DUR", DURATIONS, NULL, "delay every key by DUR",
     TAKES(DURATION, after_ns), FOR(RUN | WORK | ADD)},
    {NULL, 0, 0, "priority", "N", "a whole number; higher runs first", NULL,
     "default priority of keys (0); higher runs first",
     READS(priority, read_priority, "is not a priority"),
     FOR(RUN | WORK | ADD)},
    {NULL, 0, 0, "group-max", "N", "1 to 1000000", NULL,
     "at most N keys of a group run at the same time",
     READS(group_max, read_count, "is not a number of keys"), FOR(RUN)},
    {NULL, 0, 0, "group-by", "REGEX", NULL, NULL,
     "groups of keys with the same match take turns", TAKES(REGEX, group_by),
     FOR(RUN)},
    {NULL, 0, 0, "once", NULL, NULL, NULL,
     "do not run a key again that has succeeded", SETS(once), FOR(RUN)},
    {NULL, 0, 0, "restart", NULL, NULL, NULL,
     "stop and rerun a running key that is added again", SETS(restart),
     FOR(RUN)},
    {NULL, 0, 0, "queue", "URL", "mem:, " URLS,
     "mem: sqlite: redis: rediss: redis+unix: redis+sentinel: "
     "rediss+sentinel:",
     "where keys are kept: mem:, or as for wq work", TAKES(URL, queue),
     FOR(RUN)},
    {NULL, 0, 0, "queue", "URL", URLS,
     "sqlite: redis: rediss: redis+unix: redis+sentinel: rediss+sentinel:",
     "the shared queue (default: $WQ_QUEUE)", TAKES(URL, queue),
     FOR(EVERY - RUN)},
    {NULL, 0, 0, "name", "Q", "any text", NULL,
     "name of the queue in metrics and WQ_NAME", TAKES(STRING, name)},

    {"Retry", 0, 0, "retries", "N", "0, 1, 2, ... or inf", "inf",
     "retry a failed key N times (5; inf: for ever)",
     READS(retries, read_retries, "is not a number of retries"),
     FOR(RUN | WORK | DONE)},
    {NULL, 0, 0, "backoff", "B[,MAX[,F]]",
     "BASE[,MAX[,FACTOR]] such as 1s,5m,2", NULL,
     "retry after up to B, then F times longer (1s,5m,2)",
     READS(backoff, value_backoff, "is not a backoff"), FOR(RUN | WORK | DONE)},
    {NULL, 0, 0, "retry-on-add", NULL, NULL, NULL,
     "run a failed key at once if it is added again", SETS(retry_on_add),
     FOR(RUN | WORK | ADD | DONE)},
    {NULL, 0, 0, "no-retry-codes", "LIST",
     "exit codes from 1 to 255 such as 65,66,70-78", NULL,
     "exit codes that are not retried: 65,70-78",
     READS(no_retry, value_codes, "is not a list of exit codes")},
    {NULL, 0, 0, "rate", "N/s[:BURST]",
     "N/s, N/m, N/h or N/d, and :BURST, such as 10/s or 100/m:20", NULL,
     "start at most N runs per second (/m, /h)",
     READS(rate, value_rate, "is not a rate")},

    {"Ending", 0, 0, "halt", "WHEN",
     "never, or {now|soon},{fail|success|done}={N|P%}",
     "never now,fail=1 soon,fail=1 now,success=1 soon,success=1",
     "stop early: now,fail=1 soon,fail=10% now,success=1",
     READS(halt, value_halt, "is not a condition")},
    {NULL, 0, 0, "drain-timeout", "DUR", DURATIONS, NULL,
     "when stopping: give runs at most DUR (0: stop them)",
     TAKES(DURATION, drain_timeout_ns)},
    {NULL, 0, 0, "until-empty", NULL, NULL, NULL,
     "shared queue: exit when no key is left", SETS(until_empty)},
    {NULL, 0, 0, "pending-file", "FILE", NULL, "<file>",
     "write keys that are left to FILE, NUL-separated",
     TAKES(STRING, pending_file), FOR(RUN)},
    {NULL, 0, 0, "resume", NULL, NULL, NULL,
     "skip keys that are in the --joblog", SETS(resume), FOR(RUN)},
    {NULL, 0, 0, "resume-failed", NULL, NULL, NULL,
     "skip keys that the --joblog records as succeeded", SETS(resume_failed),
     FOR(RUN)},

    {"Output", 0, 0, "group", NULL, NULL, NULL,
     "print the output of a run in one piece (default)",
     SETS_TO(grouping, GROUP_RUN)},
    {NULL, 0, 0, "line-buffer", NULL, NULL, NULL, "print output line by line",
     SETS_TO(grouping, GROUP_LINE)},
    {NULL, 0, 0, "ungroup", NULL, NULL, NULL,
     "let runs write to stdout and stderr directly",
     SETS_TO(grouping, GROUP_NONE)},
    {NULL, 0, 0, "output-grace", "DUR", DURATIONS, NULL,
     "await output of processes that outlive a run (1s)",
     TAKES(DURATION, output_grace_ns)},
    {NULL, 'k', 0, "keep-order", NULL, NULL, NULL,
     "print output in the order of the input", SETS(keep_order), FOR(RUN)},
    {NULL, 0, 0, "tag", "[=FMT]", NULL, NULL,
     "begin each line with the key and a tab, or FMT", MAY_TAKE(tag, tagged)},
    {NULL, 0, 0, "results", "DIR", NULL, "<dir>",
     "keep the output of each run below DIR", TAKES(STRING, results)},
    {NULL, 0, 0, "joblog", "FILE", NULL, "<file>",
     "log each run in the format of GNU parallel", TAKES(STRING, joblog)},
    {NULL, 0, 0, "json", "[=FILE]", NULL, "<file>",
     "write events as JSON lines to stdout or FILE", MAY_TAKE(json_file, json)},
    {NULL, 0, 0, "progress", "WHEN", "auto, always, never", "auto always never",
     "show progress on stderr (auto: if it is a terminal)",
     CHOOSES(progress, "is not a choice")},
    {NULL, 'q', 0, "quiet", NULL, NULL, NULL,
     "no progress, no summary, no messages about keys", SETS(quiet)},
    {NULL, 0, 0, "summary", NULL, NULL, NULL,
     "print the summary even with --quiet", SETS(summary)},
    {NULL, 0, 0, "listen", "ADDR", "127.0.0.1:PORT, [::1]:PORT, unix:PATH",
     "127.0.0.1: unix:", "serve a page and /metrics: 127.0.0.1:PORT, unix:PATH",
     TAKES(ADDRESS, listen)},

    {"Keys", 'a', 0, "arg-file", "FILE", NULL, "<file>",
     "read keys from FILE, - is stdin (may be repeated)", .kind = APPEND,
     FOR(CHANGE)},
    {NULL, 0, 0, "all", NULL, NULL, NULL, "all DEAD keys", SETS(all),
     FOR(RETRY)},
    {NULL, 0, 0, "state", "LIST",
     "ready, held, dirty, waiting, backoff, dead; separated by commas",
     "ready held dirty waiting backoff dead",
     "ready, held, dirty, waiting, backoff or dead keys",
     READS(states, read_states, "is not a list of states"), FOR(LIST)},
    {NULL, 'n', 0, "count", "N", "1 to 1000000", NULL, "take up to N keys (1)",
     READS(count, read_count, "is not a count"), FOR(GET)},
    {NULL, 0, 0, "timeout", "DUR", DURATIONS, NULL,
     "wait at most DUR (for ever; 0: do not wait)", TAKES(DURATION, wait_ns),
     FOR(GET)},
    {NULL, 0, 0, "timeout", "DUR", DURATIONS, NULL,
     "wait at most DUR (for ever; 0: look once)", TAKES(DURATION, wait_ns),
     FOR(DRAIN)},
    {NULL, 0, 0, "holder", "PID", "the id of a process", NULL,
     "the process that holds the key (the parent process)",
     READS(holder, read_pid, "is not a process id"), FOR(GET | DONE)},

    {"Result", 0, 0, "retry", NULL, NULL, NULL,
     "it failed: run it again after its backoff", SETS_TO(end, END_RETRY),
     FOR(DONE)},
    {NULL, 0, 0, "bury", NULL, NULL, NULL,
     "it failed for good: it is DEAD until wq retry", SETS_TO(end, END_BURY),
     FOR(DONE)},
    {NULL, 0, 0, "back", NULL, NULL, NULL,
     "it was not worked on: it is READY again", SETS_TO(end, END_BACK),
     FOR(DONE)},
    {NULL, 0, 0, "after", "DUR", DURATIONS, NULL,
     "it succeeded: run it again after DUR", TAKES(DURATION, again_ns),
     FOR(DONE)},

    {"Output", '0', 0, "null", NULL, NULL, NULL,
     "print only the keys, each ended by NUL", SETS(null), FOR(LIST | GET)},
    {NULL, 'v', 0, "verbose", NULL, NULL, NULL, "print what became of each key",
     SETS(verbose), FOR(ADD | CHANGE)},
    {NULL, 0, 0, "json", NULL, NULL, NULL, "print a JSON object per line",
     SETS(json), FOR(EVERY - RUN - WORK - DONE - DRAIN)},

    {"Help", 'h', 0, "help", NULL, NULL, NULL, "print this text", .kind = HELP,
     FOR(EVERY)},
    {NULL, 0, 0, "version", NULL, NULL, NULL, "print the version",
     .kind = VERSION, FOR(RUN)},
    {NULL, 0, 0, "completion", "SHELL", "bash, zsh, fish", "bash zsh fish",
     "print completions for bash, zsh, fish", .kind = COMPLETION,
     .wrong = "is not a known shell", FOR(RUN)},
};

static const struct row *const options_end =
    options_table + sizeof options_table / sizeof *options_table;

_Static_assert(sizeof options_table / sizeof *options_table <= OPTIONS_MAX,
               "arrays of OPTIONS_MAX must have space for all rows");

/* ------------------------------------------------------------------ rows -- */

static const struct row *
from(const struct row *row, enum verb verb)
{
    for (; row < options_end; row++)
        if (row->verbs ? row->verbs & VERB(verb) : verbs_table[verb].runs)
            return row;
    return NULL;
}

const struct row *
row_first(enum verb verb)
{
    return from(options_table, verb);
}

const struct row *
row_next(const struct row *row, enum verb verb)
{
    return from(row + 1, verb);
}

const char *
row_group(const struct row *row)
{
    while (!row->group)
        row--;
    return row->group;
}
