/* SPDX-License-Identifier: MIT */
/* gets.c: how does a get in the inner queue notice a deadline of the layer?
 *
 * There is no thread for that. One of the gets that sleep in the inner queue,
 * the timekeeper, sleeps only until the next deadline. When an earlier deadline
 * is set, or the timekeeper leaves, the layer interrupts the gets, and they
 * sleep again; if the inner queue cannot be interrupted, gets wake up every
 * WQ__SLICE_NS.
 */
#include "core/span.h"
#include "layer/delaying.h"

/* What a get wants, and what it got. */
struct fetch {
    wq_item **out; /* room for `max` items */
    size_t    max; /* at least 1 */
    size_t    n;   /* how many it got */
};

/* ---- the inner queue ---------------------------------------------------- */

/* Items of an inner queue that has only single gets: the first get may sleep.
 */
static wq_err
fetch_singly(wq_queue *inner, int64_t timeout_ns, struct fetch *f)
{
    const wq_err err = inner->backend->get(inner, timeout_ns, f->out);

    if (err)
        return err;
    f->n = 1;
    while (f->n < f->max && !inner->backend->get(inner, 0, f->out + f->n))
        f->n++;
    return WQ_OK;
}

static wq_err
fetch(struct wq__delaying *d, int64_t timeout_ns, struct fetch *f)
{
    wq_queue *inner = d->layer.inner;

    if (f->max > 1 && WQ_HAS_VERB(inner, get_many))
        return inner->backend->get_many(inner, f->out, f->max, timeout_ns,
                                        &f->n);
    return fetch_singly(inner, timeout_ns, f);
}

void
wq__delaying_interrupt_inner(struct wq__delaying *d)
{
    if (WQ_HAS_VERB(d->layer.inner, interrupt))
        d->layer.inner->backend->interrupt(d->layer.inner);
}

/* ---- the timekeeper ----------------------------------------------------- */

/* With the lock: is there no get that wakes up at the next look? */
static bool
is_unwatched(struct wq__delaying *d)
{
    const int64_t next = wq__delaying_next_look(d);

    return next != WQ_FOREVER &&
           (!d->timekeeper || d->timekeeper_until_ns > next);
}

bool
wq__delaying_needs_interrupt(struct wq__delaying *d)
{
    return d->blocked && is_unwatched(d);
}

/* The get that `self` identifies returns `err`; `interrupts`: how many there
 * were when it began. If it was the timekeeper, another get must become it. An
 * interrupt that came when it had its key already is kept for the next get. */
static wq_err
leave_inner(struct wq__delaying *d, const void *self, uint64_t interrupts,
            wq_err err)
{
    wq__delaying_enter(d);
    if (d->timekeeper == self)
        d->timekeeper = NULL;
    d->blocked--;
    if (err != WQ_EINTERRUPTED && d->interrupts != interrupts && !d->blocked)
        d->interrupted = true;
    const bool hand_on = wq__delaying_needs_interrupt(d);
    wq__delaying_leave(d);
    if (hand_on)
        wq__delaying_interrupt_inner(d);
    return err;
}

/* ---- get ---------------------------------------------------------------- */

/* The time left until `until`. */
static int64_t
time_left(struct wq__delaying *d, int64_t until)
{
    if (until == WQ_FOREVER)
        return WQ_FOREVER;
    const int64_t left = wq__span_sub(until, d->clock->now(d->clock));
    return left > 0 ? left : 0;
}

/* With the lock: how long the get that `self` identifies may sleep in the inner
 * queue. It may become the timekeeper. */
static int64_t
time_to_sleep(struct wq__delaying *d, const void *self, int64_t deadline_ns)
{
    const int64_t next = wq__delaying_next_look(d);
    int64_t       until = deadline_ns;

    if (d->timekeeper == self)
        d->timekeeper = NULL;
    if (is_unwatched(d)) {
        d->timekeeper = self;
        d->timekeeper_until_ns = next;
        until = next < until ? next : until;
    }
    const int64_t left = time_left(d, until);
    const bool    look_often = !WQ_HAS_VERB(d->layer.inner, interrupt);
    return look_often && left > WQ__SLICE_NS ? WQ__SLICE_NS : left;
}

/* Add what is due, then get from the inner queue once. */
static wq_err
get_once(struct wq__delaying *d, const void *self, int64_t deadline_ns,
         struct fetch *f)
{
    (void)wq__delaying_pass_on(d);
    wq__delaying_enter(d);
    const int64_t sleep_ns = time_to_sleep(d, self, deadline_ns);
    wq__delaying_leave(d);
    const wq_err err = fetch(d, sleep_ns, f);
    if (!err) /* it freed capacity, and keys may have become due */
        (void)wq__delaying_pass_on(d);
    return err;
}

/* May a get sleep again? `interrupts`: how many there were when it began.
 * WQ_OK, or what the get returns instead. */
static wq_err
may_sleep_on(struct wq__delaying *d, uint64_t interrupts)
{
    wq__delaying_enter(d);
    const wq_err err = d->destroying                 ? WQ_ESHUTDOWN
                       : d->interrupts != interrupts ? WQ_EINTERRUPTED
                                                     : WQ_OK;
    wq__delaying_leave(d);
    return err;
}

