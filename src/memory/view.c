/* SPDX-License-Identifier: MIT */
/* view.c: what can be seen of an in-memory queue, by people and by event loops?
 */
#include <errno.h>
#include <string.h>

#include "core/mem.h"
#include "memory/gate.h"

/* ---- numbers ------------------------------------------------------------ */

/* The time by which ages and deadlines are told. With the lock: nobody was
 * handed a key after it. */
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
    if (lack) /* each counts singly; else what comes now, comes later */
        *out += wq__inbox_len(&m->inbox);
    wq__gate_leave_asking(m);
    return WQ_OK;
}

wq_err
wq__memory_stats(wq_queue *q, wq_stats *out)
{
    struct wq__memory *m = wq__memory_of(q);

    wq__gate_enter(m);
    (void)wq__gate_catch_up(m); /* what there is no memory for counts later:
                                   it may yet be merged */
    wq__core_stats(&m->core, time_of_view(m), out);
    out->sleeping = m->getters.len;
    out->retries = atomic_load_explicit(&m->retries, memory_order_relaxed);
    out->drops += atomic_load_explicit(&m->dropped, memory_order_relaxed);
    wq__gate_leave_asking(m);
    return WQ_OK;
}

wq_err
wq__memory_depths(wq_queue *q, wq_depth *out, size_t max, size_t *n)
{
    struct wq__memory *m = wq__memory_of(q);

    wq__gate_enter(m);
    (void)wq__gate_catch_up(m);
    wq__core_depths(&m->core, out, max, n);
    wq__gate_leave_asking(m);
    return WQ_OK;
}

/* Its group; NULL: the queue has none. Without the lock. */
static wq_key
group_of(struct wq__memory *m, wq_key key)
{
    struct wq__pick pick;

    if (!m->group)
        return (wq_key){NULL, 0};
    if (wq__memory_pick(m, key, &pick) || !pick.group.len)
        return (wq_key){key.data, 0}; /* no bytes of it, wherever they are */
    return pick.group;
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
        wq__core_look(&m->core, key, hash, time_of_view(m), out);
    wq__gate_leave_asking(m);
    if (err)
        return err;
    out->requeues = wq_limiter_num_requeues(m->retry.limiter, key);
    out->group = group_of(m, key);
    return WQ_OK;
}

enum {
    KEYS = 64,
    LONGEST = WQ_KEY_MAX + 1, /* with its NUL */
    BYTES = 2 * LONGEST,      /* a batch: see has_room() */
};

/* Keys that were copied under the lock, to be visited without it. */
struct batch {
    size_t      len;   /* how many */
    size_t      bytes; /* what their keys take */
    wq_key      keys[KEYS];
    wq_key_info infos[KEYS];
    char        text[BYTES];
};

/* Is there surely room for one more? */
static bool
has_room(const struct batch *b)
{
    return b->len < KEYS && b->bytes <= BYTES - LONGEST;
}

/* With the lock: copy what comes next. False: that was the last. */
static bool
copy_some(struct wq__memory *m, struct batch *b, wq__ref *cursor,
          unsigned states)
{
    size_t        budget = 512; /* slots a lock is held for: some 10 us */
    const int64_t now = time_of_view(m);
    wq_key        key;
    wq_key_info   info = {.size = sizeof info};

    b->len = b->bytes = 0;
    while (has_room(b)) {
        if (!wq__core_walk(&m->core, cursor, &budget, states, now, &key, &info))
            return budget == 0;
        memcpy(b->text + b->bytes, key.data, key.len + 1); /* and its NUL */
        b->keys[b->len] = (wq_key){b->text + b->bytes, key.len};
        b->infos[b->len] = info;
        b->bytes += key.len + 1;
        b->len++;
    }
    return true;
}

static bool
visit_all(struct wq__memory *m, struct batch *b, wq_visit visit, void *ctx)
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
    struct batch      *b = wq__mem_alloc(&m->shared_mem, sizeof *b);
    wq__ref            cursor = 0;
    bool               more = true;

    if (!b)
        return WQ_ENOMEM;
    while (more) {
        wq__gate_enter(m);
        (void)wq__gate_catch_up(m);
        more = copy_some(m, b, &cursor, states);
        wq__gate_leave_asking(m);
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
        m->company += m->watched;
        m->watch.beacon = &m->beacon;
    }
    const int cause = errno;
    const int fd = m->watched ? wq__beacon_fd(&m->beacon) : -1;
    wq__gate_leave(m); /* lights it, if need be */
    errno = cause;
    return fd;
}

void
wq__memory_stop_watching(struct wq__memory *m)
{
    if (!m->watched)
        return;
    m->clock->watch(m->clock, &m->watch, WQ_FOREVER);
    wq__beacon_fini(&m->beacon);
    m->watched = false;
    m->company--;
}
