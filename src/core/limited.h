/* SPDX-License-Identifier: MIT */
/* limited.h: what does an add with rate limits ask of the core?
 *
 * The core knows deadlines and states, not limiters. Whoever owns the limiter
 * decides in three steps, in this order, for each key:
 *
 *   wq__limited_decide()   does wq_config.retry decide without the limiter?
 *   wq__limited_set()      no: this is the delay that the limiter gave
 *   wq__core_add_with()    with the wq__how of wq__limited_how()
 */
#ifndef WQ_CORE_LIMITED_H
#define WQ_CORE_LIMITED_H

#include "core/core.h"
#include "core/span.h"

/* `policy` is of enum wq_retry, `states` are those of the key. */
static inline void
wq__limited_decide(unsigned policy, unsigned states, struct wq__prepared *p)
{
    if (policy & WQ_RETRY_FAILURES_ONLY && !(states & WQ__HELD))
        p->at_once = true;
    else if (policy & WQ_RETRY_ONCE && states & WQ__BACKOFF)
        p->skip = true;
    else
        p->limited = true;
}

/* The shorter delay counts. `after_ns` is the caller's; 0: it has none. */
static inline int64_t
wq__limited_shorter(int64_t delay_ns, int64_t after_ns)
{
    return after_ns != 0 && after_ns < delay_ns ? after_ns : delay_ns;
}

static inline void
wq__limited_set(struct wq__prepared *p, int64_t delay_ns, int64_t after_ns,
                int64_t now)
{
    const int64_t used_ns = wq__limited_shorter(delay_ns, after_ns);

    p->delay = delay_ns;
    p->at_once = used_ns <= 0;
    p->at = wq__span_add(now, used_ns);
}

static inline struct wq__how
wq__limited_how(const wq_add_options *options, unsigned policy, int64_t now)
{
    struct wq__how how = wq__how_of(options);

    how.now = now;
    how.kind = WQ__ADD_AT;
    how.backoff = true;
    how.respect = policy & WQ_RETRY_FAILURES_ONLY;
    return how;
}

/* Was the limiter called in vain, because the key was in BACKOFF already when
 * it was added? Another thread may have added it since wq__limited_decide(). */
static inline bool
wq__limited_in_vain(const struct wq__prepared *p)
{
    return p->limited && p->backoff &&
           (p->added == WQ_ADDED_KEPT || p->added == WQ_ADDED_RAISED);
}

#endif
