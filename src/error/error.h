/* SPDX-License-Identifier: MIT */
/* error.h: why did the last call of this thread fail?
 *
 * A function that refuses its arguments, or that cannot make what it is to
 * make, returns wq_fail(err, sentence); see <wq/backend.h>. A function whose
 * caller may go on without it (a thread that wq_parallelize() does not need)
 * returns the bare error, so that a successful call changes no sentence.
 */
#ifndef WQ_ERROR_ERROR_H
#define WQ_ERROR_ERROR_H

#include <wq/backend.h>

/* How many sentences the calling thread has set. If a callback fails and this
 * has changed, the callback has explained itself. */
unsigned wq__fail_count(void);

#endif
