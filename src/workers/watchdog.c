/* SPDX-License-Identifier: MIT */
/* watchdog.c: who notices that a handler does not come back?
 *
 * A thread that sleeps until the earliest deadline of a running handler. All
 * handlers have the same time, so whoever begins later has a later deadline and
 * need not wake it. Only when it found nobody at work does it sleep without an
 * end, and the next handler wakes it: at most one wake-up in item_deadline_ns,
 * none while the pool is idle.
 *
 * on_stuck() is called without the lock. Meanwhile the item must not be handed
 * back: the worker waits until `reporting` is over.
 *
 * Cost: O(workers) a wake-up; two locks and a clock reading for each item.
 */
#include "core/span.h"
#include "error/error.h"
#include "workers/pool.h"

static int64_t
deadline_of(const struct wq__worker *w)
{
    return wq__span_add(w->started_ns, w->pool->config.item_deadline_ns);
}

/* Of the handlers that run and were not reported, the one that began first. */
static struct wq__worker *
find_first(wq_workers *pool)
{
    struct wq__worker *first = NULL;

    for (struct wq__worker *w = pool->hired; w; w = w->next)
        if (w->item && !w->reported &&
            (!first || w->started_ns < first->started_ns))
            first = w;
    return first;
}

static void
report(wq_workers *pool, struct wq__worker *w, int64_t now_ns)
{
    const wq_workers_config *config = &pool->config;
    const wq_item           *item = w->item;
    const int64_t            running_ns = wq__span_sub(now_ns, w->started_ns);

    w->reported = w->reporting = true;
    wq__lock_release(&pool->lock);
    config->on_stuck(config->ctx, item, running_ns);
    wq__lock_take(&pool->lock);
    w->reporting = false;
    wq__bell_ring(&pool->changed);
}

/* With the lock, which is free while it sleeps or reports. */
static void
keep_watch(wq_workers *pool)
{
    wq_clock          *clock = pool->config.clock;
    struct wq__worker *w = find_first(pool);
    const int64_t      now_ns = wq_clock_now(clock);

    if (w && deadline_of(w) <= now_ns) {
        report(pool, w, now_ns);
        return;
    }
    pool->watch_until_ns = w ? deadline_of(w) : WQ_FOREVER;
    wq__bell_await(&pool->watch, &pool->lock, clock, pool->watch_until_ns);
}

static void
watch(void *arg)
{
    wq_workers *pool = arg;

    wq__workers_current = pool;
    wq__lock_take(&pool->lock);
    while (!pool->watch_ends)
        keep_watch(pool);
    wq__lock_release(&pool->lock);
}

wq_err
wq__watchdog_start(wq_workers *pool)
{
    char name[WQ__THREAD_NAME_MAX];

    if (!pool->config.item_deadline_ns)
        return WQ_OK;
    wq__thread_name(name, pool->name, "-watch");
    const wq_err err = wq__thread_start(&pool->watchdog, watch, pool, name);
    pool->watched = err == WQ_OK;
    return err ? wq_fail(err, "wq_workers_start: cannot start the thread for "
                              "item_deadline_ns")
               : WQ_OK;
}

void
wq__watchdog_end(wq_workers *pool)
{
    wq__lock_assert_taken(&pool->lock);
    if (pool->watched && !pool->watch_ends) {
        pool->watch_ends = true;
        wq__bell_ring(&pool->watch);
        wq__lock_release(&pool->lock);
        wq__thread_join(&pool->watchdog);
        wq__lock_take(&pool->lock);
        pool->watched = false;
        wq__bell_ring(&pool->changed);
    }
    while (pool->watched) /* another caller is at it */
        wq__bell_await(&pool->changed, &pool->lock, NULL, WQ_FOREVER);
}

void
wq__watchdog_begin(struct wq__worker *w, const wq_item *item)
{
    wq_workers *pool = w->pool;

    if (!pool->config.item_deadline_ns)
        return;
    const int64_t now_ns = wq_clock_now(pool->config.clock);
    wq__lock_take(&pool->lock);
    w->item = item;
    w->started_ns = now_ns;
    w->reported = false;
    if (deadline_of(w) < pool->watch_until_ns)
        wq__bell_ring(&pool->watch);
    wq__lock_release(&pool->lock);
}

void
wq__watchdog_finish(struct wq__worker *w)
{
    wq_workers *pool = w->pool;

    if (!pool->config.item_deadline_ns)
        return;
    wq__lock_take(&pool->lock);
    w->item = NULL;
    while (w->reporting)
        wq__bell_await(&pool->changed, &pool->lock, NULL, WQ_FOREVER);
    wq__lock_release(&pool->lock);
}
