/* SPDX-License-Identifier: MIT */
/* memory.c: how do many threads share one core?
 *
 * The shell of the in-memory backend. Every verb is: enter (take the lock), empty
 * the inbox, ask the core, leave (decide whom to wake, release, wake). An add
 * that finds the lock taken goes through the inbox instead and does not wait.
 *
 * Who is woken is decided in one place, leave(), from the state alone: as many
 * sleeping getters as there are READY keys that nobody was woken for yet; all
 * drainers when no work is left. Whoever changes the state leaves through it, so
 * no change can forget to wake; if nobody sleeps it costs one comparison.
 *
 * Sleeping costs no processor time, and a wake-up is a system call only if
 * somebody sleeps. Before sleeping, one thread at a time spins for a moment: a
 * key that comes within it is taken without any system call on either side.
 */
#include "memory/memory.h"

#include <string.h>

#include "core/mem.h"
#include "port/random.h"
#include "port/relax.h"
#include "port/time.h"

static struct wq__memory *
memory(wq_queue *q)
{
    return (struct wq__memory *)(void *)q; /* `base` is the first member */
}

/* ---- entering and leaving --------------------------------------------------- */

static void
enter(struct wq__memory *m)
{
    wq__lock_take(&m->lock);
}

/* How many getters would find something. Keys in an inbox that could not be
 * emptied are worth one: it will tell its caller that memory is lacking. */
static size_t
work(struct wq__memory *m)
{
    return wq__core_len(&m->core) + wq__inbox_holds(&m->inbox);
}

/* Getters to wake: for work that no getter is on its way for. */
static struct wq__sleeper *
take_getters(struct wq__memory *m, struct wq__sleeper *wake)
{
    while (m->getters.len && work(m) > m->woken) {
        wake = wq__sleepers_take(&m->getters, WQ__WAKE_WORK, wake);
        m->woken++;
    }
    return wake;
}

static bool
all_work_is_done(struct wq__memory *m)
{
    return wq__core_idle(&m->core) && !wq__inbox_holds(&m->inbox);
}

/* Producers that use the inbox look at `sleeping`: it is raised before the
 * inbox is looked at for the last time (inbox.h, I4). */
static void
publish_sleeping(struct wq__memory *m)
{
    atomic_store(&m->sleeping, (uint32_t)m->getters.len);
}

/* Release the lock and wake `wake`, and whoever has something to do now. */
static void
leave_waking(struct wq__memory *m, struct wq__sleeper *wake)
{
    wq__lock_assert_taken(&m->lock);
    if (m->blocked) {
        wake = take_getters(m, wake);
        if (m->drainers.len && all_work_is_done(m))
            wake = wq__sleepers_take_all(&m->drainers, WQ__WAKE_LOOK, wake);
        publish_sleeping(m);
    }
    const bool work = wq__core_len(&m->core) != 0;
    if (atomic_load_explicit(&m->work_hint, memory_order_relaxed) != work)
        atomic_store_explicit(&m->work_hint, work, memory_order_relaxed);
    wq__lock_release(&m->lock);
    wq__wake(wake);
}

static void
leave(struct wq__memory *m)
{
    leave_waking(m, NULL);
}

/* Take in what producers handed over. An error leaves keys in the inbox. */
static wq_err
empty_inbox(struct wq__memory *m)
{
    return wq__inbox_empty(&m->inbox, &m->core);
}

/* ---- add -------------------------------------------------------------------- */

/* The key was handed over. Getters that sleep must learn of it; if none does,
 * whoever takes the lock next finds it (inbox.h, I4). */
static void
rouse(struct wq__memory *m)
{
    if (atomic_load(&m->sleeping) == 0)
        return;
    enter(m);
    (void)empty_inbox(m); /* for lack of memory a getter is woken, too */
    leave(m);
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
        enter(m);
        wq__inbox_open(&m->inbox); /* the lock is fought for: worth a ring */
    }
    wq_err err = empty_inbox(m);
    if (!err)
        err = wq__core_add(&m->core, key, hash, &what);
    leave(m);
    return err;
}

/* ---- sleeping --------------------------------------------------------------- */

/* Look for work for about as long as a sleep would cost. */
static void
spin(struct wq__memory *m)
{
    enum { LOOKS = 200 };

    if (atomic_exchange_explicit(&m->spinning, true, memory_order_relaxed))
        return;
    leave(m);
    const uint64_t tail =
        atomic_load_explicit(&m->inbox.tail, memory_order_relaxed);
    for (int i = 0; i < LOOKS; i++) {
        if (atomic_load_explicit(&m->work_hint, memory_order_relaxed) ||
            atomic_load_explicit(&m->inbox.tail, memory_order_relaxed) != tail)
            break;
        wq__pause();
    }
    atomic_store_explicit(&m->spinning, false, memory_order_relaxed);
    enter(m);
}

/* Sleep on `list`, where `self` is, until woken or `deadline_ns`, and come off
 * it. The lock is free meanwhile. */
