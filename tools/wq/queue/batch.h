/* SPDX-License-Identifier: MIT */
/* batch.h: how do many keys get into a queue in few steps?
 *
 * In a shared queue each step is a transaction, which waits for the disk. So
 * keys are collected, and added in groups that have the same options. A key
 * that could not be added stays in the batch.
 */
#ifndef WQ_TOOL_BATCH_H
#define WQ_TOOL_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <wq/wq.h>

#include "base/text.h"
#include "options/options.h"

struct batch_key {
    size_t  at, len;  /* in the bytes */
    int64_t after_ns; /* -1: as the options say */
    int     priority;
    bool    retrying; /* see batch_is_retrying() */
};

/* Zero, with `options`, is an empty one. */
struct batch {
    const struct options *options; /* debounce, after; not owned */
    struct wq__text       bytes;   /* of all keys */
    struct batch_key     *keys;    /* owned */
    size_t                n, cap;  /* of `keys` */
};

/* Does the key wait for its retry, and must an add respect that? */
bool batch_is_retrying(const struct options *options, wq_queue *q, wq_key key);

/* How a key is added. `after_ns` is -1 if the input gives no delay. */
wq_add_options batch_options(const struct options *options, int64_t after_ns,
                             int priority, bool retrying);

/* Put one more key into it. False: out of memory. */
bool batch_put(struct batch *batch, wq_key key, int64_t after_ns, int priority);

/* Add all keys. `added` is called for each one that was added, in order.
 * Returns WQ_OK, and the batch is empty; or the error of the first key that is
 * left. */
wq_err batch_add(struct batch *batch, wq_queue *q,
                 void (*added)(void *ctx, wq_key key, wq_added result,
                               const wq_add_options *how),
                 void *ctx);

/* The first key that is left; there must be one. */
wq_key batch_first(const struct batch *batch);

void batch_fini(struct batch *batch);

#endif
