/* SPDX-License-Identifier: MIT */
/* delaying.c: how does a queue that knows no time gain delays?
 *
 * wq_delaying_wrap(): keys that wait stay here, in a core used for its WAITING
 * state; a key that is due is added to the inner queue. No thread does that:
 * each verb hands over what is due first, and one of the gets that sleep in
 * the inner queue, the keeper, sleeps no longer than until the next deadline.
 * When an earlier deadline comes up, or the keeper leaves, the gets are
 * interrupted, and go back in; if the inner queue cannot be interrupted they
 * look every SLICE.
 *
 * A key that is being handed over is HELD in our core meanwhile, so two threads
 * do not hand over the same key. The hand-over does not wait for room. A key
 * that the inner queue refuses stays due here: every verb offers it again, a
 * done or a get does so once more when it may have made room, and the keeper
 * does so every SLICE. No lock is held while the inner queue, somebody's code,
 * is called (L7).
 *
 * Every verb that enters the inner queue counts as a call in progress, from its
 * first step to its last: wq_destroy() waits for all of them.
 */
#include <assert.h>
#include <string.h>

#include <wq/backend.h>

#include "clock/clock.h"
#include "config/config.h"
#include "core/core.h"
#include "core/mem.h"
#include "core/span.h"
#include "error/error.h"
#include "layer/calls.h"
#include "port/lock.h"
#include "port/random.h"
#include "port/relax.h"

/* How long a get sleeps at most where nobody can wake it: in an inner queue that
 * cannot be interrupted, and beside a key that the inner queue refused. 10 ms:
 * soon, but no spinning. */
#define SLICE_NS INT64_C(10000000)

struct delaying {
    wq_queue         base;  /* first: a queue is the beginning of its backend */
    wq_queue        *inner; /* owned */
    wq_allocator     mem;   /* a copy of the config's */
    wq_clock        *clock; /* not owned; the inner queue's time-outs too */
    struct wq__calls calls; /* those that may be in `inner` */
    struct wq__lock  lock;  /* guards all below; the clock and the allocator
                              are called under it, the inner queue is not */
    struct wq__core  core;  /* keys that wait, or are due and not handed over */
    wq_item         *refused; /* on loan from `core`: the key to offer first,
                                because the inner queue was full; or NULL */
    size_t           blocked; /* gets that may be asleep in `inner` */
    const void      *keeper;  /* the one of them that keeps time; NULL: none */
    int64_t          keeper_until_ns;
    uint64_t         interrupts;  /* calls of wq_interrupt() */
    bool             interrupted; /* one of them is remembered */
    bool             destroying;  /* gets that come back return WQ_ESHUTDOWN */
};

static struct delaying *
delaying(wq_queue *q)
{
    return (struct delaying *)(void *)q;
}

/* A verb that enters the inner queue begins with the first of these and ends
 * with the second, after which the layer may be gone. */
static struct delaying *
begin_call(wq_queue *q)
{
    struct delaying *d = delaying(q);

    wq__calls_begin(&d->calls);
    return d;
}

static wq_err
end_call(struct delaying *d, wq_err err)
{
    wq__calls_end(&d->calls);
    return err;
}

static void
enter(struct delaying *d)
{
    wq__lock_take(&d->lock);
}

static void
leave(struct delaying *d)
{
    wq__lock_release(&d->lock);
}

/* ---- handing over ------------------------------------------------------- */

/* The next key to offer, or NULL. With the lock. */
static wq_item *
take_due(struct delaying *d)
{
    wq_item *item = d->refused;

    if (d->core.waiting.len)
        wq__core_promote(&d->core, d->clock->now(d->clock));
    d->refused = NULL;
    if (item)
        return item;
    /* Without memory it stays READY here, for the next one who looks. */
    return wq__core_get(&d->core, 0, &item) ? NULL : item;
}

/* Add `key` to the inner queue without waiting for room. A backend that cannot
 * be asked for that must not block in add (backend.h). */
