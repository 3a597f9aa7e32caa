/* SPDX-License-Identifier: MIT */
/* result.h: what does the result of a worker mean for its loan and its key? The
 * same for every backend. */
#ifndef WQ_CORE_RESULT_H
#define WQ_CORE_RESULT_H

#include <wq/wq.h>

/* wq_finish() did what the result says, before the loan ends, and that returned
 * `err`: must the loan end? Otherwise nothing has changed. */
static inline bool
wq__result_ends_loan(wq_err err)
{
    return err == WQ_OK || err == WQ_EGIVENUP || err == WQ_EDROPPED ||
           err == WQ_ESHUTDOWN;
}

/* The loan has ended: was the key dropped, and is it not counted yet? The queue
 * counts the keys that it gives up. */
static inline bool
wq__result_drops(wq_result result, wq_err err)
{
    return err == WQ_EDROPPED || err == WQ_ESHUTDOWN ||
           (err == WQ_OK && result.outcome == WQ_RESULT_DROP);
}

/* How RETRY, AFTER and BACK add the key of `item` again [PQ-47]. Any unknown
 * outcome is a retry. */
static inline wq_add_options
wq__result_add(wq_result result, const wq_item *item)
{
    const wq_add_options how = {
        .size = sizeof how,
        .priority = result.prioritized ? result.priority : item->priority,
        .rate_limited = result.outcome != WQ_RESULT_AFTER &&
                        result.outcome != WQ_RESULT_BACK,
        .after_ns = result.outcome == WQ_RESULT_AFTER && result.after_ns > 0
                        ? result.after_ns
                        : 0,
    };
    return how;
}

#endif
