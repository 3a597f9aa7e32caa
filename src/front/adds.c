/* SPDX-License-Identifier: MIT */
/* adds.c: which adds make sense? wq_add_with(): its options are checked here,
 * once for all backends. */
#include <wq/backend.h>

#include "core/sized.h"
#include "front/check.h"

static bool
has_known_values(const wq_add_options *how)
{
    return how->waiting >= WQ_IF_WAITING_KEEP &&
           how->waiting <= WQ_IF_WAITING_IGNORE && how->debounce_ns >= 0 &&
           how->max_wait_ns >= 0 && how->throttle_ns >= 0 &&
           how->max_block_ns >= 0 && !(how->nowait && how->max_block_ns);
}

/* A delay, a debounce and a throttle each say when; only one of them can. */
static bool
says_when_once(const wq_add_options *how)
{
    const bool delay = how->after_ns > 0 || how->rate_limited;
    const bool debounce = how->debounce_ns != 0;
    const bool throttle = how->throttle_ns != 0;

    if (how->max_wait_ns && !debounce)
        return false;
    if (how->waiting != WQ_IF_WAITING_KEEP && (debounce || throttle))
        return false;
    return delay + debounce + throttle <= 1;
}

static wq_err
check_keys(const wq_key *keys, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const wq_err err = wq__check_key(keys[i]);
        if (err)
            return err;
    }
    return WQ_OK;
}

wq_err
wq_add_with(wq_queue *q, const wq_add_options *how, const wq_key *keys,
            size_t n)
{
    const wq_add_options plain = {.size = sizeof plain};
    wq_add_options       known;

    if (!q || (!keys && n) ||
        !wq__sized_read(how ? how : &plain, sizeof known, &known) ||
        !has_known_values(&known) || !says_when_once(&known))
        return WQ_EINVAL;
    known.size = sizeof known; /* whatever the caller's was */
    const wq_err err = check_keys(keys, n);
    if (err)
        return err;
    if (!q->backend->add_with)
        return WQ_ENOTSUP;
    if (n == 0)
        return q->backend->shutting_down(q) ? WQ_ESHUTDOWN : WQ_OK;
    return q->backend->add_with(q, &known, keys, n);
}

wq_err
wq_remove(wq_queue *q, wq_key key)
{
    const wq_err err = q ? wq__check_key(key) : WQ_EINVAL;
    if (err)
        return err;
    return q->backend->remove ? q->backend->remove(q, key) : WQ_ENOTSUP;
}

wq_err
wq_cancel_after(wq_queue *q, wq_key key)
{
    const wq_err err = q ? wq__check_key(key) : WQ_EINVAL;
    if (err)
        return err;
    return q->backend->cancel_after ? q->backend->cancel_after(q, key)
                                    : WQ_ENOTSUP;
}
