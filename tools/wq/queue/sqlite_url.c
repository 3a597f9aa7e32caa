/* SPDX-License-Identifier: MIT */
/* sqlite_url.c: what does a sqlite: URL say, for wq_sqlite_open()? */
#ifdef WQ_HAVE_SQLITE

#include "queue/sqlite_url.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "options/url.h"
#include "options/values.h"

/* ---------------------------------------------------------------- values -- */

/* The position of the word in the list; -1: it is none. */
static int
choose(const char *word, const char *const *list, int n)
{
    for (int i = 0; i < n; i++)
        if (strcmp(list[i], word) == 0)
            return i;
    return -1;
}

/* --------------------------------------------------------------- options -- */

static bool
read_option(wq_sqlite_options *o, const char *name, const char *value)
{
    static const char *const syncs[] = {"adds", "all", "lazy"};
    static const char *const holds[] = {"process", "lease"};
    static const char *const truths[] = {"no", "yes"};
    int64_t                  n;
    int                      choice;

    if (strcmp(name, "queue") == 0) {
        o->queue = value;
        return *value;
    }
    if (strcmp(name, "sync") == 0) {
        choice = choose(value, syncs, 3);
        o->sync = (wq_sqlite_sync)choice;
        return choice >= 0;
    }
    if (strcmp(name, "hold") == 0) {
        choice = choose(value, holds, 2);
        o->hold = (wq_sqlite_hold)choice;
        return choice >= 0;
    }
    if (strcmp(name, "create") == 0) {
        choice = choose(value, truths, 2);
        o->no_create = choice == 0;
        return choice >= 0;
    }
    if (strcmp(name, "lease") == 0) {
        o->hold = WQ_SQLITE_HOLD_LEASE;
        return value_duration(value, &o->lease_ns);
    }
    if (strcmp(name, "busy") == 0)
        return value_duration(value, &o->busy_ns);
    if (strcmp(name, "max_expiries") != 0 ||
        !value_number(value, 0, UINT_MAX, &n))
        return false;
    o->max_expiries = (unsigned)n;
    return true;
}

const char *
sqlite_url_read(struct sqlite_url *out, const char *url)
{
    char *rest = NULL;

    *out = (struct sqlite_url){.options.size = sizeof out->options};
    out->text = strdup(url + strlen("sqlite:"));
    if (!out->text)
        return "out of memory";
    out->path = strtok_r(out->text, "?", &rest);
    if (!out->path || !url_decode(out->text))
        return "the URL names no file";
    for (char *option; (option = strtok_r(NULL, "&", &rest));) {
        char *value = strchr(option, '=');
        if (value)
            *value++ = '\0';
        if (!value || !url_decode(value) ||
            !read_option(&out->options, option, value))
            return "the URL has an unknown option, or an unknown value of one";
    }
    if (out->options.hold == WQ_SQLITE_HOLD_LEASE)
        return "with hold=lease a key cannot be held for another process";
    return NULL;
}

void
sqlite_url_fini(struct sqlite_url *url)
{
    free(url->text);
}

#else
/* An empty file is not C. */
typedef int wq_tool_no_sqlite;
#endif
