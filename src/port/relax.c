/* SPDX-License-Identifier: MIT */
/* relax.c: waiting for a moment; see relax.h. */
#include "port/relax.h"

#include <sched.h>
#include <stddef.h>
#include <time.h>

void
wq__relax(unsigned round)
{
    if (round < 64) {
        wq__pause();
    } else if (round < 256) {
        (void)sched_yield();
    } else {
        const struct timespec nap = {.tv_nsec = 50000};
        (void)nanosleep(&nap, NULL);
    }
}
