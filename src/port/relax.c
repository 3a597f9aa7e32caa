/* SPDX-License-Identifier: MIT */
/* relax.c: waiting for a moment; see relax.h. */
#include "port/relax.h"

#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "port/cancel.h"

void
wq__yield(void)
{
    (void)sched_yield();
}

void
wq__relax(unsigned round)
{
    if (round < 64) {
        wq__pause();
    } else if (round < 256) {
        wq__yield();
    } else {
        const struct timespec nap = {.tv_nsec = 50000};
        const int             state = wq__cancel_off();

        (void)nanosleep(&nap, NULL);
        wq__cancel_restore(state);
    }
}

#if WQ_DEBUG
void
wq__maybe_yield(void)
{
    enum { ONE_IN = 13 };
    static _Thread_local unsigned
        calls; /* per thread: an atomic one would order memory */

    /* Each thread begins with another count, so that short-lived threads yield,
     * too. */
    const unsigned begin = (unsigned)((uintptr_t)&calls >> 12);

    if ((begin + calls++) % ONE_IN == 0)
        (void)sched_yield();
}
#endif
