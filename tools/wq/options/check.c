/* SPDX-License-Identifier: MIT */
/* check.c: do the options go together? */
#include "options/check.h"

#include <stdio.h>

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

/* What is missing or contradictory? NULL: nothing. */
static const char *
conflict(const struct options *o)
{
    const struct conflict conflicts[] = {
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

    return first_of(conflicts, sizeof conflicts / sizeof *conflicts);
}

const char *
options_check(struct options *options)
{
    return complete(options) ? conflict(options) : "out of memory";
}
