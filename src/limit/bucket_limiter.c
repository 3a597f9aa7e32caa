/* SPDX-License-Identifier: MIT */
/* bucket_limiter.c: when may a key go, if only so many may go a second?
 *
 * Two limiters: one token bucket for all keys, and one bucket for each key. The
 * clock is read under the lock, so that times arrive in order.
 *
 * A key's bucket takes sixteen bytes. A bucket that is full again is the same
 * as none and is removed: each when() looks at the two entries that were looked
 * at longest ago, so that idle entries cannot grow in number. The table's order
 * of use is the order in which entries are looked at.
 *
 * O(1); relies on tokens.h for the arithmetic and on table.h for the keys.
 */
#include "limit/limiter.h"

#include "config/read.h"
#include "core/mem.h"
#include "core/span.h"
#include "limit/secret.h"
#include "limit/table.h"
#include "limit/timeline.h"
#include "limit/tokens.h"
#include "port/lock.h"

/* What both kinds begin with. */
struct buckets {
    wq_limiter          base;
    struct wq__rate     rate; /* never changes */
    struct wq__lock     lock; /* guards what follows, here and in each kind */
    struct wq__timeline time;
};

struct one_bucket {
    struct buckets  all; /* first */
    struct wq__fill level;
};

struct item_buckets {
    struct buckets   all;  /* first */
    struct wq__table keys; /* values: struct wq__fill; keys.hasher never
                              changes and is read without the lock */
};

/* ---- both kinds ---------------------------------------------------------- */

/* With the lock: take one token, and say how long until it is there. */
static int64_t
take(const struct buckets *b, struct wq__fill *level, int64_t now)
{
    int64_t time_to_act = WQ_FOREVER;

    (void)wq__fill_take(&b->rate, level, now, 1, WQ_FOREVER, &time_to_act);
    return time_to_act == WQ_FOREVER ? WQ_FOREVER
                                     : wq__span_sub(time_to_act, now);
}

/* With the lock: put the token back. The next add gets it, even if others came
 * in between: in the long run as many leave as should. */
static void
give(const struct buckets *b, struct wq__fill *level)
{
    wq__fill_give(&b->rate, level, wq__timeline_now(&b->time), 1);
}

static void
set_clock(void *self, wq_clock *clock)
{
    struct buckets *b = self;

    wq__lock_take(&b->lock);
    wq__timeline_follow(&b->time, clock);
    wq__lock_release(&b->lock);
}

/* ---- one bucket ---------------------------------------------------------- */

static int64_t
one_when(void *self, wq_key key)
{
    struct one_bucket *o = self;

    (void)key;
    wq__lock_take(&o->all.lock);
    const int64_t delay =
        take(&o->all, &o->level, wq__timeline_now(&o->all.time));
    wq__lock_release(&o->all.lock);
    return delay;
}

static void
one_undo(void *self, wq_key key)
{
    struct one_bucket *o = self;

    (void)key;
    wq__lock_take(&o->all.lock);
    give(&o->all, &o->level);
    wq__lock_release(&o->all.lock);
}

static void
one_destroy(void *self)
{
    struct one_bucket *o = self;
    wq__lock_fini(&o->all.lock);
}

static const wq_limiter_ops one_ops = {
    .size = sizeof one_ops,
    .when = one_when,
    .destroy = one_destroy,
    .undo = one_undo,
    .set_clock = set_clock,
};

wq_limiter *
wq__limiter_bucket(const wq_allocator *mem, double per_second, unsigned burst)
{
    const wq_err err =
        wq__check_finite("wq_limiter_bucket: per_second", per_second);
    if (err)
        return wq__limiter_failed(err);
    struct one_bucket *o = wq__limiter_alloc(mem, sizeof *o, &one_ops);
    if (!o)
        return wq__limiter_no_memory("wq_limiter_bucket");

    wq__lock_init(&o->all.lock);
    o->all.rate = (struct wq__rate){per_second, burst};
    o->level = wq__fill_full(&o->all.rate);
    o->all.base.spec.parts = WQ_PART_BUCKET;
    o->all.base.spec.rate = per_second;
    o->all.base.spec.burst = burst;
    return &o->all.base;
}

