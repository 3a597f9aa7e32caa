/* SPDX-License-Identifier: MIT */
/* lock.c: what does a thread do that finds the lock taken, or owned? See
 * lock.h. */
#include "port/lock.h"

#include <wq/wq.h>

#include "port/relax.h"

typedef int wq__lock_not_empty; /* a file must declare something */

#if WQ__HAVE_FUTEX

/* ---- the word ----------------------------------------------------------- */

static inline bool
try_word(struct wq__lock *l)
{
    uint32_t expected = 0;
    return atomic_compare_exchange_strong_explicit(
        &l->word, &expected, 1, memory_order_acquire, memory_order_relaxed);
}

void
wq__lock_release_front(struct wq__lock *l)
{
    if (atomic_exchange_explicit(&l->word, 0, memory_order_release) == 2)
        wq__futex_wake_one(&l->word);
}

/* How many pauses to make before sleeping: a pause takes 10 to 50 ns, a sleep
 * with its wake-up several microseconds. More costs dearly when the holder is
 * not running.
 *
 * Looks become rarer soon. What the lock guards is near the processor of who
 * had it last: that one does in a microsecond what two do in several who take
 * turns. So who waits lets it, for a while. */
enum { PAUSES = 256, PAUSES_AT_ONCE = 64 };

static bool
spin(struct wq__lock *l)
{
    int at_once = 2;

    for (int made = 0; made < PAUSES; made += at_once) {
        for (int i = 0; i < at_once; i++)
            wq__pause();
        if (atomic_load_explicit(&l->word, memory_order_relaxed) == 0 &&
            try_word(l))
            return true;
        if (at_once < PAUSES_AT_ONCE)
            at_once *= 2;
    }
    return false;
}

static void
take_word_contended(struct wq__lock *l)
{
    if (spin(l))
        return;
    /* From here on the word is set to 2 even if nobody else sleeps: this thread
     * cannot know, and a needless wake-up is harmless, a missing one is not. */
    while (atomic_exchange_explicit(&l->word, 2, memory_order_acquire) != 0)
        (void)wq__futex_wait(&l->word, 2, WQ_FOREVER);
}

/* ---- the side door ------------------------------------------------------ */

/* Is anyone else in, or could be? K3 */
static inline bool
has_side_door(struct wq__lock *l)
{
    return atomic_load_explicit(&l->owner, memory_order_relaxed) ||
           atomic_load_explicit(&l->inside, memory_order_acquire);
}

static void
open_side_door(struct wq__lock *l)
{
    l->streak = 0;
    if (l->keyholder || !wq__barrier_available())
        return;
    l->keyholder = l->last;
    atomic_store_explicit(&l->owner, l->last, memory_order_relaxed);
}

/* There is no owner any more; it may still be inside. K2 */
static void
dismiss_owner(struct wq__lock *l)
{
    /* In a debug build it is as easy as the first time, for ever. */
    const uint32_t ever = WQ_DEBUG ? 0 : UINT32_C(1) << 31;

    if (!atomic_load_explicit(&l->owner, memory_order_relaxed))
        return;
    wq__barrier_store_heavy(&l->owner, NULL);
    if (l->patience < ever)
        l->patience *= 2;
}

static bool
try_to_shut_side_door(struct wq__lock *l)
{
    dismiss_owner(l);
    return !atomic_load(&l->inside);
}

/* The wait is for a critical section, as at the front door. */
static void
shut_side_door(struct wq__lock *l)
{
    for (unsigned round = 0; !try_to_shut_side_door(l); round++)
        wq__relax(round);
}

/* `me` has the front door, and is in. */
static inline void
count(struct wq__lock *l, const void *me)
{
    l->sideways = false;
    if (l->keyholder == me)
        l->keyholder = NULL; /* K5 */
    if (l->last != me) {
        l->last = me;
        l->streak = 0;
    } else if (++l->streak >= l->patience) {
        open_side_door(l);
    }
}

/* ---- the front door ----------------------------------------------------- */

void
wq__lock_take_front(struct wq__lock *l, const void *me)
{
    if (!try_word(l))
        take_word_contended(l);
    if (has_side_door(l))
        shut_side_door(l);
    count(l, me);
}

bool
wq__lock_try_front(struct wq__lock *l, const void *me)
{
    if (!try_word(l))
        return false;
    if (has_side_door(l) && !try_to_shut_side_door(l)) {
        wq__lock_release_front(l);
        return false;
    }
    count(l, me);
    return true;
}

#endif
