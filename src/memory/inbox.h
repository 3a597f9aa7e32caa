/* SPDX-License-Identifier: MIT */
/* inbox.h: how does a producer hand a key over without the lock?
 *
 * A bounded ring of cells. A producer puts its key into the ring and goes on;
 * whoever holds the lock next empties the ring into the core before it does
 * anything else. So producers do not wait for the lock, and the core is changed
 * by batches. When producers do that, adds.c says.
 *
 * The inbox costs no memory until a second thread comes.
 *
 * Positions count up for ever; cell `p & MASK` belongs to position p.
 *
 *   tail    next position to take; with the top bit set: closed.
 *   limit   positions below it may be taken. 0 until the ring exists.
 *   head    next position to empty; the lock holder's own.
 *
 * Why it is correct, step by step:
 *
 *  I1  A position has one producer: tail is advanced by compare-and-swap, and
 *      never while closed, so closing and accepting exclude each other.
 *  I2  A cell is written only when it is empty: p < limit <= head + CELLS. The
 *      lock holder raises `limit` with release after it has read the cell's
 *      last content; the producer reads it with acquire before it writes.
 *  I3  A cell is read only when it is full: the producer sets turn = p + 1 with
 *      release after writing; the lock holder waits for that with acquire. The
 *      wait is for the few instructions between taking and filling; it is
 *      what a critical section costs, wq__relax() copes with a descheduled
 *      producer.
 *  I4  Nobody sleeps on a full inbox. A producer advances tail, then reads
 *      `rouse_from`; a thread about to sleep lowers `rouse_from`, then reads
 *      tail. All four are sequentially consistent, so at least one sees the
 *      other: the producer then takes the lock and wakes, or the sleeper stays
 *      awake. While a getter spins and others sleep, `rouse_from` is the
 *      position after the keys that are left to it: the same argument holds for
 *      keys beyond those. So every thread that releases the lock writes
 *      `rouse_from`, then reads tail. (`rouse_from` belongs to the queue: see
 *      gate.c. tests/protocol/sleep.pml checks this.)
 *  I5  What was accepted is not lost: emptying stops at a key for which there
 *      is no memory and leaves it, and all later ones, where they are. Order
 *      stays.
 *  I6  A thread's own keys stay in order: it either puts a key here, or takes
 *      the lock and empties the inbox before it adds the next one.
 */
#ifndef WQ_MEMORY_INBOX_H
#define WQ_MEMORY_INBOX_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <wq/wq.h>

#include "core/core.h"

enum {
    WQ__INBOX_CELLS = 64,    /* a batch worth a lock; 8 KiB */
    WQ__INBOX_SHARE = 16,    /* producers hear of so many empty cells at once */
    WQ__INBOX_KEY_MAX = 104, /* longer keys take the lock */
    WQ__CACHE_LINE = 64,
};

struct wq__cell {
    /* Position + 1 of the key inside, once it is complete. */
    alignas(WQ__CACHE_LINE) _Atomic uint64_t turn;
    int64_t  now; /* when it was added, if the queue keeps ages or keys wait */
    uint32_t hash;
    uint32_t len; /* 0: the add was taken back */
    char     bytes[WQ__INBOX_KEY_MAX];
};

struct wq__inbox {
    alignas(WQ__CACHE_LINE) _Atomic uint64_t tail;
    alignas(WQ__CACHE_LINE) _Atomic uint64_t limit;
    struct wq__cell    *cells; /* set once, before `limit` */
    void               *raw;   /* owned: what `cells` was cut from */
    const wq_allocator *mem;   /* not owned */
    /* Guarded by the queue's lock, and apart from what producers read. */
    alignas(WQ__CACHE_LINE) uint64_t head;
};

void wq__inbox_init(struct wq__inbox *in, const wq_allocator *mem);
void wq__inbox_fini(struct wq__inbox *in);

/* With the lock: make the ring, if there is none yet. Failing is harmless. */
void wq__inbox_open(struct wq__inbox *in);

/* With the lock: accept no more. */
void wq__inbox_close(struct wq__inbox *in);

/* From any thread, without the lock: accept the key, and say at which position;
 * or say no: the ring is full, closed or not there, or the key too long. */
bool wq__inbox_put(struct wq__inbox *in, wq_key key, uint32_t hash, int64_t now,
                   uint64_t *position);

/* From any thread: is there a ring, open and full? A guess. */
static inline bool
wq__inbox_is_full(struct wq__inbox *in)
{
    const uint64_t limit =
        atomic_load_explicit(&in->limit, memory_order_relaxed);
    const uint64_t tail = atomic_load_explicit(&in->tail, memory_order_relaxed);

    return limit && tail >= limit && tail <= INT64_MAX;
}

/* Is there anything in it? Sequentially consistent (I4). With the lock. */
static inline bool
wq__inbox_holds(struct wq__inbox *in)
{
    return (atomic_load(&in->tail) & INT64_MAX) != in->head;
}

/* With the lock: empty the ring into the core. What was due when a key was put
 * in, and is now, at `now`, goes first. WQ_ENOMEM: some keys are still
 * inside, in order, and as accepted as before (I5). `grants`: the cells can be
 * filled again. */
wq_err wq__inbox_empty(struct wq__inbox *in, struct wq__core *core, int64_t now,
                       bool grants);

/* With the lock: the adds of `key` that are inside are taken back. */
void wq__inbox_take_back(struct wq__inbox *in, wq_key key);

/* With the lock: all empty cells can be filled again (I2). */
static inline void
wq__inbox_grant(struct wq__inbox *in)
{
    const uint64_t limit = in->head + WQ__INBOX_CELLS;

    if (in->cells &&
        atomic_load_explicit(&in->limit, memory_order_relaxed) != limit)
        atomic_store_explicit(&in->limit, limit, memory_order_release);
}

/* With the lock: how many keys are inside. */
static inline size_t
wq__inbox_len(struct wq__inbox *in)
{
    return (size_t)((atomic_load(&in->tail) & INT64_MAX) - in->head);
}

#endif
