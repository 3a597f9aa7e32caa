/* SPDX-License-Identifier: MIT */
/* redis.c: the scenarios, and tests of behaviour/, run over a queue in a Redis
 * server, which each program starts for itself. */
#include "support/backend.h"
#include "support/redis_queue.h"

#include "scenarios/redis_skips.h"

static const struct backend_skip skips[] = {
    REDIS_SKIPS{NULL, NULL},
};

const struct backend backend = {.open = redis_queue_open,
                                .again = redis_queue_open_again,
                                .settle = redis_queue_settle,
                                .on_disk = true,
                                .remote = true,
                                .lacks = SHARED_LACKS,
                                .skips = skips};