static wq_err
offer(struct delaying *d, wq_key key)
{
    const wq_backend    *inner = d->inner->backend;
    const wq_add_options nowait = {.size = sizeof nowait, .nowait = true};
    wq_err               err = WQ_ENOTSUP;

    if (inner->add_with)
        err = inner->add_with(d->inner, &nowait, &key, 1);
    return err == WQ_ENOTSUP ? inner->add(d->inner, key) : err;
}

/* After a shutdown the key is dropped. */
static bool
is_settled(wq_err err)
{
    return err == WQ_OK || err == WQ_ESHUTDOWN;
}

/* The loan of `item` ends. If it is still due it goes to the end of the line. */
static void
put_back(struct delaying *d, wq_item *item, bool still_due)
{
    wq_added what;

    if (still_due)
        (void)wq__core_admit(&d->core, item->key,
                             wq__core_hash(&d->core, item->key), 0, &what);
    const wq_err err = wq__core_done(&d->core, item, 0, NULL);
    assert(!err);
    (void)err;
}

/* The inner queue has no room: `item` is offered first the next time, so that
 * keys come in the order of their deadlines. If threads were refused at the
 * same time, that is the key that was taken first. */
static void
keep_first(struct delaying *d, wq_item *item)
{
    wq_item *other = d->refused;

    if (other && other->fence < item->fence) {
        other = item;
        item = d->refused;
    }
    d->refused = item;
    if (other)
        put_back(d, other, true);
}

/* The inner queue answered `err` to the offer of `item`. Another error than
 * those of a full queue may be about this key: then it must not hold up the
 * others. */
static void
settle(struct delaying *d, wq_item *item, wq_err err)
{
    if (err == WQ_EFULL || err == WQ_ENOMEM)
        keep_first(d, item);
    else
        put_back(d, item, !is_settled(err));
}

/* Offer the inner queue all that is due, up to the first key that it refuses.
 * True: a key that is due may still be here. */
static bool
hand_over(struct delaying *d)
{
    wq_err   err = WQ_OK;
    wq_item *item;

    enter(d);
    while (is_settled(err) && (item = take_due(d))) {
        leave(d);
        err = offer(d, item->key);
        enter(d);
        settle(d, item, err);
    }
    const bool left = !wq__core_idle(&d->core);
    leave(d);
    return left;
}

/* A verb that may have made room in the inner queue returned `err`; `left` is
 * what hand_over() returned before it. */
static void
hand_over_rest(struct delaying *d, bool left, wq_err err)
{
    if (left && !err)
        (void)hand_over(d);
}

/* ---- the keeper of time ------------------------------------------------- */

static void
interrupt_inner(struct delaying *d)
{
    if (d->inner->backend->interrupt)
        d->inner->backend->interrupt(d->inner);
}

/* When a get must look here again; WQ_FOREVER: never. While a key is due, or
 * another thread is offering it and may be refused, that is after a SLICE. With
 * the lock. */
static int64_t
next_look(struct delaying *d)
{
    const int64_t next = wq__core_next_deadline(&d->core);

    if (wq__core_idle(&d->core))
        return next;
    const int64_t soon = wq__span_add(d->clock->now(d->clock), SLICE_NS);
    return next < soon ? next : soon;
}

/* Is there a time until which no get sleeps? With the lock. */
static bool
is_unwatched(struct delaying *d)
{
    const int64_t next = next_look(d);

    return next != WQ_FOREVER && (!d->keeper || d->keeper_until_ns > next);
}

/* The get that `self` stands for is over, and began when there had been so many
 * `interrupts`. If it kept time, another must; an interrupt that came when it
 * had its key already is remembered for the next. */
