/* SPDX-License-Identifier: MIT */
/* pool.c: how many workers are there, and how do they come and go?
 *
 * Everything that changes the number of workers; see pool.h for their life and
 * for how they learn that they shall leave. Waiting, here, is never for a
 * handler while `changing` is set, so that a handler may resize its own pool.
 */
#include "workers/pool.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <wq/backend.h>

#include "core/mem.h"
#include "core/span.h"
#include "error/error.h"
#include "port/race.h"
#include "port/time.h"
#include "workers/config.h"

/* How long a get of a backend that cannot be interrupted may block: the time a
 * stop takes with it, against the cost of an idle worker. */
#define POLL_NS (INT64_C(50) * 1000000)

/* After so long an interrupt that somebody else got is repeated. */
#define REPEAT_NS (INT64_C(10) * 1000000)

_Thread_local wq_workers *wq__workers_current;

static void
await_change(wq_workers *pool)
{
    wq__bell_await(&pool->changed, &pool->lock, NULL, WQ_FOREVER);
}

/* ---- as the workers see it ----------------------------------------------- */

static void
unlink_hired(wq_workers *pool, const struct wq__worker *w)
{
    struct wq__worker **at = &pool->hired;

    while (*at != w)
        at = &(*at)->next;
    *at = w->next;
    pool->hired_len--;
}

static void
leave(struct wq__worker *w)
{
    wq_workers *pool = w->pool;

    wq__lock_assert_taken(&pool->lock);
    assert(w->stage == WQ__HIRED);
    for (int i = 0; i < WQ__COUNTS; i++)
        pool->counts[i] += atomic_load(&w->counts[i]);
    unlink_hired(pool, w);
    w->stage = WQ__LEFT;
    w->next = pool->left;
    pool->left = w;
    pool->unjoined++;
    wq__bell_ring(&pool->changed);
}

void
wq__workers_leave(struct wq__worker *w)
{
    wq_workers *pool = w->pool;

    wq__lock_take(&pool->lock);
    leave(w);
    wq__lock_release(&pool->lock);
}

bool
wq__workers_are_called(struct wq__worker *w)
{
    atomic_store(&w->phase, WQ__GETTING);
    return atomic_load(&w->pool->epoch) != w->epoch;
}

bool
wq__workers_look_up(struct wq__worker *w)
{
    wq_workers *pool = w->pool;

    if (!wq__workers_are_called(w))
        return true;

    wq__lock_take(&pool->lock);
    w->epoch = atomic_load(&pool->epoch);
    const bool surplus = pool->hired_len > pool->target;
    if (surplus)
        leave(w);
    else
        wq__bell_ring(&pool->changed);
    wq__lock_release(&pool->lock);
    return !surplus;
}

bool
wq__workers_stopping(wq_workers *pool)
{
    wq__lock_take(&pool->lock);
    const bool stopping = pool->stopping;
    wq__lock_release(&pool->lock);
    return stopping;
}

/* ---- fewer --------------------------------------------------------------- */

/* What do those do who could leave and do not know it? WORKING: nobody could,
 * or all are at work. GETTING: one at least must be interrupted. LOOKING_UP:
 * they come to it by themselves. Each phase is read once, since it may
 * change. */
static enum wq__worker_phase
find_unaware(const wq_workers *pool, uint64_t epoch)
{
    enum wq__worker_phase found = WQ__WORKING;

    if (pool->hired_len <= pool->target)
        return found;
    for (struct wq__worker *w = pool->hired; w; w = w->next) {
        const int phase = atomic_load(&w->phase);
        if (w->epoch < epoch && phase == WQ__GETTING)
            return WQ__GETTING;
        if (w->epoch < epoch && phase == WQ__LOOKING_UP)
            found = WQ__LOOKING_UP;
    }
    return found;
}

/* Let the surplus leave. Returns, with the lock, when those who are still too
 * many are all at work: they look up when they are done. */
static void
shrink_to(wq_workers *pool, unsigned target)
{
    pool->target = target;
    const uint64_t epoch = atomic_fetch_add(&pool->epoch, 1) + 1;

    for (;;) {
        if (find_unaware(pool, epoch) == WQ__GETTING) {
            wq__lock_release(&pool->lock);
            wq_interrupt(pool->queue);
            wq__lock_take(&pool->lock);
        }
        if (find_unaware(pool, epoch) == WQ__WORKING)
            return;
        wq__bell_await(&pool->changed, &pool->lock, NULL,
                       wq__span_add(wq__time_now(), REPEAT_NS));
    }
}

