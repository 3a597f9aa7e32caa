/* SPDX-License-Identifier: MIT */
/* stopwatch.c: the counter of the processor as a clock; see stopwatch.h. */
#include "port/stopwatch.h"

#include "port/futex.h"
#include "port/time.h"

#if defined(__x86_64__) && WQ__HAVE_FUTEX

#include <cpuid.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "port/lock.h"
#include "port/race.h"
#include "port/ticks.h"

/* Each thread has a line of its own. */
static _Thread_local struct wq__line line;

/* What all threads have learned. The lock is only tried: another anchor comes
 * soon. */
static struct wq__lock      rate_lock = WQ__LOCK_STATIC;
static struct wq__tick_rate rate; /* guarded by rate_lock */

/* rate.slope, for threads that did not get the lock. Any version of it will do:
 * relaxed. */
static _Atomic uint64_t known_slope;

/* Does the counter tick at a constant rate, whatever the processor does to save
 * power? */
static bool
query_processor(void)
{
    unsigned eax, ebx, ecx, edx;

    return __get_cpuid(0x80000007, &eax, &ebx, &ecx, &edx) && (edx >> 8 & 1);
}

/* The query is slow in a virtual machine, so it is made once; or by several
 * threads at once, which get the same answer: relaxed. */
static bool
has_steady_counter(void)
{
    enum { UNKNOWN, YES, NO };
    static _Atomic int answer;
    int known = atomic_load_explicit(&answer, memory_order_relaxed);

    if (known == UNKNOWN) {
        wq__race_disable_checking(&answer, sizeof answer);
        wq__race_disable_checking(&known_slope, sizeof known_slope);
        known = query_processor() ? YES : NO;
        atomic_store_explicit(&answer, known, memory_order_relaxed);
    }
    return known == YES;
}

static uint64_t
learn(uint64_t ticks, int64_t ns)
{
    if (!wq__lock_try(&rate_lock))
        return atomic_load_explicit(&known_slope, memory_order_relaxed);
    const uint64_t slope = wq__tick_rate_learn(&rate, ticks, ns);
    atomic_store_explicit(&known_slope, slope, memory_order_relaxed);
    wq__lock_release(&rate_lock);
    return slope;
}

static int64_t
anchor(void)
{
    if (!has_steady_counter())
        return wq__time_now();

    const uint64_t before = __builtin_ia32_rdtsc();
    const int64_t  ns = wq__time_now();
    uint64_t       slope = 0, ticks;

    /* If this fails, the thread was interrupted. The next call finds no line
     * and tries again. */
    if (wq__ticks_between(before, __builtin_ia32_rdtsc(), &ticks))
        slope = learn(ticks, ns);
    return wq__line_anchor(&line, ticks, ns, slope);
}

int64_t
wq__stopwatch_now(void)
{
    int64_t now_ns;

    if (wq__line_follow(&line, __builtin_ia32_rdtsc(), &now_ns))
        return now_ns;
    return anchor();
}

#else

int64_t
wq__stopwatch_now(void)
{
    return wq__time_now();
}

#endif
