/* SPDX-License-Identifier: MIT */
/* futex.h: does this system let a thread sleep on a word of memory?
 *
 * Linux does. Elsewhere, or when WQ_PORT_POSIX is defined (which the tests
 * build and run, too), lock.h and park.h use POSIX threads.
 */
#ifndef WQ_PORT_FUTEX_H
#define WQ_PORT_FUTEX_H

#if defined(__linux__) && !defined(WQ_PORT_POSIX)
#define WQ__HAVE_FUTEX 1

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Sleep while *word is `expected`, at most until `deadline_ns` (monotonic;
 * WQ_FOREVER: no limit). May wake up spuriously. False: timed out. */
bool wq__futex_wait(_Atomic uint32_t *word, uint32_t expected,
                    int64_t deadline_ns);

/* The same with a deadline on the wall clock (CLOCK_REALTIME). */
bool wq__futex_wait_wall(_Atomic uint32_t *word, uint32_t expected,
                         int64_t deadline_ns);

/* Wake one thread that sleeps on `word`. The memory may be freed already, if
 * the sleeper saw the new value and returned: then the kernel finds no sleeper,
 * or wakes another thread that sleeps at the same address, which every user of
 * futexes must tolerate. */
void wq__futex_wake_one(_Atomic uint32_t *word);

#else
#define WQ__HAVE_FUTEX 0
#endif

#endif
