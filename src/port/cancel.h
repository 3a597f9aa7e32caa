/* SPDX-License-Identifier: MIT */
/* cancel.h: what if a thread is cancelled (pthread_cancel) inside the library?
 *
 * Nothing happens until the thread has left the library: no function is a
 * cancellation point. A thread that ended while it held a lock, or while it was
 * on a list, would leave the queue unusable. So cancellation is disabled around
 * every system call that is a cancellation point.
 *
 * Asynchronous cancellation (PTHREAD_CANCEL_ASYNCHRONOUS) is not supported; few
 * functions of any library are safe with it.
 */
#ifndef WQ_PORT_CANCEL_H
#define WQ_PORT_CANCEL_H

#include <pthread.h>

/* Disable cancellation of the calling thread; returns the state for
 * wq__cancel_restore(). */
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
