/* SPDX-License-Identifier: MIT */
/* test_beacon.c: is a beacon readable when it should be?
 *
 * First the beacon alone, then as the clocks light it: in all cases poll() is
 * asked, as a loop would.
 */
#define _GNU_SOURCE /* RTLD_NEXT */

#include "support/wq_test.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <wq/clock.h>

#include "clock/clock.h"
#include "port/beacon.h"
#include "port/time.h"
#include "support/worker.h"

#define MS INT64_C(1000000)
#define HOUR (INT64_C(3600) * 1000000000)

#if WQ__HAVE_FUTEX
#include <sys/timerfd.h>

/* The library finds this one before the C library's. */
static int timers_set;

int
timerfd_settime(int fd, int flags, const struct itimerspec *until,
                struct itimerspec *was)
{
    int (*next)(int, int, const struct itimerspec *, struct itimerspec *);
    void *symbol = dlsym(RTLD_NEXT, "timerfd_settime");

    memcpy(&next, &symbol, sizeof next);
    timers_set++;
    return next(fd, flags, until, was);
}

static bool
readable_within(const struct wq__beacon *b, int ms)
{
    struct pollfd p = {.fd = wq__beacon_fd(b), .events = POLLIN};
    const int     n = poll(&p, 1, ms);

    assert_in_range(n, 0, 1);
    assert_int_equal(p.revents, n ? POLLIN : 0);
    return n == 1;
}

static bool
readable(const struct wq__beacon *b)
{
    return readable_within(b, 0);
}

/* ---- the beacon -----------------------------------------------------------
 */

static struct wq__beacon beacon;

static int
open_beacon(void **state)
{
    (void)state;
    return wq__beacon_init(&beacon, WQ__TIMER_MONOTONIC) ? -1 : 0;
}

static int
close_beacon(void **state)
{
    (void)state;
    wq__beacon_fini(&beacon);
    return 0;
}

TEST(new_beacon_is_dark)
{
    assert_false(readable(&beacon));
}

TEST(beacon_is_readable_from_light_to_dim)
{
    for (int i = 0; i < 3; i++) {
        wq__beacon_light(&beacon, WQ__LIT_BY_QUEUE);
        assert_true(readable(&beacon));
        assert_true(readable(&beacon)); /* looking does not dim it */
        wq__beacon_light(&beacon, WQ__LIT_BY_QUEUE);
        assert_true(readable(&beacon));
        wq__beacon_dim(&beacon, WQ__LIT_BY_QUEUE);
        assert_false(readable(&beacon));
        wq__beacon_dim(&beacon, WQ__LIT_BY_QUEUE);
        assert_false(readable(&beacon));
    }
}

TEST(beacon_is_readable_while_there_is_one_reason_of_two)
{
    wq__beacon_light(&beacon, WQ__LIT_BY_QUEUE);
    wq__beacon_light(&beacon, WQ__LIT_BY_CLOCK);
    wq__beacon_dim(&beacon, WQ__LIT_BY_CLOCK);
    assert_true(readable(&beacon));
    wq__beacon_light(&beacon, WQ__LIT_BY_CLOCK);
    wq__beacon_dim(&beacon, WQ__LIT_BY_QUEUE);
    assert_true(readable(&beacon));
    wq__beacon_light(&beacon, WQ__LIT_BY_QUEUE);
    wq__beacon_dim(&beacon, WQ__LIT_BY_CLOCK);
    assert_true(readable(&beacon));
    wq__beacon_dim(&beacon, WQ__LIT_BY_QUEUE);
    assert_false(readable(&beacon));
}

TEST(timer_that_has_run_out_is_readable_until_armed_anew)
{
    wq__beacon_arm(&beacon, wq__time_now() + 2 * MS);
    assert_true(readable_within(&beacon, -1));
    assert_true(readable(&beacon));
    wq__beacon_arm(&beacon, wq__time_now() + HOUR);
    assert_false(readable(&beacon));
}

TEST(timer_that_has_run_out_is_readable_until_stopped)
{
    wq__beacon_arm(&beacon, wq__time_now() + 2 * MS);
    assert_true(readable_within(&beacon, -1));
    wq__beacon_arm(&beacon, WQ_FOREVER);
    assert_false(readable(&beacon));
}

