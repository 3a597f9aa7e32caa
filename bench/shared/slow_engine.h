/* SPDX-License-Identifier: MIT */
/* slow_engine.h: a shared queue whose store takes its time.
 *
 * The store is the one of the tests (support/memory_store.h), inside the
 * process. Each call of it takes `call_ns` more, as a transaction or a round
 * trip would.
 */
#ifndef WQ_BENCH_SLOW_ENGINE_H
#define WQ_BENCH_SLOW_ENGINE_H

#include <stdint.h>

#include <wq/wq.h>

enum slow_how {
    SLOW_SLEEPS, /* the processor is free meanwhile: a network, a disk */
    SLOW_SPINS,  /* it is not: a database inside the process */
};

/* A queue in a store of its own, which ends with it. */
wq_queue *slow_queue_open(enum slow_how how, int64_t call_ns);

#endif
