/* SPDX-License-Identifier: MIT */
/* loop.h: how does one thread wait for descriptors, timers and signals?
 *
 * An epoll loop. Watches and timers are structs of the caller; they are zero
 * before their first use and must not move while they are set. Callbacks may set
 * and clear any watch or timer, also their own, and free it after clearing it: a
 * cleared one is not called any more, even if it was due at the same moment.
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
    void (*ready)(void *ctx);
    void *ctx;
};

struct timer {
    int64_t at_ns; /* on loop_now()'s clock, while `set` */
    bool    set;
    void (*due)(void *ctx); /* `set` is false when it is called */
    void         *ctx;
    struct timer *before, *after; /* in the loop's list, by at_ns */
};

/* NULL: errno says why. */
struct loop *loop_create(void);
void         loop_destroy(struct loop *loop);

/* Call ready(ctx) while `fd` is ready for `events` (level-triggered).
 * False: errno says why (EPERM: a regular file, which is always ready). Clear
 * the watch before you close the fd. */
bool loop_watch(struct loop *loop, struct watch *watch, int fd, uint32_t events,
                void (*ready)(void *ctx), void *ctx);
/* Change the events of a watch that is set; 0: none for now. */
void loop_rewatch(struct loop *loop, struct watch *watch, uint32_t events);
/* Clear it; does nothing if it is not set. Closing the fd instead is not enough:
 * until its exec, a child that was just started has a copy of it. */
void loop_unwatch(struct loop *loop, struct watch *watch);
/* Call due(ctx) once, at `at_ns` or soon after; a timer that is set is moved.
 * O(1) if timers are set in the order in which they become due. */
void loop_timer_set(struct loop *loop, struct timer *timer, int64_t at_ns,
                    void (*due)(void *ctx), void *ctx);
void loop_timer_clear(struct loop *loop, struct timer *timer);

/* The time (CLOCK_MONOTONIC) of the last wake-up or loop_refresh(). */
int64_t loop_now(const struct loop *loop);
int64_t loop_refresh(struct loop *loop);

/* Block these signals, and call got(ctx, number) for each. A signal that was
 * ignored when the program started stays ignored. Children must get the signal
 * mask from before the first call. */
bool loop_signals(struct loop *loop, const int *numbers, size_t n,
                  void (*got)(void *ctx, int number), void *ctx);

/* Call work(ctx) once each time before the loop sleeps. */
void loop_before_sleep(struct loop *loop, void (*work)(void *ctx), void *ctx);

/* Wait and call callbacks until loop_stop(). False: errno says why. */
bool loop_run(struct loop *loop);
void loop_stop(struct loop *loop);

#endif
