/* SPDX-License-Identifier: MIT */
/* pool.c: how many workers are there, and how do they come and go?
 *
 * Everything that changes the number of workers; see pool.h for their life and
 * for the epoch. While `changing` is set, no function here waits for a handler,
 * so that a handler may resize its own pool.
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

/* How long a get blocks in a backend that cannot be interrupted: a stop takes
 * up to this time, and an idle worker wakes up once in it. */
#define POLL_NS (INT64_C(50) * 1000000)

/* After this time an interrupt is repeated, in case another get received it. */
#define REPEAT_NS (INT64_C(10) * 1000000)

_Thread_local wq_workers *wq__workers_current;

/* False: it is `until_ns` or later, monotonic time. */
static bool
await_change_until(wq_workers *pool, int64_t until_ns)
{
    if (until_ns != WQ_FOREVER && wq__time_now() >= until_ns)
        return false;
    wq__wakeup_wait(&pool->changed, &pool->lock, NULL, until_ns);
    return true;
}

static void
await_change(wq_workers *pool)
{
    (void)await_change_until(pool, WQ_FOREVER);
}

/* ---- called by workers --------------------------------------------------- */

static void
unlink_running(wq_workers *pool, const struct wq__worker *w)
{
    struct wq__worker **at = &pool->running;

    while (*at != w)
        at = &(*at)->next;
    *at = w->next;
    pool->running_len--;
}

static void
exit_locked(struct wq__worker *w)
{
    wq_workers *pool = w->pool;

    wq__lock_assert_taken(&pool->lock);
    assert(w->stage == WQ__RUNNING);
    for (int i = 0; i < WQ__COUNTS; i++)
        pool->counts[i] += atomic_load(&w->counts[i]);
    unlink_running(pool, w);
    w->stage = WQ__EXITED;
    w->next = pool->exited;
    pool->exited = w;
    pool->unjoined++;
    wq__wakeup_broadcast(&pool->changed);
}

void
wq__workers_exit(struct wq__worker *w)
{
    wq_workers *pool = w->pool;

    wq__lock_take(&pool->lock);
    exit_locked(w);
    wq__lock_release(&pool->lock);
}

bool
wq__workers_epoch_moved(struct wq__worker *w)
{
    atomic_store(&w->phase, WQ__GETTING);
    return atomic_load(&w->pool->epoch) != w->epoch;
}

bool
wq__workers_check_epoch(struct wq__worker *w)
{
    wq_workers *pool = w->pool;

    if (!wq__workers_epoch_moved(w))
        return true;

    wq__lock_take(&pool->lock);
    w->epoch = atomic_load(&pool->epoch);
    const bool surplus = pool->running_len > pool->target;
    if (surplus)
        exit_locked(w);
    else
        wq__wakeup_broadcast(&pool->changed);
    wq__lock_release(&pool->lock);
    return !surplus;
}

bool
wq__workers_await_stop(wq_workers *pool, int64_t timeout_ns)
{
    const int64_t until_ns = wq__span_add(wq__time_now(), timeout_ns);

    wq__lock_take(&pool->lock);
    while (!pool->stopping && wq__time_now() < until_ns)
        wq__wakeup_wait(&pool->changed, &pool->lock, NULL, until_ns);
    const bool stopping = pool->stopping;
    wq__lock_release(&pool->lock);
    return stopping;
}

/* ---- fewer --------------------------------------------------------------- */

/* What are the workers doing that have not checked `epoch` yet, if there are
 * too many workers? GETTING: at least one must be interrupted. CHECKING: at
 * least one is about to check it. WORKING: the others check it after their
 * handlers; or there are not too many. Each phase is read once, since it may
 * change. */
