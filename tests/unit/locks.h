/* SPDX-License-Identifier: MIT */
/* locks.h: is a lock taken? */
#ifndef WQ_TEST_LOCKS_H
#define WQ_TEST_LOCKS_H

#include <stdbool.h>

#include "port/lock.h"

/* Has any thread, be it this one, taken it? For a moment when nobody comes. */
static inline bool
lock_is_taken(struct wq__lock *l)
{
    const bool taken = wq__lock_try(l);

    if (taken)
        wq__lock_release(l);
    return !taken;
}

#endif
