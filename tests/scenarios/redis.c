/* SPDX-License-Identifier: MIT */
/* redis.c: the scenarios, and tests of behaviour/, run over a queue in a Redis
 * server, which each program starts for itself. */
#include "support/backend.h"
#include "support/redis_queue.h"

#include "scenarios/shared_skips.h"

#define LEASE "a lease ends with time itself, and the holds with it"
#define POLL "no reply can be waited for under the limit that the test sets"
#define ROUND_TRIPS "170,000 round trips take too long"

static const struct backend_skip skips[] = {
    STORE_SKIPS
    /* behaviour/test_fd.c */
    {"failed_wq_fd_can_be_repeated", POLL},
    /* behaviour/test_inspect.c; see redis/test_view.c */
    {"walk_visits_each_of_many_keys_once", ROUND_TRIPS},
    /* delay.scenario, metrics.scenario */
    {"delay_without_end_ends_with_time_itself", LEASE},
    {"delay_beyond_the_end_of_time_ends_there", LEASE},
    {"sum_of_ages_stops_at_the_end_of_time", LEASE},
    {NULL, NULL},
};

const struct backend backend = {.open = redis_queue_open,
                                .again = redis_queue_open_again,
                                .settle = redis_queue_settle,
                                .on_disk = true,
                                .remote = true,
                                .lacks = SHARED_LACKS,
                                .skips = skips};
