/* SPDX-License-Identifier: MIT */
/* beacon.h: how does an event loop see that there is something to do?
 *
 * A beacon is one file descriptor, readable while the beacon is lit or its
 * timer has run out. Nothing is read from it: it stays readable until it is
 * dimmed.
 *
 *   reasons   lit while there is one. Each has an owner, who serialises its
 *             own calls; different owners may call at the same time.
 *   timer     of the system, until a deadline. The queue's own, like
 *             WQ__LIT_BY_QUEUE. A timer that has run out stays so until it is
 *             given another deadline: to say the same one again changes
 *             nothing, so a deadline that passes between looking and arming is
 *             not lost.
 *
 * A child that fork() made shares what is behind the descriptors with its
 * parent; there a beacon does nothing but close them.
 *
 * Linux: an epoll descriptor around an eventfd and a timerfd. Elsewhere there
 * are none. A system call is made only when something changes.
 */
#ifndef WQ_PORT_BEACON_H
#define WQ_PORT_BEACON_H

#include <stdbool.h>
#include <stdint.h>

#include <wq/wq.h>

#include "port/futex.h"

/* Why it is lit. */
enum wq__lit {
    WQ__LIT_BY_QUEUE = 1, /* the queue has something to say */
    WQ__LIT_BY_CLOCK = 2, /* a clock without a timer says it is time */
};

/* By what time the timer runs. */
enum wq__timer {
    WQ__TIMER_NONE, /* there is none */
    WQ__TIMER_MONOTONIC,
    WQ__TIMER_BOOTTIME,
};

#if WQ__HAVE_FUTEX
#include <stdatomic.h>

#include "port/lock.h"

/* Zeroed: there is none, which fini and fd accept. */
struct wq__beacon {
    bool     open;     /* the descriptors are there */
    int      epoll_fd; /* the one that is given out */
    int      event_fd; /* readable while there is a reason */
    int      timer_fd; /* readable when the time has come; -1: none */
    int64_t  armed_ns; /* until when the timer runs; WQ_FOREVER: it does not */
    unsigned forks;    /* how often there was a fork before it was made */
    struct wq__lock  lock;    /* makes one step of `reasons` and `event_fd` */
    _Atomic unsigned reasons; /* of enum wq__lit; written under `lock`. An
                                 owner may look at its own bit without, as
                                 nobody else changes that: relaxed */
};
#else
struct wq__beacon {
    bool open; /* never */
};
#endif

/* WQ_ENOTSUP: the system has none (errno is ENOSYS). WQ_EIO: the system said no
 * (errno tells why); nothing is left behind. */
wq_err wq__beacon_init(struct wq__beacon *b, enum wq__timer timer);
void   wq__beacon_fini(struct wq__beacon *b);

/* The descriptor; -1: there is no beacon. */
int wq__beacon_fd(const struct wq__beacon *b);

void wq__beacon_light(struct wq__beacon *b, enum wq__lit reason);
void wq__beacon_dim(struct wq__beacon *b, enum wq__lit reason);

/* Let the timer run until `deadline_ns`; WQ_FOREVER stops it. One that has run
 * out is put out by a deadline it has not run until already. */
void wq__beacon_arm(struct wq__beacon *b, int64_t deadline_ns);

#endif
