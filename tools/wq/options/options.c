/* SPDX-License-Identifier: MIT */
/* options.c: how is the command line parsed?
 *
 * getopt_long() splits it; the rows of table.c say what an option does with its
 * value.
 */
#include "options/options.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <wq/version.h>

#include "base/report.h"
#include "options/address.h"
#include "options/table.h"

/* --------------------------------------------------- rows and getopt_long -- */

/* getopt_long() returns LONG + the number of the row for a long option. */
enum { LONG = 256 };

static void
describe(struct option *longs, char *shorts)
{
    *shorts++ = '+'; /* stop at COMMAND: it has options of its own */
    *shorts++ = ':'; /* distinguish a missing value from an unknown option */
    for (const struct row *row = options_table; row < options_end; row++) {
        const char letters[] = {row->letter, row->alias, '\0'};
        for (const char *c = letters; *c; c++) {
            *shorts++ = *c;
            if (row->arg)
                *shorts++ = ':';
        }
        if (row->name)
            *longs++ = (struct option){
                .name = row->name,
                .has_arg = row_is_optional(row) ? optional_argument
                           : row->arg           ? required_argument
                                                : no_argument,
                .val = LONG + (int)(row - options_table)};
    }
    *shorts = '\0';
    *longs = (struct option){0};
}

static const struct row *
find(int found)
{
    if (found >= LONG)
        return &options_table[found - LONG];
    for (const struct row *row = options_table; row < options_end; row++)
        if (found == row->letter || found == row->alias)
            return row;
    return NULL;
}

/* ------------------------------------------------------------- messages -- */

/* "--retries" or "-I". */
static const char *
title(const struct row *row)
{
    static char text[64];

    if (row->name)
        (void)snprintf(text, sizeof text, "--%s", row->name);
    else
        (void)snprintf(text, sizeof text, "-%c", row->letter);
    return text;
}

static enum action
refuse(const struct row *row, const char *value, const char *wrong)
{
    if (row->accepted)
        report("%s: '%s' %s; accepted: %s", title(row), value, wrong,
               row->accepted);
    else
        report("%s: '%s' %s", title(row), value, wrong);
    return ACTION_REFUSE;
}

/* `word` is the argument that getopt_long() refused. */
static enum action
refuse_unknown(int found, const char *word)
{
    const struct row *row = find(optopt);

    if (found == ':' || (row && row->arg && optopt < LONG))
        report("%s: needs a value%s%s", row ? title(row) : word,
               row && row->accepted ? "; accepted: " : "",
               row && row->accepted ? row->accepted : "");
    else if (row && optopt >= LONG)
        report("%s: takes no value, but has one: '%s'", title(row), word);
    else if (word && strncmp(word, "--", 2) == 0)
        report("unknown option '%s'; see wq run --help", word);
    else
        report("unknown option '-%c'; see wq run --help", optopt);
    return ACTION_REFUSE;
}

/* -------------------------------------------------------------- one option */

/* The position of `value` among the words of the row; -1: it is none. */
static int
choose(const struct row *row, const char *value)
{
    const size_t len = strlen(value);
    int          n = 0;

    for (const char *word = row->words; *word; n++) {
        const size_t word_len = strcspn(word, " ");
        if (word_len == len && strncmp(word, value, len) == 0)
            return n;
        word += word_len;
        word += strspn(word, " ");
    }
    return -1;
}

static const char *
append_file(struct options *o, const char *file)
{
    const char **files = realloc(o->files, (o->n_files + 1) * sizeof *o->files);

    if (!files)
        return strerror(errno);
    o->files = files;
    o->files[o->n_files++] = file;
    return NULL;
}

/* Stores the value; `value` is NULL if the option has none. Returns NULL, or
 * what is wrong with it. */
