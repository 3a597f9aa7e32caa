/* SPDX-License-Identifier: MIT */
/* inbox.h: how does a producer add a key without the lock?
 *
 * Through a bounded ring of cells. A producer puts its key into the ring and
 * returns; the next thread that takes the lock merges all keys of the ring into
 * the core before it does anything else. So producers do not wait for the lock,
 * and the core changes in batches. adds.c decides when a producer uses the
 * inbox.
 *
 * The inbox needs no memory until a second thread comes.
 *
 * Positions count up for ever; cell `p & MASK` belongs to position p.
 *
 *   tail    the next position to fill; with the top bit set: closed.
 *   limit   positions below it may be filled. 0 until the ring exists.
 *   head    the next position to empty; private to the lock holder.
 *
 * Why it is correct, step by step:
 *
 *  I1  A position has one producer: tail is advanced by compare-and-swap, and
 *      never while closed, so closing and accepting exclude each other.
 *  I2  A cell is written only when it is empty: p < limit <= head + CELLS. The
 *      lock holder raises `limit` with release after it has read the cell's
 *      previous content; the producer reads `limit` with acquire before it
 *      writes.
 *  I3  A cell is read only when it is full: the producer sets seq = p + 1 with
 *      release after writing; the lock holder reads it with acquire until it is
 *      set. That wait lasts for the few instructions between advancing tail and
 *      filling the cell; if the producer was descheduled there, wq__relax()
 *      lets it run.
 *  I4  No getter sleeps while the inbox holds a key that no thread will see. A
 *      producer advances tail, then reads `wake_from`; a thread about to sleep
 *      lowers `wake_from`, then reads tail. All four accesses are sequentially
 *      consistent, so at least one of the two sees the other's write: the
 *      producer takes the lock and wakes the getter, or the getter does not
 *      sleep. While a getter spins and others sleep, `wake_from` is the
 *      position after the keys that are left to the spinning one: the same
 *      argument holds for keys from there on. During a nap (patience.h) it is
 *      beyond all positions: the getter that takes the nap will see the keys.
 *      So every thread that releases the lock writes `wake_from`, then reads
 *      tail. (`wake_from` belongs to the queue: see gate.c.
 *      tests/protocol/sleep.pml checks this.)
 *  I5  An accepted key is not lost: emptying stops at a key that cannot be
 *      merged for lack of memory, and leaves it and all later keys in the
 *      ring, in order.
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
    WQ__INBOX_CELLS = 64,    /* 8 KiB; enough keys to be worth a lock */
    WQ__INBOX_SHARE = 16,    /* cells that are offered to producers at once */
    WQ__INBOX_KEY_MAX = 104, /* producers of longer keys take the lock */
    WQ__CACHE_LINE = 64,
};

struct wq__cell {
    /* The position of its key, plus 1, once the key is complete. */
    alignas(WQ__CACHE_LINE) _Atomic uint64_t seq;
    /* When it was added, if the queue keeps ages or keys may be WAITING. */
    int64_t  now;
    uint32_t hash;
    uint32_t len; /* 0: the add was withdrawn */
    char     bytes[WQ__INBOX_KEY_MAX];
};

struct wq__inbox {
    alignas(WQ__CACHE_LINE) _Atomic uint64_t tail;
    alignas(WQ__CACHE_LINE) _Atomic uint64_t limit;
    struct wq__cell    *cells; /* set once, before `limit` */
    void               *raw;   /* owned: what `cells` was cut from */
    const wq_allocator *mem;   /* not owned */
    /* Guarded by the queue's lock; on another cache line than what producers
     * read. */
    alignas(WQ__CACHE_LINE) uint64_t head;
};

void wq__inbox_init(struct wq__inbox *in, const wq_allocator *mem);
void wq__inbox_fini(struct wq__inbox *in);

/* With the lock: allocate the ring, if there is none yet. If that fails,
 * producers go on taking the lock. */
void wq__inbox_open(struct wq__inbox *in);

/* With the lock: accept no more keys. */
void wq__inbox_close(struct wq__inbox *in);

/* From any thread, without the lock: put a key into the ring, at *position.
 * False: the ring is full, closed or not allocated, or the key is too long. */
bool wq__inbox_put(struct wq__inbox *in, wq_key key, uint32_t hash, int64_t now,
                   uint64_t *position);

/* From any thread: is there a ring that is open and full? May be out of
 * date. */
static inline bool
wq__inbox_is_full(struct wq__inbox *in)
{
    const uint64_t limit =
        atomic_load_explicit(&in->limit, memory_order_relaxed);
    const uint64_t tail = atomic_load_explicit(&in->tail, memory_order_relaxed);

    return limit && tail >= limit && tail <= INT64_MAX;
}

/* With the lock: does it hold a key? Sequentially consistent (I4). */
static inline bool
wq__inbox_holds(struct wq__inbox *in)
{
    return (atomic_load(&in->tail) & INT64_MAX) != in->head;
}

/* With the lock: merge all keys of the ring into the core. Deadlines that had
 * passed when a key was put into the ring, up to `now`, are promoted before it
 * . WQ_ENOMEM: some keys are still in the ring, in order (I5). `grants`:
 * offer the empty cells to producers. */
wq_err wq__inbox_empty(struct wq__inbox *in, struct wq__core *core, int64_t now,
                       bool grants);

/* With the lock: withdraw the adds of `key` that are in the ring. */
void wq__inbox_withdraw(struct wq__inbox *in, wq_key key);

/* With the lock: offer all empty cells to producers (I2). */
static inline void
wq__inbox_grant(struct wq__inbox *in)
{
    const uint64_t limit = in->head + WQ__INBOX_CELLS;

    if (in->cells &&
        atomic_load_explicit(&in->limit, memory_order_relaxed) != limit)
        atomic_store_explicit(&in->limit, limit, memory_order_release);
}

/* With the lock: how many keys it holds. */
static inline size_t
wq__inbox_len(struct wq__inbox *in)
{
    return (size_t)((atomic_load(&in->tail) & INT64_MAX) - in->head);
}

#endif