/* A deadline that passes between looking and arming must not be lost. */
TEST(timer_that_has_run_out_stays_so_when_the_same_deadline_is_named)
{
    const int64_t deadline = wq__time_now() + 2 * MS;

    wq__beacon_arm(&beacon, deadline);
    assert_true(readable_within(&beacon, -1));
    wq__beacon_arm(&beacon, deadline);
    wq__beacon_dim(&beacon, WQ__LIT_BY_QUEUE);
    assert_true(readable(&beacon));
}

TEST(system_is_not_asked_for_what_is_so_already)
{
    const int64_t deadline = wq__time_now() + HOUR;

    timers_set = 0;
    wq__beacon_arm(&beacon, WQ_FOREVER);
    assert_int_equal(timers_set, 0);
    wq__beacon_arm(&beacon, deadline);
    wq__beacon_arm(&beacon, deadline);
    assert_int_equal(timers_set, 1);
    wq__beacon_arm(&beacon, WQ_FOREVER);
    wq__beacon_arm(&beacon, WQ_FOREVER);
    assert_int_equal(timers_set, 2);
}

TEST(timer_does_not_run_out_early)
{
    const int64_t deadline = wq__time_now() + 5 * MS;

    wq__beacon_arm(&beacon, deadline);
    assert_true(readable_within(&beacon, -1));
    assert_true(wq__time_now() >= deadline);
}

TEST(deadlines_in_the_past_are_readable_at_once)
{
    const int64_t past[] = {wq__time_now(), 1, 0, -1, INT64_MIN};

    for (size_t i = 0; i < sizeof past / sizeof past[0]; i++) {
        wq__beacon_arm(&beacon, past[i]);
        assert_true(readable_within(&beacon, -1));
        wq__beacon_arm(&beacon, WQ_FOREVER);
        assert_false(readable(&beacon));
    }
}

TEST(deadlines_far_away_are_not_readable)
{
    wq__beacon_arm(&beacon, WQ_FOREVER - 1);
    assert_false(readable(&beacon));
    wq__beacon_arm(&beacon, wq__time_now() + HOUR);
    assert_false(readable(&beacon));
}

TEST(earlier_deadline_takes_the_place_of_a_later_one)
{
    wq__beacon_arm(&beacon, wq__time_now() + HOUR);
    wq__beacon_arm(&beacon, wq__time_now() + 2 * MS);
    assert_true(readable_within(&beacon, -1));
}

static int
poll_forever(struct worker *self)
{
    (void)self;
    return readable_within(&beacon, -1);
}

TEST(light_wakes_a_loop_that_sleeps)
{
    struct worker *w = worker_start(poll_forever, NULL);

    worker_await_blocked(w);
    wq__beacon_light(&beacon, WQ__LIT_BY_QUEUE);
    assert_int_equal(worker_join(w), true);
}

/* Each reason has an owner of its own, and both may be at it. */
static int
blink(struct worker *self)
{
    const enum wq__lit reason = *(const enum wq__lit *)self->arg;

    for (int i = 0; i < 20000; i++) {
        wq__beacon_light(&beacon, reason);
        wq__beacon_dim(&beacon, reason);
    }
    return 0;
}

TEST(owners_of_two_reasons_do_not_disturb_each_other)
{
    static const enum wq__lit reasons[] = {WQ__LIT_BY_QUEUE, WQ__LIT_BY_CLOCK};
    struct worker            *queue = worker_start(blink, (void *)&reasons[0]);
    struct worker            *clock = worker_start(blink, (void *)&reasons[1]);

    assert_int_equal(worker_join(queue), 0);
    assert_int_equal(worker_join(clock), 0);
    assert_false(readable(&beacon));
    wq__beacon_light(&beacon, WQ__LIT_BY_CLOCK);
    assert_true(readable(&beacon));
}

/* ---- descriptors ----------------------------------------------------------
 */

/* How many of the first so many descriptors are open. */
static int
count_open(void)
{
    int n = 0;

    for (int fd = 0; fd < 64; fd++)
        n += fcntl(fd, F_GETFD) != -1;
    return n;
}

