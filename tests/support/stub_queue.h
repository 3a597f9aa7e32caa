/* SPDX-License-Identifier: MIT */
/* stub_queue.h: how does a test choose what a queue reports of itself?
 *
 * A backend that holds no keys and returns the values that the test has set.
 *
 *     struct stub_queue stub;
 *     stub_queue_init(&stub);
 *     stub.counts.ready = 7;
 *     wq_read_stats(&stub.base, ...)      reports 7 READY keys
 *     stub.backend.depths = NULL;         takes a verb away
 *
 * Threads: not thread-safe. The test must not write while others read.
 */
#ifndef WQ_TEST_STUB_QUEUE_H
#define WQ_TEST_STUB_QUEUE_H

#include <wq/backend.h>

struct stub_key {
    wq_key      key;
    wq_key_info info;
};

struct stub_queue {
    wq_queue               base;
    wq_backend             backend; /* its own copy: verbs can be removed */
    const char            *name;
    wq_stats               counts;
    wq_err                 stats_err; /* what stats() returns */
    const wq_depth        *depths;
    size_t                 depths_len;
    wq_err                 depths_err; /* what depths() returns */
    const struct stub_key *keys;
    size_t                 keys_len;
    wq_err                 each_err; /* what each() returns after all keys */
};

/* An empty queue with all verbs of inspect.h. Add, get and done return
 * WQ_ENOTSUP. */
void stub_queue_init(struct stub_queue *stub);

#endif
