/* SPDX-License-Identifier: MIT */
/* loop.h: what is to be waited for, and who is called when it comes?
 *
 * One thread, one epoll. Watches and timers are structs of the caller: they
 * live in what they belong to, are zero before their first use, and must stay
 * where they are while they are set. Handlers may set and clear any watch or
 * timer, also their own, and free what it lives in after clearing it: what was
 * cleared is not called any more, even if it was due at the same moment.
 */
#ifndef WQ_TOOL_LOOP_H
#define WQ_TOOL_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>

struct loop; /* opaque */

struct watch {
    int  fd; /* while `set` */
    bool set;
    void (*ready)(void *ctx, uint32_t events); /* EPOLLIN, ... */
    void *ctx;
};

struct timer {
    int64_t at_ns; /* on loop_now()'s clock, while `set` */
    bool    set;
    void (*due)(void *ctx); /* is not set any more when it is called */
    void         *ctx;
    struct timer *before, *after; /* the loop's list, by at_ns */
};

/* NULL: errno says why. */
struct loop *loop_create(void);
void         loop_destroy(struct loop *loop);

/* Call ready(ctx, events) while `fd` is ready for `events` (level-triggered).
 * False: errno says why (EPERM: a regular file, which is always ready). The
 * watch must be cleared before the fd is closed. */
bool loop_watch(struct loop *loop, struct watch *watch, int fd, uint32_t events,
                void (*ready)(void *ctx, uint32_t events), void *ctx);
/* Change the events of a watch that is set; 0: none for now. */
void loop_rewatch(struct loop *loop, struct watch *watch, uint32_t events);
/* Clear it; one that is not set is left alone. To close the fd instead would
 * not do, even if it closes on exec: a child that was just started goes on to
 * have it for a moment after we do. */
void loop_unwatch(struct loop *loop, struct watch *watch);
/* Call due(ctx) once, at `at_ns` or soon after; a timer that is set is moved.
 * O(1) where timers come due in the order they are set in. */
void loop_timer_set(struct loop *loop, struct timer *timer, int64_t at_ns,
                    void (*due)(void *ctx), void *ctx);
void loop_timer_clear(struct loop *loop, struct timer *timer);

/* The time (CLOCK_MONOTONIC) when the loop last woke, or loop_refresh(). */
int64_t loop_now(const struct loop *loop);
int64_t loop_refresh(struct loop *loop);

/* Catch these signals (blocks them): got(ctx, number) for each. A signal that
 * was ignored when the program began stays so. The mask to give to children is
 * the one before the first call. */
bool loop_signals(struct loop *loop, const int *numbers, size_t n,
                  void (*got)(void *ctx, int number), void *ctx);

/* Call work(ctx) once each time before the loop sleeps. */
void loop_before_sleep(struct loop *loop, void (*work)(void *ctx), void *ctx);

/* Wait and call until loop_stop(). False: epoll failed; errno says why. */
bool loop_run(struct loop *loop);
void loop_stop(struct loop *loop);

#endif
