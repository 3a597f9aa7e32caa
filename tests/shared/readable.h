/* SPDX-License-Identifier: MIT */
/* readable.h: is the descriptor of a queue readable now? */
#ifndef WQ_SHARED_READABLE_H
#define WQ_SHARED_READABLE_H

#include "support/wq_test.h"

#include <poll.h>

#include <wq/wq.h>

static inline bool
is_readable(wq_queue *q)
{
    struct pollfd p = {.fd = wq_fd(q), .events = POLLIN};

    assert_true(p.fd >= 0);
    return poll(&p, 1, 0) == 1;
}

#endif
