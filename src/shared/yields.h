/* SPDX-License-Identifier: MIT */
/* yields.h: may a thread yield its processor?
 *
 * A thread that waits for a moment lets others run meanwhile: the threads that it
 * has just answered, which are about to post again, or the server that is about to
 * answer. While nobody else wants the processor that takes a few microseconds. But
 * if other programs keep the processors busy, the system lets these have their
 * turns, too: the thread, and all that wait for it, lose milliseconds.
 *
 * So there is a limit to what that may cost. The thread says how long its yields may
 * take; what they take beyond that is a loss, and then there are none for
 * WQ__YIELDS_REST times as long. So losses take at most one part in WQ__YIELDS_REST
 * of the time, for each of those who count them: leaders, and threads that look for a
 * reply. A process that was stopped has not lost that much by it: a loss
 * counts as WQ__YIELDS_MOST at most. What a system takes later from a thread that has
 * yielded often is not seen. O(1); no side effects.
 */
#ifndef WQ_SHARED_YIELDS_H
#define WQ_SHARED_YIELDS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    WQ__YIELDS_FREE = 400000, /* ns: for each thread that is let run; less than
                                 the turn of another program, of 1 to 4 ms */
    WQ__YIELDS_REST = 20,
    WQ__YIELDS_MOST = 100000000, /* ns: a rest of 2 s */
};

struct wq__yields {
    int64_t resume_ns; /* not before */
};

static inline bool
wq__yields_may(const struct wq__yields *y, int64_t now_ns)
{
    return now_ns >= y->resume_ns;
}

/* They took from `begin_ns` until now, and `free_ns` of that is no loss. */
static inline void
wq__yields_note(struct wq__yields *y, int64_t begin_ns, int64_t now_ns,
                int64_t free_ns)
{
    const int64_t loss_ns = now_ns - begin_ns - free_ns;

    if (loss_ns > 0)
        y->resume_ns = now_ns + WQ__YIELDS_REST * (loss_ns < WQ__YIELDS_MOST
                                                       ? loss_ns
                                                       : WQ__YIELDS_MOST);
}

#endif
