/* SPDX-License-Identifier: MIT */
/* park.h: how does one thread sleep until another wakes it?
 *
 * A parker belongs to the thread that sleeps and lives on its stack. unpark may
 * come before, during or after park: it is not lost. It is called at most once
 * per init, and the parker must stay until park returned true.
 *
 * An alarm ends one park as if its time were up: that is how a clock that is
 * not the system's wakes a thread. Whoever calls it makes sure that the
 * parker is still there.
 *
 * Memory order: what the waker wrote before unpark, the sleeper sees after
 * park.
 */
#ifndef WQ_PORT_PARK_H
#define WQ_PORT_PARK_H

#include <stdbool.h>
#include <stdint.h>

#include "port/futex.h"

#if WQ__HAVE_FUTEX
#include <stdatomic.h>
struct wq__parker {
    _Atomic uint32_t signs; /* WOKEN, for good; ALARM, until seen */
};
#else
#include <pthread.h>
struct wq__parker {
    pthread_mutex_t mutex; /* guards the two below */
    pthread_cond_t  cond;  /* "one of them has become true" */
    bool            woken; /* for good */
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
 * parker is still there. An unpark that happened before this call is seen; it
 * orders nothing else. */
bool wq__parker_is_woken(struct wq__parker *p);

#endif
