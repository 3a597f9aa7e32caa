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

enum { WQ__SENTENCE_BYTES = 256 }; /* longer ones are cut; wq.h promises it */

struct wq__sentence {
    char     text[WQ__SENTENCE_BYTES]; /* "" until the first failure */
    unsigned number; /* how many sentences the thread has set */
};

/* How many sentences the calling thread has set. If a callback fails and this
 * has changed, the callback has explained itself. */
unsigned wq__fail_count(void);

/* The thread's sentence, to be restored after a callback whose failure must not
 * replace it. A sentence that the callback replaced gets a new number. */
struct wq__sentence wq__fail_save(void);
void                wq__fail_restore(const struct wq__sentence *saved);

#endif