static const char *
store(struct options *o, const struct row *row, const char *value)
{
    static char   why[320];
    union address address;
    void         *field = (char *)o + row->field;

    switch (row->kind) {
    case FLAG:
        *(bool *)field = true;
        return NULL;
    case CONSTANT:
        *(int *)field = row->constant;
        return NULL;
    case CHOICE:
        *(int *)field = choose(row, value);
        return *(int *)field >= 0 ? NULL : row->wrong;
    case VALUE:
        return row->read(value, field) ? NULL : row->wrong;
    case DURATION:
        return value_duration(value, field) ? NULL : "is not a duration";
    case OPTIONAL:
        *(bool *)((char *)o + row->flag) = true;
        *(const char **)field = value;
        return NULL;
    case ADDRESS:
        *(const char **)field = value;
        return address_read(value, &address, why, sizeof why) ? NULL : why;
    case APPEND:
        return append_file(o, value);
    default: /* STRING */
        *(const char **)field = value;
        return *value ? NULL : "is empty";
    }
}

static enum action
take(struct options *o, const struct row *row, const char *value)
{
    const char *wrong = row->wrong;

    if (row->kind == HELP)
        options_help(stdout);
    else if (row->kind == VERSION)
        printf("wq %d.%d.%d\n", WQ_VERSION_MAJOR, WQ_VERSION_MINOR,
               WQ_VERSION_PATCH);
    else if (row->kind != COMPLETION)
        return (wrong = store(o, row, value)) ? refuse(row, value, wrong)
                                              : ACTION_RUN;
    else if (!options_completion(stdout, value))
        return refuse(row, value, wrong);
    return ACTION_EXIT;
}

/* ------------------------------------------------------- all of them -- */

/* Completes options that depend on others. */
static bool
complete(struct options *o)
{
    o->resume |= o->resume_failed;
    if (!o->tagged || o->tag)
        return true;
    /* --tag alone: the key, as COMMAND names it, and a tab. */
    if (asprintf(&o->tag_text, "%s\t", o->replace) < 0)
        return false;
    o->tag = o->tag_text;
    return true;
}

/* What is missing or contradictory? NULL: nothing. */
static const char *
conflict(const struct options *o)
{
    const struct {
        bool        found;
        const char *message;
    } conflicts[] = {
        {!o->command[0], "no COMMAND given; usage: wq run [OPTION]... [--] "
                         "COMMAND [ARG]..."},
        {o->resync_ns && !o->list, "--resync: needs --list=CMD"},
        {o->debounce_max_ns && !o->debounce_ns,
         "--debounce-max: needs --debounce=DUR"},
        {o->debounce_ns && o->after_ns,
         "--after and --debounce cannot be combined"},
        {o->resume && !o->joblog, "--resume: needs --joblog=FILE"},
        {o->tagged && o->grouping == GROUP_NONE,
         "--tag: cannot be combined with --ungroup"},
        {o->results && o->grouping == GROUP_NONE,
         "--results: cannot be combined with --ungroup"},
        {o->listen && !WQ_HTTP,
         "--listen: not available: wq was built without libmicrohttpd"},
    };

    for (size_t i = 0; i < sizeof conflicts / sizeof *conflicts; i++)
        if (conflicts[i].found)
            return conflicts[i].message;
    return NULL;
}

static enum action
check(struct options *o)
{
    const char *wrong = complete(o) ? conflict(o) : "out of memory";

    if (!wrong)
        return ACTION_RUN;
    report("%s", wrong);
    return ACTION_REFUSE;
}

enum action
options_parse(struct options *out, int argc, char **argv)
{
    struct option longs[OPTIONS_MAX + 1];
    char          shorts[OPTIONS_MAX * 4 + 3];
    enum action   action = ACTION_RUN;
    int           found;

    *out = (struct options){
        .delimiter = '\n',
        .slots = 1,
        .replace = "{}",
        .kill_after_ns = 10000000000,
        .stop_signal = SIGTERM,
        .env_key = "WQ_KEY",
        .name = "run",
        .retries = 5,
        .backoff = {.base_ns = 1000000000, .max_ns = 300000000000, .factor = 2},
    };
    describe(longs, shorts);
    opterr = 0;
    optind = 1;
    while (action == ACTION_RUN &&
           (found = getopt_long(argc, argv, shorts, longs, NULL)) != -1)
        action = found == '?' || found == ':'
                     ? refuse_unknown(found, argv[optind - 1])
                     : take(out, find(found), optarg);
    out->command = argv + optind;
    return action == ACTION_RUN ? check(out) : action;
}

void
options_fini(struct options *options)
{
    free(options->files);
    free(options->tag_text);
    options->tag_text = NULL;
    options->files = NULL;
    options->n_files = 0;
}