static enum wq__worker_phase
find_unaware(const wq_workers *pool, uint64_t epoch)
{
    enum wq__worker_phase found = WQ__WORKING;

    if (pool->running_len <= pool->target)
        return found;
    for (struct wq__worker *w = pool->running; w; w = w->next) {
        const int phase = atomic_load(&w->phase);
        if (w->epoch < epoch && phase == WQ__GETTING)
            return WQ__GETTING;
        if (w->epoch < epoch && phase == WQ__CHECKING)
            found = WQ__CHECKING;
    }
    return found;
}

/* Let workers exit until `target` are left. Returns, with the lock, when all
 * surplus workers are running handlers: they check the epoch after that. False:
 * some may still be getting a key at `until_ns`, and must be interrupted
 * again. */
static bool
shrink_until(wq_workers *pool, unsigned target, int64_t until_ns)
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
            return true;
        const int64_t now_ns = wq__time_now();
        if (now_ns >= until_ns)
            return false;
        const int64_t again_ns = wq__span_add(now_ns, REPEAT_NS);
        wq__wakeup_wait(&pool->changed, &pool->lock, NULL,
                        again_ns < until_ns ? again_ns : until_ns);
    }
}

static void
shrink_to(wq_workers *pool, unsigned target)
{
    (void)shrink_until(pool, target, WQ_FOREVER);
}

static void
free_worker(struct wq__worker *w)
{
    const wq_allocator mem = w->pool->mem;

    wq__race_enable_checking(w, sizeof *w);
    wq__mem_free(&mem, w, sizeof *w);
}

/* Join and free a list of workers whose threads have ended or are about to. */
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

/* With the lock, which is released meanwhile. */
static void
join_exited(wq_workers *pool)
{
    struct wq__worker *list = pool->exited;

    pool->exited = NULL;
    wq__lock_release(&pool->lock);
    const size_t n = join_all(list);
    wq__lock_take(&pool->lock);
    pool->unjoined -= n;
    wq__wakeup_broadcast(&pool->changed);
}

/* ---- more ---------------------------------------------------------------- */

/* The first function of a worker's thread: wait until it may run, or must
 * end. */
