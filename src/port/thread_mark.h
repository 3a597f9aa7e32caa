/* SPDX-License-Identifier: MIT */
/* thread_mark.h: how are the threads of a process told apart?
 *
 * By a number, a mark and a serial. The number is small, 1 to
 * WQ__THREAD_NUMBERS, and no other living thread has it: data per thread can be
 * kept in a table, and the thread is the only writer of its entry. When a
 * thread ends, its number can go to another one.
 *
 * Memory order: a thread sees all that the previous thread with its number did.
 * So an entry has one writer at a time, and each continues from what the one
 * before wrote; relaxed loads and stores suffice.
 *
 * Cost: one load of a thread-local variable. The first time, and for threads
 * that got no number because all are taken, a search in a bitmap.
 */
#ifndef WQ_PORT_THREAD_MARK_H
#define WQ_PORT_THREAD_MARK_H

#include <stdint.h> /* also: which C library is this? */

/* More than the threads that report at the same time in nearly all programs;
 * threads beyond that share what they write to. */
enum { WQ__THREAD_NUMBERS = 128 };

/* The number of the calling thread; 0: none, or none yet. Written by
 * thread_mark.c only.
 *
 * With glibc, at a fixed offset from the thread pointer: that saves a call,
 * which would be half the cost of a report. */
#if defined(__GLIBC__)
#define WQ__THREAD_MARK_NEAR __attribute__((tls_model("initial-exec")))
#else
#define WQ__THREAD_MARK_NEAR
#endif
extern _Thread_local unsigned wq__thread_mark_number WQ__THREAD_MARK_NEAR;

/* The mark: an address that no other living thread has. Costs nothing. */
static inline const void *
wq__thread_mark(void)
{
    return &wq__thread_mark_number;
}

/* The serial: a number that no other thread has, living or ended, until the
 * process has had 2^32 threads; never 0. Written by thread_mark.c only. */
extern _Thread_local uint32_t wq__thread_mark_serial_own WQ__THREAD_MARK_NEAR;

uint32_t wq__thread_mark_new_serial(void);

static inline uint32_t
wq__thread_mark_serial(void)
{
    return wq__thread_mark_serial_own ? wq__thread_mark_serial_own
                                      : wq__thread_mark_new_serial();
}

/* The number of the calling thread; takes one if it has none. 0: all are taken,
 * or the thread is ending. */
unsigned wq__thread_mark_take_number(void);

#endif
