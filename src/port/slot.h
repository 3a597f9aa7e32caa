/* SPDX-License-Identifier: MIT */
/* slot.h: which number is a thread's own?
 *
 * A small number, 1 to WQ__SLOTS, that no other living thread has: whoever
 * keeps something per thread can keep it in a table, and the thread is the only
 * writer of its entry. When a thread ends its number goes to another one.
 *
 * Memory order: what a thread did while it had a number, the next thread with
 * that number sees. So an entry has one writer at a time, and each goes on from
 * what the one before left behind; plain loads and stores of relaxed atomics
 * are enough for it.
 *
 * Cost: one load from memory of the thread's own. The first time, and for
 * threads that come too late to get one, a look at a bitmap.
 */
#ifndef WQ_PORT_SLOT_H
#define WQ_PORT_SLOT_H

#include <stdint.h> /* also: which C library is this? */

/* As many threads as report at a time in all but the largest programs; those
 * beyond share what they write to. */
enum { WQ__SLOTS = 128 };

/* The calling thread's; 0: it has none, or none yet. Written by slot.c only.
 *
 * Where the C library has room for it, at a fixed distance from the thread's
 * own address: that saves a call, which would be half the price of a report. */
#if defined(__GLIBC__)
#define WQ__SLOT_NEAR __attribute__((tls_model("initial-exec")))
#else
#define WQ__SLOT_NEAR
#endif
extern _Thread_local unsigned wq__slot_own WQ__SLOT_NEAR;

/* Something that no other living thread has, and that costs nothing to get. */
static inline const void *
wq__slot_mark(void)
{
    return &wq__slot_own;
}

/* A number that no other thread has, living or not, until 2^32 threads were
 * there; never 0. Written by slot.c only. */
extern _Thread_local uint32_t wq__slot_serial_own WQ__SLOT_NEAR;

uint32_t wq__slot_new_serial(void);

static inline uint32_t
wq__slot_serial(void)
{
    return wq__slot_serial_own ? wq__slot_serial_own : wq__slot_new_serial();
}

/* The number that the calling thread has, or gets now. 0: all are taken, or the
 * thread is ending. */
unsigned wq__slot_take(void);

#endif