static void
free_worker(struct wq__worker *w)
{
    const wq_allocator mem = w->pool->mem;

    wq__race_enable_checking(w, sizeof *w);
    wq__mem_free(&mem, w, sizeof *w);
}

/* Join and free a list of workers whose threads end, or have ended. */
static size_t
join_all(struct wq__worker *list)
{
    size_t n = 0;

    while (list) {
        struct wq__worker *w = list;
        list = w->next;
        wq__thread_join(&w->thread);
        free_worker(w);
        n++;
    }
    return n;
}

/* With the lock, which is free meanwhile. */
static void
reap(wq_workers *pool)
{
    struct wq__worker *list = pool->left;

    pool->left = NULL;
    wq__lock_release(&pool->lock);
    const size_t n = join_all(list);
    wq__lock_take(&pool->lock);
    pool->unjoined -= n;
    wq__bell_ring(&pool->changed);
}

/* ---- more ---------------------------------------------------------------- */

/* What a worker's thread does first: wait to be hired, or dismissed. */
static void
report_for_work(void *arg)
{
    struct wq__worker *w = arg;
    wq_workers        *pool = w->pool;

    wq__lock_take(&pool->lock);
    while (w->stage == WQ__RECRUIT)
        await_change(pool);
    const bool hired = w->stage == WQ__HIRED;
    wq__lock_release(&pool->lock);
    if (hired)
        wq__work(w);
}

static wq_err
cannot_start(unsigned number, wq_err why)
{
    return wq_fail(why, "wq_workers: cannot start thread %u: %s", number,
                   why == WQ_ENOMEM ? "out of memory, or too many threads"
                                    : "the system refused it");
}

static wq_err
recruit_one(wq_workers *pool, unsigned number, struct wq__worker **list)
{
    struct wq__worker *w = wq__mem_alloc(&pool->mem, sizeof *w);
    char               name[WQ__THREAD_NAME_MAX], suffix[WQ__THREAD_NAME_MAX];

    if (!w)
        return cannot_start(number, WQ_ENOMEM);
    memset(w, 0, sizeof *w);
    wq__race_disable_checking(w, sizeof *w); /* the phase and the counts */
    w->pool = pool;
    w->stage = WQ__RECRUIT;
    (void)snprintf(suffix, sizeof suffix, "-%u", number);
    wq__thread_name(name, pool->name, suffix);
    const wq_err err = wq__thread_start(&w->thread, report_for_work, w, name);
    if (err) {
        free_worker(w);
        return cannot_start(number, err);
    }
    w->next = *list;
    *list = w;
    return WQ_OK;
}

static void
hire(wq_workers *pool, struct wq__worker *list)
{
    while (list) {
        struct wq__worker *w = list;
        list = w->next;
        w->stage = WQ__HIRED;
        w->epoch = atomic_load(&pool->epoch);
        w->next = pool->hired;
        pool->hired = w;
        pool->hired_len++;
        pool->named++;
    }
    wq__bell_ring(&pool->changed);
}

/* They never worked, and leave as if they had not come. */
static void
dismiss(wq_workers *pool, struct wq__worker *list)
{
    wq__lock_take(&pool->lock);
    for (struct wq__worker *w = list; w; w = w->next)
        w->stage = WQ__LEFT;
    wq__bell_ring(&pool->changed);
    wq__lock_release(&pool->lock);
    (void)join_all(list);
}

/* `n` more, or none. With the lock, which is free meanwhile; `changing` keeps
 * others from doing the same. */
static wq_err
grow_by(wq_workers *pool, size_t n)
{
    struct wq__worker *list = NULL;
    unsigned           number = pool->named;
    wq_err             err = WQ_OK;

    wq__lock_release(&pool->lock);
    while (n-- && !err)
        err = recruit_one(pool, number++, &list);
    if (err)
        dismiss(pool, list);
    wq__lock_take(&pool->lock);
    if (!err)
        hire(pool, list);
    return err;
}

/* From now on nobody who is there leaves because he is too many; but whoever
 * was to leave and has not looked up yet is one of those to stay. */
