/* SPDX-License-Identifier: MIT */
/* plain_queue.h: what does a minimal backend look like?
 *
 * A mutex, a condition variable, a list. It keeps the contract of wq.h for the
 * verbs it has, uses the system clock, and has no delays or limits: the layers
 * of backend.h add those.
 */
#ifndef WQ_PLAIN_QUEUE_H
#define WQ_PLAIN_QUEUE_H

#include <wq/backend.h>

/* Which verbs it has. */
enum plain_verbs {
    PLAIN_REQUIRED,      /* only those a backend must have */
    PLAIN_INTERRUPTIBLE, /* and interrupt */
    PLAIN_BASE,          /* and done_key and drain */
};

/* WQ_OK or WQ_ENOMEM. The caller destroys it with wq_destroy(). */
wq_err plain_create(enum plain_verbs verbs, wq_queue **out);

#endif
