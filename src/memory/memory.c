/* SPDX-License-Identifier: MIT */
/* memory.c: what do the verbs do, when many threads share one core?
 *
 * Enter, catch up, ask the core, leave (gate.h). An add that finds the lock
 * taken goes through the inbox instead and does not wait (inbox.h).
 */
#include "memory/memory.h"

#include <string.h>

#include "core/mem.h"
#include "core/span.h"
#include "memory/gate.h"

static struct wq__memory *
memory(wq_queue *q)
{
    return (struct wq__memory *)(void *)q; /* `base` is the first member */
}

static bool
memory_shutting_down(const wq_queue *q)
{
    return atomic_load_explicit(&memory((wq_queue *)q)->closed,
                                memory_order_acquire);
}

/* ---- add ---------------------------------------------------------------- */

/* The key was handed over. Getters that sleep must learn of it; if none does,
 * whoever takes the lock next finds it (inbox.h, I4). */
static void
rouse(struct wq__memory *m)
{
    if (atomic_load(&m->sleeping) == 0)
        return;
    wq__gate_enter(m);
    (void)wq__gate_catch_up(m); /* for lack of memory, a getter is woken too */
    wq__gate_leave(m);
}

static wq_err
memory_add(wq_queue *q, wq_key key)
{
    struct wq__memory *m = memory(q);
    const uint32_t     hash = wq__core_hash(&m->core, key);
    enum wq__added     what;

    if (!wq__lock_try(&m->lock)) {
        if (wq__inbox_put(&m->inbox, key, hash)) {
            rouse(m);
            return WQ_OK;
        }
        wq__gate_enter(m);
        /* The lock is fought for: worth a ring. Not with a wq_order: what that
         * refuses must be said to the caller. */
        if (!m->core.ready.has_plug_in)
            wq__inbox_open(&m->inbox);
    }
    wq_err err = wq__gate_catch_up(m);
    if (!err)
        err = wq__core_add(&m->core, key, hash, &what);
    wq__gate_leave(m);
    return err;
}

/* `key` shall be READY in `delay_ns`, which is above 0. `*merged`: it waits
 * by an earlier backoff, which stays. */
static wq_err
schedule(struct wq__memory *m, wq_key key, int64_t delay_ns, bool backoff,
         bool *merged)
{
    const uint32_t hash = wq__core_hash(&m->core, key);
    const int64_t  now = m->clock->now(m->clock);
    enum wq__added what;

    wq__gate_enter(m);
    wq_err err = wq__gate_catch_up_to(m, now);
    if (!err)
        err = wq__core_add_after(&m->core, key, hash,
                                 wq__span_add(now, delay_ns), backoff, &what);
    *merged = !err && what == WQ__ADDED_LATER &&
              wq__core_facets(&m->core, key, hash) & WQ__BACKOFF;
    wq__gate_leave(m);
    return err;
}

static wq_err
memory_add_after(wq_queue *q, wq_key key, int64_t delay_ns)
{
    bool merged;

    if (delay_ns <= 0)
        return memory_add(q, key);
    return schedule(memory(q), key, delay_ns, false, &merged);
}

/* ---- rate limits -------------------------------------------------------- */

/* With the lock: is there nothing to ask the limiter, by the queue's policy?
 * Then `*err` is what the add came to. */
static bool
policy_settles(struct wq__memory *m, wq_key key, wq_err *err)
{
    const uint32_t hash = wq__core_hash(&m->core, key);
    enum wq__added what;

    *err = wq__gate_catch_up(m);
    if (*err)
        return true;
    const unsigned facets = wq__core_facets(&m->core, key, hash);
    if (m->retry_policy & WQ_RETRY_FAILURES_ONLY && !(facets & WQ__HELD)) {
        *err = wq__core_add_respecting(&m->core, key, hash, &what);
        return true;
    }
    return m->retry_policy & WQ_RETRY_ONCE && facets & WQ__BACKOFF;
}

static bool
needs_no_limiter(struct wq__memory *m, wq_key key, wq_err *err)
{
    wq__gate_enter(m);
    const bool settled = policy_settles(m, key, err);
    wq__gate_leave(m);
    return settled;
}

static wq_err
memory_add_rate_limited(wq_queue *q, wq_key key)
{
    struct wq__memory *m = memory(q);
    bool               merged = false;
    int64_t            delay_ns;
    wq_err             err;

    if (memory_shutting_down(q))
        return WQ_ESHUTDOWN;
    if (m->retry_policy && needs_no_limiter(m, key, &err))
        return err;
    err = wq__retry_delay(&m->retry, key, &delay_ns);
    if (err)
        return err;
    err = delay_ns > 0 ? schedule(m, key, delay_ns, true, &merged)
                       : memory_add(q, key);
    /* Another thread may have been here between our look and our add. */
    if (err || (merged && m->retry_policy & WQ_RETRY_ONCE))
        wq__retry_undo(&m->retry, key);
    return err;
}

