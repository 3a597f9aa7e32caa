/* SPDX-License-Identifier: MIT */
/* barrier.h: who pays when two threads must not miss each other?
 *
 * Each of two threads writes something, then reads what the other one writes,
 * and at least one must see the other's. Usually both pay, with a barrier
 * between the two steps. If one of them does so a million times as often, the
 * other one can pay for both: it has the kernel interrupt all processors that
 * run threads of this process, and each passes a full barrier (membarrier(2)).
 * The first one must then only keep the compiler from changing the order.
 *
 * ThreadSanitizer knows nothing of that system call. For it both sides pay: the
 * tests of the algorithm run with it, and those of the real thing without.
 */
#ifndef WQ_PORT_BARRIER_H
#define WQ_PORT_BARRIER_H

#include <stdatomic.h>
#include <stdbool.h>

#if defined(__SANITIZE_THREAD__)
#define WQ__BARRIER_SYMMETRIC 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WQ__BARRIER_SYMMETRIC 1
#endif
#endif
#ifndef WQ__BARRIER_SYMMETRIC
#define WQ__BARRIER_SYMMETRIC 0
#endif

/* For the reads: where both sides pay, all four steps have one order. */
#if WQ__BARRIER_SYMMETRIC
#define WQ__BARRIER_READ memory_order_seq_cst
#else
#define WQ__BARRIER_READ memory_order_relaxed
#endif

/* Can it be done here? Asks the system once, which takes milliseconds in a
 * process with threads: not to be done with a lock held. */
bool wq__barrier_available(void);

/* The side that does it often: write, then read something. */
static inline void
wq__barrier_store_light(atomic_bool *to, bool value)
{
#if WQ__BARRIER_SYMMETRIC
    (void)atomic_exchange(to, value);
#else
    atomic_store_explicit(to, value, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
#endif
}

/* The side that does it rarely: likewise. Costs a system call. */
void wq__barrier_store_heavy(_Atomic(const void *) *to, const void *value);

#endif
