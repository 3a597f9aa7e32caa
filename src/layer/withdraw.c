/* SPDX-License-Identifier: MIT */
/* withdraw.c: how is a key removed from a delaying layer?
 *
 * From the inner queue first, because only that can fail; then from the layer.
 * A thread that is adding a due key to the inner queue at that moment is not
 * stopped: wq_remove() does not wait for it, wq_remove_wait() does, since its
 * caller may free what the key names.
 */
#include "core/same.h"
#include "layer/delaying.h"
#include "port/relax.h"

/* Remove the deadline of `key`, or the key if it is due. WQ_ENOTFOUND: the
 * layer does not have it. */
static wq_err
withdraw(struct wq__delaying *d, wq_key key)
{
    const uint32_t hash = wq__core_hash(&d->core, key);
    wq_err         err = WQ_ENOTFOUND;

    wq__delaying_enter(d);
    if (wq__core_remove(&d->core, key, hash, d->clock->now(d->clock)) == WQ_OK)
        err = WQ_OK;
    if (d->refused && wq__same_key(d->refused->key, key)) {
        wq__delaying_drop_refused(d);
        err = WQ_OK;
    }
    wq__delaying_leave(d);
    return err;
}

static wq_err
remove_key(struct wq__delaying *d, wq_key key)
{
    (void)wq__delaying_pass_on(d);
    const wq_err err = WQ__CALL(d->layer.inner, remove, (d->layer.inner, key));
    if (err && err != WQ_ENOTFOUND && err != WQ_ESTATE)
        return err;
    return withdraw(d, key) == WQ_OK ? WQ_OK : err;
}

wq_err
wq__delaying_remove(wq_queue *q, wq_key key)
{
    struct wq__delaying *d = wq__delaying_begin(q);
    const wq_err         err = remove_key(d, key);

    if (!err) /* it may have freed capacity */
        (void)wq__delaying_pass_on(d);
    return wq__delaying_end(d, err);
}

wq_err
wq__delaying_cancel_after(wq_queue *q, wq_key key)
{
    struct wq__delaying *d = wq__delaying_begin(q);

    (void)wq__delaying_pass_on(d);
    return wq__delaying_end(d, withdraw(d, key));
}

/* Is another thread adding the key to the inner queue? */
static bool
is_being_offered(struct wq__delaying *d, wq_key key)
{
    const uint32_t hash = wq__core_hash(&d->core, key);

    wq__delaying_enter(d);
    const bool held = wq__core_states(&d->core, key, hash) & WQ__HELD;
    wq__delaying_leave(d);
    return held;
}

/* Remove what can be removed now. WQ_OK: the key is not HELD either;
 * WQ_ETIMEDOUT: it is, or was being added to the inner queue. */
static wq_err
remove_now(struct wq__delaying *d, wq_key key)
{
    (void)wq__delaying_pass_on(d);
    wq_err err = d->layer.inner->backend->remove_wait(d->layer.inner, key, 0);
    if (err && err != WQ_ETIMEDOUT)
        return err; /* WQ_ESTATE: nothing was removed */
    (void)withdraw(d, key);
    for (unsigned round = 0; is_being_offered(d, key); round++) {
        err = WQ_ETIMEDOUT;
        wq__relax(round);
    }
    return err;
}

/* Only the destroy of the inner queue ends this early. Deadlines that were set
 * before the done are removed at its end; those that the inner queue got
 * meanwhile are removed there. */
static wq_err
await_done(struct wq__delaying *d, wq_key key, int64_t timeout_ns)
{
    const wq_err err =
        d->layer.inner->backend->remove_wait(d->layer.inner, key, timeout_ns);

    if (!err)
        (void)withdraw(d, key);
    wq__calls_end(&d->waits);
    return err;
}

wq_err
wq__delaying_remove_wait(wq_queue *q, wq_key key, int64_t timeout_ns)
{
    if (!WQ_HAS_VERB(wq__layer_inner(q), remove_wait))
        return WQ_ENOTSUP;

    struct wq__delaying *d = wq__delaying_begin(q);
    const wq_err         err = remove_now(d, key);
    const bool           waits = err == WQ_ETIMEDOUT;

    if (waits)
        wq__calls_begin(&d->waits);
    (void)wq__delaying_end(d, err);
    return waits ? await_done(d, key, timeout_ns) : err;
}
