/* SPDX-License-Identifier: MIT */
/* counting.h: what do limiters have in common that count failures?
 *
 * They begin alike, so that all but their when() can be the same functions.
 */
#ifndef WQ_LIMIT_COUNTING_H
#define WQ_LIMIT_COUNTING_H

#include "limit/failures.h"
#include "limit/limiter.h"

/* The first member of such a limiter. */
struct wq__counting {
    wq_limiter base; /* first: a limiter is the beginning of its kind */
    struct wq__failures failures;
};

/* For their wq_limiter_ops; `self` is the limiter. */
void     wq__counting_forget(void *self, wq_key key);
unsigned wq__counting_num_requeues(void *self, wq_key key);
void     wq__counting_undo(void *self, wq_key key);
void     wq__counting_set_clock(void *self, wq_clock *clock);
void     wq__counting_destroy(void *self);

#endif