static wq_err
grow_to(wq_workers *pool, unsigned target)
{
    const unsigned before = pool->target;

    pool->target = target;
    const wq_err err = grow_by(pool, target - pool->hired_len);
    if (err)
        shrink_to(pool, before);
    return err;
}

/* ---- one change at a time ------------------------------------------------ */

static void
begin_change(wq_workers *pool)
{
    while (pool->changing)
        await_change(pool);
    pool->changing = true;
}

static void
end_change(wq_workers *pool)
{
    pool->changing = false;
    wq__bell_ring(&pool->changed);
}

static wq_err
resize(wq_workers *pool, unsigned threads)
{
    if (pool->stopping)
        return WQ_ESTATE;
    reap(pool);
    if (threads > pool->hired_len)
        return grow_to(pool, threads);
    shrink_to(pool, threads);
    return WQ_OK;
}

wq_err
wq_workers_resize(wq_workers *pool, unsigned threads)
{
    if (!pool)
        return WQ_EINVAL;
    wq__lock_take(&pool->lock);
    begin_change(pool);
    const wq_err err = resize(pool, threads);
    end_change(pool);
    wq__lock_release(&pool->lock);
    return err;
}

/* ---- life ---------------------------------------------------------------- */

/* All workers, then the watchdog, who is needed until then. */
static void
await_end(wq_workers *pool)
{
    while (pool->hired_len || pool->unjoined)
        if (pool->left)
            reap(pool);
        else
            await_change(pool);
    wq__watchdog_end(pool);
}

wq_err
wq_workers_stop(wq_workers *pool)
{
    if (!pool)
        return WQ_EINVAL;
    if (wq__workers_current == pool)
        return WQ_ESTATE;
    wq__lock_take(&pool->lock);
    begin_change(pool);
    pool->stopping = true;
    shrink_to(pool, 0);
    end_change(pool);
    await_end(pool);
    wq__lock_release(&pool->lock);
    return WQ_OK;
}

wq_err
wq_workers_drain(wq_workers *pool, int64_t timeout_ns)
{
    if (!pool)
        return WQ_EINVAL;
    if (wq__workers_current == pool)
        return WQ_ESTATE;
    const wq_err err = wq_shutdown_with_drain_within(pool->queue, timeout_ns);
    return err ? err : wq_workers_stop(pool);
}

static void
free_pool(wq_workers *pool)
{
    const wq_allocator mem = pool->mem;

    wq__lock_fini(&pool->lock);
    wq__mem_free(&mem, pool, sizeof *pool);
}

wq_err
wq_workers_destroy(wq_workers *pool)
{
    const wq_err err = pool ? wq_workers_stop(pool) : WQ_OK;

    if (pool && !err)
        free_pool(pool);
    return err;
}

static wq_workers *
make_pool(wq_queue *q, const struct wq__workers_config *config)
{
    wq_workers *pool = wq__mem_alloc(&config->allocator, sizeof *pool);

    if (!pool)
        return NULL;
    memset(pool, 0, sizeof *pool);
    pool->queue = q;
    pool->config = config->user;
    pool->mem = config->allocator;
    if (config->user.name)
        (void)snprintf(pool->name, sizeof pool->name, "%s", config->user.name);
    pool->patience_ns = q->backend->interrupt ? WQ_FOREVER : POLL_NS;
    wq__lock_init(&pool->lock);
    return pool;
}

wq_err
wq_workers_start(wq_queue *q, const wq_workers_config *config, wq_workers **out)
{
    struct wq__workers_config checked;

    if (!q)
        return wq_fail(WQ_EINVAL, "wq_workers_start: q is NULL");
    if (!out)
        return wq_fail(WQ_EINVAL, "wq_workers_start: out is NULL");
    wq_err err = wq__workers_config_read("wq_workers_start", config, &checked);
    if (err)
        return err;
    if (!checked.user.threads)
        checked.user.threads = wq__thread_processors();
    wq_workers *pool = make_pool(q, &checked);
    if (!pool)
        return wq_fail(WQ_ENOMEM, "wq_workers_start: out of memory");
    err = wq__watchdog_start(pool);
    if (!err)
        err = wq_workers_resize(pool, checked.user.threads);
    if (err) {
        (void)wq_workers_destroy(pool);
        return err;
    }
    *out = pool;
    return WQ_OK;
}
