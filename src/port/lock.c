/* SPDX-License-Identifier: MIT */
/* lock.c: what does a thread do that finds the lock taken? See lock.h. */
#include "port/lock.h"

#include <wq/wq.h>

#include "port/relax.h"

typedef int wq__lock_not_empty; /* a file must declare something */

#if WQ__HAVE_FUTEX

/* How often to look before sleeping. A critical section takes some 100 ns and a
 * sleep with its wake-up several microseconds; each look costs a pause of 10 to
 * 50 ns. More helps little, and costs dearly when the holder is not running. */
enum { SPINS = 64 };

static bool
spin(struct wq__lock *l)
{
    for (int i = 0; i < SPINS; i++) {
        if (atomic_load_explicit(&l->word, memory_order_relaxed) == 0 &&
            wq__lock_try(l))
            return true;
        wq__pause();
    }
    return false;
}

void
wq__lock_take_contended(struct wq__lock *l)
{
    if (spin(l))
        return;
    /* From here on the word is set to 2 even if nobody else sleeps: this thread
     * cannot know, and a needless wake-up is harmless, a missing one is not. */
    while (atomic_exchange_explicit(&l->word, 2, memory_order_acquire) != 0)
        (void)wq__futex_wait(&l->word, 2, WQ_FOREVER);
}

#endif
