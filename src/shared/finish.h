/* SPDX-License-Identifier: MIT */
/* finish.h: how does a hold end, together with the next operation? */
#ifndef WQ_SHARED_FINISH_H
#define WQ_SHARED_FINISH_H

#include "shared/shared.h"

/* What wq_done() means: only the hold ends. In the store that is DROP, but it is
 * not counted as one. */
#define WQ__OUTCOME_END ((wq_outcome)1000)

static inline wq_result
wq__result_end(void)
{
    return (wq_result){.outcome = WQ__OUTCOME_END};
}

/* wq_finish() of *item, not in a child of fork(); `then`, unless NULL, is a get
 * of the same batch. The get takes keys only if this returns WQ_OK or
 * WQ_EGIVENUP. */
wq_err wq__shared_finish_then(struct wq__shared *s, wq_item **item,
                              wq_result result, struct wq__op *then);

#endif
