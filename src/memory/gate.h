/* SPDX-License-Identifier: MIT */
/* gate.h: how do threads enter the core, sleep there, and leave?
 *
 * Most verbs enter (take the lock), catch up (merge the adds in the inbox and
 * make keys READY whose deadlines have passed), call the core and leave.
 * leave() releases the lock, and wakes the threads that the caller passes and
 * those that the state below requires. Every thread that changes the state
 * leaves through it, so no verb can forget a wake-up. While no thread is
 * blocked, no event loop watches and no sink wants changes, it costs one
 * comparison. It wakes
 *
 *   when there are READY keys, or adds in the inbox, and sleeping getters
 *                         one getter for each of these keys for which no getter
 *                         has been woken yet; but while getters that are awake
 *                         take keys fast, none for a moment (patience.h)
 *   when no thread sleeps until the earliest deadline, or until the end of
 *   that moment, and getters sleep
 *                         one getter, which becomes the timekeeper
 *   when the queue is shut down and no key is left
 *                         all getters
 *   when there is free capacity, and producers wait for it
 *                         those whose keys fit, in FIFO order, skipping those
 *                         whose keys do not fit
 *   when no thread sleeps until a cooldown ends, and producers wait
 *                         one producer, which sleeps until then
 *   when no work is left
 *                         all threads in a drain
 *   when what a flush, or the like, waits for has happened
 *                         the threads that wait for it (waits.c)
 *
 * An event loop that watches wq_fd() counts as one more sleeping getter:
 * leave() lights its beacon when a get would not block, and sets the clock's
 * timer to the earliest deadline.
 *
 * Sleeping costs no processor time, and waking up is a system call only if a
 * thread sleeps. Before a getter sleeps it spins for a moment, if no other
 * getter spins and if spinning has paid lately (spin.h): it takes a key that
 * comes within that time without a system call on either side. A spinning
 * getter may have lost its processor. So after a few keys (compute_wake_from()
 * in gate.c), or when the getter has been spinning for longer than any spin
 * takes (200 us), the next key wakes a sleeping getter.
 */
#ifndef WQ_MEMORY_GATE_H
#define WQ_MEMORY_GATE_H

#include "memory/memory.h"

static inline void
wq__gate_enter(struct wq__memory *m)
{
    wq__lock_take(&m->lock);
}

/* Leave: release the lock, and wake the threads of `wake` (may be NULL) and
 * those that the state requires (see above). */
void wq__gate_leave_waking(struct wq__memory *m, struct wq__sleeper *wake);

/* Has a sink a callback for changes? Set once; with the lock, relaxed
 * suffices. */
static inline bool
wq__gate_reports_changes(struct wq__memory *m)
{
    return atomic_load_explicit(&m->reports_changes, memory_order_relaxed);
}

/* Leave. Most of the time no thread sleeps or spins, no event loop watches and
 * no sink wants changes: then there is nothing to decide. */
static inline void
wq__gate_leave(struct wq__memory *m)
{
    if (m->interested) {
        wq__gate_leave_waking(m, NULL);
        return;
    }
    wq__lock_assert_taken(&m->lock);
    wq__lock_release(&m->lock);
}

/* Counts that are kept without the lock have changed: report them to the sinks,
 * as leave() does. */
static inline void
wq__gate_report(struct wq__memory *m)
{
    if (!atomic_load_explicit(&m->reports_changes, memory_order_acquire))
        return;
    wq__gate_enter(m);
    wq__gate_leave(m);
}

/* Report changes to the sinks. Releases the lock meanwhile. The caller must be
 * between begin_blocking and end_blocking, so that wq_destroy() cannot free the
 * queue. Returns true if it released the lock. */
bool wq__gate_report_inside(struct wq__memory *m);

/* Leave after a query: as wq__gate_leave(), but report nothing to the sinks.
 * The caller may be a sink that holds locks of its own; the thread that changes
 * the state next reports. */
void wq__gate_leave_query(struct wq__memory *m);

