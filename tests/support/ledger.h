/* SPDX-License-Identifier: MIT */
/* ledger.h: which keys must a queue still have? Counts in memory that processes
 * share, kept beside the queue under test and without its help.
 *
 * Every add takes a ticket first. A worker that has got a key notes the last
 * ticket, because a later add begins after the get and needs a run of its own;
 * an earlier one may be covered by this run. When the work is done the worker
 * notes that before it says so to the queue. So a key whose last acknowledged
 * ticket is later than the last one that may be done is in the queue, whatever
 * has happened.
 */
#ifndef WQ_TEST_LEDGER_H
#define WQ_TEST_LEDGER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct ledger_key {
    atomic_uint want;  /* tickets taken */
    atomic_uint acked; /* the last whose add has returned WQ_OK */
    atomic_uint done;  /* the last that may be done */
};

static inline void
ledger_raise(atomic_uint *at, unsigned to)
{
    unsigned was = atomic_load(at);

    while (was < to && !atomic_compare_exchange_weak(at, &was, to))
        ;
}

static inline unsigned
ledger_take_ticket(struct ledger_key *k)
{
    return atomic_fetch_add(&k->want, 1) + 1;
}

/* Is a run due? */
static inline bool
ledger_owes(const struct ledger_key *k)
{
    return atomic_load(&k->acked) > atomic_load(&k->done);
}

#endif
