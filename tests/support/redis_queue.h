/* SPDX-License-Identifier: MIT */
/* redis_queue.h: how do tests open queues in a Redis server?
 *
 * The server is that of the process (redis_server.h); each queue has a name of
 * its own. The lease has no end, and no thread renews it: tests step their clocks
 * as they like.
 */
#ifndef WQ_TEST_REDIS_QUEUE_H
#define WQ_TEST_REDIS_QUEUE_H

#include <wq/wq.h>

/* A new queue. Takes over config->limiter, as wq_create() does. */
wq_err redis_queue_open(const wq_config *config, wq_queue **out);

/* The queue that was opened last. */
wq_err redis_queue_open_again(const wq_config *config, wq_queue **out);

/* The same with REDIS_QUEUE_PARTITIONS partitions. */
enum { REDIS_QUEUE_PARTITIONS = 3 };
wq_err redis_queue_open_spread(const wq_config *config, wq_queue **out);
wq_err redis_queue_open_spread_again(const wq_config *config, wq_queue **out);

/* The partition of a key, of `n`, as docs/backends.md says it. */
unsigned redis_queue_partition(wq_key key, unsigned n);

/* Returns when the server has answered all that it was asked before. */
void redis_queue_settle(void);

#endif
