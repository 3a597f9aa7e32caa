/* SPDX-License-Identifier: MIT */
/* told_queue.h: what does a queue look like that says what a test wants?
 *
 * A backend without keys: its numbers are those the test has put there.
 *
 *     struct told told;
 *     told_init(&told);
 *     told.counts.ready = 7;
 *     wq_read_stats(&told.base, ...)           says 7
 *     told.backend.depths = NULL;         and of priorities it knows nothing
 *
 * Threads: those of the test see to it that nobody writes while others read.
 */
#ifndef WQ_TOLD_QUEUE_H
#define WQ_TOLD_QUEUE_H

#include <wq/backend.h>

struct told_key {
    wq_key      key;
    wq_key_info info;
};

struct told {
    wq_queue               base;
    wq_backend             backend; /* its own: verbs can be taken away */
    const char            *name;
    wq_stats               counts;
    wq_err                 stats_err; /* what stats() answers */
    const wq_depth        *depths;
    size_t                 depths_len;
    wq_err                 depths_err;
    const struct told_key *keys;
    size_t                 keys_len;
    wq_err                 each_err; /* after the keys */
    unsigned               asked;    /* calls of stats() */
};

/* A queue with all verbs of inspect.h, and nothing in it. */
void told_init(struct told *told);

#endif
