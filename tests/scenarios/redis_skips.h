/* SPDX-License-Identifier: MIT */
/* redis_skips.h: which tests can no queue in a Redis server pass, and why? */
#ifndef WQ_SCENARIOS_REDIS_SKIPS_H
#define WQ_SCENARIOS_REDIS_SKIPS_H

#include "scenarios/shared_skips.h"

#define LEASE "a lease ends with time itself, and the holds with it"
#define POLL "no reply can be waited for under the limit that the test sets"
#define ROUND_TRIPS "170,000 round trips take too long"

/* For a table of struct backend_skip. */
#define REDIS_SKIPS                                                            \
    STORE_SKIPS /* behaviour/test_fd.c */                                      \
        {"failed_wq_fd_can_be_repeated",                                       \
         POLL}, /* behaviour/test_inspect.c; see redis/test_view.c */          \
        {"walk_visits_each_of_many_keys_once",                                 \
         ROUND_TRIPS}, /* delay.scenario, metrics.scenario */                  \
        {"delay_without_end_ends_with_time_itself", LEASE},                    \
        {"delay_beyond_the_end_of_time_ends_there", LEASE},                    \
        {"sum_of_ages_stops_at_the_end_of_time", LEASE},

#endif
