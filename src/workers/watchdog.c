/* SPDX-License-Identifier: MIT */
/* watchdog.c: which handlers run too long, and which have lost their keys?
 *
 * A thread sleeps until the earliest deadline of a running handler. All
 * handlers have the same time limit, so a handler that begins later has a later
 * deadline and need not wake the thread. When no handler runs, the thread
 * sleeps without a deadline, and the next handler wakes it: at most one wake-up
 * in item_deadline_ns, none while the pool is idle.
 *
 * Holds are renewed meanwhile, so their ends are not known in advance. While
 * handlers run whose holds can end, the thread looks at all of them once a
 * second, and when the first of them may end. In a queue whose holds do not end
 * (WQ_FOREVER) a handler does not wake the thread.
 *
 * The thread calls on_stuck(), on_lost() and the queue without the lock. The
 * loan must not end meanwhile: the worker waits until `in_use` is false.
 *
 * Cost: O(workers) a wake-up; for each item two locks, and a clock reading.
 */
#include "core/span.h"
#include "error/error.h"
#include "workers/pool.h"

/* How long the thread sleeps at most while a hold can end: a queue may lose its
 * holds at any time, for example if its store was away. */
#define LOOK_NS (INT64_C(1000) * 1000000)

static bool
is_needed(const wq_workers_config *config)
{
    return config->item_deadline_ns || config->on_lost;
}

static int64_t
earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The worker cannot end the loan of its item until return_item(). */
static const wq_item *
use_item(struct wq__worker *w)
{
    const wq_item *item = w->item;

    w->in_use = true;
    wq__lock_release(&w->pool->lock);
    return item;
}

static void
return_item(struct wq__worker *w)
{
    wq__lock_take(&w->pool->lock);
    w->in_use = false;
    wq__wakeup_broadcast(&w->pool->changed);
}

/* ---- deadlines ----------------------------------------------------------- */

static int64_t
deadline_of(const struct wq__worker *w)
{
    const int64_t limit_ns = w->pool->config.item_deadline_ns;

    return limit_ns ? wq__span_add(w->started_ns, limit_ns) : WQ_FOREVER;
}

/* Of the handlers that run and were not reported, the one that began first. */
static struct wq__worker *
find_first(wq_workers *pool)
{
    struct wq__worker *first = NULL;

    for (struct wq__worker *w = pool->running; w; w = w->next)
        if (w->item && !w->reported &&
            (!first || w->started_ns < first->started_ns))
            first = w;
    return first;
}

static void
report_stuck(struct wq__worker *w, int64_t now_ns)
{
    const wq_workers_config *config = &w->pool->config;
    const int64_t            running_ns = wq__span_sub(now_ns, w->started_ns);

    w->reported = true;
    config->on_stuck(config->ctx, use_item(w), running_ns);
    return_item(w);
}

/* ---- holds --------------------------------------------------------------- */

static int64_t
next_look(int64_t now_ns, int64_t left_ns)
{
    return wq__span_add(now_ns, earlier(left_ns, LOOK_NS));
}

/* The time of the next look at a hold; WQ_FOREVER: there is none. */
static int64_t
find_next_look(const wq_workers *pool)
{
    int64_t at_ns = WQ_FOREVER;

    for (struct wq__worker *w = pool->running; w; w = w->next)
        if (w->item && w->hold_ends)
            at_ns = earlier(at_ns, w->look_ns);
    return at_ns;
}

static void
look_at_hold(struct wq__worker *w, int64_t now_ns)
{
    const wq_workers_config *config = &w->pool->config;
    const wq_item           *item = use_item(w);
    const int64_t            left_ns = wq_hold_left(w->pool->queue, item);

    if (left_ns <= 0)
        config->on_lost(config->ctx, item);
    return_item(w);
    w->hold_ends = left_ns > 0;
    w->look_ns = next_look(now_ns, left_ns);
}

/* Look at all holds, so that their next looks fall together. Releases the lock
 * meanwhile; a worker stays on the list while its item is in use. */
static void
look_at_holds(wq_workers *pool, int64_t now_ns)
{
    for (struct wq__worker *w = pool->running; w; w = w->next)
        if (w->item && w->hold_ends)
            look_at_hold(w, now_ns);
}

/* ---- the thread ---------------------------------------------------------- */

/* With the lock, which is released while it sleeps or reports. */
static void
keep_watch(wq_workers *pool)
{
    wq_clock          *clock = pool->config.clock;
    struct wq__worker *w = find_first(pool);
    const int64_t      look_ns = find_next_look(pool);
    const int64_t      now_ns = wq_clock_now(clock);

    if (look_ns <= now_ns) {
        look_at_holds(pool, now_ns);
        return;
    }
    if (w && deadline_of(w) <= now_ns) {
        report_stuck(w, now_ns);
        return;
    }
    pool->watch_until_ns = earlier(w ? deadline_of(w) : WQ_FOREVER, look_ns);
    wq__wakeup_wait(&pool->watch, &pool->lock, clock, pool->watch_until_ns);
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

    if (!is_needed(&pool->config))
        return WQ_OK;
    wq__thread_name(name, pool->name, "-watch");
    const wq_err err = wq__thread_start(&pool->watchdog, watch, pool, name);
    pool->watched = err == WQ_OK;
    return err ? wq_fail(err, "wq_workers_start: cannot start the thread for "
                              "item_deadline_ns or on_lost")
               : WQ_OK;
}

void
wq__watchdog_end(wq_workers *pool)
{
    wq__lock_assert_taken(&pool->lock);
    if (pool->watched && !pool->watch_ends) {
        pool->watch_ends = true;
        wq__wakeup_broadcast(&pool->watch);
        wq__lock_release(&pool->lock);
        wq__thread_join(&pool->watchdog);
        wq__lock_take(&pool->lock);
        pool->watched = false;
        wq__wakeup_broadcast(&pool->changed);
    }
    while (pool->watched) /* another caller is ending it */
        wq__wakeup_wait(&pool->changed, &pool->lock, NULL, WQ_FOREVER);
}

/* ---- workers ------------------------------------------------------------- */

void
wq__watchdog_begin(struct wq__worker *w, const wq_item *item)
{
    wq_workers              *pool = w->pool;
    const wq_workers_config *config = &pool->config;

    if (!is_needed(config))
        return;
    const int64_t left_ns =
        config->on_lost ? wq_hold_left(pool->queue, item) : WQ_FOREVER;
    const bool hold_ends = left_ns != WQ_FOREVER;
    if (!config->item_deadline_ns && !hold_ends)
        return;
    const int64_t now_ns = wq_clock_now(config->clock);

    wq__lock_take(&pool->lock);
    w->item = item;
    w->started_ns = now_ns;
    w->reported = false;
    w->hold_ends = hold_ends;
    w->look_ns = hold_ends ? next_look(now_ns, left_ns) : WQ_FOREVER;
    if (earlier(deadline_of(w), w->look_ns) < pool->watch_until_ns)
        wq__wakeup_broadcast(&pool->watch);
    wq__lock_release(&pool->lock);
}

void
wq__watchdog_finish(struct wq__worker *w)
{
    wq_workers *pool = w->pool;

    if (!w->item) /* only this thread sets it */
        return;
    wq__lock_take(&pool->lock);
    w->item = NULL;
    while (w->in_use)
        wq__wakeup_wait(&pool->changed, &pool->lock, NULL, WQ_FOREVER);
    wq__lock_release(&pool->lock);
}