static void
wait_to_run(void *arg)
{
    struct wq__worker *w = arg;
    wq_workers        *pool = w->pool;

    wq__lock_take(&pool->lock);
    while (w->stage == WQ__STARTING)
        await_change(pool);
    const bool runs = w->stage == WQ__RUNNING;
    wq__lock_release(&pool->lock);
    if (runs)
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
start_one(wq_workers *pool, unsigned number, struct wq__worker **list)
{
    struct wq__worker *w = wq__mem_alloc(&pool->mem, sizeof *w);
    char               name[WQ__THREAD_NAME_MAX], suffix[WQ__THREAD_NAME_MAX];

    if (!w)
        return cannot_start(number, WQ_ENOMEM);
    memset(w, 0, sizeof *w);
    wq__race_disable_checking(w, sizeof *w); /* the phase and the counts */
    w->pool = pool;
    w->stage = WQ__STARTING;
    (void)snprintf(suffix, sizeof suffix, "-%u", number);
    wq__thread_name(name, pool->name, suffix);
    const wq_err err = wq__thread_start(&w->thread, wait_to_run, w, name);
    if (err) {
        free_worker(w);
        return cannot_start(number, err);
    }
    w->next = *list;
    *list = w;
    return WQ_OK;
}

static void
run_all(wq_workers *pool, struct wq__worker *list)
{
    while (list) {
        struct wq__worker *w = list;
        list = w->next;
        w->stage = WQ__RUNNING;
        w->epoch = atomic_load(&pool->epoch);
        w->next = pool->running;
        pool->running = w;
        pool->running_len++;
        pool->named++;
    }
    wq__wakeup_broadcast(&pool->changed);
}

/* End workers that never ran. */
static void
abandon_all(wq_workers *pool, struct wq__worker *list)
{
    wq__lock_take(&pool->lock);
    for (struct wq__worker *w = list; w; w = w->next)
        w->stage = WQ__EXITED;
    wq__wakeup_broadcast(&pool->changed);
    wq__lock_release(&pool->lock);
    (void)join_all(list);
}

/* Start `n` more workers, or none. With the lock, which is released meanwhile;
 * `changing` keeps other threads from resizing. */
static wq_err
grow_by(wq_workers *pool, size_t n)
{
    struct wq__worker *list = NULL;
    unsigned           number = pool->named;
    wq_err             err = WQ_OK;

    wq__lock_release(&pool->lock);
    while (n-- && !err)
        err = start_one(pool, number++, &list);
    if (err)
        abandon_all(pool, list);
    wq__lock_take(&pool->lock);
    if (!err)
        run_all(pool, list);
    return err;
}

/* A worker that should exit, and has not checked the epoch yet, stays: it is
 * one of the `target`. */
static wq_err
grow_to(wq_workers *pool, unsigned target)
{
    const unsigned before = pool->target;

    pool->target = target;
    const wq_err err = grow_by(pool, target - pool->running_len);
    if (err)
        shrink_to(pool, before);
    return err;
}

/* ---- one change at a time ------------------------------------------------ */

/* False: another thread is changing the pool until `until_ns`. */
static bool
begin_change_until(wq_workers *pool, int64_t until_ns)
{
    while (pool->changing)
        if (!await_change_until(pool, until_ns))
            return false;
    pool->changing = true;
    return true;
}

static void
end_change(wq_workers *pool)
{
    pool->changing = false;
    wq__wakeup_broadcast(&pool->changed);
}

static wq_err
resize(wq_workers *pool, unsigned threads)
{
    if (pool->stopping)
        return WQ_ESTATE;
    join_exited(pool);
    if (threads > pool->running_len)
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
    (void)begin_change_until(pool, WQ_FOREVER);
    const wq_err err = resize(pool, threads);
    if (pool->stopping && pool->target) /* wq_workers_stop_within() timed out */
        (void)shrink_until(pool, 0, 0);
    end_change(pool);
    wq__lock_release(&pool->lock);
    return err;
}

/* ---- life ---------------------------------------------------------------- */

/* Let all workers exit. False: some may not know of it at `until_ns`. */
static bool
begin_stop(wq_workers *pool, int64_t until_ns)
{
    pool->stopping = true;
    wq__wakeup_broadcast(&pool->changed); /* wq__workers_await_stop() */
    if (!begin_change_until(pool, until_ns))
        return false;
    const bool all_aware = shrink_until(pool, 0, until_ns);
    end_change(pool);
    return all_aware;
}

/* Wait for the end of all workers, then of the watchdog, which is needed until
 * then. False: workers remain at `until_ns`. */
static bool
await_end(wq_workers *pool, int64_t until_ns)
{
    while (pool->running_len || pool->unjoined)
        if (pool->exited)
            join_exited(pool);
        else if (!await_change_until(pool, until_ns))
            return false;
    wq__watchdog_end(pool);
    return true;
}

wq_err
wq_workers_stop_within(wq_workers *pool, int64_t timeout_ns)
{
    if (!pool || timeout_ns < 0)
        return WQ_EINVAL;
    if (wq__workers_current == pool)
        return WQ_ESTATE;
    const int64_t until_ns = timeout_ns == WQ_FOREVER
                                 ? WQ_FOREVER
                                 : wq__span_add(wq__time_now(), timeout_ns);
    wq__lock_take(&pool->lock);
    const bool ended = begin_stop(pool, until_ns) && await_end(pool, until_ns);
    wq__lock_release(&pool->lock);
    return ended ? WQ_OK : WQ_ETIMEDOUT;
}

wq_err
wq_workers_stop(wq_workers *pool)
{
    return wq_workers_stop_within(pool, WQ_FOREVER);
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
    pool->get_timeout_ns = WQ_HAS_VERB(q, interrupt) ? WQ_FOREVER : POLL_NS;
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
