/* SPDX-License-Identifier: MIT */
/* flush.h: has everything been worked on that was asked for before?
 *
 * Every run that is owed, by a READY, HELD or DIRTY key, belongs to a turn: the
 * one that was open when it was asked for. A flush closes the open turn, counts
 * what is owed of it, and is over when neither that turn nor an older one owes
 * anything. What is asked for later belongs to a later turn and does not delay
 * it.
 *
 *     turn      1        2        3        4
 *           finished   closed   closed    open
 *                      ▲                  ▲
 *                      first_             turn
 *
 * A run carries the last two bits of its turn (record.h), so at most four turns
 * are under way. When the three before the open one still owe something, a
 * flush does not close the open turn at once but has it closed as soon as the
 * oldest has finished: it then waits for a little more than it has to.
 *
 * Nothing is counted while no flush is under way: all runs are of the open turn
 * then. Cost: O(1) a flush; one comparison a done.
 */
#ifndef WQ_CORE_FLUSH_H
#define WQ_CORE_FLUSH_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WQ__TURNS = 4 };

struct wq__flush {
    uint64_t turn; /* the open one; all before `first` have finished */
    uint64_t
           first; /* the oldest that is closed and owes something; or `turn` */
    bool   close_next;      /* close the open one when there is room */
    size_t owed[WQ__TURNS]; /* runs of the closed turns, by turn % TURNS */
};

static inline bool
wq__flush_is_under_way(const struct wq__flush *f)
{
    return f->first != f->turn;
}

/* What a run that is asked for now carries. */
static inline unsigned
wq__flush_mark(const struct wq__flush *f)
{
    return (unsigned)(f->turn % WQ__TURNS);
}

/* `owed`: all runs that are owed now. Returns the turn to wait for. */
uint64_t wq__flush_begin(struct wq__flush *f, size_t owed);

/* A run with this mark is owed no longer; `owed`: how many still are. */
void wq__flush_end_run(struct wq__flush *f, unsigned mark, size_t owed);

static inline bool
wq__flush_has_finished(const struct wq__flush *f, uint64_t turn)
{
    return turn < f->first;
}

#endif
