/* SPDX-License-Identifier: MIT */
/* clock.h: the clock of a queue, and a fake clock for tests.
 *
 * Every deadline of a queue is on one clock. The default is CLOCK_MONOTONIC.
 * CLOCK_BOOTTIME goes on while the machine is suspended, so that suspension
 * does not make delays longer. A fake clock stands still until a test moves it,
 * so that tests of delays and rate limits need not sleep.
 *
 *     wq_clock *clock = wq_clock_fake_create(0);
 *     wq_create(WQ_CONFIG(.clock = clock), &q);
 *     wq_add_after(q, key, WQ_MS(50));
 *     wq_clock_fake_step(clock, WQ_MS(50));    // now the key is READY
 *
 * Deadlines are absolute: a thread that goes to sleep after a step has seen the
 * step, so no step is missed.
 *
 * Times are nanoseconds. Threads: any, for all functions but
 * wq_clock_destroy(). The wq_clock_fake_ functions do nothing for NULL and for
 * clocks that are not fake.
 */
#ifndef WQ_CLOCK_H
#define WQ_CLOCK_H

#include <wq/wq.h>

#ifdef __cplusplus
extern "C" {
#endif

/* CLOCK_MONOTONIC: never NULL, need not be destroyed.  Since: 0.1.  [C-10] */
WQ_API wq_clock *wq_clock_monotonic(void);

/* CLOCK_BOOTTIME; NULL, with errno ENOSYS, if the system has none.
 * Since: 0.1.  [C-10]
 */
WQ_API wq_clock *wq_clock_boottime(void);

/* The time on `clock`; NULL: on wq_clock_monotonic().  Since: 0.1.  [C-01] */
WQ_API int64_t wq_clock_now(wq_clock *clock);

/* Create a clock that shows `now_ns` and stands still. Returns NULL if out of
 * memory. The caller owns it and passes it to wq_clock_destroy() after every
 * queue, limiter, bucket and pool that uses it is destroyed.  Since: 0.1.
 * [C-01]
 */
WQ_API WQ_NODISCARD wq_clock *wq_clock_fake_create(int64_t now_ns);

/* Set the time, and wake the threads whose deadlines are not after the new
 * time. The time may go back; that wakes no thread. If a deadline had passed
 * before the time went back, its key stays READY if a call of the queue, or a
 * get that slept, has noticed the deadline; else the key is WAITING again.
 * Since: 0.1.  [C-01 C-02 D-08]
 */
WQ_API void wq_clock_fake_set(wq_clock *clock, int64_t now_ns);

/* Move the time by `by_ns`, at most to WQ_FOREVER, and wake threads as
 * wq_clock_fake_set() does, also if `by_ns` is 0.  Since: 0.1.
 * [C-01 C-02 C-07]
 */
WQ_API void wq_clock_fake_step(wq_clock *clock, int64_t by_ns);

/* How many threads sleep until a time on this clock:
 *   - gets, drains and adds with a timeout, waits in a bucket, and the watchdog
 *     of a worker pool with this clock;
 *   - of the gets without a timeout, at most one per queue with WAITING keys:
 *     it sleeps until the earliest deadline, for all of them;
 *   - of the adds that are blocked without a timeout, at most one per queue: it
 *     sleeps until the end of a cooldown, after which its keys may fit, if no
 *     get sleeps until then.
 * Gets of a queue without WAITING keys sleep without a deadline, and do not
 * count. A thread that a call wakes does not count any more when that call
 * returns.  Since: 0.1.  [C-05 C-08]
 */
WQ_API size_t wq_clock_fake_waiters(wq_clock *clock);

/* Block (in real time) until wq_clock_fake_waiters() is at least `n`.
 *
 * A test with one worker thread, a WAITING key, and no other thread that sleeps
 * on this clock calls it with `n` = 1 after an add or a step: when it returns,
 * the worker has worked on every key that was READY, and sleeps until the next
 * deadline.  Since: 0.1.  [C-08]
 */
WQ_API void wq_clock_fake_wait_for_waiters(wq_clock *clock, size_t n);

/* Free a fake clock. Does nothing for NULL and for the clocks of the system.
 * Threads: one, once.  Since: 0.1.
 */
WQ_API void wq_clock_destroy(wq_clock *clock);

#ifdef __cplusplus
}
#endif

#endif
