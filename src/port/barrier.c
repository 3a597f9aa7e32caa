/* SPDX-License-Identifier: MIT */
/* barrier.c: a barrier on all processors; see barrier.h. */
#include "port/barrier.h"

#include <stddef.h>
#include <time.h>

#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

/* From <linux/membarrier.h>, which not every system has. */
enum { EXPEDITED = 1 << 3, REGISTER_EXPEDITED = 1 << 4 };

static long
membarrier(int command)
{
#if defined(__linux__) && defined(SYS_membarrier)
    return syscall(SYS_membarrier, command, 0, 0);
#else
    (void)command;
    return -1;
#endif
}

/* 0: not asked yet. Several threads may ask at a time, and hear the same;
 * nothing is published by it: relaxed. */
enum { NOT_ASKED, YES, NO };
static atomic_int answer;

bool
wq__barrier_available(void)
{
    int known = atomic_load_explicit(&answer, memory_order_relaxed);

    if (known == NOT_ASKED) {
        known = membarrier(REGISTER_EXPEDITED) == 0 ? YES : NO;
        atomic_store_explicit(&answer, known, memory_order_relaxed);
    }
    return known == YES;
}

#if !WQ__BARRIER_SYMMETRIC
/* What was granted once is refused now: a filter for system calls was set up
 * meanwhile. Nobody begins to rely on it any more; and no processor keeps a
 * store to itself for as long as this takes. */
static void
wait_instead(void)
{
    struct timespec nap = {.tv_nsec = 10000000};

    atomic_store_explicit(&answer, NO, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
    while (nanosleep(&nap, &nap) != 0)
        ;
}
#endif

void
wq__barrier_store_heavy(_Atomic(const void *) *to, const void *value)
{
#if WQ__BARRIER_SYMMETRIC
    (void)atomic_exchange(to, value);
#else
    atomic_store_explicit(to, value, memory_order_relaxed);
    if (membarrier(EXPEDITED) != 0 &&
        (membarrier(REGISTER_EXPEDITED) != 0 || membarrier(EXPEDITED) != 0))
        wait_instead();
#endif
}