static enum wq__wake
sleep_on(struct wq__memory *m, struct wq__sleepers *list,
         struct wq__sleeper *self, int64_t deadline_ns)
{
    leave(m);
    const bool woken = wq__sleeper_sleep(self, deadline_ns);
    enter(m);
    if (!woken && wq__sleeper_is_being_woken(self)) {
        leave(m);
        (void)wq__sleeper_sleep(self, WQ_FOREVER); /* any moment now */
        enter(m);
    }
    return wq__sleeper_leave(list, self);
}

/* A verb that may sleep begins and ends with these: wq_destroy() waits for all
 * of them. The queue may be gone when the second returns. */
static void
begin_blocking(struct wq__memory *m)
{
    m->blocked++;
}

static void
leave_for_good(struct wq__memory *m)
{
    struct wq__sleeper *wake = NULL;

    if (--m->blocked == 0 && m->destroyer.len)
        wake = wq__sleepers_take(&m->destroyer, WQ__WAKE_LOOK, NULL);
    leave_waking(m, wake);
}

static int64_t
deadline_of(int64_t timeout_ns)
{
    return timeout_ns == WQ_FOREVER
               ? WQ_FOREVER
               : wq__time_after(wq__time_now(), timeout_ns);
}

static bool
is_past(int64_t deadline_ns)
{
    return deadline_ns != WQ_FOREVER && wq__time_now() >= deadline_ns;
}

/* ---- get -------------------------------------------------------------------- */

/* A key, if there is one. WQ_ENOTFOUND: there may be one later. */
static wq_err
try_get(struct wq__memory *m, wq_item **out)
{
    if (m->destroying)
        return WQ_ESHUTDOWN;
    const wq_err lack = empty_inbox(m);
    const wq_err err = wq__core_get(&m->core, out);
    if (err != WQ_ENOTFOUND)
        return err;
    if (lack)
        return lack; /* keys are in the inbox, and no memory to take them in */
    return m->core.shutting_down ? WQ_ESHUTDOWN : WQ_ENOTFOUND;
}

static enum wq__wake
sleep_unless_inbox_holds(struct wq__memory *m, int64_t deadline_ns)
{
    struct wq__sleeper self;

    wq__sleeper_enter(&m->getters, &self);
    publish_sleeping(m);
    const enum wq__wake why =
        wq__inbox_holds(&m->inbox)
            ? wq__sleeper_leave(&m->getters, &self)
            : sleep_on(m, &m->getters, &self, deadline_ns);
    publish_sleeping(m);
    return why;
}

static wq_err
sleep_for_work(struct wq__memory *m, int64_t deadline_ns)
{
    if (m->interrupted) {
        m->interrupted = false;
        return WQ_EINTERRUPTED;
    }
    const enum wq__wake why = sleep_unless_inbox_holds(m, deadline_ns);
    if (why == WQ__WAKE_WORK)
        m->woken--;
    return why == WQ__WAKE_INTERRUPT ? WQ_EINTERRUPTED : WQ_OK;
}

static wq_err
wait_for_work(struct wq__memory *m, int64_t timeout_ns, wq_item **out)
{
    const int64_t deadline_ns = deadline_of(timeout_ns);
    wq_err        err;

    spin(m);
    while ((err = try_get(m, out)) == WQ_ENOTFOUND) {
        err = is_past(deadline_ns) ? WQ_ETIMEDOUT
                                   : sleep_for_work(m, deadline_ns);
        if (err)
            break;
    }
    return err;
}

static wq_err
memory_get(wq_queue *q, int64_t timeout_ns, wq_item **out)
{
    struct wq__memory *m = memory(q);

    enter(m);
    wq_err err = try_get(m, out);
    if (err != WQ_ENOTFOUND || timeout_ns == 0) {
        leave(m);
        return err == WQ_ENOTFOUND ? WQ_ETIMEDOUT : err;
    }
    begin_blocking(m);
    err = wait_for_work(m, timeout_ns, out);
    leave_for_good(m);
    return err;
}

/* ---- done ------------------------------------------------------------------- */

static wq_err
memory_done(wq_queue *q, wq_item *item)
{
    struct wq__memory *m = memory(q);

    enter(m);
    const wq_err err = wq__core_done(&m->core, item);
    leave(m);
    return err;
}

static wq_err
memory_done_key(wq_queue *q, wq_key key)
{
    struct wq__memory *m = memory(q);
    const uint32_t     hash = wq__core_hash(&m->core, key);

    enter(m);
    const wq_err err = wq__core_done_key(&m->core, key, hash);
    leave(m);
    return err;
}

static wq_err
memory_len(wq_queue *q, size_t *out)
{
    struct wq__memory *m = memory(q);

    enter(m);
    (void)empty_inbox(m); /* what there is no memory for counts one by one */
    *out = wq__core_len(&m->core) + wq__inbox_len(&m->inbox);
    leave(m);
    return WQ_OK;
}

/* ---- shutdown --------------------------------------------------------------- */

/* What was accepted before this is taken in, or stays in the closed inbox for
 * the gets to come. Returns the getters to wake: they may have to go home. */
