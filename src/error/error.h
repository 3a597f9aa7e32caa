/* SPDX-License-Identifier: MIT */
/* error.h: why did the last call of this thread fail?
 *
 * A function that refuses its arguments, or cannot create an object, returns
 * wq_fail(err, sentence); see <wq/backend.h>. A function whose caller may
 * succeed without it (wq_parallelize() does not need every thread) returns the
 * error alone, so that a successful call changes no sentence.
 */
#ifndef WQ_ERROR_ERROR_H
#define WQ_ERROR_ERROR_H

#include <wq/backend.h>

enum {
    WQ__SENTENCE_BYTES = 256
}; /* longer sentences are cut; documented in wq.h */

struct wq__sentence {
    char     text[WQ__SENTENCE_BYTES]; /* "" until the first failure */
    unsigned number; /* how many sentences the thread has set */
};

/* How many sentences the calling thread has set. If a callback fails and this
 * has changed, the callback has set a sentence. */
WQ__STORE_API unsigned wq__fail_count(void);

/* Save the thread's sentence before a callback whose failure must not replace
 * it, and restore it after. A restored sentence gets a new number. */
WQ__STORE_API struct wq__sentence wq__fail_save(void);
WQ__STORE_API void wq__fail_restore(const struct wq__sentence *saved);

#endif
