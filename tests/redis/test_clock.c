/* SPDX-License-Identifier: MIT */
/* test_clock.c: what if the clock of the server steps by an hour? (S-03, S-20)
 *
 * A server whose wall clock the test moves (stepped_clock.c), and two handles.
 * Handle a never renews its lease by itself.
 */
#include "redis/fixture.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#define LEASE WQ_SECONDS(60)
#define HOUR WQ_SECONDS(3600)

/* Longer than what a test waits for takes on a slow machine, shorter than an
 * hour. */
#define LONG WQ_SECONDS(60)

static struct {
    struct redis_server server;
    _Atomic int64_t    *shift; /* of its clock */
    char                file[64];
    wq_queue           *a, *b;
} f;

static wq_queue *
open_leased(int64_t lease_ns, bool manual_renew)
{
    wq_queue *q = NULL;

    assert_err(wq_redis_open(url_of(f.server.socket, "q"),
                             WQ_REDIS_OPTIONS(.lease_ns = lease_ns,
                                              .timeout_ns = WQ_SECONDS(10),
                                              .manual_renew = manual_renew),
                             NULL, &q),
               WQ_OK);
    return q;
}

static void
make_shift(void)
{
    (void)snprintf(f.file, sizeof f.file, "/tmp/wq-clock-XXXXXX");
    const int fd = mkstemp(f.file);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, sizeof *f.shift), 0);
    f.shift =
        mmap(NULL, sizeof *f.shift, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(f.shift != MAP_FAILED);
    assert_int_equal(close(fd), 0);
}

static int64_t
time_of_server(void)
{
    return strtoll(redis_server_say(&f.server, "TIME"), NULL, 10);
}

/* Until the server has noticed it: it may remember the time for a moment. */
static void
step_clock(int64_t by_ns)
{
    const int64_t before = time_of_server();
    int64_t       by = 0;

    *f.shift += by_ns;
    for (int i = 0; i < 3000; i++) {
        by = (time_of_server() - before) * WQ_SECONDS(1);
        if (by_ns < 0 ? by < by_ns / 2 : by > by_ns / 2)
            return;
        (void)poll(NULL, 0, 10);
    }
    fail_msg("the clock of the server does not step: by %lld s",
             (long long)(by / WQ_SECONDS(1)));
}

static int
set_up(void **state)
{
    (void)state;
    need_server();
    make_shift();
    assert_int_equal(setenv("LD_PRELOAD", WQ_STEPPED_CLOCK_LIBRARY, 1), 0);
    assert_int_equal(setenv("WQ_STEPPED_CLOCK", f.file, 1), 0);
    redis_server_start(&f.server, NULL);
    assert_int_equal(unsetenv("LD_PRELOAD"), 0);
    f.a = open_leased(LEASE, true);
    f.b = open_leased(LEASE, true);
    return 0;
}

static int
tear_down(void **state)
{
    (void)state;
    if (f.b)
        check(f.b);
    wq_destroy(f.a);
    wq_destroy(f.b);
    redis_server_stop(&f.server);
    (void)munmap((void *)f.shift, sizeof *f.shift);
    (void)unlink(f.file);
    return 0;
}

static wq_item *
hold(const char *key)
{
    assert_err(wq_add(f.a, wq_str(key)), WQ_OK);
    return take_key(f.a, key);
}

/* Both handles again, with a short lease; a's ends unless it renews it. */
static void
shorten_leases(void)
{
    wq_destroy(f.a);
    wq_destroy(f.b);
    f.a = open_leased(WQ_SECONDS(2), true);
    f.b = open_leased(WQ_SECONDS(2), false);
}

/* b gets a key whose holder does not renew its lease, although the clock steps. */
static void
expect_key_of_a_dead_holder_after(int64_t step_ns)
{
    wq_item *item = NULL;

    shorten_leases();
    const wq_item *old = hold("k");
    step_clock(step_ns);
    assert_err(wq_get_within(f.b, LONG, &item), WQ_OK);
    assert_int_equal(wq_hold_left(f.a, old), 0);
    assert_err(wq_done(f.b, item), WQ_OK);
}

/* ---- back ----------------------------------------------------------------- */

TEST(hold_is_not_certain_for_longer_after_a_step_back)
{
    (void)state;
    wq_item *item = hold("k");
    step_clock(-HOUR);
    assert_true(wq_hold_left(f.a, item) <= LEASE);
    assert_err(wq_renew(f.a), WQ_OK);
    assert_true(wq_hold_left(f.a, item) <= LEASE);
    assert_true(wq_hold_left(f.a, item) > 0);
    get_nothing(f.b);
    assert_err(wq_done(f.a, item), WQ_OK);
}

TEST(key_of_a_dead_holder_is_READY_in_time_after_a_step_back)
{
    (void)state;
    expect_key_of_a_dead_holder_after(-HOUR);
}

TEST(deadline_comes_in_time_after_a_step_back)
{
    wq_item *item = NULL;

    (void)state;
    assert_err(wq_add_after(f.a, wq_str("k"), WQ_MS(300)), WQ_OK);
    assert_err(wq_renew(f.a), WQ_OK);
    step_clock(-HOUR);
    assert_err(wq_get_within(f.b, LONG, &item), WQ_OK);
    assert_err(wq_done(f.b, item), WQ_OK);
}

