/* SPDX-License-Identifier: MIT */
/* item_pace.c: when may this key go, if each may go only so often a second?
 *
 * A token bucket for each key, sixteen bytes of it. A bucket that is full again
 * is as good as none and leaves in passing: each when() looks at the two
 * entries that were looked at longest ago, so that the idle ones cannot grow in
 * number. O(1); relies on tokens.h to reckon and on table.h, whose order of use
 * is here the order in which entries are looked at.
 */
#include "limit/limiter.h"

#include "config/read.h"
#include "core/mem.h"
#include "core/span.h"
#include "limit/table.h"
#include "limit/timeline.h"
#include "limit/tokens.h"
#include "port/lock.h"

struct item_pace {
    wq_limiter          base;
    struct wq__rate     rate; /* never changes */
    struct wq__lock     lock; /* guards what follows but keys.hasher */
    struct wq__table    keys; /* values: struct wq__level */
    struct wq__timeline time;
};

/* How many entries a when() looks at: more than it can bring. */
enum { LOOKS = 2 };

static void
drop_full(struct item_pace *p, int64_t now)
{
    for (int i = 0; i < LOOKS && p->keys.oldest; i++) {
        const wq__ref           entry = p->keys.oldest;
        const struct wq__level *l = wq__table_value(&p->keys, entry);

        if (wq__level_at(&p->rate, l, now) >= (double)p->rate.burst)
            wq__table_drop_oldest(&p->keys);
        else
            wq__table_touch(&p->keys, entry);
    }
}

/* The level of `key`, a full one if it is new. NULL: no memory. */
static struct wq__level *
level_of(struct item_pace *p, wq_key key, uint32_t hash)
{
    const uint32_t before = p->keys.len;
    const wq__ref  entry = wq__table_find_or_insert(&p->keys, key, hash);
    if (!entry)
        return NULL;

    struct wq__level *level = wq__table_value(&p->keys, entry);
    if (p->keys.len != before)
        *level = wq__level_full(&p->rate);
    return level;
}

static int64_t
when_locked(struct item_pace *p, wq_key key, uint32_t hash)
{
    const int64_t now = wq__timeline_now(&p->time);
    int64_t       time_to_act;

    drop_full(p, now);
    struct wq__level *level = level_of(p, key, hash);
    if (!level)
        return wq__rate_duration(p->rate.limit, 1);
    (void)wq__level_take(&p->rate, level, now, 1, WQ_FOREVER, &time_to_act);
    return time_to_act == WQ_FOREVER ? WQ_FOREVER
                                     : wq__span_sub(time_to_act, now);
}

static int64_t
when(void *self, wq_key key)
{
    struct item_pace *p = self;

    /* Where nothing is counted nothing need be remembered. */
    if (p->rate.limit == WQ_RATE_INF)
        return 0;
    if (p->rate.burst == 0)
        return WQ_FOREVER;

    const uint32_t hash = wq__table_hash(&p->keys, key);
    wq__lock_take(&p->lock);
    const int64_t delay = when_locked(p, key, hash);
    wq__lock_release(&p->lock);
    return delay;
}

static void
forget(void *self, wq_key key)
{
    struct item_pace *p = self;
    const uint32_t    hash = wq__table_hash(&p->keys, key);

    wq__lock_take(&p->lock);
    const wq__ref entry = wq__table_find(&p->keys, key, hash);
    if (entry)
        wq__table_remove(&p->keys, entry, hash);
    wq__lock_release(&p->lock);
}

static void
undo(void *self, wq_key key)
{
    struct item_pace *p = self;
    const uint32_t    hash = wq__table_hash(&p->keys, key);

    wq__lock_take(&p->lock);
    const wq__ref entry = wq__table_find(&p->keys, key, hash);
    if (entry)
        wq__level_give(&p->rate, wq__table_value(&p->keys, entry),
                       wq__timeline_now(&p->time), 1);
    wq__lock_release(&p->lock);
}

static void
set_clock(void *self, wq_clock *clock)
{
    struct item_pace *p = self;

    wq__lock_take(&p->lock);
    wq__timeline_follow(&p->time, clock);
    wq__lock_release(&p->lock);
}

static void
destroy(void *self)
{
    struct item_pace *p = self;

    wq__table_fini(&p->keys);
    wq__lock_fini(&p->lock);
}

static const wq_limiter_ops ops = {
    .size = sizeof ops,
    .when = when,
    .forget = forget,
    .num_requeues = wq__limiter_no_requeues,
    .destroy = destroy,
    .undo = undo,
    .set_clock = set_clock,
};

wq_limiter *
wq__limiter_item_bucket(const wq_allocator *mem, double per_second,
                        unsigned burst)
{
    struct wq__hash_key secret;

    const wq_err err =
        wq__check_finite("wq_limiter_item_bucket: per_second", per_second);
    if (err)
        return wq__limiter_failed(err);
    if (!wq__limiter_secret(&secret))
        return wq__limiter_no_random("wq_limiter_item_bucket");
    struct item_pace *p = wq__limiter_alloc(mem, sizeof *p, &ops);
    if (!p)
        return wq__limiter_no_memory("wq_limiter_item_bucket");

    wq__lock_init(&p->lock);
    p->rate = (struct wq__rate){per_second, burst};
    wq__table_init(&p->keys, &p->base.mem, secret, sizeof(struct wq__level),
                   true);
    return &p->base;
}

wq_limiter *
wq_limiter_item_bucket(double per_second, unsigned burst)
{
    return wq__limiter_item_bucket(&wq__mem_default, per_second, burst);
}
