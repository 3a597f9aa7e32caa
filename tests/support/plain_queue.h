/* SPDX-License-Identifier: MIT */
/* plain_queue.h: what does a queue look like that somebody else wrote, with the
 * least a backend must offer?
 *
 * A lock, a condition, a list. It keeps the contract of wq.h for what it
 * offers, in real time, and knows nothing of delays or limits: what the layers
 * of backend.h are for.
 */
#ifndef WQ_PLAIN_QUEUE_H
#define WQ_PLAIN_QUEUE_H

#include <wq/backend.h>

/* Which verbs it offers. */
enum plain_verbs {
    PLAIN_REQUIRED,      /* only those a backend must have */
    PLAIN_INTERRUPTIBLE, /* and interrupt */
    PLAIN_BASE,          /* and done_key and drain */
};

/* WQ_OK or WQ_ENOMEM. The caller gives it to wq_destroy(). */
wq_err plain_create(enum plain_verbs verbs, wq_queue **out);

#endif
