/* SPDX-License-Identifier: MIT */
/* adds.c: which options of an add are valid? Checked here once for all
 * backends. */
#include <wq/backend.h>

#include "config/read.h"
#include "error/error.h"
#include "front/check.h"

static wq_err
check_values(const wq_add_options *how)
{
    wq_err err =
        wq__check_not_negative("wq_add_options.debounce_ns", how->debounce_ns);

    if (!err)
        err = wq__check_not_negative("wq_add_options.max_wait_ns",
                                     how->max_wait_ns);
    if (!err)
        err = wq__check_not_negative("wq_add_options.throttle_ns",
                                     how->throttle_ns);
    if (!err)
        err = wq__check_not_negative("wq_add_options.max_block_ns",
                                     how->max_block_ns);
    if (!err && how->nowait && how->max_block_ns)
        err = wq_fail(WQ_EINVAL, "wq_add_options.nowait cannot be combined "
                                 "with max_block_ns");
    if (!err && ((int)how->waiting < WQ_IF_WAITING_KEEP ||
                 how->waiting > WQ_IF_WAITING_IGNORE))
        err = wq_fail(WQ_EINVAL,
                      "wq_add_options.waiting is %d: not a wq_if_waiting",
                      (int)how->waiting);
    return err;
}

/* A delay, a debounce and a throttle exclude each other. */
static wq_err
check_combinations(const wq_add_options *how)
{
    const bool delay = how->after_ns > 0 || how->rate_limited;
    const bool debounce = how->debounce_ns != 0;
    const bool throttle = how->throttle_ns != 0;

    if (how->max_wait_ns && !debounce)
        return wq_fail(WQ_EINVAL,
                       "wq_add_options.max_wait_ns needs debounce_ns");
    if (delay + debounce + throttle > 1)
        return wq_fail(WQ_EINVAL,
                       "wq_add_options: use only one of a delay (after_ns, "
                       "rate_limited), debounce_ns and throttle_ns");
    if (how->waiting != WQ_IF_WAITING_KEEP && (debounce || throttle))
        return wq_fail(WQ_EINVAL,
                       "wq_add_options.waiting cannot be combined with %s",
                       debounce ? "debounce_ns" : "throttle_ns");
    return WQ_OK;
}

static wq_err
check_keys(const wq_key *keys, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const wq_err err = wq__check_key(keys[i]);
        if (err)
            return wq_fail(err, "wq_add_with: keys[%zu] is %s", i,
                           err == WQ_ETOOLONG ? "longer than WQ_KEY_MAX bytes"
                                              : "NULL or empty");
    }
    return WQ_OK;
}

wq_err
wq_add_with(wq_queue *q, const wq_add_options *how, const wq_key *keys,
            size_t n)
{
    const wq_add_options plain = {.size = sizeof plain};
    wq_add_options       known;

    if (!q)
        return wq_fail(WQ_EINVAL, "wq_add_with: q is NULL");
    if (!keys && n)
        return wq_fail(WQ_EINVAL, "wq_add_with: keys is NULL");
    wq_err err = wq__read_sized(how ? how : &plain, "wq_add_options",
                                "WQ_ADD()", sizeof known, &known);
    if (!err)
        err = check_values(&known);
    if (!err)
        err = check_combinations(&known);
    known.size = sizeof known; /* not the size of the caller's struct */
    if (!err)
        err = check_keys(keys, n);
    if (err)
        return err;
    if (n == 0 && WQ_HAS_VERB(q, add_with))
        return q->backend->shutting_down(q) ? WQ_ESHUTDOWN : WQ_OK;
    return WQ__CALL(q, add_with, (q, &known, keys, n));
}
