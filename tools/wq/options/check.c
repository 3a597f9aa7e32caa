/* SPDX-License-Identifier: MIT */
/* check.c: do the options go together? */
#include "options/check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options/url.h"

/* ------------------------------------------------------------- completing -- */

/* --tag alone: the key, as COMMAND names it, and a tab. */
static bool
complete_tag(struct options *o)
{
    if (!o->tagged || o->tag)
        return true;
    if (asprintf(&o->tag_text, "%s\t", o->replace) < 0)
        return false;
    o->tag = o->tag_text;
    return true;
}

/* $WQ_QUEUE is not for `wq run`: a run in memory would become a worker of a
 * shared queue because of a variable. */
static bool
complete_queue(struct options *o)
{
    if (!o->queue && o->verb != VERB_RUN)
        o->queue = getenv("WQ_QUEUE");
    if (!o->queue || !url_is(o->queue) || url_is_memory(o->queue)) {
        o->name = o->name ? o->name : "run";
        return true;
    }
    o->shared = true;
    o->queue_text = url_complete(o->queue, false, 0);
    o->queue = o->queue_text;
    o->name_text = url_queue_name(o->queue ? o->queue : "");
    if (!o->name)
        o->name = o->name_text;
    return o->queue && o->name;
}

/* Columns are separated by blanks, unless --colsep says else. */
static bool
complete_key(struct options *o)
{
    o->mapped = o->key.set || o->key_column || o->key_const;
    o->by_blanks = o->key_column && !o->colsep.set;
    return !o->by_blanks || !regex_compile(&o->colsep, "[[:blank:]]+");
}

/* Completes options that depend on others. */
static bool
complete(struct options *o)
{
    o->resume |= o->resume_failed;
    o->keep_order &= !o->dry_run; /* prints in that order anyway */
    if (!complete_key(o)) {
        errno = ENOMEM;
        return false;
    }
    return complete_queue(o) && complete_tag(o);
}

/* --------------------------------------------------------------- checking -- */

struct conflict {
    bool        found;
    const char *message;
};

static const char *
first_of(const struct conflict *conflicts, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (conflicts[i].found)
            return conflicts[i].message;
    return NULL;
}

/* Verbs that run COMMAND. */
static const char *
check_run(const struct options *o)
{
    const struct conflict conflicts[] = {
        {!o->command[0], "no COMMAND given; write it after the options: "
                         "[OPTION]... [--] COMMAND [ARG]..."},
        {o->resync_ns && !o->list, "--resync: needs --list=CMD"},
        {o->resume && !o->joblog, "--resume: needs --joblog=FILE"},
        {o->tagged && o->grouping == GROUP_NONE,
         "--tag: cannot be combined with --ungroup"},
        {o->results && o->grouping == GROUP_NONE,
         "--results: cannot be combined with --ungroup"},
        {o->listen && !WQ_HTTP,
         "--listen: not available: wq was built without libmicrohttpd"},
        {o->until_empty && !o->shared, "--until-empty: needs --queue=URL"},
        {o->shared && o->pending_file,
         "--pending-file: cannot be combined with --queue: keys that are left "
         "stay in the queue"},
        {o->shared && o->resume,
         "--resume: cannot be combined with --queue: the queue keeps what is "
         "left"},
        {o->shared && o->mapped,
         "--key, --key-column and --key-const: cannot be combined with "
         "--queue: the queue keeps keys, not lines"},
        {o->shared && o->max_args > 1,
         "--max-args: cannot be combined with --queue"},
        {o->results && o->max_args > 1,
         "--results: cannot be combined with --max-args: the output is that of "
         "many keys"},
        {o->shared && o->keep_order,
         "--keep-order: cannot be combined with --queue: workers do not know "
         "the order of the input"},
        {o->keep_order && o->grouping != GROUP_RUN,
         "--keep-order: cannot be combined with --line-buffer and --ungroup"},
        {o->shared && o->restart,
         "--restart: cannot be combined with --queue: other programs add keys, "
         "too"},
        {o->restart && o->max_args > 1, "--restart: cannot be combined with "
                                        "--max-args: it would stop the runs "
                                        "of other keys"},
        {o->restart && o->resync_ns, "--restart: cannot be combined with "
                                     "--resync, which adds all keys again "
                                     "and again"},
        {o->shared && o->group_by.set,
         "--group-by: cannot be combined with --queue"},
        {o->group_max && !o->group_by.set,
         "--group-max: needs --group-by=REGEX"},
        {o->shared && o->once, "--once: cannot be combined with --queue: other "
                               "workers run keys, too"},
        {o->key.set + (o->key_column > 0) + !!o->key_const > 1,
         "--key, --key-column and --key-const cannot be combined"},
        {o->shared && o->dry_run,
         "--dry-run: cannot be combined with --queue: it would take the keys; "
         "use wq list"},
    };

    return first_of(conflicts, sizeof conflicts / sizeof *conflicts);
}

/* The keys of a verb that runs no COMMAND. */
static const char *
check_operands(const struct options *o)
{
    const char *operands = verbs_table[o->verb].operands;
    const bool  given = o->operands[0] || o->n_files;
    const bool  needed = strcmp(operands, "KEY...") == 0;
    const bool  change = o->verb == VERB_REMOVE || o->verb == VERB_RETRY;
    const struct conflict conflicts[] = {
        {o->operands[0] && !*operands, "takes no operands; see --help"},
        {!given && (needed || (change && !o->all)), "no KEY given"},
        {given && o->all, "--all: cannot be combined with keys"},
        {o->end != END_DONE && o->again_ns >= 0,
         "--after is for keys that succeeded: it cannot be combined with "
         "--retry, --bury and --back"},
    };

    return first_of(conflicts, sizeof conflicts / sizeof *conflicts);
}

/* The shared queue. */
static const char *
check_queue(const struct options *o)
{
    const struct conflict conflicts[] = {
        {!o->queue || !*o->queue,
         "no queue given; use --queue=URL, or set WQ_QUEUE: for example "
         "WQ_QUEUE=sqlite:/var/lib/me/queue.db, or redis://HOST/0?queue=NAME "
         "for "
         "several machines"},
        {o->queue && url_is_memory(o->queue),
         "mem: is the memory of one process; use --queue=URL with the URL of "
         "a shared queue, such as sqlite:PATH or redis://HOST"},
        {o->queue && !url_is(o->queue),
         "the variable WQ_QUEUE is not the URL of a queue, such as "
         "sqlite:PATH or redis://HOST"},
    };

    return o->verb == VERB_RUN
               ? NULL
               : first_of(conflicts, sizeof conflicts / sizeof *conflicts);
}

static const char *
check_adds(const struct options *o)
{
    const struct conflict conflicts[] = {
        {o->debounce_max_ns && !o->debounce_ns,
         "--debounce-max: needs --debounce=DUR"},
        {o->debounce_ns && o->after_ns,
         "--after and --debounce cannot be combined"},
    };

    return first_of(conflicts, sizeof conflicts / sizeof *conflicts);
}

const char *
options_check(struct options *options)
{
    if (!complete(options))
        return strerror(errno);
    const char *wrong = verbs_table[options->verb].runs
                            ? check_run(options)
                            : check_operands(options);
    if (!wrong)
        wrong = check_adds(options);
    return wrong ? wrong : check_queue(options);
}
