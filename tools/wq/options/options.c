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
#include "options/check.h"
#include "options/table.h"
#include "options/url.h"

/* --------------------------------------------------- rows and getopt_long -- */

/* getopt_long() returns LONG + the number of the row for a long option. */
enum { LONG = 256 };

static void
describe(enum verb verb, struct option *longs, char *shorts)
{
    if (verbs_table[verb].runs)
        *shorts++ = '+'; /* stop at COMMAND: it has options of its own */
    *shorts++ = ':'; /* distinguish a missing value from an unknown option */
    for (const struct row *row = row_first(verb); row;
         row = row_next(row, verb)) {
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
find(enum verb verb, int found)
{
    if (found >= LONG)
        return &options_table[found - LONG];
    for (const struct row *row = row_first(verb); row;
         row = row_next(row, verb))
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
    if (row->kind == URL)
        value = url_shown(value);
    if (row->accepted)
        report("%s: '%s' %s; accepted: %s", title(row), value, wrong,
               row->accepted);
    else
        report("%s: '%s' %s", title(row), value, wrong);
    return ACTION_REFUSE;
}

/* `word` is the argument that getopt_long() refused. */
static enum action
refuse_unknown(enum verb verb, int found, const char *word)
{
    /* 0: an unknown long option. */
    const struct row *row = optopt ? find(verb, optopt) : NULL;
    const char       *name = verbs_table[verb].name;

    if (found == ':' || (row && row->arg && optopt < LONG))
        report("%s: needs a value%s%s", row ? title(row) : word,
               row && row->accepted ? "; accepted: " : "",
               row && row->accepted ? row->accepted : "");
    else if (row && optopt >= LONG)
        report("%s: takes no value, but has one", title(row));
    else if (word && strncmp(word, "--", 2) == 0)
        /* Without what follows it: in --queues=URL that may be a password. */
        report("unknown option '%.*s'; see wq %s --help",
               (int)strspn(word, "abcdefghijklmnopqrstuvwxyz0123456789-"), word,
               name);
    else
        report("unknown option '-%c'; see wq %s --help", optopt, name);
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
    case URL:
        *(const char **)field = value;
        return url_is(value) ? NULL : "is not the URL of a queue";
    case APPEND:
        return append_file(o, value);
    case REGEX:
        return regex_compile(field, value);
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
        options_help(stdout, o->verb);
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

static enum action
check(struct options *o)
{
    const char *wrong = options_check(o);

    if (!wrong)
        return ACTION_RUN;
    if (o->verb == VERB_RUN)
        report("%s", wrong);
    else
        report("%s: %s", verbs_table[o->verb].name, wrong);
    return ACTION_REFUSE;
}

enum action
options_parse(struct options *out, enum verb verb, int argc, char **argv)
{
    struct option longs[OPTIONS_MAX + 1];
    char          shorts[OPTIONS_MAX * 4 + 3];
    enum action   action = ACTION_RUN;
    int           found;

    *out = (struct options){
        .verb = verb,
        .argv = argv,
        .delimiter = '\n',
        .slots = 1,
        .max_args = 1,
        .replace = "{}",
        .kill_after_ns = 10000000000,
        .stop_signal = SIGTERM,
        .drain_timeout_ns = -1,
        .output_grace_ns = 1000000000,
        .env_key = "WQ_KEY",
        .wait_ns = INT64_MAX,
        .again_ns = -1,
        .count = 1,
        .retries = 5,
        .backoff = {.base_ns = 1000000000, .max_ns = 300000000000, .factor = 2},
    };
    describe(verb, longs, shorts);
    opterr = 0;
    optind = 0; /* begin anew, also after an error within -abc */
    while (action == ACTION_RUN &&
           (found = getopt_long(argc, argv, shorts, longs, NULL)) != -1)
        action = found == '?' || found == ':'
                     ? refuse_unknown(verb, found, argv[optind - 1])
                     : take(out, find(verb, found), optarg);
    *(verbs_table[verb].runs ? &out->command : &out->operands) = argv + optind;
    return action == ACTION_RUN ? check(out) : action;
}

void
options_blank(const struct options *options)
{
    for (char **word = options->argv + 1; *word; word++)
        memset(*word, 0, strlen(*word));
}

void
options_fini(struct options *options)
{
    regex_fini(&options->key);
    regex_fini(&options->colsep);
    regex_fini(&options->group_by);
    free(options->files);
    free(options->tag_text);
    free(options->name_text);
    free(options->queue_text);
}
