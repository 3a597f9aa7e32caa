/* SPDX-License-Identifier: MIT */
/* gather.h: does a leader let other threads post before it takes the list?
 *
 * The threads that it has just answered are about to post again, and a larger
 * batch costs the store hardly more than a small one. While nobody else wants the
 * processor, to let them run takes a few microseconds for each. But if other
 * programs keep the processors busy, the system lets these have their turns, too:
 * the leader, and all threads that wait for it, lose milliseconds.
 *
 * So there is a limit to what that may cost. It may take WQ__GATHER_NS for each post
 * that came meanwhile, and for one more. What it takes beyond that is a loss: then
 * leaders do without for WQ__GATHER_REST times as long. So losses take at most one
 * part in WQ__GATHER_REST of the time. A process that was stopped has not lost that
 * much by it: a loss counts as WQ__GATHER_MOST at most. O(1); no side effects.
 */
#ifndef WQ_SHARED_GATHER_H
#define WQ_SHARED_GATHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    WQ__GATHER_NS = 400000,
    WQ__GATHER_REST = 20,
    WQ__GATHER_MOST = 100000000, /* ns: a rest of 2 s */
};

struct wq__gather {
    int64_t resume_ns; /* not before */
};

static inline bool
wq__gather_may(const struct wq__gather *g, int64_t now_ns)
{
    return now_ns >= g->resume_ns;
}

/* It took from `begin_ns` until now, and so many posts came. */
static inline void
wq__gather_note(struct wq__gather *g, int64_t begin_ns, int64_t now_ns,
                size_t posts)
{
    const int64_t loss_ns =
        now_ns - begin_ns - WQ__GATHER_NS * ((int64_t)posts + 1);

    if (loss_ns > 0)
        g->resume_ns = now_ns + WQ__GATHER_REST * (loss_ns < WQ__GATHER_MOST
                                                       ? loss_ns
                                                       : WQ__GATHER_MOST);
}

#endif
