/* SPDX-License-Identifier: MIT */
/* sqlite.c: the scenarios, and tests of behaviour/, run over a queue in an SQLite
 * database. Each queue has a file of its own, in a directory that is removed at
 * the end. */
#include "support/backend.h"
#include "support/sqlite_queue.h"

#include "scenarios/shared_skips.h"

static const struct backend_skip skips[] = {
    STORE_SKIPS{NULL, NULL},
};

const struct backend backend = {.open = sqlite_queue_open,
                                .again = sqlite_queue_open_again,
                                .on_disk = true,
                                .lacks = SHARED_LACKS,
                                .skips = skips};
