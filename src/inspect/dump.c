/* SPDX-License-Identifier: MIT */
/* dump.c: how is a queue written as text for debugging?
 *
 * wq_dump() writes JSON lines from wq_read_stats() and wq_each(), so it works
 * with any backend that has these two. It allocates only what wq_each() does,
 * since a dump may be needed when memory is short: lines go through a small
 * buffer on the stack, long ones in several pieces. No lock is held while it
 * writes.
 */
#include <string.h>

#include <wq/backend.h>

#include "text/escape.h"
#include "text/number.h"
#include "text/text.h"

enum { BUFFER = 1024 }; /* long enough for the line of nearly any key */

static void
name_field(struct wq__text *t, const char *name)
{
    wq__text_str(t, ",\"");
    wq__text_str(t, name);
    wq__text_str(t, "\":");
}

static void
flag_field(struct wq__text *t, const char *name, bool is_set)
{
    name_field(t, name);
    wq__text_str(t, is_set ? "true" : "false");
}

static void
count_field(struct wq__text *t, const char *name, uint64_t n)
{
    name_field(t, name);
    wq__text_u64(t, n);
}

/* A negative time is not kept, or does not apply. */
static void
time_field(struct wq__text *t, const char *name, int64_t ns)
{
    if (ns >= 0)
        count_field(t, name, (uint64_t)ns);
}

/* ---- the queue ----------------------------------------------------------- */

static void
add_name(struct wq__text *t, wq_queue *q)
{
    const char *name =
        WQ_HAS_VERB(q, queue_name) ? q->backend->queue_name(q) : NULL;

    wq__text_str(t, "{\"queue\":");
    if (name)
        wq__text_json(t, name, strlen(name));
    else
        wq__text_str(t, "null");
}

static void
add_queue(struct wq__text *t, wq_queue *q, const wq_stats *counts)
{
    add_name(t, q);
    count_field(t, "ready", counts->ready);
    count_field(t, "offered", counts->offered);
    count_field(t, "held", counts->held);
    count_field(t, "dirty", counts->dirty);
    count_field(t, "waiting", counts->waiting);
    count_field(t, "known", counts->known);
    count_field(t, "bytes", counts->bytes);
    count_field(t, "groups", counts->groups);
    count_field(t, "sleeping", counts->sleeping);
    if (counts->next_ns != WQ_FOREVER)
        time_field(t, "next_ns", counts->next_ns);
    time_field(t, "unfinished_ns", counts->unfinished_ns);
    time_field(t, "longest_ns", counts->longest_ns);
    flag_field(t, "shutting_down", counts->shutting_down);
    flag_field(t, "paused", counts->paused);
    count_field(t, "adds", counts->adds);
    count_field(t, "merged", counts->merged);
    count_field(t, "retries", counts->retries);
    count_field(t, "gets", counts->gets);
    count_field(t, "dones", counts->dones);
    count_field(t, "removed", counts->removed);
    count_field(t, "displaced", counts->displaced);
    count_field(t, "deferred", counts->deferred);
    count_field(t, "overdue", counts->overdue);
    count_field(t, "drops", counts->drops);
    count_field(t, "dead", counts->dead);
    count_field(t, "holders", counts->holders);
    count_field(t, "lost", counts->lost);
    count_field(t, "expired", counts->expired);
    count_field(t, "connects", counts->connects);
    wq__text_str(t, "}\n");
    wq__text_flush(t);
}

/* ---- a key --------------------------------------------------------------- */

static void
add_states(struct wq__text *t, unsigned states)
{
    static const struct {
        unsigned    state;
        const char *name;
    } known[] = {
        {WQ_STATE_READY, "\"READY\""},     {WQ_STATE_HELD, "\"HELD\""},
        {WQ_STATE_DIRTY, "\"DIRTY\""},     {WQ_STATE_WAITING, "\"WAITING\""},
        {WQ_STATE_BACKOFF, "\"BACKOFF\""}, {WQ_STATE_DEAD, "\"DEAD\""},
    };
    const char *separator = "";

    name_field(t, "states");
    wq__text_char(t, '[');
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (states & known[i].state) {
            wq__text_str(t, separator);
            wq__text_str(t, known[i].name);
            separator = ",";
        }
    wq__text_char(t, ']');
}

static bool
add_key(void *ctx, wq_key key, const wq_key_info *info)
{
    struct wq__text *t = ctx;

    wq__text_char(t, '{');
    wq__text_key(t, key.data, key.len);
    add_states(t, info->states);
    name_field(t, "priority");
    wq__text_i64(t, info->priority);
    if (info->requeues)
        count_field(t, "requeues", info->requeues);
    time_field(t, "ready_ns", info->ready_ns);
    time_field(t, "held_ns", info->held_ns);
    time_field(t, "wait_ns", info->wait_ns);
    if (info->fence)
        count_field(t, "fence", info->fence);
    if (*info->holder) {
        name_field(t, "holder");
        wq__text_json(t, info->holder, strlen(info->holder));
    }
    wq__text_str(t, "}\n");
    wq__text_flush(t);
    return t->err == WQ_OK;
}

/* ---- all of it ----------------------------------------------------------- */

wq_err
wq_dump(wq_queue *q, wq_write write, void *ctx)
{
    wq_stats        counts = {.size = sizeof counts};
    char            buffer[BUFFER];
    struct wq__text t;

    if (!q || !write)
        return WQ_EINVAL;
    if (!WQ_HAS_VERB(q, each))
        return WQ_ENOTSUP; /* before the first line is written */
    wq_err err = wq_read_stats(q, &counts);
    if (err)
        return err;

    wq__text_spill(&t, buffer, sizeof buffer, write, ctx);
    add_queue(&t, q, &counts);
    if (t.err)
        return t.err;
    err = wq_each(q, 0, add_key, &t);
    return t.err ? t.err : err;
}
