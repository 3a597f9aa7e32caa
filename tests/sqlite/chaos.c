/* SPDX-License-Identifier: MIT */
/* chaos.c: does a queue in a file survive chaos (support/chaos.h)?
 *
 *     sqlite_chaos process|lease [SECONDS]    10 without SECONDS
 *
 * Exit status: 0, or 1 if a promise was broken.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <wq/limiter.h>
#include <wq/sqlite.h>

#include "sqlite/place.h"
#include "support/chaos.h"

static struct place at;
static bool         leases;

static wq_err
open_queue(unsigned slot, wq_queue **out)
{
    (void)slot;
    return wq_sqlite_open(
        at.db,
        WQ_SQLITE_OPTIONS(.hold = leases ? WQ_SQLITE_HOLD_LEASE
                                         : WQ_SQLITE_HOLD_PROCESS,
                          .lease_ns = leases ? WQ_MS(CHAOS_LEASE_MS) : 0,
                          .max_expiries = UINT_MAX),
        WQ_CONFIG(.limiter = wq_limiter_exponential(WQ_MS(1), WQ_MS(50))), out);
}

static bool
is_intact(void)
{
    return strcmp(place_integrity(at.db), "ok") == 0;
}

int
main(int argc, char **argv)
{
    const bool known = argc >= 2 && (strcmp(argv[1], "process") == 0 ||
                                     strcmp(argv[1], "lease") == 0);
    const long seconds = argc >= 3 ? atol(argv[2]) : 10;

    if (!known || seconds < 1) {
        (void)fprintf(stderr, "usage: sqlite_chaos process|lease [SECONDS]\n");
        return 2;
    }
    leases = strcmp(argv[1], "lease") == 0;
    at = place_make();
    const bool kept = chaos_run(&(struct chaos){.name = argv[1],
                                                .leases = leases,
                                                .open = open_queue,
                                                .is_intact = is_intact},
                                seconds);
    if (kept)
        place_remove(&at);
    else
        (void)fprintf(stderr, "chaos: the files are in %s\n", at.dir);
    return !kept;
}
