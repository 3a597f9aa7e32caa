/* SPDX-License-Identifier: MIT */
/* change.c: what do `wq remove` and `wq retry` do?
 *
 * A store takes about as long for one key as for several that come together. So
 * keys are collected, and several threads call the verb: their calls share round
 * trips and transactions. What became of the keys is reported in their order.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <wq/workers.h>

#include "base/report.h"
#include "queue/open.h"
#include "verbs/keys.h"
#include "verbs/print.h"
#include "verbs/verbs.h"

/* A hundred thousand keys in a server, on a busy machine, in a build for
 * development: one by one 25 s, with 32 threads 7 s, with 128 threads 5 s. */
enum { MOST = 4096, THREADS = 128 };

/* A key that was collected. */
struct one {
    char  *data; /* owned */
    size_t len;
    wq_err err;      /* WQ_EINTERRUPTED: it was not its turn */
    char   why[200]; /* a sentence, if it failed */
};

struct change {
    const struct options *options;
    wq_queue             *q;
    wq_err (*verb)(wq_queue *q, wq_key key);
    const char  *done; /* for -v: "removed" */
    const char  *none; /* what WQ_ENOTFOUND means: "no such key" */
    struct print print;
    struct one  *keys; /* space for MOST */
    size_t       n;
    bool         missed; /* some key was not found */
    bool         failed; /* reported */
    atomic_bool  ends;   /* the store has failed: no further key is tried */
};

static void
print_change(struct change *change, wq_key key, const char *how)
{
    struct print *print = &change->print;

    if (change->options->json) {
        wq__text_char(&print->line, '{');
        wq__text_key(&print->line, key.data, key.len);
        text_print(&print->line, ",\"how\":\"%s\"}", how);
        print_line(print);
    } else if (change->options->verbose) {
        text_print(&print->line, "%-7s  ", how);
        print_key(print, key);
        print_line(print);
    }
}

static const char *
verb_of(const struct change *change)
{
    return verbs_table[change->options->verb].name;
}

/* A key that is only HELD has nothing to remove: it is not run again anyway. With
 * --all another process may revive a key first: that is no error. */
static void
report_one(struct change *change, const struct one *one)
{
    const wq_key key = wq_bytes(one->data, one->len);

    if (one->err == WQ_OK) {
        print_change(change, key, change->done);
    } else if (one->err == WQ_ESTATE) {
        print_change(change, key, "held");
    } else if (one->err == WQ_ENOTFOUND) {
        if (change->options->all)
            return;
        report("%s: %s: %s", verb_of(change), change->none,
               report_key(key.data, key.len));
        change->missed = true;
    } else if (one->err != WQ_EINTERRUPTED && !change->failed) {
        report("%s: cannot %s %s: %s", verb_of(change), verb_of(change),
               report_key(key.data, key.len), one->why);
        change->failed = true;
    }
}

/* Called by any thread: the words of an error are the thread's. */
static void
change_one(void *ctx, size_t i)
{
    struct change *change = ctx;
    struct one    *one = &change->keys[i];

    one->err = change->verb(change->q, wq_bytes(one->data, one->len));
    if (one->err)
        (void)snprintf(one->why, sizeof one->why, "%s", queue_error(one->err));
    if (one->err && one->err != WQ_ESTATE && one->err != WQ_ENOTFOUND)
        atomic_store(&change->ends, true);
}

static bool
has_ended(void *ctx)
{
    struct change *change = ctx;

    return atomic_load(&change->ends);
}

/* False: a key failed. */
static bool
flush(void *ctx)
{
    struct change *change = ctx;

    /* It fails only for bad arguments, or if it ends early. */
    (void)!wq_parallelize(THREADS, change->n, change_one, change,
                          WQ_PARALLEL(.cancelled = has_ended));
    for (size_t i = 0; i < change->n; i++) {
        report_one(change, &change->keys[i]);
        free(change->keys[i].data);
    }
    change->n = 0;
    return !change->failed;
}

static bool
collect(struct change *change, wq_key key)
{
    char *data = malloc(key.len);

    if (!data) {
        queue_report(change->options, verb_of(change), key, WQ_ENOMEM);
        change->failed = true;
        return false;
    }
    memcpy(data, key.data, key.len);
    change->keys[change->n++] =
        (struct one){.data = data, .len = key.len, .err = WQ_EINTERRUPTED};
    return change->n < MOST || flush(change);
}

static bool
on_key(void *ctx, wq_key key, int64_t after_ns, int priority)
{
    (void)after_ns, (void)priority; /* not for these verbs */
    return collect(ctx, key);
}

static bool
visit(void *ctx, wq_key key, const wq_key_info *info)
{
    (void)info;
    return collect(ctx, key);
}

static int
change_all(struct change *change)
{
    const wq_err err = wq_each(change->q, WQ_STATE_DEAD, visit, change);

    if (err)
        queue_fail(change->options, "list the DEAD keys", err);
    return !flush(change) || err ? STATUS_ERROR : STATUS_OK;
}

static int
run(struct change *change)
{
    const struct keys_sink sink = {on_key, flush, change};

    if (!queue_open(change->options, WQ_CONFIG(.ages = true), &change->q))
        return STATUS_ERROR;
    change->keys = calloc(MOST, sizeof *change->keys);
    if (!change->keys) {
        queue_fail(change->options, "begin", WQ_ENOMEM);
        wq_destroy(change->q);
        return STATUS_ERROR;
    }
    print_init(&change->print);
    int status = change->options->all ? change_all(change)
                                      : keys_read(change->options, &sink);
    if (status == STATUS_OK && change->missed)
        status = STATUS_NONE;
    (void)flush(change); /* keys before a mistake in the input */
    print_fini(&change->print);
    free(change->keys);
    wq_destroy(change->q);
    return status;
}

int
verb_remove(const struct options *options)
{
    return run(&(struct change){.options = options,
                                .verb = wq_remove,
                                .done = "removed",
                                .none = "no such key"});
}

int
verb_retry(const struct options *options)
{
    return run(&(struct change){.options = options,
                                .verb = wq_revive,
                                .done = "ready",
                                .none = "not a DEAD key"});
}
