/* SPDX-License-Identifier: MIT */
/* pace.c: when may the next key go, if only so many may go a second?
 *
 * One token bucket for all keys. O(1); relies on tokens.h to reckon. The clock
 * is read under the lock, so that times arrive in order.
 */
#include "limit/limiter.h"

#include "config/read.h"
#include "core/mem.h"
#include "core/span.h"
#include "limit/timeline.h"
#include "limit/tokens.h"
#include "port/lock.h"

struct pace {
    wq_limiter          base;
    struct wq__rate     rate; /* never changes */
    struct wq__lock     lock; /* guards what follows */
    struct wq__level    level;
    struct wq__timeline time;
};

static int64_t
when(void *self, wq_key key)
{
    struct pace *p = self;
    int64_t      time_to_act = WQ_FOREVER;

    (void)key;
    wq__lock_take(&p->lock);
    const int64_t now = wq__timeline_now(&p->time);
    (void)wq__level_take(&p->rate, &p->level, now, 1, WQ_FOREVER, &time_to_act);
    wq__lock_release(&p->lock);
    return time_to_act == WQ_FOREVER ? WQ_FOREVER
                                     : wq__span_sub(time_to_act, now);
}

/* The token goes to whoever comes next, even if others have come meanwhile: as
 * many leave in the long run as should. */
static void
undo(void *self, wq_key key)
{
    struct pace *p = self;

    (void)key;
    wq__lock_take(&p->lock);
    wq__level_give(&p->rate, &p->level, wq__timeline_now(&p->time), 1);
    wq__lock_release(&p->lock);
}

static void
set_clock(void *self, wq_clock *clock)
{
    struct pace *p = self;

    wq__lock_take(&p->lock);
    wq__timeline_follow(&p->time, clock);
    wq__lock_release(&p->lock);
}

static void
destroy(void *self)
{
    struct pace *p = self;
    wq__lock_fini(&p->lock);
}

static const wq_limiter_ops ops = {
    .size = sizeof ops,
    .when = when,
    .forget = wq__limiter_ignore_key,
    .num_requeues = wq__limiter_no_requeues,
    .destroy = destroy,
    .undo = undo,
    .set_clock = set_clock,
};

wq_limiter *
wq__limiter_bucket(const wq_allocator *mem, double per_second, unsigned burst)
{
    const wq_err err =
        wq__check_finite("wq_limiter_bucket: per_second", per_second);
    if (err)
        return wq__limiter_failed(err);
    struct pace *p = wq__limiter_alloc(mem, sizeof *p, &ops);
    if (!p)
        return wq__limiter_no_memory("wq_limiter_bucket");

    wq__lock_init(&p->lock);
    p->rate = (struct wq__rate){per_second, burst};
    p->level = wq__level_full(&p->rate);
    return &p->base;
}

wq_limiter *
wq_limiter_bucket(double per_second, unsigned burst)
{
    return wq__limiter_bucket(&wq__mem_default, per_second, burst);
}
