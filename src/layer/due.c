/* SPDX-License-Identifier: MIT */
/* due.c: how does a due key get into the inner queue?
 *
 * Each verb of a delaying layer first adds what is due. While a key is being
 * added to the inner queue, it is HELD in the core of the layer, so that two
 * threads do not add the same key. That add does not wait for capacity. A key
 * that the inner queue refuses stays due: every verb offers it again, a done or
 * a get does so once more after it may have freed capacity, and the timekeeper
 * (gets.c) does so every WQ__SLICE_NS. No lock is held while the inner queue,
 * which may be user code, is called (L7).
 *
 * Cost: O(log n) of the WAITING keys for each due key.
 */
#include <assert.h>

#include "core/same.h"
#include "core/span.h"
#include "layer/delaying.h"

void
wq__delaying_leave(struct wq__delaying *d)
{
    if (d->watch.beacon)
        d->clock->watch(d->clock, &d->watch,
                        d->paused ? WQ_FOREVER : wq__delaying_next_look(d));
    wq__lock_release(&d->lock);
}

int64_t
wq__delaying_next_look(struct wq__delaying *d)
{
    const int64_t next = wq__core_next_deadline(&d->core);

    if (wq__core_idle(&d->core))
        return next;
    const int64_t soon = wq__span_add(d->clock->now(d->clock), WQ__SLICE_NS);
    return next < soon ? next : soon;
}

/* With the lock: the next key to offer, or NULL. */
static wq_item *
take_due(struct wq__delaying *d)
{
    wq_item *item = d->refused;

    if (d->core.waiting.len)
        wq__core_promote(&d->core, d->clock->now(d->clock));
    d->refused = NULL;
    if (item)
        return item;
    /* If out of memory, it stays READY here for a later call. */
    return wq__core_get(&d->core, 0, &item) ? NULL : item;
}

/* Add the key of `item` to the inner queue without waiting for capacity. The
 * add of a backend without the option `nowait` must not block (backend.h). */
static wq_err
offer(struct wq__delaying *d, const wq_item *item, wq_added *what)
{
    const wq_add_options how = {
        .size = sizeof how,
        .priority = item->priority,
        .nowait = true,
        .results = what,
    };
    wq_err err = WQ__CALL(d->layer.inner, add_with,
                          (d->layer.inner, &how, &item->key, 1));

    if (err != WQ_ENOTSUP)
        return err;
    *what = WQ_ADDED_NEW;
    return d->layer.inner->backend->add(d->layer.inner, item->key);
}

/* Is the key in the inner queue, or dropped because that is shut down? */
static bool
is_settled(wq_err err)
{
    return err == WQ_OK || err == WQ_ESHUTDOWN;
}

/* The HELD key of `item` is due once more. Only its priority needs memory:
 * without memory, or after a shutdown, the key gets priority 0. */
static void
make_due_again(struct wq__delaying *d, const wq_item *item)
{
    const uint32_t hash = wq__core_hash(&d->core, item->key);
    wq_added       what;

    if (item->priority == 0 ||
        wq__core_add_with_priority(&d->core, item->key, hash, 0, item->priority,
                                   &what))
        (void)wq__core_admit(&d->core, item->key, hash, 0, &what);
}

/* End the loan of `item`. If it is still due, it becomes READY again, behind
 * the others. */
static void
put_back(struct wq__delaying *d, wq_item *item, bool still_due)
{
    if (still_due)
        make_due_again(d, item);
    const wq_err err = wq__core_done(&d->core, item, 0, NULL);
    assert(!err);
    (void)err;
}

void
wq__delaying_drop_refused(struct wq__delaying *d)
{
    wq_item *item = d->refused;

    d->refused = NULL;
    put_back(d, item, false);
}

/* The inner queue is full: `item` is offered first the next time, so that keys
 * keep the order of their deadlines. If several threads were refused at the
 * same time, the key that was taken first is offered first. */
static void
keep_first(struct wq__delaying *d, wq_item *item)
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

/* The inner queue returned `err` for `item`. An error that does not mean a full
 * queue may concern this key alone: then it must not hold up the others. */
static void
settle(struct wq__delaying *d, wq_item *item, wq_err err)
{
    d->drops += err == WQ_ESHUTDOWN;
    if (err == WQ_EFULL || err == WQ_ENOMEM)
        keep_first(d, item);
    else
        put_back(d, item, !is_settled(err));
}

bool
wq__delaying_pass_on_key(struct wq__delaying *d, wq_key key, wq_added *what)
{
    wq_err   err = WQ_OK;
    wq_item *item;

    wq__delaying_enter(d);
    while (is_settled(err) && (item = take_due(d))) {
        wq_added added = WQ_ADDED_NEW;

        wq__delaying_leave(d);
        err = offer(d, item, &added);
        if (!err && key.data && wq__same_key(item->key, key))
            *what = added;
        wq__delaying_enter(d);
        settle(d, item, err);
    }
    const bool left = !wq__core_idle(&d->core);
    wq__delaying_leave(d);
    return left;
}

bool
wq__delaying_pass_on(struct wq__delaying *d)
{
    return wq__delaying_pass_on_key(d, (wq_key){NULL, 0}, NULL);
}

void
wq__delaying_pass_on_rest(struct wq__delaying *d, bool left, wq_err err)
{
    if (left && !err)
        (void)wq__delaying_pass_on(d);
}
