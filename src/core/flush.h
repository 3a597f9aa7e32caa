/* SPDX-License-Identifier: MIT */
/* flush.h: have all runs ended that were requested before a flush?
 *
 * A run is unfinished while its key is READY, HELD or DIRTY. It belongs to an
 * epoch: the one that was open when it was requested. A flush closes the open
 * epoch, counts its unfinished runs, and is over when no run of that epoch or
 * of an older one is unfinished. Runs that are requested later belong to a
 * later epoch and do not delay it.
 *
 *     epoch     1        2        3        4
 *           finished   closed   closed    open
 *                      ▲                  ▲
 *                      first              epoch
 *
 * A run stores the last two bits of its epoch (record.h), so at most four
 * epochs are under way. If the three before the open one are unfinished, a
 * flush cannot close the open epoch at once: it is closed as soon as the oldest
 * has finished. Such a flush also waits for the runs that are requested until
 * then.
 *
 * Runs are counted only while a flush is under way: otherwise all of them
 * belong to the open epoch. Cost: O(1) for a flush; one comparison for a done.
 */
#ifndef WQ_CORE_FLUSH_H
#define WQ_CORE_FLUSH_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WQ__EPOCHS = 4 };

struct wq__flush {
    uint64_t epoch;      /* the open one */
    uint64_t first;      /* the oldest that has not finished; or `epoch` */
    bool     close_next; /* close the open one when another has finished */
    size_t   unfinished[WQ__EPOCHS]; /* unfinished runs of the closed epochs, by
                                  epoch % WQ__EPOCHS */
};

static inline bool
wq__flush_is_under_way(const struct wq__flush *f)
{
    return f->first != f->epoch;
}

/* The mark that a run stores which is requested now. */
static inline unsigned
wq__flush_mark(const struct wq__flush *f)
{
    return (unsigned)(f->epoch % WQ__EPOCHS);
}

/* `unfinished`: all unfinished runs. Returns the epoch to wait for. */
uint64_t wq__flush_begin(struct wq__flush *f, size_t unfinished);

/* A run with this mark has ended; `unfinished`: all that have not. */
void wq__flush_end_run(struct wq__flush *f, unsigned mark, size_t unfinished);

static inline bool
wq__flush_has_finished(const struct wq__flush *f, uint64_t epoch)
{
    return epoch < f->first;
}

#endif
