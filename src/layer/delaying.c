/* SPDX-License-Identifier: MIT */
/* delaying.c: how does a queue without delays get them?
 *
 * wq_delaying_wrap(): WAITING keys stay in the layer (delaying.h); a key that is
 * due is added to the inner queue. This file has the verbs that the layer only
 * passes on, after it has added what is due, and creates and destroys a layer.
 *
 * Every verb that uses the layer after a call of the inner queue counts as a
 * call in progress, from its first step to its last: wq_destroy() waits for all
 * of them. A verb that does not, and that only the destroy of the inner queue
 * ends, is not counted while it is in the inner queue.
 */
#include <string.h>

#include "core/mem.h"
#include "error/error.h"
#include "layer/delaying.h"
#include "layer/layer.h"
#include "limit/secret.h"
#include "port/relax.h"

/* ---- done --------------------------------------------------------------- */

static wq_err
delaying_done(wq_queue *q, wq_item *item)
{
    struct wq__delaying *d = wq__delaying_begin(q);
    const bool           left = wq__delaying_pass_on(d);
    const wq_err err = d->layer.inner->backend->done(d->layer.inner, item);

    wq__delaying_pass_on_rest(d, left, err);
    return wq__delaying_end(d, err);
}

static wq_err
delaying_done_key(wq_queue *q, wq_key key)
{
    struct wq__delaying *d = wq__delaying_begin(q);
    const bool           left = wq__delaying_pass_on(d);
    const wq_err         err =
        WQ__CALL(d->layer.inner, done_key, (d->layer.inner, key));

    wq__delaying_pass_on_rest(d, left, err);
    return wq__delaying_end(d, err);
}

static wq_err
delaying_done_many(wq_queue *q, wq_item **items, size_t n)
{
    struct wq__delaying *d = wq__delaying_begin(q);
    const bool           left = wq__delaying_pass_on(d);
    const wq_err         err = wq_done_many(d->layer.inner, items, n);

    wq__delaying_pass_on_rest(d, left, err);
    return wq__delaying_end(d, err);
}

/* ---- flush, idle, pause -------------------------------------------------- */

/* Pass on what is due. Returns the inner queue, which the caller may block in
 * if it does not use the layer afterwards. */
static wq_queue *
inner_up_to_date(wq_queue *q)
{
    struct wq__delaying *d = wq__delaying_begin(q);
    wq_queue            *inner = d->layer.inner;

    (void)wq__delaying_pass_on(d);
    (void)wq__delaying_end(d, WQ_OK);
    return inner;
}

static wq_err
delaying_flush(wq_queue *q, int64_t timeout_ns)
{
    return wq_flush(inner_up_to_date(q), timeout_ns);
}

static wq_err
delaying_flush_key(wq_queue *q, wq_key key, int64_t timeout_ns)
{
    return wq_flush_key(inner_up_to_date(q), key, timeout_ns);
}

static wq_err
delaying_wait_idle(wq_queue *q, int64_t timeout_ns)
{
    return wq_wait_idle(inner_up_to_date(q), timeout_ns);
}

/* Pass a pause or resume on, and note which. If two calls overlap, the layer
 * cannot know which one came last in the inner queue. */
static wq_err
change_pause(wq_queue *q, bool paused, wq_err (*verb)(wq_queue *q))
{
    struct wq__delaying *d = wq__delaying_begin(q);

    (void)wq__delaying_pass_on(d);
    wq__delaying_enter(d);
    d->pauses_overlap |= d->pausing++ > 0;
    wq__delaying_leave(d);
    const wq_err err = verb(d->layer.inner);
    wq__delaying_enter(d);
    if (!err)
        d->paused = paused && !d->pauses_overlap;
    d->pauses_overlap &= --d->pausing > 0;
    wq__delaying_leave(d);
    return wq__delaying_end(d, err);
}

static wq_err
delaying_pause(wq_queue *q)
{
    return change_pause(q, true, wq_pause);
}

static wq_err
delaying_resume(wq_queue *q)
{
    return change_pause(q, false, wq_resume);
}

/* ---- shutdown ----------------------------------------------------------- */

static void
stop_waiting(struct wq__delaying *d)
{
    /* What is due is passed on, unless it is refused or another thread is
     * passing it on. */
    (void)wq__delaying_pass_on(d);
    wq__delaying_enter(d);
    wq__core_shut_down(&d->core);
    wq__core_drop_waiting(&d->core);
    wq__delaying_leave(d);
}

static void
delaying_shutdown(wq_queue *q)
{
    struct wq__delaying *d = wq__delaying_begin(q);

    stop_waiting(d);
    d->layer.inner->backend->shutdown(d->layer.inner);
    (void)wq__delaying_end(d, WQ_OK);
}

