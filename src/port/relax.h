/* SPDX-License-Identifier: MIT */
/* relax.h: what does a thread do that waits for a moment only? */
#ifndef WQ_PORT_RELAX_H
#define WQ_PORT_RELAX_H

/* Tell the processor that this is a spin loop. */
static inline void
wq__pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

/* Where another thread might come between two steps: debug builds let it, now
 * and then. */
#if WQ_DEBUG
void wq__dawdle(void);
#else
static inline void
wq__dawdle(void)
{
}
#endif

/* Let another thread run, if one wants to. */
void wq__yield(void);

/* For a loop that waits for another thread to finish a step of a few
 * instructions; `round` counts from 0. Spins first, then lets others run, then
 * sleeps a little: the other thread may have been descheduled, and may have a
 * lower priority than this one. */
void wq__relax(unsigned round);

#endif
