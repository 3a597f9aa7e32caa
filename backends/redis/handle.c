/* SPDX-License-Identifier: MIT */
/* handle.c: what can a program ask a handle that only queues in a server have?
 *
 * Sessions and their holds, and what the handle knows of the server. None of it
 * is part of wq_backend: the functions are in wq/redis.h.
 */
#include <string.h>

#include "core/span.h"
#include "error/error.h"
#include "shared/gets.h"
#include "shared/shared.h"
#include "spread.h"

/* NULL: it is another kind of queue, or has no partitions. */
static struct wq__spread *
spread_of(wq_queue *q)
{
    return (struct wq__spread *)(void *)wq__shared_engine(q, &wq__spread_ops);
}

/* The engine of a queue, or of its first partition. NULL: it is another kind of
 * queue. */
static struct wq__redis *
engine_of(wq_queue *q)
{
    struct wq__spread *s = spread_of(q);

    return s ? s->part[0]
             : (struct wq__redis *)(void *)wq__shared_engine(q, &wq__redis_ops);
}

static wq_err
refuse_other_queue(const char *verb)
{
    return wq_fail(WQ_EINVAL, "%s: the queue is not in a Redis server", verb);
}

/* ---- holds ---------------------------------------------------------------- */

uint64_t
wq_redis_session(wq_queue *q)
{
    const struct wq__spread *s = spread_of(q);
    const struct wq__redis  *e = engine_of(q);

    return s   ? (uint64_t)atomic_load(&s->session)
           : e ? (uint64_t)atomic_load(&e->session)
               : 0;
}

wq_err
wq_redis_take_over(wq_queue *q, uint64_t from, wq_key key, wq_item **out)
{
    if (!engine_of(q))
        return refuse_other_queue("wq_redis_take_over");
    if (from == 0 || from > INT64_MAX)
        return wq_fail(WQ_EINVAL, "wq_redis_take_over: this is no session");
    if (!out || !key.data || key.len == 0 || key.len > WQ_KEY_MAX)
        return wq_fail(WQ_EINVAL, "wq_redis_take_over: out is NULL, or the key "
                                  "is empty or too long");
    const wq_err err = wq__shared_resume_hold(q, (int64_t)from, key, out);
    if (err == WQ_ENOTFOUND)
        return wq_fail(
            err, "wq_redis_take_over: that session does not hold the key");
    return err;
}

/* ---- the server ------------------------------------------------------------ */

/* For how long the holds are certain. */
static int64_t
lease_left(struct wq__shared *s)
{
    const int64_t now = s->steady_clock->now(s->steady_clock);

    wq__shared_enter(s);
    const int64_t left = wq__span_sub(s->valid_until_ns, now);
    wq__lock_release(&s->lock);
    return left > 0 ? left : 0;
}

wq_err
wq_redis_read_server(wq_queue *q, wq_redis_server *out)
{
    struct wq__spread *spread = spread_of(q);
    struct wq__redis  *e = engine_of(q);

    if (!e)
        return refuse_other_queue("wq_redis_read_server");
    if (!out || out->size < sizeof out->size)
        return wq_fail(WQ_EINVAL, "wq_redis_read_server: out is NULL, or its "
                                  "size is not set");
    wq_redis_server s = {
        .size = out->size,
        .reachable = true,
        .lease_left_ns = lease_left(wq__shared_of(q)),
        .partitions = spread ? spread->n : 1,
    };
    for (unsigned p = 0; p < s.partitions; p++) {
        struct wq__redis *one = spread ? spread->part[p] : e;
        s.partitions_away += atomic_load(&one->away);
        s.reconnects += atomic_load(&one->target.reconnects);
    }
    s.reachable = !s.partitions_away;
    memcpy(s.version, e->version, sizeof s.version);
    memcpy(s.role, e->role, sizeof s.role);
    wq__route_print(&e->wire, s.name, sizeof s.name);
    memcpy(out, &s, out->size < sizeof s ? out->size : sizeof s);
    return WQ_OK;
}
