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

/* Each thread has its own. */
static _Thread_local struct wq__line line;

/* What all threads learned. Only tried, never waited for: another anchor comes
 * soon. */
static struct wq__lock pace_lock = WQ__LOCK_STATIC;
static struct wq__pace pace; /* guarded by it */

/* pace.slope, for those who did not get the lock. A number that is complete by
 * itself, and any version of it will do: relaxed. */
static _Atomic uint64_t known_slope;

/* Does the counter tick at one pace, whatever the processor does to save power?
 */
static bool
ask_processor(void)
{
    unsigned eax, ebx, ecx, edx;

    return __get_cpuid(0x80000007, &eax, &ebx, &ecx, &edx) && (edx >> 8 & 1);
}

/* Asking is slow in a virtual machine, so it is done once; or by several
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
        known = ask_processor() ? YES : NO;
        atomic_store_explicit(&answer, known, memory_order_relaxed);
    }
    return known == YES;
}

static uint64_t
learn(uint64_t ticks, int64_t ns)
{
    if (!wq__lock_try(&pace_lock))
        return atomic_load_explicit(&known_slope, memory_order_relaxed);
    const uint64_t slope = wq__pace_learn(&pace, ticks, ns);
    atomic_store_explicit(&known_slope, slope, memory_order_relaxed);
    wq__lock_release(&pace_lock);
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

    /* If not, we were interrupted. Who asks next finds no line and tries again.
     */
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
