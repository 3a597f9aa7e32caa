/* SPDX-License-Identifier: MIT */
/* beacon.h: how does an event loop learn that there is something to do?
 *
 * A beacon is one file descriptor that is readable while the beacon is lit or
 * its timer has expired. Do not read from it: it stays readable until it is
 * dimmed.
 *
 *   reasons   The beacon is lit while there is a reason. Each reason has an
 *             owner, which serialises its own calls; different owners may call
 *             at the same time.
 *   timer     A timer of the system, which runs until a deadline. It belongs to
 *             the queue, like WQ__LIT_BY_QUEUE. An expired timer stays expired
 *             until it gets another deadline; setting the same deadline again
 *             changes nothing. So a deadline that passes before the timer is
 *             armed is not lost.
 *
 * After fork(), the child shares what is behind the descriptors with its
 * parent; in the child a beacon only closes them.
 *
 * Linux: an epoll descriptor around an eventfd and a timerfd. Other systems
 * have no beacons. A system call is made only when something changes.
 */
#ifndef WQ_PORT_BEACON_H
#define WQ_PORT_BEACON_H

#include <stdbool.h>
#include <stdint.h>

#include <wq/wq.h>

#include "port/futex.h"

/* Why it is lit. */
enum wq__lit {
    WQ__LIT_BY_QUEUE = 1, /* a get would not block */
    WQ__LIT_BY_CLOCK = 2, /* a deadline of a clock without a timer has passed */
};

/* The clock of the timer. */
enum wq__timer {
    WQ__TIMER_NONE,
    /* no timer */ WQ__TIMER_MONOTONIC,
    WQ__TIMER_BOOTTIME,
};

#if WQ__HAVE_FUTEX
#include <stdatomic.h>

#include "port/lock.h"

/* Zeroed: closed, which fini and fd accept. */
struct wq__beacon {
    bool     open;     /* the descriptors are open */
    int      epoll_fd; /* the one that the user gets */
    int      event_fd; /* readable while there is a reason */
    int      timer_fd; /* readable when the deadline has passed; -1: none */
    int64_t  armed_ns; /* the deadline of the timer; WQ_FOREVER: not running */
    unsigned forks;    /* how many forks there were before it was created */
    struct wq__lock lock; /* held while `reasons` and `event_fd` change */
    /* Of enum wq__lit; written under `lock`. An owner may read its own bit
     * without the lock, since no other thread changes it: relaxed. */
    _Atomic unsigned reasons;
};
#else
struct wq__beacon {
    bool open; /* never */
};
#endif

/* WQ_ENOTSUP: the system has no beacons (errno is ENOSYS). WQ_EIO: a system
 * call failed (errno says why); nothing is left open. */
WQ__STORE_API wq_err wq__beacon_init(struct wq__beacon *b,
                                     enum wq__timer     timer);
WQ__STORE_API void   wq__beacon_fini(struct wq__beacon *b);

/* The descriptor; -1: there is no beacon. */
WQ__STORE_API int wq__beacon_fd(const struct wq__beacon *b);

/* The beacon is also readable while `fd`, for example that of another beacon,
 * is, until `fd` is closed. WQ_EIO: the system call failed (errno says why). */
wq_err wq__beacon_include(struct wq__beacon *b, int fd);

void wq__beacon_light(struct wq__beacon *b, enum wq__lit reason);
void wq__beacon_dim(struct wq__beacon *b, enum wq__lit reason);

/* Set the timer to `deadline_ns`; WQ_FOREVER stops it. A new deadline resets an
 * expired timer. */
void wq__beacon_arm(struct wq__beacon *b, int64_t deadline_ns);

#endif