static wq_err
memory_forget(wq_queue *q, wq_key key)
{
    wq_limiter_forget(memory(q)->retry.limiter, key);
    return WQ_OK;
}

static wq_err
memory_num_requeues(wq_queue *q, wq_key key, unsigned *out)
{
    *out = wq_limiter_num_requeues(memory(q)->retry.limiter, key);
    return WQ_OK;
}

/* ---- get and done ------------------------------------------------------- */

/* A key, if there is one. WQ_ENOTFOUND: there may be one later. */
static wq_err
try_get(struct wq__memory *m, wq_item **out)
{
    if (m->destroying)
        return WQ_ESHUTDOWN;
    const wq_err lack = wq__gate_catch_up(m);
    const wq_err err = wq__core_get(&m->core, out);
    if (err != WQ_ENOTFOUND)
        return err;
    if (lack)
        return lack; /* there are keys, and no memory to take them in */
    return m->core.shutting_down && wq__core_empty(&m->core) ? WQ_ESHUTDOWN
                                                             : WQ_ENOTFOUND;
}

static int64_t
deadline_of(struct wq__memory *m, int64_t timeout_ns)
{
    return timeout_ns == WQ_FOREVER
               ? WQ_FOREVER
               : wq__span_add(m->clock->now(m->clock), timeout_ns);
}

static bool
is_past(struct wq__memory *m, int64_t deadline_ns)
{
    return deadline_ns != WQ_FOREVER && m->clock->now(m->clock) >= deadline_ns;
}

static wq_err
wait_for_work(struct wq__memory *m, int64_t timeout_ns, wq_item **out)
{
    const int64_t deadline_ns = deadline_of(m, timeout_ns);
    wq_err        err;

    wq__gate_spin(m);
    while ((err = try_get(m, out)) == WQ_ENOTFOUND) {
        err = is_past(m, deadline_ns) ? WQ_ETIMEDOUT
                                      : wq__gate_await_work(m, deadline_ns);
        if (err)
            break;
    }
    return err;
}

static wq_err
memory_get(wq_queue *q, int64_t timeout_ns, wq_item **out)
{
    struct wq__memory *m = memory(q);

    wq__gate_enter(m);
    wq_err err = try_get(m, out);
    if (err != WQ_ENOTFOUND || timeout_ns == 0) {
        wq__gate_leave(m);
        return err == WQ_ENOTFOUND ? WQ_ETIMEDOUT : err;
    }
    wq__gate_stay(m);
    err = wait_for_work(m, timeout_ns, out);
    wq__gate_leave_for_good(m);
    return err;
}

/* What is due, or was handed over, stands in line before a key that is READY
 * again by a done. What there is no memory for comes later; the done itself
 * does not depend on it. */
static void
let_others_go_first(struct wq__memory *m)
{
    (void)wq__gate_catch_up(m);
}

static wq_err
memory_done(wq_queue *q, wq_item *item)
{
    struct wq__memory *m = memory(q);

    wq__gate_enter(m);
    let_others_go_first(m);
    const wq_err err = wq__core_done(&m->core, item);
    wq__gate_leave(m);
    return err;
}

static wq_err
memory_done_key(wq_queue *q, wq_key key)
{
    struct wq__memory *m = memory(q);
    const uint32_t     hash = wq__core_hash(&m->core, key);

    wq__gate_enter(m);
    let_others_go_first(m);
    const wq_err err = wq__core_done_key(&m->core, key, hash);
    wq__gate_leave(m);
    return err;
}

static wq_err
memory_len(wq_queue *q, size_t *out)
{
    struct wq__memory *m = memory(q);

    wq__gate_enter(m);
    (void)wq__gate_catch_up(m); /* what there is no memory for counts singly */
    *out = wq__core_len(&m->core) + wq__inbox_len(&m->inbox);
    wq__gate_leave(m);
    return WQ_OK;
}

/* ---- shutdown ----------------------------------------------------------- */

/* What was accepted before this is taken in, or stays in the closed inbox for
 * the gets to come. Returns the getters: they may have to go home. */
static struct wq__sleeper *
stop_adds(struct wq__memory *m)
{
    atomic_store_explicit(&m->closed, true, memory_order_release);
    wq__inbox_close(&m->inbox);
    (void)wq__gate_catch_up(m);
    wq__core_shut_down(&m->core);
    if (!m->keep_waiting)
        wq__core_drop_waiting(&m->core);
    return wq__gate_take_getters(m, WQ__WAKE_LOOK);
}

/* The same, and no drain goes on waiting. */
static struct wq__sleeper *
stop_all(struct wq__memory *m)
{
    m->shutdowns++;
    return wq__sleepers_take_all(&m->drainers, WQ__WAKE_LOOK, stop_adds(m));
}

static void
memory_shutdown(wq_queue *q)
{
    struct wq__memory *m = memory(q);

    wq__gate_enter(m);
    wq__gate_leave_waking(m, stop_all(m));
}