static wq_err
leave_inner(struct delaying *d, const void *self, uint64_t interrupts,
            wq_err err)
{
    enter(d);
    if (d->keeper == self)
        d->keeper = NULL;
    d->blocked--;
    if (err != WQ_EINTERRUPTED && d->interrupts != interrupts && !d->blocked)
        d->interrupted = true;
    const bool hand_on = d->blocked && is_unwatched(d);
    leave(d);
    if (hand_on)
        interrupt_inner(d);
    return err;
}

/* ---- add ---------------------------------------------------------------- */

static wq_err
delaying_add(wq_queue *q, wq_key key)
{
    struct delaying *d = begin_call(q);

    (void)hand_over(d);
    return end_call(d, d->inner->backend->add(d->inner, key));
}

/* `key` waits until `at`. */
static wq_err
schedule(struct delaying *d, wq_key key, int64_t now, int64_t at)
{
    wq_added what;

    enter(d);
    const wq_err err = wq__core_add_after(
        &d->core, key, wq__core_hash(&d->core, key), now, at, false, &what);
    const bool interrupt = d->blocked && is_unwatched(d);
    leave(d);
    if (interrupt)
        interrupt_inner(d);
    return err;
}

/* A deadline that has passed must be over before a new one is set: of two
 * deadlines the core keeps the earlier. */
static wq_err
delaying_add_after(wq_queue *q, wq_key key, int64_t delay_ns)
{
    if (delay_ns <= 0)
        return delaying_add(q, key);

    struct delaying *d = begin_call(q);
    const int64_t    now = d->clock->now(d->clock);

    (void)hand_over(d);
    return end_call(d, schedule(d, key, now, wq__span_add(now, delay_ns)));
}

/* ---- get ---------------------------------------------------------------- */

/* The time until `until`, on our clock. */
static int64_t
time_left(struct delaying *d, int64_t until)
{
    if (until == WQ_FOREVER)
        return WQ_FOREVER;
    const int64_t left = wq__span_sub(until, d->clock->now(d->clock));
    return left > 0 ? left : 0;
}

/* How long the get that `self` stands for may sleep in the inner queue; it may
 * become the keeper. With the lock. */
static int64_t
time_to_sleep(struct delaying *d, const void *self, int64_t deadline_ns)
{
    const int64_t next = next_look(d);
    int64_t       until = deadline_ns;

    if (d->keeper == self)
        d->keeper = NULL;
    if (is_unwatched(d)) {
        d->keeper = self;
        d->keeper_until_ns = next;
        until = next < until ? next : until;
    }
    const int64_t left = time_left(d, until);
    const bool    look_often = !d->inner->backend->interrupt;
    return look_often && left > SLICE_NS ? SLICE_NS : left;
}

/* One stay in the inner queue, with what is due handed over before. */
static wq_err
get_once(struct delaying *d, const void *self, int64_t deadline_ns,
         wq_item **out)
{
    (void)hand_over(d);
    enter(d);
    const int64_t sleep_ns = time_to_sleep(d, self, deadline_ns);
    leave(d);
    const wq_err err = d->inner->backend->get(d->inner, sleep_ns, out);
    if (!err) /* it made room, and much may have happened meanwhile */
        (void)hand_over(d);
    return err;
}

/* May a get that began when there had been so many `interrupts` go back to
 * sleep? WQ_OK, or what it returns instead. */
static wq_err
may_sleep_on(struct delaying *d, uint64_t interrupts)
{
    enter(d);
    const wq_err err = d->destroying                 ? WQ_ESHUTDOWN
                       : d->interrupts != interrupts ? WQ_EINTERRUPTED
                                                     : WQ_OK;
    leave(d);
    return err;
}

/* While the queue is being destroyed no key is handed out any more. */
static wq_err
give_unless_destroying(struct delaying *d, wq_item *item)
{
    enter(d);
    const bool destroying = d->destroying;
    leave(d);
    if (!destroying)
        return WQ_OK;
    (void)d->inner->backend->done(d->inner, item);
    return WQ_ESHUTDOWN;
}

