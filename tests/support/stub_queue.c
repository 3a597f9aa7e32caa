/* SPDX-License-Identifier: MIT */
/* stub_queue.c: a backend that returns preset values; see stub_queue.h. */
#include "support/stub_queue.h"

#include <stdlib.h>

static struct stub_queue *
stub_of(const wq_queue *q)
{
    return (struct stub_queue *)(void *)(uintptr_t)q;
}

static void
stub_destroy(wq_queue *q)
{
    (void)q;
}

static wq_err
stub_add(wq_queue *q, wq_key key)
{
    (void)q;
    (void)key;
    return WQ_ENOTSUP;
}

static wq_err
stub_get(wq_queue *q, int64_t timeout_ns, wq_item **out)
{
    (void)q;
    (void)timeout_ns;
    (void)out;
    return WQ_ENOTSUP;
}

static wq_err
stub_done(wq_queue *q, wq_item *item)
{
    (void)q;
    (void)item;
    return WQ_ENOTSUP;
}

static wq_err
stub_len(wq_queue *q, size_t *out)
{
    *out = stub_of(q)->counts.ready;
    return WQ_OK;
}

static void
stub_shutdown(wq_queue *q)
{
    stub_of(q)->counts.shutting_down = true;
}

static bool
stub_shutting_down(const wq_queue *q)
{
    return stub_of(q)->counts.shutting_down;
}

static wq_err
stub_stats(wq_queue *q, wq_stats *out)
{
    const struct stub_queue *stub = stub_of(q);
    const size_t             size = out->size;

    *out = stub->counts;
    out->size = size;
    return stub->stats_err;
}

static wq_err
stub_depths(wq_queue *q, wq_depth *out, size_t max, size_t *n)
{
    const struct stub_queue *stub = stub_of(q);

    for (size_t i = 0; i < stub->depths_len && i < max; i++)
        out[i] = stub->depths[i];
    *n = stub->depths_len;
    return stub->depths_err;
}

static wq_err
stub_each(wq_queue *q, unsigned states, wq_visit visit, void *ctx)
{
    const struct stub_queue *stub = stub_of(q);

    for (size_t i = 0; i < stub->keys_len; i++)
        if (stub->keys[i].info.states & states &&
            !visit(ctx, stub->keys[i].key, &stub->keys[i].info))
            return WQ_OK;
    return stub->each_err;
}

static const char *
stub_name(wq_queue *q)
{
    return stub_of(q)->name;
}

void
stub_queue_init(struct stub_queue *stub)
{
    *stub = (struct stub_queue){
        .backend =
            {
                .size = sizeof(wq_backend),
                .name = "stub",
                .destroy = stub_destroy,
                .add = stub_add,
                .get = stub_get,
                .done = stub_done,
                .len = stub_len,
                .shutdown = stub_shutdown,
                .shutting_down = stub_shutting_down,
                .stats = stub_stats,
                .depths = stub_depths,
                .each = stub_each,
                .queue_name = stub_name,
            },
        .counts = {.next_ns = WQ_FOREVER,
                   .unfinished_ns = -1,
                   .longest_ns = -1},
    };
    if (wq_backend_init(&stub->base, &stub->backend) != WQ_OK)
        abort();
}
