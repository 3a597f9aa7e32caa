/* SPDX-License-Identifier: MIT */
/* cancel.h: what if a thread is cancelled (pthread_cancel) inside the library?
 *
 * Nothing happens until it has left: no function of the library is a
 * cancellation point. A thread that ended while it held a lock, or while it was
 * on a list, would leave the queue unusable. So every system call of ours that
 * is a cancellation point is made with cancellation off.
 *
 * Asynchronous cancellation (PTHREAD_CANCEL_ASYNCHRONOUS) is not supported; few
 * functions of any library are safe with it.
 */
#ifndef WQ_PORT_CANCEL_H
#define WQ_PORT_CANCEL_H

#include <pthread.h>

/* From now on the calling thread cannot be cancelled; returns what
 * wq__cancel_restore() needs. */
static inline int
wq__cancel_off(void)
{
    int state;

    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    return state;
}

static inline void
wq__cancel_restore(int state)
{
    (void)pthread_setcancelstate(state, &state);
}

#endif
