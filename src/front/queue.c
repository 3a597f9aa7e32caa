/* SPDX-License-Identifier: MIT */
/* queue.c: what does the API refuse, and to whom does it pass the rest?
 *
 * Every verb of wq.h: arguments are checked here, once for all backends; then
 * one indirect jump.
 */
#include <wq/backend.h>

#include "front/check.h"

void
wq_destroy(wq_queue *q)
{
    if (q)
        q->backend->destroy(q);
}

wq_err
wq_add(wq_queue *q, wq_key key)
{
    const wq_err err = q ? wq__check_key(key) : WQ_EINVAL;
    return err ? err : q->backend->add(q, key);
}

wq_err
wq_add_after(wq_queue *q, wq_key key, int64_t delay_ns)
{
    const wq_err err = q ? wq__check_key(key) : WQ_EINVAL;
    if (err)
        return err;
    return q->backend->add_after ? q->backend->add_after(q, key, delay_ns)
                                 : WQ_ENOTSUP;
}

wq_err
wq_add_rate_limited(wq_queue *q, wq_key key)
{
    const wq_err err = q ? wq__check_key(key) : WQ_EINVAL;
    if (err)
        return err;
    return q->backend->add_rate_limited ? q->backend->add_rate_limited(q, key)
                                        : WQ_ENOTSUP;
}

wq_err
wq_forget(wq_queue *q, wq_key key)
{
    const wq_err err = q ? wq__check_key(key) : WQ_EINVAL;
    if (err)
        return err;
    return q->backend->forget ? q->backend->forget(q, key) : WQ_ENOTSUP;
}

unsigned
wq_num_requeues(wq_queue *q, wq_key key)
{
    unsigned n = 0;
    if (!q || wq__check_key(key) || !q->backend->num_requeues ||
        q->backend->num_requeues(q, key, &n))
        return 0;
    return n;
}

wq_err
wq_count_drops(wq_queue *q, uint64_t n)
{
    if (!q)
        return WQ_EINVAL;
    return q->backend->count_drops ? q->backend->count_drops(q, n) : WQ_ENOTSUP;
}

wq_err
wq_get(wq_queue *q, wq_item **out)
{
    if (!q || !out)
        return WQ_EINVAL;
    return q->backend->get(q, WQ_FOREVER, out);
}

wq_err
wq_get_within(wq_queue *q, int64_t timeout_ns, wq_item **out)
{
    if (!q || !out || timeout_ns < 0)
        return WQ_EINVAL;
    return q->backend->get(q, timeout_ns, out);
}

wq_err
wq_done(wq_queue *q, wq_item *item)
{
    if (!q || !item)
        return WQ_EINVAL;
    return q->backend->done(q, item);
}

wq_err
wq_done_key(wq_queue *q, wq_key key)
{
    const wq_err err = q ? wq__check_key(key) : WQ_EINVAL;
    if (err)
        return err;
    return q->backend->done_key ? q->backend->done_key(q, key) : WQ_ENOTSUP;
}

size_t
wq_len(wq_queue *q)
{
    size_t len = 0;
    if (!q || q->backend->len(q, &len))
        return 0;
    return len;
}

void
wq_shutdown(wq_queue *q)
{
    if (q)
        q->backend->shutdown(q);
}

wq_err
wq_shutdown_with_drain(wq_queue *q)
{
    return wq_shutdown_with_drain_within(q, WQ_FOREVER);
}

wq_err
wq_shutdown_with_drain_within(wq_queue *q, int64_t timeout_ns)
{
    if (!q || timeout_ns < 0)
        return WQ_EINVAL;
    return q->backend->drain ? q->backend->drain(q, timeout_ns) : WQ_ENOTSUP;
}

bool
wq_shutting_down(const wq_queue *q)
{
    return q && q->backend->shutting_down(q);
}

void
wq_interrupt(wq_queue *q)
{
    if (q && q->backend->interrupt)
        q->backend->interrupt(q);
}

/* ---- waiting and pausing ------------------------------------------------ */

wq_err
wq_flush(wq_queue *q, int64_t timeout_ns)
{
    if (!q || timeout_ns < 0)
        return WQ_EINVAL;
    return q->backend->flush ? q->backend->flush(q, timeout_ns) : WQ_ENOTSUP;
}

wq_err
wq_wait_idle(wq_queue *q, int64_t timeout_ns)
{
    if (!q || timeout_ns < 0)
        return WQ_EINVAL;
    return q->backend->wait_idle ? q->backend->wait_idle(q, timeout_ns)
                                 : WQ_ENOTSUP;
}

wq_err
wq_flush_key(wq_queue *q, wq_key key, int64_t timeout_ns)
{
    const wq_err err = q && timeout_ns >= 0 ? wq__check_key(key) : WQ_EINVAL;
    if (err)
        return err;
    return q->backend->flush_key ? q->backend->flush_key(q, key, timeout_ns)
                                 : WQ_ENOTSUP;
}

wq_err
wq_remove_wait(wq_queue *q, wq_key key, int64_t timeout_ns)
{
    const wq_err err = q && timeout_ns >= 0 ? wq__check_key(key) : WQ_EINVAL;
    if (err)
        return err;
    return q->backend->remove_wait ? q->backend->remove_wait(q, key, timeout_ns)
                                   : WQ_ENOTSUP;
}

wq_err
wq_pause(wq_queue *q)
{
    if (!q)
        return WQ_EINVAL;
    return q->backend->pause ? q->backend->pause(q) : WQ_ENOTSUP;
}

wq_err
wq_resume(wq_queue *q)
{
    if (!q)
        return WQ_EINVAL;
    return q->backend->resume ? q->backend->resume(q) : WQ_ENOTSUP;
}

/* ---- groups ------------------------------------------------------------- */

wq_key
wq_group_before_slash(void *ctx, wq_key key)
{
    const char *slash = key.len ? memchr(key.data, '/', key.len) : NULL;

    (void)ctx;
    if (slash)
        key.len = (size_t)(slash - (const char *)key.data);
    else
        key.len = 0;
    return key;
}
