/* SPDX-License-Identifier: MIT */
/* check.h: which keys does the API refuse? */
#ifndef WQ_FRONT_CHECK_H
#define WQ_FRONT_CHECK_H

#include <wq/wq.h>

static inline wq_err
wq__check_key(wq_key key)
{
    if (!key.data || key.len == 0)
        return WQ_EINVAL;
    return key.len > WQ_KEY_MAX ? WQ_ETOOLONG : WQ_OK;
}

#endif