/* Hand out the items, unless the queue is being destroyed. */
static wq_err
give_unless_destroying(struct wq__delaying *d, struct fetch *f)
{
    wq__delaying_enter(d);
    const bool destroying = d->destroying;
    wq__delaying_leave(d);
    if (!destroying)
        return WQ_OK;
    while (f->n > 0)
        (void)d->layer.inner->backend->done(d->layer.inner, f->out[--f->n]);
    return WQ_ESHUTDOWN;
}

/* Get without sleeping. WQ_ETIMEDOUT: there is no key. */
static wq_err
try_get(struct wq__delaying *d, struct fetch *f)
{
    const bool   left = wq__delaying_pass_on(d);
    const wq_err err = fetch(d, 0, f);

    wq__delaying_pass_on_rest(d, left, err);
    return err == WQ_EINTERRUPTED ? WQ_ETIMEDOUT : err;
}

/* If the inner queue was interrupted and the user did not call wq_interrupt(),
 * the layer did it: a deadline or the timekeeper has changed, or wq_destroy()
 * waits. */
static wq_err
wait_for_work(struct wq__delaying *d, uint64_t interrupts, int64_t deadline_ns,
              struct fetch *f)
{
    const char self = 0; /* its address identifies this get */

    for (;;) {
        wq_err err = get_once(d, &self, deadline_ns, f);
        if (err == WQ_ETIMEDOUT || err == WQ_EINTERRUPTED) {
            err = may_sleep_on(d, interrupts);
            if (err)
                return leave_inner(d, &self, interrupts, err);
            if (time_left(d, deadline_ns) > 0)
                continue;
            err = try_get(d, f);
        }
        if (!err)
            err = give_unless_destroying(d, f);
        return leave_inner(d, &self, interrupts, err);
    }
}

/* Get, after a try that found no key. */
static wq_err
sleep_for_work(struct wq__delaying *d, int64_t timeout_ns, struct fetch *f)
{
    wq__delaying_enter(d);
    const bool     interrupted = d->interrupted;
    const uint64_t interrupts = d->interrupts;
    d->interrupted = false;
    d->blocked += !interrupted;
    wq__delaying_leave(d);
    if (interrupted)
        return WQ_EINTERRUPTED;
    return wait_for_work(
        d, interrupts,
        timeout_ns == WQ_FOREVER
            ? WQ_FOREVER
            : wq__span_add(d->clock->now(d->clock), timeout_ns),
        f);
}

static wq_err
get(struct wq__delaying *d, int64_t timeout_ns, struct fetch *f)
{
    const wq_err err = try_get(d, f);

    if (timeout_ns == 0 || err != WQ_ETIMEDOUT)
        return err;
    return sleep_for_work(d, timeout_ns, f);
}

/* ---- interface ---------------------------------------------------------- */

wq_err
wq__delaying_get(wq_queue *q, int64_t timeout_ns, wq_item **out)
{
    struct wq__delaying *d = wq__delaying_begin(q);
    wq_item             *item;
    struct fetch         f = {.out = &item, .max = 1};
    const wq_err         err = get(d, timeout_ns, &f);

    if (!err)
        *out = item;
    return wq__delaying_end(d, err);
}

wq_err
wq__delaying_get_many(wq_queue *q, wq_item **out, size_t max,
                      int64_t timeout_ns, size_t *n)
{
    struct wq__delaying *d = wq__delaying_begin(q);
    struct fetch         f = {.out = out, .max = max};
    const wq_err         err = get(d, timeout_ns, &f);

    if (!err)
        *n = f.n;
    return wq__delaying_end(d, err);
}

/* Done of *item and a get that does not sleep, in one step if the inner queue
 * can. WQ_ETIMEDOUT: it is done, and there is no next key. */
static wq_err
try_next(struct wq__delaying *d, wq_item **item)
{
    const bool left = wq__delaying_pass_on(d);
    wq_err     err;

    if (WQ_HAS_VERB(d->layer.inner, next)) {
        err = d->layer.inner->backend->next(d->layer.inner, 0, item);
    } else {
        err = d->layer.inner->backend->done(d->layer.inner, *item);
        if (err)
            return err;
        *item = NULL;
        err = d->layer.inner->backend->get(d->layer.inner, 0, item);
    }
    /* The done may have freed capacity even if there was no key. */
    wq__delaying_pass_on_rest(d, left, *item && err ? err : WQ_OK);
    return err == WQ_EINTERRUPTED ? WQ_ETIMEDOUT : err;
}

static wq_err
next(struct wq__delaying *d, int64_t timeout_ns, wq_item **item)
{
    wq_item     *got;
    struct fetch f = {.out = &got, .max = 1};
    const bool   had = *item;
    wq_err       err = had ? try_next(d, item) : get(d, timeout_ns, &f);

    if (had && (err != WQ_ETIMEDOUT || timeout_ns == 0))
        return err;
    if (had)
        err = sleep_for_work(d, timeout_ns, &f);
    if (!err)
        *item = got;
    return err;
}

wq_err
wq__delaying_next(wq_queue *q, int64_t timeout_ns, wq_item **item)
{
    struct wq__delaying *d = wq__delaying_begin(q);

    return wq__delaying_end(d, next(d, timeout_ns, item));
}

void
wq__delaying_interrupt(wq_queue *q)
{
    struct wq__delaying *d = wq__delaying_of(q);

    wq__delaying_enter(d);
    d->interrupts++;
    if (!d->blocked)
        d->interrupted = true;
    const bool blocked = d->blocked;
    wq__delaying_leave(d);
    if (blocked)
        wq__delaying_interrupt_inner(d);
}