/* `shutdowns`: how many there were when the drain began. */
static wq_err
wait_for_drain(struct wq__memory *m, uint64_t shutdowns, int64_t timeout_ns)
{
    const int64_t deadline_ns = deadline_of(m, timeout_ns);

    while (!wq__gate_is_drained(m)) {
        if (m->shutdowns != shutdowns)
            return WQ_EINTERRUPTED;
        if (timeout_ns == 0 || is_past(m, deadline_ns))
            return WQ_ETIMEDOUT;
        wq__gate_await_drain(m, deadline_ns);
    }
    return WQ_OK;
}

static wq_err
memory_drain(wq_queue *q, int64_t timeout_ns)
{
    struct wq__memory *m = memory(q);

    wq__gate_enter(m);
    wq__gate_stay(m);
    const uint64_t shutdowns = m->shutdowns;
    wq__gate_leave_waking(m, stop_adds(m));
    wq__gate_enter(m);
    const wq_err err = wait_for_drain(m, shutdowns, timeout_ns);
    wq__gate_leave_for_good(m);
    return err;
}

static void
memory_interrupt(wq_queue *q)
{
    struct wq__memory *m = memory(q);

    wq__gate_enter(m);
    if (m->getters.len == 0)
        m->interrupted = true;
    wq__gate_leave_waking(m, wq__gate_take_getters(m, WQ__WAKE_INTERRUPT));
}

/* ---- life --------------------------------------------------------------- */

#define MEMORY_BYTES                                                           \
    wq__mem_padded(sizeof(struct wq__memory), alignof(struct wq__memory))

static void
memory_destroy(wq_queue *q)
{
    struct wq__memory *m = memory(q);

    wq__gate_enter(m);
    m->destroying = true;
    wq__gate_evacuate(m, stop_all(m));

    wq__core_fini(&m->core);
    wq__inbox_fini(&m->inbox);
    wq__retry_fini(&m->retry); /* gives memory back under the lock */
    wq__lock_fini(&m->lock);
    const wq_allocator mem = m->mem;
    wq__mem_free(&mem, m->raw, MEMORY_BYTES);
}

/* The allocator is promised to be called under the lock, never by two threads
 * at once. A default limiter, which has a lock of its own, gets one that sees
 * to that; the queue does not call its limiter under the lock. */
static void *
allocate_locked(void *ctx, size_t n)
{
    struct wq__memory *m = ctx;

    wq__lock_take(&m->lock);
    void *p = wq__mem_alloc(&m->mem, n);
    wq__lock_release(&m->lock);
    return p;
}

static void
free_locked(void *ctx, void *p, size_t n)
{
    struct wq__memory *m = ctx;

    wq__lock_take(&m->lock);
    wq__mem_free(&m->mem, p, n);
    wq__lock_release(&m->lock);
}

static const wq_backend memory_backend = {
    .size = sizeof(wq_backend),
    .name = "memory",
    .destroy = memory_destroy,
    .add = memory_add,
    .get = memory_get,
    .done = memory_done,
    .len = memory_len,
    .shutdown = memory_shutdown,
    .shutting_down = memory_shutting_down,
    .done_key = memory_done_key,
    .drain = memory_drain,
    .interrupt = memory_interrupt,
    .add_after = memory_add_after,
    .add_rate_limited = memory_add_rate_limited,
    .forget = memory_forget,
    .num_requeues = memory_num_requeues,
};

wq_err
wq__memory_create(const wq_config *config, struct wq__hash_key secret,
                  wq_queue **out)
{
    const wq_allocator mem =
        config->allocator ? *config->allocator : wq__mem_default;
    void *raw = wq__mem_alloc(&mem, MEMORY_BYTES);
    if (!raw)
        return WQ_ENOMEM;

    struct wq__memory *m = wq__mem_align(raw, alignof(struct wq__memory));
    memset(m, 0, sizeof *m);
    m->base.backend = &memory_backend;
    m->raw = raw;
    m->mem = mem;
    m->clock = config->clock ? config->clock : wq_clock_monotonic();
    m->keep_waiting = config->waiting == WQ_WAITING_KEEP;
    m->retry_policy = config->retry;
    m->shared_mem = (wq_allocator){
        .size = sizeof m->shared_mem,
        .ctx = m,
        .alloc = allocate_locked,
        .free = free_locked,
    };
    wq__lock_init(&m->lock);
    const wq_err err =
        wq__retry_init(&m->retry, config, m->clock, &m->shared_mem);
    if (err) {
        wq__lock_fini(&m->lock);
        wq__mem_free(&mem, raw, MEMORY_BYTES);
        return err;
    }
    atomic_init(&m->sleeping, 0);
    atomic_init(&m->work_hint, false);
    atomic_init(&m->closed, false);
    atomic_init(&m->spinning, false);
    wq__core_init(&m->core, secret, config->order, &mem);
    m->core.respect = config->retry & WQ_RETRY_RESPECT;
    wq__inbox_init(&m->inbox, &m->mem);
    *out = &m->base;
    return WQ_OK;
}
