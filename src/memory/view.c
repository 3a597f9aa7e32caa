/* SPDX-License-Identifier: MIT */
/* view.c: what can programs and event loops see of an in-memory queue? */
#include <errno.h>

#include "core/mem.h"
#include "memory/gate.h"

/* ---- numbers ------------------------------------------------------------ */

/* The time for ages and deadlines. With the lock: no key was handed out after
 * it. */
static int64_t
time_of_view(struct wq__memory *m)
{
    return m->core.ages ? m->clock->stopwatch(m->clock)
                        : m->clock->now(m->clock);
}

wq_err
wq__memory_len(wq_queue *q, size_t *out)
{
    struct wq__memory *m = wq__memory_of(q);

    wq__gate_enter(m);
    const wq_err lack = wq__gate_catch_up(m);
    *out = wq__core_len(&m->core);
    if (lack) /* adds that could not be merged */
        *out += wq__inbox_len(&m->inbox);
    wq__gate_leave_query(m);
    return WQ_OK;
}

wq_err
wq__memory_stats(wq_queue *q, wq_stats *out)
{
    struct wq__memory *m = wq__memory_of(q);

    wq__gate_enter(m);
    /* Adds that could not be merged for lack of memory are counted later. */
    (void)wq__gate_catch_up(m);
    wq__core_stats(&m->core, time_of_view(m), out);
    out->sleeping = m->getters.len;
    out->retries = atomic_load_explicit(&m->retries, memory_order_relaxed);
    out->drops += atomic_load_explicit(&m->dropped, memory_order_relaxed);
    wq__gate_leave_query(m);
    return WQ_OK;
}

wq_err
wq__memory_depths(wq_queue *q, wq_depth *out, size_t max, size_t *n)
{
    struct wq__memory *m = wq__memory_of(q);

    wq__gate_enter(m);
    (void)wq__gate_catch_up(m);
    wq__core_depths(&m->core, out, max, n);
    wq__gate_leave_query(m);
    return WQ_OK;
}

wq_err
wq__memory_check(wq_queue *q, wq_problem problem, void *ctx)
{
    struct wq__memory *m = wq__memory_of(q);

    wq__gate_enter(m);
    (void)wq__gate_catch_up(m);
    const char *broken = wq__core_check(&m->core);
    wq__gate_leave_query(m);
    if (broken)
        problem(ctx, broken);
    return WQ_OK;
}

/* The group of a key; NULL: the queue has none. Without the lock. */
static wq_key
group_of(struct wq__memory *m, wq_key key)
{
    struct wq__prepared prepared;

    if (!m->group)
        return (wq_key){NULL, 0};
    if (wq__memory_prepare(m, key, &prepared) || !prepared.group.len)
        return (wq_key){key.data, 0}; /* the empty group */
    return prepared.group;
}

/* ---- keys --------------------------------------------------------------- */

wq_err
wq__memory_key_info(wq_queue *q, wq_key key, wq_key_info *out)
{
    struct wq__memory *m = wq__memory_of(q);
    const uint32_t     hash = wq__core_hash(&m->core, key);

    wq__gate_enter(m);
    const wq_err err = wq__gate_catch_up(m);
    if (!err)
        wq__core_key_info(&m->core, key, hash, time_of_view(m), out);
    wq__gate_leave_query(m);
    if (err)
        return err;
    out->requeues = wq_limiter_num_requeues(m->retry.limiter, key);
    out->group = group_of(m, key);
    return WQ_OK;
}

static bool
visit_all(struct wq__memory *m, struct wq__copies *b, wq_visit visit, void *ctx)
{
    for (size_t i = 0; i < b->len; i++) {
        b->infos[i].requeues =
            wq_limiter_num_requeues(m->retry.limiter, b->keys[i]);
        b->infos[i].group = group_of(m, b->keys[i]);
        if (!visit(ctx, b->keys[i], &b->infos[i]))
            return false;
    }
    return true;
}

wq_err
wq__memory_each(wq_queue *q, unsigned states, wq_visit visit, void *ctx)
{
    struct wq__memory *m = wq__memory_of(q);
    struct wq__copies *b = wq__mem_alloc(&m->shared_mem, sizeof *b);
    wq__ref            cursor = 0;
    bool               more = true;

    if (!b)
        return WQ_ENOMEM;
    while (more) {
        wq__gate_enter(m);
        (void)wq__gate_catch_up(m);
        more =
            wq__core_copy_some(&m->core, &cursor, states, time_of_view(m), b);
        wq__gate_leave_query(m);
        more = visit_all(m, b, visit, ctx) && more;
    }
    wq__mem_free(&m->shared_mem, b, sizeof *b);
    return WQ_OK;
}

const char *
wq__memory_name(wq_queue *q)
{
    return wq__memory_of(q)->name;
}

/* ---- event loops -------------------------------------------------------- */

int
wq__memory_fd(wq_queue *q)
{
    struct wq__memory *m = wq__memory_of(q);

    wq__gate_enter(m);
    if (!m->watched) {
        (void)wq__gate_catch_up(m);
        m->watched = !wq__beacon_init(&m->beacon, m->clock->timer);
        m->interested += m->watched;
        m->watch.beacon = &m->beacon;
    }
    const int cause = errno;
    const int fd = m->watched ? wq__beacon_fd(&m->beacon) : -1;
    wq__gate_leave(m); /* lights the beacon, if there is work */
    errno = cause;
    return fd;
}

void
wq__memory_stop_watching(struct wq__memory *m)
{
    if (m->watched)
        wq__clock_unwatch(m->clock, &m->watch);
    m->interested -= m->watched;
    m->watched = false;
}
