/* SPDX-License-Identifier: MIT */
/* shared_queue.h: how does a test open a shared queue?
 *
 * The shell of src/shared over a store inside the process (memory_store.h).
 */
#ifndef WQ_TEST_SHARED_QUEUE_H
#define WQ_TEST_SHARED_QUEUE_H

#include <stdbool.h>

#include <wq/wq.h>

struct memory_store; /* memory_store.h, for tests that see src/ */
struct wq__engine;

/* A queue in a store of its own, which ends with it. Takes over config->limiter
 * in every case. */
wq_err shared_queue_open(const wq_config *config, wq_queue **out);

/* Another handle of the store of the last shared_queue_open(), which must have a
 * handle still. Takes over config->limiter in every case. */
wq_err shared_queue_open_again(const wq_config *config, wq_queue **out);

/* What a handle of a store needs besides the config. */
struct shared_queue_options {
    int64_t  lease_ns;     /* 0: holds do not end by time */
    unsigned max_expiries; /* 0: any number */
    bool     manual_renew;
};

/* A handle of `store`. Takes over config->limiter in every case. `engine`, if
 * not NULL, is its engine, for faults. */
wq_err shared_queue_join(struct memory_store               *store,
                         const struct shared_queue_options *options,
                         const wq_config *config, struct wq__engine **engine,
                         wq_queue **out);

#endif