wq_limiter *
wq_limiter_bucket(double per_second, unsigned burst)
{
    return wq__limiter_bucket(&wq__mem_default, per_second, burst);
}

/* ---- a bucket for each key ----------------------------------------------- */

/* How many entries a when() looks at: more than it can add. */
enum { LOOKS = 2 };

static void
drop_full(struct item_buckets *i, int64_t now)
{
    for (int n = 0; n < LOOKS && i->keys.oldest; n++) {
        const wq__ref          entry = i->keys.oldest;
        const struct wq__fill *level = wq__table_value(&i->keys, entry);
        const struct wq__rate *rate = &i->all.rate;

        if (wq__fill_at(rate, level, now) >= (double)rate->burst)
            wq__table_drop_oldest(&i->keys);
        else
            wq__table_touch(&i->keys, entry);
    }
}

/* The level of `key`, a full one if it is new. NULL: out of memory. */
static struct wq__fill *
level_of(struct item_buckets *i, wq_key key, uint32_t hash)
{
    const uint32_t before = i->keys.len;
    const wq__ref  entry = wq__table_find_or_insert(&i->keys, key, hash);
    if (!entry)
        return NULL;

    struct wq__fill *level = wq__table_value(&i->keys, entry);
    if (i->keys.len != before)
        *level = wq__fill_full(&i->all.rate);
    return level;
}

static int64_t
when_locked(struct item_buckets *i, wq_key key, uint32_t hash)
{
    const int64_t now = wq__timeline_now(&i->all.time);

    drop_full(i, now);
    struct wq__fill *level = level_of(i, key, hash);
    return level ? take(&i->all, level, now)
                 : wq__rate_duration(i->all.rate.limit, 1);
}

static int64_t
item_when(void *self, wq_key key)
{
    struct item_buckets *i = self;

    /* These rates need no count, so no entry. */
    if (i->all.rate.limit == WQ_RATE_INF)
        return 0;
    if (i->all.rate.burst == 0)
        return WQ_FOREVER;

    const uint32_t hash = wq__table_hash(&i->keys, key);
    wq__lock_take(&i->all.lock);
    const int64_t delay = when_locked(i, key, hash);
    wq__lock_release(&i->all.lock);
    return delay;
}

static void
item_forget(void *self, wq_key key)
{
    struct item_buckets *i = self;
    const uint32_t       hash = wq__table_hash(&i->keys, key);

    wq__lock_take(&i->all.lock);
    wq__table_forget(&i->keys, key, hash);
    wq__lock_release(&i->all.lock);
}

static void
item_undo(void *self, wq_key key)
{
    struct item_buckets *i = self;
    const uint32_t       hash = wq__table_hash(&i->keys, key);

    wq__lock_take(&i->all.lock);
    const wq__ref entry = wq__table_find(&i->keys, key, hash);
    if (entry)
        give(&i->all, wq__table_value(&i->keys, entry));
    wq__lock_release(&i->all.lock);
}

static void
item_destroy(void *self)
{
    struct item_buckets *i = self;

    wq__table_fini(&i->keys);
    wq__lock_fini(&i->all.lock);
}

static const wq_limiter_ops item_ops = {
    .size = sizeof item_ops,
    .when = item_when,
    .forget = item_forget,
    .destroy = item_destroy,
    .undo = item_undo,
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
    if (!wq__secret_new(&secret))
        return wq__limiter_no_random("wq_limiter_item_bucket");
    struct item_buckets *i = wq__limiter_alloc(mem, sizeof *i, &item_ops);
    if (!i)
        return wq__limiter_no_memory("wq_limiter_item_bucket");

    wq__lock_init(&i->all.lock);
    i->all.rate = (struct wq__rate){per_second, burst};
    wq__table_init(&i->keys, &i->all.base.mem, secret, sizeof(struct wq__fill),
                   true);
    i->all.base.spec.parts = WQ_PART_ITEM_BUCKET;
    i->all.base.spec.item_rate = per_second;
    i->all.base.spec.item_burst = burst;
    return &i->all.base;
}

wq_limiter *
wq_limiter_item_bucket(double per_second, unsigned burst)
{
    return wq__limiter_item_bucket(&wq__mem_default, per_second, burst);
}