TEST(all_descriptors_close_on_exec)
{
    struct wq__beacon b;

    assert_int_equal(wq__beacon_init(&b, WQ__TIMER_BOOTTIME), WQ_OK);
    const int fds[] = {wq__beacon_fd(&b), b.event_fd, b.timer_fd};
    for (int i = 0; i < 3; i++)
        assert_int_equal(fcntl(fds[i], F_GETFD), FD_CLOEXEC);
    wq__beacon_fini(&b);
}

TEST(fini_closes_all)
{
    const int         open = count_open();
    struct wq__beacon b;

    assert_int_equal(wq__beacon_init(&b, WQ__TIMER_MONOTONIC), WQ_OK);
    assert_int_equal(count_open(), open + 3);
    wq__beacon_fini(&b);
    assert_int_equal(count_open(), open);
    assert_int_equal(wq__beacon_fd(&b), -1);
    wq__beacon_fini(&b); /* of one that is closed, of one that never was */
    wq__beacon_fini(&(struct wq__beacon){0});
    wq__beacon_fini(NULL);
    assert_int_equal(count_open(), open);
}

TEST(beacon_without_a_timer_does_without_its_descriptor)
{
    const int         open = count_open();
    struct wq__beacon b;

    assert_int_equal(wq__beacon_init(&b, WQ__TIMER_NONE), WQ_OK);
    assert_int_equal(count_open(), open + 2);
    wq__beacon_fini(&b);
    assert_int_equal(count_open(), open);
}

/* The first, second, ... of the numbers it could have is out of bounds. */
TEST(init_that_gets_too_few_descriptors_fails_and_leaves_none)
{
    const int     open = count_open();
    struct rlimit usual;
    wq_err        err = WQ_EIO;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual), 0);
    for (rlim_t max = 0; err; max++) {
        const struct rlimit few = {max, usual.rlim_max};
        struct wq__beacon   b;

        assert_true(max < 64);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
        errno = 0;
        err = wq__beacon_init(&b, WQ__TIMER_MONOTONIC);
        const int cause = errno;
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
        if (err) {
            assert_int_equal(err, WQ_EIO);
            assert_int_equal(cause, EMFILE);
            assert_int_equal(wq__beacon_fd(&b), -1);
            assert_int_equal(count_open(), open);
        }
        wq__beacon_fini(&b);
    }
    assert_int_equal(count_open(), open);
}

