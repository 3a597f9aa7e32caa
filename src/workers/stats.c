/* SPDX-License-Identifier: MIT */
/* stats.c: what are the statistics of a pool? */
#include <string.h>

#include "core/sized.h"
#include "workers/pool.h"

/* Reading needs the lock, which is not const. */
static wq_workers *
unconst(const wq_workers *pool)
{
    return (wq_workers *)pool;
}

unsigned
wq_workers_count(const wq_workers *pool)
{
    if (!pool)
        return 0;
    wq__lock_take(&unconst(pool)->lock);
    const unsigned target = pool->target;
    wq__lock_release(&unconst(pool)->lock);
    return target;
}

static void
read_counts(const wq_workers *pool, wq_workers_stats *out)
{
    uint64_t counts[WQ__COUNTS];
    size_t   busy = 0;

    memcpy(counts, pool->counts, sizeof counts);
    for (struct wq__worker *w = pool->running; w; w = w->next) {
        for (int i = 0; i < WQ__COUNTS; i++)
            counts[i] += atomic_load(&w->counts[i]);
        busy += atomic_load(&w->phase) == WQ__WORKING;
    }
    *out = (wq_workers_stats){
        .size = out->size,
        .threads = pool->running_len,
        .busy = busy,
        .done = counts[WQ__DONE],
        .retried = counts[WQ__RETRIED],
        .delayed = counts[WQ__POSTPONED],
        .dropped = counts[WQ__DROPPED],
        .errors = counts[WQ__ERRORS],
        .lost = counts[WQ__LOST],
        .returned = counts[WQ__RETURNED],
        .buried = counts[WQ__BURIED],
    };
}

wq_err
wq_workers_read_stats(const wq_workers *pool, wq_workers_stats *out)
{
    wq_workers_stats counts;

    if (!pool || !out || !wq__sized_read(out, sizeof counts, &counts))
        return WQ_EINVAL;
    wq__lock_take(&unconst(pool)->lock);
    read_counts(pool, &counts);
    wq__lock_release(&unconst(pool)->lock);
    memcpy(out, &counts,
           counts.size < sizeof counts ? counts.size : sizeof counts);
    return WQ_OK;
}