/* A wrong clock that is set right again. */
TEST(deadlines_are_as_before_when_a_step_back_is_taken_back)
{
    (void)state;
    assert_err(wq_add_after(f.a, wq_str("k"), 2 * HOUR), WQ_OK);
    assert_err(wq_renew(f.a), WQ_OK);
    step_clock(-HOUR);
    assert_err(wq_renew(f.a), WQ_OK);
    assert_true(info_of(f.b, "k").wait_ns <= 2 * HOUR + WQ_SECONDS(1));
    step_clock(HOUR);
    assert_err(wq_renew(f.a), WQ_OK);
    const int64_t left = info_of(f.b, "k").wait_ns;
    assert_true(left <= 2 * HOUR && left > 2 * HOUR - LONG);
}

/* ---- forward -------------------------------------------------------------- */

/* The other handle notices the step before the holder does. */
TEST(certain_hold_is_not_given_away_after_a_step_forward)
{
    (void)state;
    wq_item *item = hold("k");
    step_clock(HOUR);
    get_nothing(f.b);
    assert_true(wq_hold_left(f.a, item) > 0);
    assert_err(wq_done(f.a, item), WQ_OK);
    assert_int_equal(stats_of(f.b).expired, 0);
}

/* Its first call reads and writes records: it would end sessions at once. */
TEST(certain_hold_is_not_given_away_by_the_long_way)
{
    (void)state;
    wq_item *item = hold("k");
    step_clock(HOUR);
    assert_err(wq_add_after(f.b, wq_str("other"), HOUR), WQ_OK);
    get_nothing(f.b);
    assert_true(wq_hold_left(f.a, item) > 0);
    assert_err(wq_done(f.a, item), WQ_OK);
}

/* a holds "k", and the clock goes forward so far that a's lease has ended, but
 * b's has not. */
static wq_item *
step_over_lease_of_a(void)
{
    wq_destroy(f.a);
    wq_destroy(f.b);
    f.a = open_leased(WQ_SECONDS(20), true);
    f.b = open_leased(WQ_SECONDS(300), true);
    wq_item *item = hold("k");
    step_clock(WQ_SECONDS(25));
    return item;
}

/* A tenth of its own lease would be more than the other one has. */
TEST(handle_with_a_long_lease_notices_a_short_step)
{
    (void)state;
    wq_item *item = step_over_lease_of_a();
    get_nothing(f.b);
    assert_true(wq_hold_left(f.a, item) > 0);
    assert_err(wq_done(f.a, item), WQ_OK);
}

/* Its own session lives: nothing but the time tells it of the step. */
TEST(long_way_of_a_handle_with_a_long_lease_notices_a_step)
{
    (void)state;
    wq_item *item = step_over_lease_of_a();
    assert_err(wq_add_after(f.b, wq_str("k"), HOUR), WQ_OK);
    assert_true(wq_hold_left(f.a, item) > 0);
    assert_err(wq_done(f.a, item), WQ_OK);
}

TEST(holder_that_notices_a_step_forward_keeps_its_key)
{
    (void)state;
    wq_item *item = hold("k");
    step_clock(HOUR);
    assert_err(wq_renew(f.a), WQ_OK);
    get_nothing(f.b);
    assert_true(wq_hold_left(f.a, item) > 0);
    assert_err(wq_done(f.a, item), WQ_OK);
}

TEST(key_of_a_dead_holder_is_READY_in_time_after_a_step_forward)
{
    (void)state;
    expect_key_of_a_dead_holder_after(HOUR);
}

/* Deadlines are times of the server: they are not lost, but may come early. */
TEST(deadline_is_not_lost_by_a_step_forward)
{
    wq_item *item = NULL;

    (void)state;
    assert_err(wq_add_after(f.a, wq_str("k"), WQ_MS(300)), WQ_OK);
    step_clock(HOUR);
    assert_err(wq_get_within(f.b, LONG, &item), WQ_OK);
    assert_err(wq_done(f.b, item), WQ_OK);
}

/* Differences of such times overflow. */
TEST(server_of_another_century_is_refused)
{
    const int64_t century = 110 * 365 * 24 * HOUR;

    (void)state;
    step_clock(century);
    assert_err(wq_add(f.a, wq_str("k")), WQ_EIO);
    last_error_has("it is before 1970 or after 2116: set it");
    step_clock(-century);
    assert_err(wq_add(f.a, wq_str("k")), WQ_OK);
}

#define with_clock(name)                                                       \
    cmocka_unit_test_setup_teardown(name, set_up, tear_down)

WQ_TESTS(with_clock(hold_is_not_certain_for_longer_after_a_step_back),
         with_clock(key_of_a_dead_holder_is_READY_in_time_after_a_step_back),
         with_clock(deadline_comes_in_time_after_a_step_back),
         with_clock(deadlines_are_as_before_when_a_step_back_is_taken_back),
         with_clock(certain_hold_is_not_given_away_after_a_step_forward),
         with_clock(certain_hold_is_not_given_away_by_the_long_way),
         with_clock(handle_with_a_long_lease_notices_a_short_step),
         with_clock(long_way_of_a_handle_with_a_long_lease_notices_a_step),
         with_clock(holder_that_notices_a_step_forward_keeps_its_key),
         with_clock(key_of_a_dead_holder_is_READY_in_time_after_a_step_forward),
         with_clock(deadline_is_not_lost_by_a_step_forward),
         with_clock(server_of_another_century_is_refused));
