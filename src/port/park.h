/* SPDX-License-Identifier: MIT */
/* park.h: how does one thread sleep until another wakes it?
 *
 * A parker is on the stack of the thread that sleeps. unpark may come before,
 * during or after park: it is not lost. It is called at most once per init, and
 * the parker must stay valid until park has returned true.
 *
 * An alarm ends one park as if it had timed out: so a clock that is not the
 * system's wakes a thread. The caller makes sure that the parker is still
 * valid.
 *
 * Memory order: after park the sleeper sees what the waker wrote before unpark.
 */
#ifndef WQ_PORT_PARK_H
#define WQ_PORT_PARK_H

#include <stdbool.h>
#include <stdint.h>

#include <wq/wq.h>

#include "port/futex.h"

#if WQ__HAVE_FUTEX
#include <stdatomic.h>
struct wq__parker {
    _Atomic uint32_t signs; /* WOKEN: stays set; ALARM: until seen */
};
#else
#include <pthread.h>
struct wq__parker {
    pthread_mutex_t mutex; /* guards the two below */
    pthread_cond_t  cond;  /* signalled when one of them becomes true */
    bool            woken; /* stays true */
    bool            alarm; /* until seen */
};
#endif

void wq__parker_init(struct wq__parker *p);
void wq__parker_fini(struct wq__parker *p);

/* Sleep until unpark: true; or until `deadline_ns` (monotonic) or an alarm:
 * false. */
bool wq__park(struct wq__parker *p, int64_t deadline_ns);

/* The same with a deadline on CLOCK_BOOTTIME; only where
 * wq__time_has_boottime(). */
bool wq__park_boottime(struct wq__parker *p, int64_t deadline_ns);

void wq__unpark(struct wq__parker *p);
void wq__alarm(struct wq__parker *p);

/* Has unpark been called? Alarms do not count. The caller makes sure that the
 * parker is still valid. Sees an unpark that happened before this call; orders
 * nothing else. */
bool wq__parker_is_woken(struct wq__parker *p);

#endif