static struct wq__sleeper *
stop_adds(struct wq__memory *m)
{
    wq__inbox_close(&m->inbox);
    (void)empty_inbox(m);
    wq__core_shut_down(&m->core);
    struct wq__sleeper *wake = take_getters(m, NULL);
    return wq__sleepers_take_all(&m->getters, WQ__WAKE_LOOK, wake);
}

static void
memory_shutdown(wq_queue *q)
{
    struct wq__memory *m = memory(q);

    enter(m);
    m->shutdowns++;
    struct wq__sleeper *wake = stop_adds(m);
    wake = wq__sleepers_take_all(&m->drainers, WQ__WAKE_LOOK, wake);
    leave_waking(m, wake);
}

/* `shutdowns`: how many there were when the drain began. */
static wq_err
wait_for_drain(struct wq__memory *m, uint64_t shutdowns, int64_t timeout_ns)
{
    const int64_t deadline_ns = deadline_of(timeout_ns);

    while (!all_work_is_done(m)) {
        if (m->shutdowns != shutdowns)
            return WQ_EINTERRUPTED;
        if (timeout_ns == 0 || is_past(deadline_ns))
            return WQ_ETIMEDOUT;
        struct wq__sleeper self;
        wq__sleeper_enter(&m->drainers, &self);
        (void)sleep_on(m, &m->drainers, &self, deadline_ns);
    }
    return WQ_OK;
}

static wq_err
memory_drain(wq_queue *q, int64_t timeout_ns)
{
    struct wq__memory *m = memory(q);

    enter(m);
    begin_blocking(m);
    const uint64_t shutdowns = m->shutdowns;
    leave_waking(m, stop_adds(m));
    enter(m);
    const wq_err err = wait_for_drain(m, shutdowns, timeout_ns);
    leave_for_good(m);
    return err;
}

static bool
memory_shutting_down(const wq_queue *q)
{
    /* The lock is no part of what a const queue promises to leave alone. */
    struct wq__memory *m = memory((wq_queue *)q);

    enter(m);
    const bool shutting_down = m->core.shutting_down;
    leave(m);
    return shutting_down;
}

static void
memory_interrupt(wq_queue *q)
{
    struct wq__memory *m = memory(q);

    enter(m);
    if (m->getters.len == 0)
        m->interrupted = true;
    leave_waking(m,
                 wq__sleepers_take_all(&m->getters, WQ__WAKE_INTERRUPT, NULL));
}

/* ---- life ------------------------------------------------------------------- */

/* Send every blocked thread home, and wait until the last one has left. */
static void
evacuate(struct wq__memory *m)
{
    struct wq__sleeper self;

    m->destroying = true;
    m->shutdowns++;
    struct wq__sleeper *wake =
        wq__sleepers_take_all(&m->drainers, WQ__WAKE_LOOK, stop_adds(m));
    if (!m->blocked) {
        leave_waking(m, wake);
        return;
    }
    wq__sleeper_enter(&m->destroyer, &self);
    leave_waking(m, wake);
    (void)wq__sleeper_sleep(&self, WQ_FOREVER);
    (void)wq__sleeper_leave(&m->destroyer, &self);
}

static void
memory_destroy(wq_queue *q)
{
    struct wq__memory *m = memory(q);

    enter(m);
    evacuate(m);
    wq__core_fini(&m->core);
    wq__inbox_fini(&m->inbox);
    wq__lock_fini(&m->lock);
    const wq_allocator mem = m->mem;
    wq__mem_free(&mem, m->raw,
                 wq__mem_padded(sizeof *m, alignof(struct wq__memory)));
}

static const wq_backend memory_backend = {
    .size = sizeof(wq_backend),
    .name = "memory",
    .destroy = memory_destroy,
    .add = memory_add,
    .get = memory_get,
    .done = memory_done,
    .done_key = memory_done_key,
    .len = memory_len,
    .shutdown = memory_shutdown,
    .drain = memory_drain,
    .shutting_down = memory_shutting_down,
    .interrupt = memory_interrupt,
};

wq_err
wq__memory_create(const wq_config *config, struct wq__hash_key secret,
                  wq_queue **out)
{
    const wq_allocator mem =
        config->allocator ? *config->allocator : wq__mem_default;
    void *raw = wq__mem_alloc(&mem, wq__mem_padded(sizeof(struct wq__memory),
                                                   alignof(struct wq__memory)));
    if (!raw)
        return WQ_ENOMEM;

    struct wq__memory *m = wq__mem_align(raw, alignof(struct wq__memory));
    memset(m, 0, sizeof *m);
    m->raw = raw;
    m->mem = mem;
    wq__lock_init(&m->lock);
    atomic_init(&m->sleeping, 0);
    atomic_init(&m->work_hint, false);
    atomic_init(&m->spinning, false);
    wq__core_init(&m->core, secret, config->order, &mem);
    wq__inbox_init(&m->inbox, &m->mem);
    m->base.backend = &memory_backend;
    *out = &m->base;
    return WQ_OK;
}
