/* SPDX-License-Identifier: MIT */
/* inbox.c: adding keys without the lock; see inbox.h for the argument, I1 to
 * I6. */
#include "memory/inbox.h"

#include <string.h>

#include "core/mem.h"
#include "core/same.h"
#include "port/relax.h"

#define MASK (WQ__INBOX_CELLS - 1)
#define CLOSED (UINT64_C(1) << 63)

_Static_assert((WQ__INBOX_CELLS & MASK) == 0, "positions wrap by masking");
_Static_assert(sizeof(struct wq__cell) == 128, "two cache lines a cell");

/* Cells are aligned to cache lines; the allocator guarantees less. */
#define RING_BYTES                                                             \
    wq__mem_padded(sizeof(struct wq__cell) * WQ__INBOX_CELLS, WQ__CACHE_LINE)

void
wq__inbox_init(struct wq__inbox *in, const wq_allocator *mem)
{
    atomic_init(&in->tail, 0);
    atomic_init(&in->limit, 0);
    in->head = 0;
    in->cells = NULL;
    in->raw = NULL;
    in->mem = mem;
}

void
wq__inbox_fini(struct wq__inbox *in)
{
    wq__mem_free(in->mem, in->raw, RING_BYTES);
    in->raw = NULL;
}

void
wq__inbox_open(struct wq__inbox *in)
{
    if (in->raw)
        return;
    in->raw = wq__mem_alloc(in->mem, RING_BYTES);
    if (!in->raw)
        return;

    in->cells = wq__mem_align(in->raw, WQ__CACHE_LINE);
    for (size_t i = 0; i < WQ__INBOX_CELLS; i++)
        atomic_init(&in->cells[i].seq, 0);
    wq__inbox_grant(in);
}

void
wq__inbox_close(struct wq__inbox *in)
{
    atomic_fetch_or(&in->tail, CLOSED);
}

bool
wq__inbox_put(struct wq__inbox *in, wq_key key, uint32_t hash, int64_t now,
              uint64_t *position)
{
    if (key.len > WQ__INBOX_KEY_MAX)
        return false;

    uint64_t at = atomic_load_explicit(&in->tail, memory_order_relaxed);
    do { /* a closed tail is beyond every limit */
        if (at >= atomic_load_explicit(&in->limit, memory_order_acquire))
            return false;
    } while (!atomic_compare_exchange_weak(&in->tail, &at, at + 1)); /* I1 I4 */

    wq__maybe_yield();
    struct wq__cell *cell = &in->cells[at & MASK];
    cell->now = now;
    cell->hash = hash;
    cell->len = (uint32_t)key.len;
    memcpy(cell->bytes, key.data, key.len);
    atomic_store_explicit(&cell->seq, at + 1, memory_order_release); /* I3 */
    *position = at;
    return true;
}

static void
await_filled(struct wq__cell *cell, uint64_t seq)
{
    for (unsigned round = 0;
         atomic_load_explicit(&cell->seq, memory_order_acquire) != seq; round++)
        wq__relax(round);
}

/* Prefetch what will be merged a little later: a cell, from the cache of the
 * producer's processor, and the index slot of the key in a nearer cell, from
 * memory. A cell that is not filled yet is skipped. */
__attribute__((always_inline)) static inline void
look_ahead(const struct wq__inbox *in, const struct wq__core *core,
           uint64_t end)
{
    enum { CELLS = 8, SLOTS = 4 };

    if (end - in->head > CELLS)
        __builtin_prefetch(&in->cells[(in->head + CELLS) & MASK]);
    if (end - in->head <= SLOTS)
        return;
    const struct wq__cell *cell = &in->cells[(in->head + SLOTS) & MASK];
    if (atomic_load_explicit(&cell->seq, memory_order_acquire) ==
        in->head + SLOTS + 1)
        wq__index_prefetch(&core->index, cell->hash);
}

wq_err
wq__inbox_empty(struct wq__inbox *in, struct wq__core *core, int64_t now,
                bool grants)
{
    const uint64_t end = atomic_load(&in->tail) & ~CLOSED;
    wq_err         err = WQ_OK;

    if (in->head == end)
        return WQ_OK;
    while (in->head != end) {
        struct wq__cell *cell = &in->cells[in->head & MASK];
        wq_added         what;

        look_ahead(in, core, end);
        await_filled(cell, in->head + 1);
        if (core->waiting.len)
            wq__core_promote(core, cell->now < now ? cell->now : now);
        if (cell->len)
            err = wq__core_admit(core, (wq_key){cell->bytes, cell->len},
                                 cell->hash, cell->now, &what);
        if (err)
            break;
        if (++in->head % WQ__INBOX_SHARE == 0 && grants)
            wq__inbox_grant(in);
    }
    if (grants)
        wq__inbox_grant(in);
    return err;
}

void
wq__inbox_withdraw(struct wq__inbox *in, wq_key key)
{
    const uint64_t end = atomic_load(&in->tail) & ~CLOSED;

    for (uint64_t at = in->head; at != end; at++) {
        struct wq__cell *cell = &in->cells[at & MASK];

        await_filled(cell, at + 1);
        if (wq__same_key((wq_key){cell->bytes, cell->len}, key))
            cell->len = 0;
    }
}