/* What there is now, without sleeping: WQ_ETIMEDOUT when there is nothing. */
static wq_err
try_get(struct delaying *d, wq_item **out)
{
    const bool   left = hand_over(d);
    const wq_err err = d->inner->backend->get(d->inner, 0, out);

    hand_over_rest(d, left, err);
    return err == WQ_EINTERRUPTED ? WQ_ETIMEDOUT : err;
}

/* An interrupt of the inner queue that was not asked for by our caller's
 * interrupt is our own: a deadline, or the keeper, has changed, or wq_destroy()
 * waits for us. */
static wq_err
wait_for_work(struct delaying *d, uint64_t interrupts, int64_t deadline_ns,
              wq_item **out)
{
    const char self = 0; /* its address stands for this get */

    for (;;) {
        wq_item *item = NULL;
        wq_err   err = get_once(d, &self, deadline_ns, &item);
        if (err == WQ_ETIMEDOUT || err == WQ_EINTERRUPTED) {
            err = may_sleep_on(d, interrupts);
            if (err)
                return leave_inner(d, &self, interrupts, err);
            if (time_left(d, deadline_ns) > 0)
                continue;
            err = try_get(d, &item);
        }
        if (!err)
            err = give_unless_destroying(d, item);
        if (!err)
            *out = item;
        return leave_inner(d, &self, interrupts, err);
    }
}

static wq_err
get(struct delaying *d, int64_t timeout_ns, wq_item **out)
{
    const wq_err err = try_get(d, out);

    if (timeout_ns == 0 || err != WQ_ETIMEDOUT)
        return err;

    enter(d);
    const bool     interrupted = d->interrupted;
    const uint64_t interrupts = d->interrupts;
    d->interrupted = false;
    d->blocked += !interrupted;
    leave(d);
    if (interrupted)
        return WQ_EINTERRUPTED;
    return wait_for_work(
        d, interrupts,
        timeout_ns == WQ_FOREVER
            ? WQ_FOREVER
            : wq__span_add(d->clock->now(d->clock), timeout_ns),
        out);
}

static wq_err
delaying_get(wq_queue *q, int64_t timeout_ns, wq_item **out)
{
    struct delaying *d = begin_call(q);

    return end_call(d, get(d, timeout_ns, out));
}

static void
delaying_interrupt(wq_queue *q)
{
    struct delaying *d = delaying(q);

    enter(d);
    d->interrupts++;
    if (!d->blocked)
        d->interrupted = true;
    const bool blocked = d->blocked;
    leave(d);
    if (blocked)
        interrupt_inner(d);
}

/* ---- passed on ---------------------------------------------------------- */

static wq_err
delaying_done(wq_queue *q, wq_item *item)
{
    struct delaying *d = begin_call(q);
    const bool       left = hand_over(d);
    const wq_err     err = d->inner->backend->done(d->inner, item);

    hand_over_rest(d, left, err);
    return end_call(d, err);
}

static wq_err
delaying_done_key(wq_queue *q, wq_key key)
{
    struct delaying *d = begin_call(q);
    const bool       left = hand_over(d);
    const wq_err     err = wq_done_key(d->inner, key);

    hand_over_rest(d, left, err);
    return end_call(d, err);
}

/* Does not touch the layer, and does not block. */
static wq_err
delaying_count_drops(wq_queue *q, uint64_t n)
{
    return wq_count_drops(delaying(q)->inner, n);
}

static wq_err
delaying_len(wq_queue *q, size_t *out)
{
    struct delaying *d = begin_call(q);

    (void)hand_over(d);
    return end_call(d, d->inner->backend->len(d->inner, out));
}

static void
stop_waiting(struct delaying *d)
{
    (void)hand_over(d); /* what is due comes through, unless it is refused or
                           another thread is just handing it over */
    enter(d);
    wq__core_shut_down(&d->core);
    wq__core_drop_waiting(&d->core);
    leave(d);
}

