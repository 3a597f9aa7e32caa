/* SPDX-License-Identifier: MIT */
/* ring.h: how does a test send every key through the inbox's ring?
 *
 * A producer that finds the lock free adds under the lock, so that the ring is
 * seldom used. These functions do what wq_add() does when the lock is taken.
 */
#ifndef WQ_STRESS_RING_H
#define WQ_STRESS_RING_H

#include "stress/crowd.h"

#include "memory/gate.h"
#include "memory/memory.h"

/* From now on producers may use the ring. */
static inline struct wq__memory *
open_ring(wq_queue *q)
{
    struct wq__memory *m = wq__memory_of(q);

    wq__gate_enter(m);
    wq__inbox_open(&m->inbox);
    wq__gate_leave(m);
    return m;
}

/* Add the number `n` as a key, through the ring. */
static inline void
hand_over(struct wq__memory *m, uint64_t n)
{
    const wq_key   key = wq_u64(&n);
    const uint32_t hash = wq__core_hash(&m->core, key);
    uint64_t       position;

    if (!wq__inbox_put(&m->inbox, key, hash, 0, &position))
        broken("the ring is full");
    if (position < atomic_load(&m->wake_from))
        return;
    wq__gate_enter(m);
    (void)wq__gate_catch_up(m);
    wq__gate_leave(m);
}

/* Keep the processor busy for up to `longest` steps. */
static inline void
spin_a_moment(struct dice *dice, size_t longest)
{
    for (volatile size_t i = dice_roll(dice, longest); i > 0; i--)
        ;
}

/* Wait until `who` has taken `n` keys. The producer does not yield: the tests
 * are about the race between it and a thread that falls asleep. */
static inline void
await_taken(_Atomic uint64_t *taken, uint64_t n, const char *who)
{
    const int64_t limit = wq__time_now() + 20 * SECOND;

    for (uint64_t i = 0; atomic_load(taken) != n; i++)
        if (i % 65536 == 65535 && wq__time_now() > limit)
            broken("key %llu is in the ring, and the %s sleeps",
                   (unsigned long long)n, who);
}

#endif
