/* SPDX-License-Identifier: MIT */
/* queue.c: which arguments does the API refuse?
 *
 * Every verb of wq.h checks its arguments here, once for all backends, and
 * calls the backend.
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
    const wq_err err = wq__check_call(q, key);
    return err ? err : q->backend->add(q, key);
}

wq_err
wq_add_after(wq_queue *q, wq_key key, int64_t delay_ns)
{
    const wq_err err = wq__check_call(q, key);
    return err ? err : WQ__CALL(q, add_after, (q, key, delay_ns));
}

wq_err
wq_add_rate_limited(wq_queue *q, wq_key key)
{
    const wq_err err = wq__check_call(q, key);
    return err ? err : WQ__CALL(q, add_rate_limited, (q, key));
}

wq_err
wq_forget(wq_queue *q, wq_key key)
{
    const wq_err err = wq__check_call(q, key);
    return err ? err : WQ__CALL(q, forget, (q, key));
}

unsigned
wq_num_requeues(wq_queue *q, wq_key key)
{
    unsigned n = 0;
    if (!q || wq__check_key(key) || !WQ_HAS_VERB(q, num_requeues) ||
        q->backend->num_requeues(q, key, &n))
        return 0;
    return n;
}

wq_err
wq_count_drops(wq_queue *q, uint64_t n)
{
    if (!q)
        return WQ_EINVAL;
    return WQ__CALL(q, count_drops, (q, n));
}

wq_err
wq_remove(wq_queue *q, wq_key key)
{
    const wq_err err = wq__check_call(q, key);
    return err ? err : WQ__CALL(q, remove, (q, key));
}

wq_err
wq_cancel_after(wq_queue *q, wq_key key)
{
    const wq_err err = wq__check_call(q, key);
    return err ? err : WQ__CALL(q, cancel_after, (q, key));
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
    const wq_err err = wq__check_call(q, key);
    return err ? err : WQ__CALL(q, done_key, (q, key));
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
    return WQ__CALL(q, drain, (q, timeout_ns));
}

bool
wq_shutting_down(const wq_queue *q)
{
    return q && q->backend->shutting_down(q);
}

void
wq_interrupt(wq_queue *q)
{
    if (q && WQ_HAS_VERB(q, interrupt))
        q->backend->interrupt(q);
}

/* ---- waiting and pausing ------------------------------------------------ */

wq_err
wq_flush(wq_queue *q, int64_t timeout_ns)
{
    if (!q || timeout_ns < 0)
        return WQ_EINVAL;
    return WQ__CALL(q, flush, (q, timeout_ns));
}

wq_err
wq_wait_idle(wq_queue *q, int64_t timeout_ns)
{
    if (!q || timeout_ns < 0)
        return WQ_EINVAL;
    return WQ__CALL(q, wait_idle, (q, timeout_ns));
}

wq_err
wq_flush_key(wq_queue *q, wq_key key, int64_t timeout_ns)
{
    const wq_err err = timeout_ns < 0 ? WQ_EINVAL : wq__check_call(q, key);
    return err ? err : WQ__CALL(q, flush_key, (q, key, timeout_ns));
}

wq_err
wq_remove_wait(wq_queue *q, wq_key key, int64_t timeout_ns)
{
    const wq_err err = timeout_ns < 0 ? WQ_EINVAL : wq__check_call(q, key);
    return err ? err : WQ__CALL(q, remove_wait, (q, key, timeout_ns));
}

wq_err
wq_pause(wq_queue *q)
{
    if (!q)
        return WQ_EINVAL;
    return WQ__CALL(q, pause, (q));
}

wq_err
wq_resume(wq_queue *q)
{
    if (!q)
        return WQ_EINVAL;
    return WQ__CALL(q, resume, (q));
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