/* What is behind the descriptors is the parent's too. */
TEST(child_does_not_change_what_its_parent_sees)
{
    wq__beacon_light(&beacon, WQ__LIT_BY_QUEUE);
    wq__beacon_arm(&beacon, wq__time_now() + HOUR);
    const pid_t child = fork();
    if (child == 0) {
        wq__beacon_dim(&beacon, WQ__LIT_BY_QUEUE);
        wq__beacon_arm(&beacon, 1);
        wq__beacon_fini(&beacon);
        _exit(0);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(readable(&beacon));
    wq__beacon_dim(&beacon, WQ__LIT_BY_QUEUE);
    assert_false(readable(&beacon));
}

/* ---- as clocks light it ---------------------------------------------------
 */

/* A clock, a beacon fit for it, and what a queue would ask. */
struct watched {
    wq_clock         *clock;
    struct wq__beacon beacon;
    struct wq__watch  watch;
};

static struct watched seen, other;

static void
watch_init(struct watched *s, wq_clock *clock)
{
    *s = (struct watched){.clock = clock};
    assert_int_equal(wq__beacon_init(&s->beacon, clock->timer), WQ_OK);
    s->watch.beacon = &s->beacon;
}

static void
watch_until(struct watched *s, int64_t deadline_ns)
{
    s->clock->watch(s->clock, &s->watch, deadline_ns);
}

static void
watch_fini(struct watched *s)
{
    watch_until(s, WQ_FOREVER);
    wq__beacon_fini(&s->beacon);
}

static int
open_fake(void **state)
{
    (void)state;
    wq_clock *clock = wq_clock_fake_create(100);

    if (!clock)
        return -1;
    watch_init(&seen, clock);
    watch_init(&other, clock);
    return 0;
}

static int
close_fake(void **state)
{
    (void)state;
    watch_fini(&seen);
    watch_fini(&other);
    wq_clock_destroy(seen.clock);
    return 0;
}

TEST(clocks_of_the_system_light_it_when_it_is_time)
{
    wq_clock *const clocks[] = {wq_clock_monotonic(), wq_clock_boottime()};

    for (int i = 0; i < 2; i++) {
        wq_clock *clock = clocks[i];
        watch_init(&seen, clock);
        watch_until(&seen, clock->now(clock) + HOUR);
        assert_false(readable(&seen.beacon));
        const int64_t deadline = clock->now(clock) + 2 * MS;
        watch_until(&seen, deadline);
        assert_true(readable_within(&seen.beacon, -1));
        assert_true(clock->now(clock) >= deadline);
        watch_until(&seen, WQ_FOREVER);
        assert_false(readable(&seen.beacon));
        watch_fini(&seen);
    }
}

TEST(fake_clock_lights_it_at_the_very_nanosecond)
{
    watch_until(&seen, 150);
    assert_false(readable(&seen.beacon));
    wq_clock_fake_step(seen.clock, 49);
    assert_false(readable(&seen.beacon));
    wq_clock_fake_step(seen.clock, 1);
    assert_true(readable(&seen.beacon));
    wq_clock_fake_step(seen.clock, HOUR);
    assert_true(readable(&seen.beacon));
}

TEST(deadline_that_a_fake_clock_has_passed_lights_at_once)
{
    const int64_t past[] = {100, 99, 0, INT64_MIN};

    for (size_t i = 0; i < sizeof past / sizeof past[0]; i++) {
        watch_until(&seen, past[i]);
        assert_true(readable(&seen.beacon));
        watch_until(&seen, WQ_FOREVER);
        assert_false(readable(&seen.beacon));
    }
}

TEST(another_deadline_on_a_fake_clock_takes_the_place_of_the_last)
{
    watch_until(&seen, 200);
    watch_until(&seen, 150);
    wq_clock_fake_set(seen.clock, 150);
    assert_true(readable(&seen.beacon));
    watch_until(&seen, 160); /* the first was seen to: this is the next */
    assert_false(readable(&seen.beacon));
    wq_clock_fake_set(seen.clock, 200);
    assert_true(readable(&seen.beacon));
}

TEST(fake_clock_that_goes_back_dims_it_again)
{
    watch_until(&seen, 150);
    wq_clock_fake_set(seen.clock, 150);
    wq_clock_fake_set(seen.clock, 149);
    assert_false(readable(&seen.beacon));
    wq_clock_fake_set(seen.clock, 150);
    assert_true(readable(&seen.beacon));
}

TEST(no_deadline_is_never_reached)
{
    watch_until(&seen, WQ_FOREVER);
    wq_clock_fake_set(seen.clock, WQ_FOREVER);
    assert_false(readable(&seen.beacon));
    watch_until(&seen, WQ_FOREVER - 1);
    assert_true(readable(&seen.beacon));
    watch_until(&seen, WQ_FOREVER);
    assert_false(readable(&seen.beacon));
}

TEST(fake_clock_and_queue_light_it_each_for_its_own_reason)
{
    wq__beacon_light(&seen.beacon, WQ__LIT_BY_QUEUE);
    watch_until(&seen, 150);
    wq_clock_fake_set(seen.clock, 150);
    wq__beacon_dim(&seen.beacon, WQ__LIT_BY_QUEUE);
    assert_true(readable(&seen.beacon));
    wq__beacon_light(&seen.beacon, WQ__LIT_BY_QUEUE);
    watch_until(&seen, WQ_FOREVER);
    assert_true(readable(&seen.beacon));
    wq__beacon_dim(&seen.beacon, WQ__LIT_BY_QUEUE);
    assert_false(readable(&seen.beacon));
}

/* The list is third, other, seen; each place is left once. */
TEST(fake_clock_looks_after_several_watches)
{
    struct watched third;

    watch_init(&third, seen.clock);
    watch_until(&seen, 110);
    watch_until(&other, 120);
    watch_until(&third, 130);
    wq_clock_fake_set(seen.clock, 115);
    assert_true(readable(&seen.beacon));
    assert_false(readable(&other.beacon));
    watch_until(&other, WQ_FOREVER); /* the middle */
    watch_until(&seen, WQ_FOREVER);  /* the end */
    wq_clock_fake_set(seen.clock, 130);
    assert_false(readable(&other.beacon));
    assert_false(readable(&seen.beacon));
    assert_true(readable(&third.beacon));
    watch_until(&seen, 140);
    watch_until(&other, 150);
    watch_until(&other, WQ_FOREVER); /* the beginning */
    watch_fini(&third);
    wq_clock_fake_set(seen.clock, 150);
    assert_true(readable(&seen.beacon));
    assert_false(readable(&other.beacon));
}

/* C-05: waiters are threads that sleep. */
TEST(watch_is_not_a_waiter)
{
    watch_until(&seen, 150);
    assert_int_equal(wq_clock_fake_waiters(seen.clock), 0);
}

static int
step_often(struct worker *self)
{
    (void)self;
    for (int i = 0; i < 20000; i++)
        wq_clock_fake_step(seen.clock, 1);
    return 0;
}

/* The queue names the next deadline while time moves on. */
TEST(no_deadline_is_lost_while_a_fake_clock_moves)
{
    struct worker *w = worker_start(step_often, NULL);

    for (int64_t at = 101; at <= 20100; at++) {
        watch_until(&seen, at);
        assert_true(readable_within(&seen.beacon, -1));
    }
    assert_int_equal(worker_join(w), 0);
}

#define beacon_test(name) test_with(name, open_beacon, close_beacon)
#define fake_test(name) test_with(name, open_fake, close_fake)

WQ_TESTS(
    beacon_test(new_beacon_is_dark),
    beacon_test(beacon_is_readable_from_light_to_dim),
    beacon_test(beacon_is_readable_while_there_is_one_reason_of_two),
    beacon_test(timer_that_has_run_out_is_readable_until_armed_anew),
    beacon_test(timer_that_has_run_out_is_readable_until_stopped),
    beacon_test(
        timer_that_has_run_out_stays_so_when_the_same_deadline_is_named),
    beacon_test(system_is_not_asked_for_what_is_so_already),
    beacon_test(timer_does_not_run_out_early),
    beacon_test(deadlines_in_the_past_are_readable_at_once),
    beacon_test(deadlines_far_away_are_not_readable),
    beacon_test(earlier_deadline_takes_the_place_of_a_later_one),
    beacon_test(light_wakes_a_loop_that_sleeps),
    beacon_test(owners_of_two_reasons_do_not_disturb_each_other),
    test(all_descriptors_close_on_exec), test(fini_closes_all),
    test(beacon_without_a_timer_does_without_its_descriptor),
    test(init_that_gets_too_few_descriptors_fails_and_leaves_none),
    beacon_test(child_does_not_change_what_its_parent_sees),
    test(clocks_of_the_system_light_it_when_it_is_time),
    fake_test(fake_clock_lights_it_at_the_very_nanosecond),
    fake_test(deadline_that_a_fake_clock_has_passed_lights_at_once),
    fake_test(another_deadline_on_a_fake_clock_takes_the_place_of_the_last),
    fake_test(fake_clock_that_goes_back_dims_it_again),
    fake_test(no_deadline_is_never_reached),
    fake_test(fake_clock_and_queue_light_it_each_for_its_own_reason),
    fake_test(fake_clock_looks_after_several_watches),
    fake_test(watch_is_not_a_waiter),
    fake_test(no_deadline_is_lost_while_a_fake_clock_moves));

#else

TEST(system_without_beacons_says_so)
{
    struct wq__beacon b;

    errno = 0;
    assert_int_equal(wq__beacon_init(&b, WQ__TIMER_NONE), WQ_ENOTSUP);
    assert_int_equal(errno, ENOSYS);
    assert_int_equal(wq__beacon_fd(&b), -1);
    wq__beacon_light(&b, WQ__LIT_BY_QUEUE);
    wq__beacon_arm(&b, 1);
    wq__beacon_dim(&b, WQ__LIT_BY_QUEUE);
    wq__beacon_fini(&b);
    assert_int_equal(wq__beacon_fd(&b), -1);
}

WQ_TESTS(test(system_without_beacons_says_so));

#endif
