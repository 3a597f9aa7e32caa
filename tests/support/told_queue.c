/* SPDX-License-Identifier: MIT */
/* told_queue.c: a queue that says what it was told; see told_queue.h. */
#include "support/told_queue.h"

#include <stdlib.h>

static struct told *
told_of(const wq_queue *q)
{
    return (struct told *)(void *)(uintptr_t)q;
}

static void
told_destroy(wq_queue *q)
{
    (void)q;
}

static wq_err
told_add(wq_queue *q, wq_key key)
{
    (void)q;
    (void)key;
    return WQ_ENOTSUP;
}

static wq_err
told_get(wq_queue *q, int64_t timeout_ns, wq_item **out)
{
    (void)q;
    (void)timeout_ns;
    (void)out;
    return WQ_ENOTSUP;
}

static wq_err
told_done(wq_queue *q, wq_item *item)
{
    (void)q;
    (void)item;
    return WQ_ENOTSUP;
}

static wq_err
told_len(wq_queue *q, size_t *out)
{
    *out = told_of(q)->counts.ready;
    return WQ_OK;
}

static void
told_shutdown(wq_queue *q)
{
    told_of(q)->counts.shutting_down = true;
}

static bool
told_shutting_down(const wq_queue *q)
{
    return told_of(q)->counts.shutting_down;
}

static wq_err
told_stats(wq_queue *q, wq_stats *out)
{
    struct told *told = told_of(q);
    const size_t size = out->size;

    told->asked++;
    *out = told->counts;
    out->size = size;
    return told->stats_err;
}

static wq_err
told_depths(wq_queue *q, wq_depth *out, size_t max, size_t *n)
{
    const struct told *told = told_of(q);

    for (size_t i = 0; i < told->depths_len && i < max; i++)
        out[i] = told->depths[i];
    *n = told->depths_len;
    return told->depths_err;
}

static wq_err
told_each(wq_queue *q, unsigned states, wq_visit visit, void *ctx)
{
    const struct told *told = told_of(q);

    for (size_t i = 0; i < told->keys_len; i++)
        if (told->keys[i].info.states & states &&
            !visit(ctx, told->keys[i].key, &told->keys[i].info))
            return WQ_OK;
    return told->each_err;
}

static const char *
told_name(wq_queue *q)
{
    return told_of(q)->name;
}

void
told_init(struct told *told)
{
    *told = (struct told){
        .backend =
            {
                .size = sizeof(wq_backend),
                .name = "told",
                .destroy = told_destroy,
                .add = told_add,
                .get = told_get,
                .done = told_done,
                .len = told_len,
                .shutdown = told_shutdown,
                .shutting_down = told_shutting_down,
                .stats = told_stats,
                .depths = told_depths,
                .each = told_each,
                .queue_name = told_name,
            },
        .counts = {.next_ns = WQ_FOREVER,
                   .unfinished_ns = -1,
                   .longest_ns = -1},
    };
    if (wq_backend_init(&told->base, &told->backend) != WQ_OK)
        abort();
}
