/* SPDX-License-Identifier: MIT */
/* gate.h: how do threads get into the core, sleep there, and get out?
 *
 * Every verb is: enter (take the lock), catch up (take in what producers handed
 * over and what is due), ask the core, leave. leave() decides whom to wake,
 * from the state alone, releases the lock and wakes them. Whoever changes the
 * state leaves through it, so no change can forget to wake; while nobody is
 * blocked it costs one comparison.
 *
 *   READY keys (or an inbox that could not be emptied), and getters asleep
 *                         as many getters as nobody is coming for yet
 *   a deadline nobody sleeps until, and getters asleep
 *                         one getter, to sleep until then instead
 *   shut down, and no key left that could come
 *                         all getters, to go home
 *   room for new keys, and producers that wait for it
 *                         as many as it is enough for, who came first first
 *   a quiet time that nobody sleeps until the end of, and such producers
 *                         one of them, to sleep until then
 *   no work left          all drainers
 *   what a flush, or the like, waits for is over
 *                         those who wait for it (waits.c)
 *
 * An event loop that watches wq_fd() is one more getter that sleeps: leave()
 * lights its beacon when a get would not block, and has the clock do so at the
 * earliest deadline.
 *
 * Sleeping costs no processor time, and waking is a system call only if
 * somebody sleeps. Before a getter sleeps it spins for a moment, if no other
 * one does and if that has paid lately (spin.h): a key that comes within it is
 * taken without a system call on either side. A spinning getter may have lost
 * its processor: after a few keys (rouse_from() in gate.c), or when it spins for
 * longer than any spin lasts, the next key wakes a getter that sleeps.
 */
#ifndef WQ_MEMORY_GATE_H
#define WQ_MEMORY_GATE_H

#include "memory/memory.h"

static inline void
wq__gate_enter(struct wq__memory *m)
{
    wq__lock_take(&m->lock);
}

/* Release the lock; wake the collection `wake` (may be NULL) and whoever has
 * something to do now. */
void wq__gate_leave_waking(struct wq__memory *m, struct wq__sleeper *wake);

/* Does a sink want to hear of changes? Set once; relaxed with the lock. */
static inline bool
wq__gate_tells(struct wq__memory *m)
{
    return atomic_load_explicit(&m->tells, memory_order_relaxed);
}

/* The same, and nobody else is to be woken. Most of the time nobody sleeps,
 * spins, watches or listens: then there is nothing to decide. */
static inline void
wq__gate_leave(struct wq__memory *m)
{
    if (m->company) {
        wq__gate_leave_waking(m, NULL);
        return;
    }
    wq__lock_assert_taken(&m->lock);
    wq__lock_release(&m->lock);
}

/* Counts that are kept without the lock have changed: who leaves, tells. */
static inline void
wq__gate_tell(struct wq__memory *m)
{
    if (!atomic_load_explicit(&m->tells, memory_order_acquire))
        return;
    wq__gate_enter(m);
    wq__gate_leave(m);
}

/* Tell the sinks what has changed, without the lock, while wq_destroy() waits
 * for the caller. True: the lock was released meanwhile. */
bool wq__gate_tell_inside(struct wq__memory *m);

/* Leave after a question: as wq__gate_leave(), but no sink is told. It may be a
 * sink that asks, with locks of its own; who changes something next, tells. */
void wq__gate_leave_asking(struct wq__memory *m);

/* Are there so many READY keys that producers which run ahead of a getter had
 * better wait for it? What fits the nearest cache is plenty. */
static inline bool
wq__gate_has_plenty(const struct wq__memory *m)
{
    enum { PLENTY = 64 };

    return wq__core_len(&m->core) >= PLENTY;
}

/* What was handed over is taken in and what is due becomes READY, in the order
 * of time. WQ_ENOMEM leaves the rest of the former where it is; nothing is
 * lost. Reads the clock only if a key waits. */
wq_err wq__gate_take_in(struct wq__memory *m);

static inline wq_err
wq__gate_catch_up(struct wq__memory *m)
{
    if (!m->core.waiting.len && !wq__inbox_holds(&m->inbox))
        return WQ_OK;
    return wq__gate_take_in(m);
}

/* The same for a caller who knows what time it is. */
wq_err wq__gate_catch_up_to(struct wq__memory *m, int64_t now_ns);

/* A verb that may sleep says so before it first releases the lock, and leaves
 * by the second of these: wq_destroy() waits for all of them. The queue may
 * be gone when that returns. */
static inline void
wq__gate_stay(struct wq__memory *m)
{
    m->blocked++;
    m->company++;
}

void wq__gate_leave_for_good(struct wq__memory *m);

/* Look for work without sleeping, if that has paid lately (spin.h). The lock is
 * free meanwhile. Returns how many looks that took; 0: none. */
int wq__gate_spin(struct wq__memory *m);

/* With the lock: a getter that spins for longer than any spin lasts has lost its
 * processor, and does not count any more. When it comes back it looks for keys
 * as every getter does. */
void wq__gate_give_up_spinner(struct wq__memory *m);

/* Sleep until there may be work: WQ_OK; or until interrupted: WQ_EINTERRUPTED.
 * Returns WQ_OK also at `deadline_ns`. The lock is free meanwhile. */
wq_err wq__gate_await_work(struct wq__memory *m, int64_t deadline_ns);

/* Sleep until there may be room for `needs`, a shutdown, or `deadline_ns`. Who
 * has the lower `ticket` comes first, also after having slept before. */
void wq__gate_await_room(struct wq__memory *m, struct wq__space needs,
                         uint64_t ticket, int64_t deadline_ns);

/* Sleep until all work may be done, a shutdown, or `deadline_ns`. */
void wq__gate_await_drain(struct wq__memory *m, int64_t deadline_ns);

/* Sleep on the list of waits.c until woken or `deadline_ns`. The caller is on the
 * list from the first moment at which the lock is free, be it to tell sinks: no
 * change escapes it. */
void wq__gate_await_waiter(struct wq__memory *m, struct wq__sleeper *self,
                           int64_t deadline_ns);

/* waits.c: take those off that list whose wait is over. */
struct wq__sleeper *wq__waits_take(struct wq__memory  *m,
                                   struct wq__sleeper *wake);

/* waits.c: adds that there is no memory for, of keys that wq_remove_wait() waits
 * for, are taken back before a done: it must not leave them behind. */
void wq__waits_take_back(struct wq__memory *m);

/* Is nothing left to do, now or (what waits) later, inside or in the inbox? */
bool wq__gate_is_drained(struct wq__memory *m);

/* Take all getters off their list, to look again (or give up). */
struct wq__sleeper *wq__gate_take_getters(struct wq__memory *m,
                                          enum wq__wake      why);

/* Send every blocked thread home; returns, without the lock, when the last one
 * has left. `wake` is woken too. */
void wq__gate_evacuate(struct wq__memory *m, struct wq__sleeper *wake);

#endif