static void
delaying_shutdown(wq_queue *q)
{
    struct delaying *d = begin_call(q);

    stop_waiting(d);
    d->inner->backend->shutdown(d->inner);
    (void)end_call(d, WQ_OK);
}

static wq_err
delaying_drain(wq_queue *q, int64_t timeout_ns)
{
    if (!delaying(q)->inner->backend->drain)
        return WQ_ENOTSUP;

    struct delaying *d = begin_call(q);

    stop_waiting(d);
    return end_call(d, d->inner->backend->drain(d->inner, timeout_ns));
}

static bool
delaying_shutting_down(const wq_queue *q)
{
    const wq_queue *inner = delaying((wq_queue *)q)->inner;
    return inner->backend->shutting_down(inner);
}

/* ---- life --------------------------------------------------------------- */

/* Send every blocked call home, and wait until the last has left: it looks at
 * us when the inner queue has let it go. A shutdown is not enough for a get if
 * keys wait in the inner queue and survive it (WQ_WAITING_KEEP); an interrupt
 * misses a get that is just about to sleep, so it is repeated. */
static void
evacuate(struct delaying *d)
{
    enter(d);
    d->destroying = true;
    leave(d);
    d->inner->backend->shutdown(d->inner);
    for (unsigned round = 0; wq__calls_in_progress(&d->calls); round++) {
        interrupt_inner(d);
        wq__relax(round);
        d->inner->backend->shutdown(d->inner); /* ends a drain that began now */
    }
}

static void
delaying_destroy(wq_queue *q)
{
    struct delaying *d = delaying(q);

    evacuate(d);
    d->inner->backend->destroy(d->inner);
    wq__core_fini(&d->core);
    wq__lock_fini(&d->lock);
    const wq_allocator mem = d->mem;
    wq__mem_free(&mem, d, sizeof *d);
}

static const wq_backend delaying_backend = {
    .size = sizeof(wq_backend),
    .name = "delaying",
    .destroy = delaying_destroy,
    .add = delaying_add,
    .get = delaying_get,
    .done = delaying_done,
    .len = delaying_len,
    .shutdown = delaying_shutdown,
    .shutting_down = delaying_shutting_down,
    .done_key = delaying_done_key,
    .drain = delaying_drain,
    .interrupt = delaying_interrupt,
    .add_after = delaying_add_after,
    .count_drops = delaying_count_drops,
};

static wq_err
wrap(wq_queue *inner, const wq_config *config, wq_queue **out)
{
    uint64_t random[2];

    if (wq__random(random, sizeof random))
        return wq_fail(WQ_EIO,
                       "wq_delaying_wrap: the system gave no random numbers");
    const wq_allocator mem =
        config->allocator ? *config->allocator : wq__mem_default;
    struct delaying *d = wq__mem_alloc(&mem, sizeof *d);
    if (!d)
        return wq_fail(WQ_ENOMEM, "wq_delaying_wrap: out of memory");

    memset(d, 0, sizeof *d);
    d->base.backend = &delaying_backend;
    d->inner = inner;
    d->mem = mem;
    d->clock = config->clock ? config->clock : wq_clock_monotonic();
    wq__calls_init(&d->calls);
    wq__lock_init(&d->lock);
    wq__core_init(&d->core, wq__hash_key_of(random), NULL, &mem);
    *out = &d->base;
    return WQ_OK;
}

wq_err
wq_delaying_wrap(wq_queue *inner, const wq_config *config, wq_queue **out)
{
    struct wq__config checked;

    if (!inner)
        return wq_fail(WQ_EINVAL, "wq_delaying_wrap: inner is NULL");
    if (!out)
        return wq_fail(WQ_EINVAL, "wq_delaying_wrap: out is NULL");
    wq_err err = wq__config_read(config, &checked);
    if (!err)
        err = wq__config_check_for_layer(&checked.user);
    if (err)
        return err;
    return wrap(inner, &checked.user, out);
}