/* Are there so many READY keys that producers should wait for the getters? More
 * keys than this would not stay in the first-level cache. */
static inline bool
wq__gate_has_plenty(const struct wq__memory *m)
{
    enum { PLENTY = 64 };

    return wq__core_len(&m->core) >= PLENTY;
}

/* Merge the adds in the inbox, and make READY what is due, in the order of
 * time. WQ_ENOMEM: some adds are still in the inbox; nothing is lost. Reads the
 * clock only if there is a deadline or a cooldown. */
wq_err wq__gate_catch_up_now(struct wq__memory *m);

static inline wq_err
wq__gate_catch_up(struct wq__memory *m)
{
    if (!m->core.waiting.len && !wq__inbox_holds(&m->inbox))
        return WQ_OK;
    return wq__gate_catch_up_now(m);
}

/* The same for a caller that knows the time. */
wq_err wq__gate_catch_up_to(struct wq__memory *m, int64_t now_ns);

/* A verb that may sleep calls wq__gate_begin_blocking() while it holds the
 * lock, and leaves with wq__gate_end_blocking(), which releases the lock.
 * wq_destroy() waits for all verbs between these two calls. When the second
 * returns, the queue may be destroyed. */
static inline void
wq__gate_begin_blocking(struct wq__memory *m)
{
    m->blocked++;
    m->interested++;
}

void wq__gate_end_blocking(struct wq__memory *m);

/* Spin until there may be work, if that has paid lately (spin.h). Releases the
 * lock meanwhile. Returns the number of looks that found nothing; 0: it did not
 * spin, or the first look found work. */
int wq__gate_spin(struct wq__memory *m);

/* With the lock: if a getter has been spinning for longer than any spin takes
 * (200 us), it has lost its processor: do not count it as spinning any more.
 * When it runs again it looks for keys as every getter does. */
void wq__gate_ignore_lost_spinner(struct wq__memory *m);

/* Sleep until there may be work, or until `deadline_ns`: WQ_OK.
 * WQ_EINTERRUPTED: by wq_interrupt(). Releases the lock meanwhile. */
wq_err wq__gate_await_work(struct wq__memory *m, int64_t deadline_ns);

/* Sleep until there may be capacity for `needs`, a shutdown, or `deadline_ns`.
 * Producers are woken in the order of their tickets, which they keep when they
 * sleep again. */
void wq__gate_await_capacity(struct wq__memory *m, struct wq__capacity needs,
                             uint64_t ticket, int64_t deadline_ns);

/* Sleep until the queue may be drained, a shutdown, or `deadline_ns`. */
void wq__gate_await_drain(struct wq__memory *m, int64_t deadline_ns);

/* Sleep on the list of waits.c until woken or `deadline_ns`. The caller is on
 * the list before the lock is first released, also if that is to report
 * changes: so it misses no change. */
void wq__gate_await_waiter(struct wq__memory *m, struct wq__sleeper *self,
                           int64_t deadline_ns);

/* waits.c: take the threads off that list whose wait is over. */
struct wq__sleeper *wq__waits_take(struct wq__memory  *m,
                                   struct wq__sleeper *wake);

/* waits.c: withdraw the adds of keys that wq_remove_wait() removes from the
 * inbox. For a done that could not merge the inbox for lack of memory. */
void wq__waits_withdraw_adds(struct wq__memory *m);

/* Is no key READY, HELD, DIRTY, WAITING or in the inbox? */
bool wq__gate_is_drained(struct wq__memory *m);

/* Take all getters off their list; `why`: to look again, or to return
 * WQ_EINTERRUPTED. */
struct wq__sleeper *wq__gate_take_getters(struct wq__memory *m,
                                          enum wq__wake      why);

/* For wq_destroy(), after it has set `destroying`: wake `wake`, release the
 * lock, and wait until the last blocked thread has left. Returns without the
 * lock. */
void wq__gate_evacuate(struct wq__memory *m, struct wq__sleeper *wake);

#endif
