/* SPDX-License-Identifier: MIT */
/* race.h: how does a race detector learn what orders our threads?
 *
 * Users run their programs under ThreadSanitizer, Helgrind or DRD with the
 * library as it is shipped. These tools know the functions of POSIX threads.
 * They do not know our lock and parker, which are atomics and a system call:
 * without hints they report every object that one thread writes before an add
 * and another one reads after the get.
 *
 *   release, acquire   What a thread did before release(p) happens before what
 *                      another thread does after a later acquire(p). Call
 *                      release() before the atomic operation that releases, and
 *                      acquire() after the one that acquires.
 *   disable_checking   This memory holds atomics that threads access without a
 *                      common lock. Valgrind's tools cannot distinguish an
 *                      atomic access from a plain one. (ThreadSanitizer does
 *                      not see accesses of code that it did not compile.)
 *   enable_checking    Call it before the memory is freed: the allocator may
 *                      be the user's, who may reuse the memory.
 *
 * Without a detector the hints do nothing, but cost a function call, so they
 * are not on the path of every add or get: a lock checks for a detector when it
 * is initialised (lock.h), and a queue that is watched has no inbox (create.c).
 *
 * If the library itself is compiled with -fsanitize=thread, there are no hints:
 * the tool sees the atomics then.
 */
#ifndef WQ_PORT_RACE_H
#define WQ_PORT_RACE_H

#include <stdbool.h>
#include <stddef.h>

/* Does a race detector watch this process? Never changes. */
bool wq__race_is_watched(void);

void wq__race_release(const void *p);
void wq__race_acquire(const void *p);

void wq__race_disable_checking(const void *p, size_t n);
void wq__race_enable_checking(const void *p, size_t n);

#endif
