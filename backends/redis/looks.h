/* SPDX-License-Identifier: MIT */
/* looks.h: does a thread look for a reply for a while before it sleeps?
 *
 * A server of this machine answers in 30 to 70 us. To sleep meanwhile, and to be
 * woken, keeps both processes busy for about as long again, and the reply waits
 * for it. Over a network replies take longer, and to look for them is a waste. So
 * looking must pay for itself, by the rule of src/memory/spin.h: an account holds
 * what it has saved minus what it has cost.
 *
 *   A thread may look while the account holds WQ__LOOK_WORTH, and for that long
 *   at most. The time is paid from the account.
 *   A reply that is found so earns WQ__LOOK_WORTH: it saved a sleep.
 *   A sleep earns a part of that, so that a thread looks once in 32 sleeps even
 *   if that never finds a reply.
 *
 * So all looks together take no longer than WQ__LOOK_WORTH for each sleep that
 * they saved, 3 us for each sleep that they did not save, and the opening balance.
 * O(1); no side effects.
 */
#ifndef WQ_REDIS_LOOKS_H
#define WQ_REDIS_LOOKS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    WQ__LOOK_WORTH = 100000, /* ns; docs/benchmarks/redis.md */
    WQ__LOOK_TRIAL = WQ__LOOK_WORTH / 32,
    WQ__LOOK_MOST = 4 * WQ__LOOK_WORTH, /* that the account holds */
};

struct wq__looks {
    int64_t account_ns; /* 0 .. WQ__LOOK_MOST */
};

static inline void
wq__looks_init(struct wq__looks *l)
{
    l->account_ns = WQ__LOOK_WORTH;
}

static inline bool
wq__looks_may(const struct wq__looks *l)
{
    return l->account_ns >= WQ__LOOK_WORTH;
}

static inline void
wq__looks_earn(struct wq__looks *l, int64_t ns)
{
    const int64_t sum = l->account_ns + ns;

    l->account_ns = sum < WQ__LOOK_MOST ? sum : WQ__LOOK_MOST;
}

/* A thread has looked for so long. (If it lost its processor meanwhile, that is
 * more than the account holds.) */
static inline void
wq__looks_pay(struct wq__looks *l, int64_t ns, bool found)
{
    l->account_ns = l->account_ns > ns ? l->account_ns - ns : 0;
    if (found)
        wq__looks_earn(l, WQ__LOOK_WORTH);
}

static inline void
wq__looks_note_sleep(struct wq__looks *l)
{
    wq__looks_earn(l, WQ__LOOK_TRIAL);
}

#endif
