/* SPDX-License-Identifier: MIT */
/* relax.h: what does a thread do that waits only for a moment? */
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

/* Called between two steps where another thread might run: debug builds yield
 * there now and then. */
#if WQ_DEBUG
void wq__maybe_yield(void);
#else
static inline void
wq__maybe_yield(void)
{
}
#endif

/* Let another thread run, if one is ready. */
void wq__yield(void);

/* For a loop that waits until another thread has finished a few instructions;
 * `round` counts from 0. Spins first, then yields, then sleeps a little: the
 * other thread may have been descheduled, and may have a lower priority than
 * this one. */
void wq__relax(unsigned round);

#endif
