/* SPDX-License-Identifier: MIT */
/* roll_add.h: how do random tests add a key? */
#ifndef WQ_TEST_ROLL_ADD_H
#define WQ_TEST_ROLL_ADD_H

#include <wq/wq.h>

#include "unit/dice.h"

/* Options of one of all kinds. A delay is below `delay_ns`. */
static inline wq_add_options
roll_add(struct dice *dice, size_t delay_ns)
{
    const wq_add_options ways[] = {
        {.priority = (int)dice_roll(dice, 3)},
        {.after_ns = (int64_t)dice_roll(dice, delay_ns)},
        {.rate_limited = true},
        {.debounce_ns = 20, .max_wait_ns = 50},
        {.throttle_ns = 30},
        {.after_ns = 20, .waiting = WQ_IF_WAITING_REPLACE},
    };

    return ways[dice_roll(dice, 6)];
}

#endif
