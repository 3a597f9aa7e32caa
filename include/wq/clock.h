/* SPDX-License-Identifier: MIT */
/* clock.h: which time does a queue live by?
 *
 * Every deadline of a queue is on one clock. The default is CLOCK_MONOTONIC.
 * CLOCK_BOOTTIME goes on while the machine is suspended, so that delays do not
 * grow by the sleep. A fake clock stands still until it is told to move:
 * tests of programs that use delays and rate limits need not sleep.
 *
 *     wq_clock *clock = wq_clock_fake_create(0);
 *     wq_create(WQ_CONFIG(.clock = clock), &q);
 *     wq_add_after(q, key, WQ_MS(50));
 *     wq_clock_fake_step(clock, WQ_MS(50));    // now the key is there
 *
 * Deadlines are absolute: a step that comes before a thread goes to sleep is
 * seen by it, so a step can never be missed.
 *
 * Times are nanoseconds. Threads: any, for all functions but
 * wq_clock_destroy(). The wq_clock_fake_ functions leave any other clock, and
 * NULL, alone.
 */
#ifndef WQ_CLOCK_H
#define WQ_CLOCK_H

#include <wq/wq.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The clocks of the system: always there, never destroyed.  Since: 0.1. [C-10]
 */
WQ_API wq_clock *wq_clock_monotonic(void);

/* As above; NULL where the system has no such clock (errno is ENOSYS).  Since:
 * 0.1.  [C-10]
 */
WQ_API wq_clock *wq_clock_boottime(void);

/* What time is it on `clock`? NULL: on wq_clock_monotonic().  Since: 0.1.
 * [C-01]
 */
WQ_API int64_t wq_clock_now(wq_clock *clock);

/* A clock that shows `now_ns` and stands still. NULL: no memory. The caller
 * owns it and destroys it after every queue, limiter or bucket that uses it.
 * Since: 0.1.  [C-01]
 */
WQ_API WQ_NODISCARD wq_clock *wq_clock_fake_create(int64_t now_ns);

/* Let it show another time. Whoever waits for a deadline that is not after it
 * wakes. Going back is allowed; it wakes nobody. A key whose deadline had passed
 * stays READY if a call of its queue, or a get that sleeps, has found that; else
 * it waits for its deadline again.  Since: 0.1.  [C-01 C-02 D-08]
 */
WQ_API void wq_clock_fake_set(wq_clock *clock, int64_t now_ns);

/* Let time pass; stops at WQ_FOREVER. A step of 0 wakes whoever is due.
 * Since: 0.1.  [C-01 C-02 C-07]
 */
WQ_API void wq_clock_fake_step(wq_clock *clock, int64_t by_ns);

/* How many threads sleep until a time on this clock: gets, drains and adds with
 * a time-out, waits in a bucket, the watchdog of a worker pool that has this
 * clock; and of the gets without a time-out at most one per queue, which keeps
 * time for the others while some key of the queue waits; likewise one of the
 * adds that wait for room, while the end of a quiet time may make room, and no
 * get keeps time. Gets of a queue where nothing waits sleep without a time, and
 * do not count. A thread that a call has woken does not count when that call
 * returns.  Since: 0.1.  [C-05 C-08]
 */
WQ_API size_t wq_clock_fake_waiters(wq_clock *clock);

/* Block (in real time) until at least `n` do. If one thread works on a queue in
 * which a key waits, and nothing else sleeps on this clock, then `n` = 1 after
 * an add or a step means: the thread has worked on every key that was READY and
 * sleeps until the next deadline.  Since: 0.1.  [C-08]
 */
WQ_API void wq_clock_fake_wait_for_waiters(wq_clock *clock, size_t n);

/* Give a fake clock back. NULL and the clocks of the system are left alone.
 * Since: 0.1.
 */
WQ_API void wq_clock_destroy(wq_clock *clock);

#ifdef __cplusplus
}
#endif

#endif