static wq_err
delaying_drain(wq_queue *q, int64_t timeout_ns)
{
    if (!WQ_HAS_VERB(wq__layer_inner(q), drain))
        return WQ_ENOTSUP;

    struct wq__delaying *d = wq__delaying_begin(q);

    stop_waiting(d);
    return wq__delaying_end(
        d, d->layer.inner->backend->drain(d->layer.inner, timeout_ns));
}

/* ---- life --------------------------------------------------------------- */

/* Make every blocked call return, and wait until the last one has left, since
 * calls use the layer after they return from the inner queue. A shutdown does
 * not end a get if the inner queue keeps WAITING keys (WQ_WAITING_KEEP). An
 * interrupt misses a get that is about to sleep, so it is repeated. */
static void
evacuate(struct wq__delaying *d)
{
    wq__delaying_enter(d);
    d->destroying = true;
    wq__delaying_leave(d);
    d->layer.inner->backend->shutdown(d->layer.inner);
    for (unsigned round = 0; wq__calls_in_progress(&d->calls); round++) {
        wq__delaying_interrupt_inner(d);
        wq__relax(round);
        /* ends a drain that began now */
        d->layer.inner->backend->shutdown(d->layer.inner);
    }
}

static void
delaying_destroy(wq_queue *q)
{
    struct wq__delaying *d = wq__delaying_of(q);

    evacuate(d);
    d->layer.inner->backend->destroy(d->layer.inner);
    for (unsigned round = 0; wq__calls_in_progress(&d->waits); round++)
        wq__relax(round);
    wq__delaying_close_fd(d);
    wq__core_fini(&d->core);
    wq__lock_fini(&d->lock);
    const wq_allocator mem = d->mem;
    wq__mem_free(&mem, d, sizeof *d);
}

static const wq_backend delaying_backend = {
    .size = sizeof delaying_backend,
    .name = "delaying",
    .destroy = delaying_destroy,
    .add = wq__delaying_add,
    .get = wq__delaying_get,
    .done = delaying_done,
    .len = wq__delaying_len,
    .shutdown = delaying_shutdown,
    .shutting_down = wq__forward_shutting_down,
    .done_key = delaying_done_key,
    .drain = delaying_drain,
    .interrupt = wq__delaying_interrupt,
    .add_after = wq__delaying_add_after,
    .count_drops = wq__forward_count_drops,
    .add_with = wq__delaying_add_with,
    .remove = wq__delaying_remove,
    .cancel_after = wq__delaying_cancel_after,
    .get_many = wq__delaying_get_many,
    .done_many = delaying_done_many,
    .next = wq__delaying_next,
    .fd = wq__delaying_fd,
    .stats = wq__delaying_stats,
    .depths = wq__delaying_depths,
    .key_info = wq__delaying_key_info,
    .each = wq__delaying_each,
    .queue_name = wq__forward_queue_name,
    .remove_wait = wq__delaying_remove_wait,
    .flush = delaying_flush,
    .flush_key = delaying_flush_key,
    .wait_idle = delaying_wait_idle,
    .hold_left = wq__forward_hold_left,
    .renew = wq__forward_renew,
    .revive = wq__forward_revive,
    .check = wq__delaying_check,
    .pause = delaying_pause,
    .resume = delaying_resume,
};

bool
wq__is_delaying(const wq_queue *q)
{
    return q->backend == &delaying_backend;
}

static wq_err
wrap(wq_queue *inner, const wq_config *config, wq_queue **out)
{
    struct wq__hash_key secret;

    if (!wq__secret_new(&secret))
        return wq_fail(WQ_EIO,
                       "wq_delaying_wrap: the system gave no random numbers");
    const wq_allocator mem =
        config->allocator ? *config->allocator : wq__mem_default;
    struct wq__delaying *d = wq__mem_alloc(&mem, sizeof *d);
    if (!d)
        return wq_fail(WQ_ENOMEM, "wq_delaying_wrap: out of memory");

    memset(d, 0, sizeof *d);
    d->layer.base.backend = &delaying_backend;
    d->layer.inner = inner;
    d->mem = mem;
    d->clock = config->clock ? config->clock : wq_clock_monotonic();
    wq__calls_init(&d->calls);
    wq__calls_init(&d->waits);
    wq__lock_init(&d->lock);
    wq__core_init(&d->core, secret, NULL, &mem);
    *out = &d->layer.base;
    return WQ_OK;
}

wq_err
wq_delaying_wrap(wq_queue *inner, const wq_config *config, wq_queue **out)
{
    struct wq__config checked;

    const wq_err err =
        wq__layer_check("wq_delaying_wrap", inner, config, out, &checked);
    if (err)
        return err;
    return wrap(inner, &checked.user, out);
}
