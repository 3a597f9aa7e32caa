/* SPDX-License-Identifier: MIT */
/* test_beacon.c: is a beacon readable when it should be?
 *
 * First the beacon alone, then as clocks light it. The tests call poll(), as an
 * event loop does.
 */
#define _GNU_SOURCE /* RTLD_NEXT */

#include "unit/script.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
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

#include "unit/interpose.h"

static int timers_set;

int
timerfd_settime(int fd, int flags, const struct itimerspec *until,
                struct itimerspec *was)
{
    int (*next)(int, int, const struct itimerspec *, struct itimerspec *);

    timers_set++;
    next_function("timerfd_settime", &next);
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

/* ---- the beacon ----------------------------------------------------------- */

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

/* Arms the timer for two milliseconds from now, and waits until it has run
 * out. */
static int64_t
run_out(void)
{
    const int64_t deadline = wq__time_now() + 2 * MS;

    wq__beacon_arm(&beacon, deadline);
    assert_true(readable_within(&beacon, -1));
    assert_true(wq__time_now() >= deadline);
    assert_true(readable(&beacon));
    return deadline;
}

/* A deadline that passes between looking and arming must not be lost. */
TEST(timer_that_has_run_out_is_readable_until_armed_anew)
{
    wq__beacon_arm(&beacon, run_out()); /* the same deadline again */
    wq__beacon_dim(&beacon, WQ__LIT_BY_QUEUE);
    assert_true(readable(&beacon));
    wq__beacon_arm(&beacon, wq__time_now() + HOUR);
    assert_false(readable(&beacon));
    (void)run_out(); /* an earlier deadline replaces the later one */
    wq__beacon_arm(&beacon, WQ_FOREVER);
    assert_false(readable(&beacon));
    wq__beacon_arm(&beacon, WQ_FOREVER - 1);
    assert_false(readable(&beacon));
}

TEST(timer_is_set_only_when_the_deadline_changes)
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

TEST(deadlines_in_the_past_are_readable_at_once)
{
    const int64_t past[] = {wq__time_now(), 1, 0, -1, INT64_MIN};

    for (size_t i = 0; i < LEN(past); i++) {
        wq__beacon_arm(&beacon, past[i]);
        assert_true(readable_within(&beacon, -1));
        wq__beacon_arm(&beacon, WQ_FOREVER);
        assert_false(readable(&beacon));
    }
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

/* ---- descriptors ---------------------------------------------------------- */

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
    const int fds[] = {wq__beacon_fd(&beacon), beacon.event_fd,
                       beacon.timer_fd};
    for (size_t i = 0; i < LEN(fds); i++)
        assert_int_equal(fcntl(fds[i], F_GETFD), FD_CLOEXEC);
}

TEST(fini_closes_all_descriptors)
{
    static const struct {
        enum wq__timer timer;
        int            descriptors;
    } rows[] = {
        {WQ__TIMER_MONOTONIC, 3}, {WQ__TIMER_BOOTTIME, 3}, {WQ__TIMER_NONE, 2}};
    const int open = count_open();

    for (size_t i = 0; i < LEN(rows); i++) {
        struct wq__beacon b;

        assert_int_equal(wq__beacon_init(&b, rows[i].timer), WQ_OK);
        assert_int_equal(count_open(), open + rows[i].descriptors);
        wq__beacon_fini(&b);
        assert_int_equal(count_open(), open);
        assert_int_equal(wq__beacon_fd(&b), -1);
        wq__beacon_fini(&b); /* of one that is closed, of one that never was */
        wq__beacon_fini(&(struct wq__beacon){0});
        wq__beacon_fini(NULL);
        assert_int_equal(count_open(), open);
    }
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

/* The descriptors of parent and child share what is behind them. */
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

/* ---- as clocks light it --------------------------------------------------- */

/* A clock, a beacon for it, and the watch that a queue would set. */
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

/* light REASON; dim REASON; watch DEADLINE; time NOW; lit; dark */
static bool
act(const char *const *word)
{
    const enum wq__lit reason =
        is(word[1], "queue") ? WQ__LIT_BY_QUEUE : WQ__LIT_BY_CLOCK;

    if (is(word[0], "light"))
        wq__beacon_light(&seen.beacon, reason);
    else if (is(word[0], "dim"))
        wq__beacon_dim(&seen.beacon, reason);
    else if (is(word[0], "watch"))
        watch_until(&seen, number(word[1]));
    else if (is(word[0], "time"))
        wq_clock_fake_set(seen.clock, number(word[1]));
    else
        expect_word(readable(&seen.beacon) ? "lit" : "dark", word[0]);
    return true;
}

/* The clock shows 100 at first. */
static const struct scene scenes[] = {
    {"a new beacon is dark", "dark"},
    {"a beacon is readable from light to dim, however often each comes",
     "light queue; lit; lit; light queue; lit; dim queue; dark; dim queue; "
     "dark; light queue; lit; dim queue; dark"},
    {"a beacon is readable while there is one reason of two",
     "light queue; light clock; dim clock; lit; light clock; dim queue; lit; "
     "light queue; dim clock; lit; dim queue; dark"},
    {"a fake clock lights it at the very nanosecond",
     "watch 150; dark; time 149; dark; time 150; lit; time 3600000000000; lit"},
    {"a deadline that a fake clock has passed lights it at once",
     "watch 100; lit; watch never; dark; watch 99; lit; watch never; dark; "
     "watch 0; lit; watch never; dark; watch -9223372036854775808; lit; "
     "watch never; dark"},
    {"another deadline replaces the last one",
     "watch 200; watch 150; time 150; lit; watch 160; dark; time 200; lit"},
    {"a fake clock that goes back dims it again",
     "watch 150; time 150; time 149; dark; time 150; lit"},
    {"no deadline is never reached",
     "watch never; time never; dark; watch 9223372036854775806; lit; "
     "watch never; dark"},
    {"fake clock and queue light it each for its own reason",
     "light queue; watch 150; time 150; dim queue; lit; light queue; "
     "watch never; lit; dim queue; dark"},
};

TEST(beacon_is_readable_while_lit)
{
    script_run_all(scenes, LEN(scenes), open_fake, act, NULL, close_fake);
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

/* O-70: a layer shows the descriptor of its inner queue with its own. */
TEST(beacon_shows_another_one)
{
    struct wq__beacon inner;

    assert_int_equal(wq__beacon_init(&inner, WQ__TIMER_NONE), WQ_OK);
    assert_int_equal(wq__beacon_include(&beacon, wq__beacon_fd(&inner)), WQ_OK);
    assert_false(readable(&beacon));
    wq__beacon_light(&inner, WQ__LIT_BY_QUEUE);
    assert_true(readable(&beacon));
    wq__beacon_dim(&inner, WQ__LIT_BY_QUEUE);
    assert_false(readable(&beacon));
    wq__beacon_light(&inner, WQ__LIT_BY_QUEUE);
    wq__beacon_fini(&inner);
    assert_false(readable(&beacon));

    errno = 0;
    assert_int_equal(wq__beacon_include(&beacon, -1), WQ_EIO);
    assert_int_equal(errno, EBADF);
}

#define beacon_test(name) test_with(name, open_beacon, close_beacon)
#define fake_test(name) test_with(name, open_fake, close_fake)

WQ_TESTS(test(beacon_is_readable_while_lit),
         beacon_test(timer_that_has_run_out_is_readable_until_armed_anew),
         beacon_test(timer_is_set_only_when_the_deadline_changes),
         beacon_test(deadlines_in_the_past_are_readable_at_once),
         beacon_test(light_wakes_a_loop_that_sleeps),
         beacon_test(owners_of_two_reasons_do_not_disturb_each_other),
         beacon_test(all_descriptors_close_on_exec),
         test(fini_closes_all_descriptors),
         test(init_that_gets_too_few_descriptors_fails_and_leaves_none),
         beacon_test(child_does_not_change_what_its_parent_sees),
         beacon_test(beacon_shows_another_one),
         test(clocks_of_the_system_light_it_when_it_is_time),
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
    errno = 0;
    assert_int_equal(wq__beacon_include(&b, 0), WQ_ENOTSUP);
    assert_int_equal(errno, ENOSYS);
    wq__beacon_fini(&b);
    assert_int_equal(wq__beacon_fd(&b), -1);
}

WQ_TESTS(test(system_without_beacons_says_so));

#endif
