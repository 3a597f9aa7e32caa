/* SPDX-License-Identifier: MIT */
/* check.h: which arguments does the API refuse, and which verbs does a backend
 * lack? */
#ifndef WQ_FRONT_CHECK_H
#define WQ_FRONT_CHECK_H

#include <wq/backend.h>

static inline wq_err
wq__check_key(wq_key key)
{
    if (!key.data || key.len == 0)
        return WQ_EINVAL;
    return key.len > WQ_KEY_MAX ? WQ_ETOOLONG : WQ_OK;
}

/* The same for a verb of a queue that takes a key. */
static inline wq_err
wq__check_call(const wq_queue *q, wq_key key)
{
    return q ? wq__check_key(key) : WQ_EINVAL;
}

/* The same for a verb that takes `n` items. */
static inline wq_err
wq__check_items(const wq_queue *q, wq_item *const *items, size_t n)
{
    if (!q || (!items && n))
        return WQ_EINVAL;
    for (size_t i = 0; i < n; i++)
        if (!items[i])
            return WQ_EINVAL;
    return WQ_OK;
}

/* Call an optional verb of the backend of `q`; `arguments` in parentheses. */
#define WQ__CALL(q, verb, arguments)                                           \
    (WQ_HAS_VERB(q, verb) ? (q)->backend->verb arguments : WQ_ENOTSUP)

#endif
