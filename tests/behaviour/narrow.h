/* SPDX-License-Identifier: MIT */
/* narrow.h: an order with capacity for one key, which refuses keys with
 * `narrow.err` once `narrow.refuses` is set. */
#ifndef WQ_BEHAVIOUR_NARROW_H
#define WQ_BEHAVIOUR_NARROW_H

#include <stdatomic.h>

#include <wq/wq.h>

static struct {
    wq_key      key;
    bool        full;
    atomic_bool refuses;
    wq_err      err;
} narrow;

static inline wq_err
push_narrow(void *self, wq_key key, int priority)
{
    (void)self;
    (void)priority;
    if (narrow.full || narrow.refuses)
        return narrow.err;
    narrow.key = key;
    narrow.full = true;
    return WQ_OK;
}

static inline bool
pop_narrow(void *self, wq_key *out)
{
    const bool had = narrow.full;

    (void)self;
    *out = narrow.key;
    narrow.full = false;
    return had;
}

static inline size_t
len_narrow(void *self)
{
    (void)self;
    return narrow.full;
}

static const wq_order narrow_order = {.size = sizeof narrow_order,
                                      .push = push_narrow,
                                      .pop = pop_narrow,
                                      .len = len_narrow};

#endif
