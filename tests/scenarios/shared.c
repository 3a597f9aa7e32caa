/* SPDX-License-Identifier: MIT */
/* shared.c: the scenarios, and tests of behaviour/, run over a shared queue: the
 * shell of src/shared over a store inside the process (support/memory_store.h).
 */
#include "support/backend.h"
#include "support/shared_queue.h"

#include "scenarios/shared_skips.h"

static const struct backend_skip skips[] = {
    SHARED_SKIPS{NULL, NULL},
};

const struct backend backend = {.open = shared_queue_open,
                                .again = shared_queue_open_again,
                                .lacks = SHARED_LACKS,
                                .skips = skips};
