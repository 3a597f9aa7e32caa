/* SPDX-License-Identifier: MIT */
/* ring.c: how fast can bytes get from one thread to another at all?
 *
 * A ring for one producer and one consumer: the producer copies the key into a
 * cell and hands the cell over by one store. No key is hashed or merged, and no
 * thread sleeps: a thread that waits spins, and yields now and then.
 */
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "bench.h"

enum { CELLS = 4096, SPINS = 100 };

struct ring {
    /* Keys added: a release store after the cell was written; the consumer's
     * acquire load then sees the cell. */
    _Alignas(64) atomic_size_t tail;
    size_t seen_head; /* `head` as the producer last read it */
    /* Keys taken: a release store after the cell was read; after its acquire
     * load the producer may overwrite the cell. */
    _Alignas(64) atomic_size_t head;
    size_t seen_tail; /* `tail` as the consumer last read it */
    /* Shut down: a release store after the last `tail`. */
    _Alignas(64) atomic_bool ended;
    _Alignas(64) char cells[CELLS][KEY_LEN + 1];
};

static void *
create(void)
{
    struct ring *r = aligned_alloc(64, sizeof *r);

    must(r != NULL, "malloc");
    memset(r, 0, sizeof *r);
    return r;
}

static void
wait_a_little(unsigned *spins)
{
    if (++*spins % SPINS == 0)
        (void)sched_yield();
}

static void
add(void *q, wq_key key)
{
    struct ring *r = q;
    const size_t at = atomic_load_explicit(&r->tail, memory_order_relaxed);

    for (unsigned spins = 0; at - r->seen_head == CELLS;) {
        r->seen_head = atomic_load_explicit(&r->head, memory_order_acquire);
        if (at - r->seen_head == CELLS)
            wait_a_little(&spins);
    }
    memcpy(r->cells[at % CELLS], key.data, KEY_LEN);
    atomic_store_explicit(&r->tail, at + 1, memory_order_release);
}

static bool
get(void *q, void **item)
{
    struct ring *r = q;
    const size_t at = atomic_load_explicit(&r->head, memory_order_relaxed);

    for (unsigned spins = 0; at == r->seen_tail;) {
        const bool ended =
            atomic_load_explicit(&r->ended, memory_order_acquire);
        r->seen_tail = atomic_load_explicit(&r->tail, memory_order_acquire);
        if (at != r->seen_tail)
            break;
        if (ended)
            return false;
        wait_a_little(&spins);
    }
    *item = r->cells[at % CELLS];
    return true;
}

static void
done(void *q, void *item)
{
    struct ring *r = q;

    (void)item;
    atomic_store_explicit(
        &r->head, atomic_load_explicit(&r->head, memory_order_relaxed) + 1,
        memory_order_release);
}

static void
shutdown(void *q)
{
    struct ring *r = q;
    atomic_store_explicit(&r->ended, true, memory_order_release);
}

const struct side bench_side = {
    .only = " 1x1 ",
    SIDE_VERBS,
    .shutdown = shutdown,
    .destroy = free,
};
