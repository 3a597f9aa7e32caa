/* SPDX-License-Identifier: MIT */
/* chaos.h: does a queue in a store keep its promises while processes are killed
 * and stopped, and the store is disturbed, at random?
 *
 * A supervisor, which never uses the queue, starts worker processes, kills and
 * stops them at random, and starts new ones. Each has two threads that work and
 * one that adds. A janitor, which is not killed, revives DEAD keys. What is
 * right is decided in shared memory, without the queue's help:
 *
 *   I1  lost    at rest, a worker has seen every acknowledged add (ledger.h)
 *   I2  double  two workers are certain to hold one key at one time
 *   I3  back    the fence of a hand-out is not larger than that of an earlier
 *               one of the key
 *   I4  stale   a finish was accepted although the key had been handed out
 *               again
 *   I7  stuck   at rest, a key is not finished: HELD by the dead, for example
 *   I9  broken  wq_check() or the store finds a fault
 *
 * "At rest" is about every second: adds and disturbances pause until all is done.
 */
#ifndef WQ_TEST_CHAOS_H
#define WQ_TEST_CHAOS_H

#include <stdbool.h>
#include <stdint.h>

#include <wq/wq.h>

enum { CHAOS_LEASE_MS = 300, CHAOS_JANITOR = 100 };

/* A store under test. */
struct chaos {
    const char *name;
    bool        leases; /* a hold ends CHAOS_LEASE_MS after its last renewal;
                           else, with its process */
    /* Open the queue for the worker process `slot`, or CHAOS_JANITOR. Keys are
     * retried within 50 ms, and never DEAD by expiries. */
    wq_err (*open)(unsigned slot, wq_queue **out);
    /* Disturb the store, until the next call of one of the two. May be NULL. */
    void (*disturb)(uint64_t random);
    void (*calm)(void);
    /* At the end: print figures, each after a comma. May be NULL. */
    void (*print)(void);
    /* At the end: the store finds no fault in itself. May be NULL. */
    bool (*is_intact)(void);
};

/* Prints a line with the figures. False: a promise was broken. */
bool chaos_run(const struct chaos *c, long seconds);

#endif
