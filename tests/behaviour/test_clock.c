/* SPDX-License-Identifier: MIT */
/* test_clock.c: which time do the clocks show, and which threads do they wake?
 *
 * A thread sleeps until a deadline on a clock when it waits for a key with a
 * timeout: wq_get_within() on a queue with that clock. Tests that need no more
 * than that are in tests/scenarios/clock.scenario.
 */
#include "timed.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>

#include <wq/limiter.h>

#include "support/backend.h"

/* ---- the time of a fake clock -------------------------------------------- */

/* C-01 */
TEST(fake_clock_shows_the_time_it_was_created_with)
{
    const int64_t times[] = {0, 1, -1, 5 * S, INT64_MIN, INT64_MAX};

    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        wq_clock *clock = wq_clock_fake_create(times[i]);
        assert_non_null(clock);
        assert_int_equal(wq_clock_now(clock), times[i]);
        assert_int_equal(wq_clock_now(clock), times[i]);
        wq_clock_destroy(clock);
    }
}

/* C-01 */
TEST(set_and_step_move_a_fake_clock)
{
    const struct {
        void (*move)(wq_clock *clock, int64_t ns);
        int64_t arg_ns, now_ns;
    } rows[] = {
        {wq_clock_fake_step, S, S},
        {wq_clock_fake_step, HOUR, S + HOUR},
        {wq_clock_fake_step, 0, S + HOUR},
        {wq_clock_fake_step, -HOUR, S},
        {wq_clock_fake_set, HOUR, HOUR},
        {wq_clock_fake_set, -HOUR, -HOUR},
        {wq_clock_fake_set, S, S},
        {wq_clock_fake_step, INT64_MAX, WQ_FOREVER}, /* the end of time */
        {wq_clock_fake_step, 1, WQ_FOREVER},
        {wq_clock_fake_set, -S, -S},
        {wq_clock_fake_step, INT64_MIN, INT64_MIN},
    };
    struct timed *t = *state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rows[i].move(t->clock, rows[i].arg_ns);
        if (wq_clock_now(t->clock) != rows[i].now_ns)
            fail_msg("row %zu: %lld", i, (long long)wq_clock_now(t->clock));
    }
}

/* C-01 */
TEST(fake_clocks_move_each_on_its_own)
{
    struct timed *t = *state;
    wq_clock     *other = wq_clock_fake_create(5);

    assert_non_null(other);
    step(t, S);

    assert_int_equal(wq_clock_now(other), 5);
    wq_clock_destroy(other);
}

/* ---- which threads wake up ----------------------------------------------------------- */

enum { SLEEPERS = 12 };

/* Threads that sleep on one clock, each until a deadline of its own. */
struct sleepers {
    struct timed   times[SLEEPERS];
    struct worker *all[SLEEPERS];
};

/* The `i`th sleeps for (i + 1) * gap_ns. They begin in no order. */
static void
put_to_sleep(struct timed *t, struct sleepers *s, int64_t gap_ns)
{
    for (int n = 0; n < SLEEPERS; n++) {
        const int i = n * 5 % SLEEPERS; /* 5 and SLEEPERS have no divisor */

        s->times[i] = *t;
        s->all[i] = get_in_time(&s->times[i], (i + 1) * gap_ns);
    }
    await_sleepers(t, SLEEPERS);
}

/* C-02 */
TEST(each_sleeper_wakes_exactly_at_its_deadline)
{
    struct timed   *t = *state;
    struct sleepers s;

    put_to_sleep(t, &s, S);
    for (int i = 0; i < SLEEPERS; i++) {
        step(t, S - 1);
        worker_await_all_blocked(s.all + i, (size_t)(SLEEPERS - i));
        step(t, 1);
        assert_err(worker_join(s.all[i]), WQ_ETIMEDOUT);
        assert_int_equal(wq_clock_fake_waiters(t->clock), SLEEPERS - i - 1);
    }
}

/* C-02 */
TEST(one_step_wakes_all_sleepers_that_are_due)
{
    struct timed   *t = *state;
    struct sleepers s;

    put_to_sleep(t, &s, S);
    step(t, 7 * S + 1);
    for (int i = 0; i < 7; i++)
        assert_err(worker_join(s.all[i]), WQ_ETIMEDOUT);
    worker_await_all_blocked(s.all + 7, SLEEPERS - 7);
    wq_clock_fake_set(t->clock, HOUR);
    for (int i = 7; i < SLEEPERS; i++)
        assert_err(worker_join(s.all[i]), WQ_ETIMEDOUT);
}

/* Fewer over a server: a round takes several messages. */
static int
rounds(int n)
{
    return backend.remote ? n / 5 : n;
}

/* Each round of a worker waits for one key that is due in `delay_ns`. */
struct rounds {
    struct timed *t;
    int           wanted;
    int64_t       delay_ns;
    atomic_int    begun;
};

static int
wait_for_each(struct worker *self)
{
    struct rounds *r = self->arg;
    wq_item       *item;
    wq_err         err = WQ_OK;

    for (int i = 0; i < r->wanted && !err; i++) {
        err = wq_add_after(r->t->q, wq_str("foo"), r->delay_ns);
        atomic_fetch_add(&r->begun, 1);
        if (!err)
            err = wq_get(r->t->q, &item);
        if (!err)
            err = wq_done(r->t->q, item);
    }
    return (int)err;
}

/* Wait until the worker is in its `n`th round, or has gone to sleep for
 * good. */
static void
await_round(struct rounds *r, int n)
{
    const int64_t begin_ns = now_ns();

    while (atomic_load(&r->begun) < n) {
        assert_true(now_ns() - begin_ns < WORKER_LIMIT_S * S);
        (void)sched_yield();
    }
}

/* C-08: one step a round, which comes before, while or after the thread goes to
 * sleep. */
TEST(step_is_not_missed_by_a_thread_falling_asleep)
{
    struct rounds r = {.t = *state, .wanted = rounds(2000), .delay_ns = S};

    struct worker *w = worker_start(wait_for_each, &r);
    for (int i = 1; i <= r.wanted; i++) {
        await_round(&r, i);
        for (volatile int pause = 0; pause < i % 500 * 10; pause++)
            ;
        step(r.t, S);
    }

    assert_err(worker_join(w), WQ_OK);
}

/* What goes on beside a worker until its rounds are over. */
struct bustle {
    struct timed *t;
    atomic_bool   is_over;
};

/* It does not starve the worker: every now and then it lets others run. */
static bool
goes_on(struct bustle *b, unsigned *turns)
{
    if (++*turns % 4 == 0)
        (void)sched_yield();
    return !atomic_load(&b->is_over);
}

static int
keep_stepping(struct worker *self)
{
    struct bustle *b = self->arg;

    for (unsigned turns = 0; goes_on(b, &turns);)
        step(b->t, 1);
    return 0;
}

/* Makes what is due READY, and wakes up the sleeper. */
static int
keep_looking(struct worker *self)
{
    struct bustle *b = self->arg;

    for (unsigned turns = 0; goes_on(b, &turns);)
        (void)wq_len(b->t->q);
    return 0;
}

/* C-08: a sleeper is woken by the clock, by the clock again, and by another
 * thread, all at the same time. */
TEST(steps_in_quick_succession_lose_no_sleeper)
{
    struct rounds  r = {.t = *state, .wanted = rounds(3000), .delay_ns = 5};
    struct bustle  b = {.t = *state};
    struct worker *beside[4];

    for (int i = 0; i < 4; i++)
        beside[i] = worker_start(i % 2 ? keep_stepping : keep_looking, &b);
    assert_err(worker_join(worker_start(wait_for_each, &r)), WQ_OK);
    atomic_store(&b.is_over, true);
    for (int i = 0; i < 4; i++)
        assert_int_equal(worker_join(beside[i]), 0);
}

/* ---- which threads count ---------------------------------------------------------- */

static int
wait_in_bucket(struct worker *self)
{
    return (int)wq_bucket_wait(self->arg, WQ_FOREVER);
}

/* C-08 */
TEST(sleepers_of_queues_and_buckets_count_together)
{
    struct timed *t = *state;
    wq_bucket    *bucket = wq_bucket_create(1, 1, t->clock);

    assert_non_null(bucket);
    assert_true(wq_bucket_allow(bucket));
    struct worker *waits = worker_start(wait_in_bucket, bucket);
    struct worker *gets = get_in_time(t, S);
    await_sleepers(t, 2);
    assert_int_equal(wq_clock_fake_waiters(t->clock), 2);
    step(t, S);

    assert_err(worker_join(waits), WQ_OK);
    assert_err(worker_join(gets), WQ_ETIMEDOUT);
    wq_bucket_destroy(bucket);
}

/* ---- wq_clock_fake_wait_for_waiters() ------------------------------------ */

/* C-08 */
TEST(waiting_for_no_more_sleepers_than_there_are_returns)
{
    struct timed   *t = *state;
    struct sleepers s;

    wq_clock_fake_wait_for_waiters(t->clock, 0);
    put_to_sleep(t, &s, S);
    wq_clock_fake_wait_for_waiters(t->clock, 1);
    wq_clock_fake_wait_for_waiters(t->clock, SLEEPERS);
    step(t, HOUR);
    for (int i = 0; i < SLEEPERS; i++)
        assert_err(worker_join(s.all[i]), WQ_ETIMEDOUT);
}

/* C-08 */
TEST(each_wait_for_sleepers_ends_when_there_are_enough)
{
    enum { OBSERVERS = 3 };
    struct timed  *t = *state;
    struct timed   seen_by[OBSERVERS], times[OBSERVERS];
    struct worker *observers[OBSERVERS], *sleepers[OBSERVERS];

    for (size_t i = 0; i < OBSERVERS; i++) {
        seen_by[i] = *t;
        seen_by[i].sleepers = i + 1;
        observers[i] = worker_start(wait_for_sleepers, &seen_by[i]);
    }
    for (int i = 0; i < OBSERVERS; i++) {
        worker_await_all_blocked(observers + i, (size_t)(OBSERVERS - i));
        times[i] = *t;
        sleepers[i] = get_in_time(&times[i], S);
        assert_int_equal(worker_join(observers[i]), 0);
    }
    step(t, S);
    for (int i = 0; i < OBSERVERS; i++)
        assert_err(worker_join(sleepers[i]), WQ_ETIMEDOUT);
}

/* C-08 */
TEST(all_waits_for_the_same_number_of_sleepers_end)
{
    enum { OBSERVERS = 3 };
    struct timed  *t = *state;
    struct worker *observers[OBSERVERS];

    t->sleepers = 1;
    for (size_t i = 0; i < OBSERVERS; i++)
        observers[i] = worker_start(wait_for_sleepers, t);
    worker_await_all_blocked(observers, OBSERVERS);
    struct worker *w = get_in_time(t, S);

    for (size_t i = 0; i < OBSERVERS; i++)
        assert_int_equal(worker_join(observers[i]), 0);
    step(t, S);
    assert_err(worker_join(w), WQ_ETIMEDOUT);
}

/* A thread that works on keys until the queue is shut down. */
struct runs {
    wq_queue  *q;
    atomic_int n; /* keys it has worked on */
};

static int
work_until_shutdown(struct worker *self)
{
    struct runs *runs = self->arg;
    wq_item     *item;
    wq_err       err;

    while (!(err = wq_get(runs->q, &item))) {
        atomic_fetch_add(&runs->n, 1);
        err = wq_done(runs->q, item);
        if (err)
            break;
    }
    return (int)err;
}

/* A worker sleeps until a deadline while a thousand keys come. After each of
 * `act` the wait for one sleeper ends, and not before the worker ran. */
static void
check_rounds(struct timed *t, void (*act)(struct timed *t))
{
    struct runs runs = {.q = t->q};

    add_after(t, "later", HOUR);
    struct worker *w = worker_start(work_until_shutdown, &runs);
    await_sleepers(t, 1);
    for (int round = 1; round <= 1000; round++) {
        act(t);
        wq_clock_fake_wait_for_waiters(t->clock, 1);
        assert_int_equal(atomic_load(&runs.n), round);
    }
    wq_shutdown(t->q);
    assert_err(worker_join(w), WQ_ESHUTDOWN);
}

static void
add_now(struct timed *t)
{
    add(t->q, "now");
}

static void
add_soon(struct timed *t)
{
    add_after(t, "soon", S);
    wq_clock_fake_wait_for_waiters(t->clock, 1);
    step(t, S);
}

/* C-08 */
TEST(wait_for_sleepers_lasts_until_an_added_key_ran)
{
    check_rounds(*state, add_now);
}

/* C-08: the worker is woken up twice, the first time to sleep until "soon". */
TEST(wait_for_sleepers_lasts_until_one_watches_an_earlier_deadline)
{
    check_rounds(*state, add_soon);
}

/* ---- the clocks of the system -------------------------------------------- */

/* C-10 */
TEST(monotonic_clock_is_always_there_and_never_goes_back)
{
    wq_clock *clock = wq_clock_monotonic();

    assert_non_null(clock);
    assert_ptr_equal(wq_clock_monotonic(), clock);
    int64_t last = wq_clock_now(clock);
    assert_true(last > 0);
    for (int i = 0; i < 1000; i++) {
        const int64_t now = wq_clock_now(clock);
        assert_true(now >= last);
        last = now;
    }
}

/* C-10 */
TEST(monotonic_clock_is_that_of_the_system)
{
    const int64_t before = now_ns();
    const int64_t now = wq_clock_now(wq_clock_monotonic());

    assert_true(before <= now);
    assert_true(now <= now_ns());
}

/* C-01 */
TEST(NULL_is_the_monotonic_clock)
{
    const int64_t before = wq_clock_now(wq_clock_monotonic());
    const int64_t now = wq_clock_now(NULL);

    assert_true(before <= now);
    assert_true(now <= wq_clock_now(wq_clock_monotonic()));
}

/* C-10: time asleep counts, so it is never behind. */
TEST(boottime_clock_is_not_behind_the_monotonic_one)
{
    errno = 0;
    wq_clock *clock = wq_clock_boottime();

    if (!clock) { /* as the manual says of systems that have none */
        assert_int_equal(errno, ENOSYS);
        return;
    }
    assert_ptr_equal(wq_clock_boottime(), clock);
    const int64_t monotonic = wq_clock_now(wq_clock_monotonic());
    const int64_t boottime = wq_clock_now(clock);
    assert_true(boottime >= monotonic);
    assert_true(wq_clock_now(clock) >= boottime);
}

/* A key due in a moment on a clock that runs by itself: it comes, and not too
 * early. The only wait for real time in these tests. */
static void
check_that_deadlines_come(wq_clock *clock)
{
    const int64_t delay_ns = 300 * US;
    wq_queue     *q = open_queue(WQ_CONFIG(.clock = clock));
    wq_item      *item = NULL;
    const int64_t begin_ns = wq_clock_now(clock);
    assert_err(wq_add_after(q, wq_str("foo"), delay_ns), WQ_OK);
    assert_err(wq_get(q, &item), WQ_OK);
    assert_true(wq_clock_now(clock) - begin_ns >= delay_ns);
    assert_err(wq_get_within(q, delay_ns, &item), WQ_ETIMEDOUT);
    assert_true(wq_clock_now(clock) - begin_ns >= 2 * delay_ns);
    wq_destroy(q);
}

/* C-10 D-01 */
TEST(deadlines_come_on_the_clocks_of_the_system)
{
    check_that_deadlines_come(NULL);
    check_that_deadlines_come(wq_clock_monotonic());
    if (wq_clock_boottime())
        check_that_deadlines_come(wq_clock_boottime());
}

/* C-10: a get that sleeps is woken there, too. */
TEST(add_wakes_a_get_on_a_clock_of_the_system)
{
    wq_clock *const clocks[] = {wq_clock_monotonic(), wq_clock_boottime()};

    for (int i = 0; i < 2; i++) {
        struct timed t = {.clock = clocks[i],
                          .q = open_queue(WQ_CONFIG(.clock = clocks[i]))};

        add_after(&t, "later", HOUR);
        struct worker *w = get_in_time(&t, WQ_FOREVER);
        worker_await_blocked(w);
        const int64_t used = worker_cpu_ns(w);
        worker_await_blocked(w);
        assert_int_equal(worker_cpu_ns(w), used); /* it does not look about */
        add(t.q, "now");
        assert_err(worker_join(w), WQ_OK);
        assert_key(t.item, "now");
        wq_destroy(t.q);
    }
}

/* ---- what the functions do not change -------------------------------------------------- */

/* C-10: they would wait for ever if they did not. */
TEST(fake_functions_do_not_change_other_clocks)
{
    wq_clock *const clocks[] = {wq_clock_monotonic(), wq_clock_boottime(),
                                NULL};

    for (int i = 0; i < 3; i++) {
        const int64_t before = wq_clock_now(clocks[i]);

        wq_clock_fake_set(clocks[i], before + HOUR);
        wq_clock_fake_step(clocks[i], HOUR);
        assert_int_equal(wq_clock_fake_waiters(clocks[i]), 0);
        wq_clock_fake_wait_for_waiters(clocks[i], 1);
        assert_in_range(wq_clock_now(clocks[i]), before, before + HOUR - 1);
    }
}

/* C-10 */
TEST(clocks_of_the_system_are_not_destroyed)
{
    wq_clock_destroy(wq_clock_monotonic());
    wq_clock_destroy(wq_clock_boottime());
    wq_clock_destroy(NULL);

    assert_true(wq_clock_now(wq_clock_monotonic()) > 0);
}

/* C-01: a queue does not take its clock with it. */
TEST(clock_outlives_the_queues_that_use_it)
{
    struct timed *t = *state;

    wq_destroy(t->q);
    t->q = NULL;
    step(t, S);

    assert_int_equal(wq_clock_now(t->clock), S);
}

WQ_TESTS(
    test(fake_clock_shows_the_time_it_was_created_with),
    with_time(set_and_step_move_a_fake_clock),
    with_time(fake_clocks_move_each_on_its_own),
    with_time(each_sleeper_wakes_exactly_at_its_deadline),
    with_time(one_step_wakes_all_sleepers_that_are_due),
    with_time(step_is_not_missed_by_a_thread_falling_asleep),
    with_time(steps_in_quick_succession_lose_no_sleeper),
    with_time(sleepers_of_queues_and_buckets_count_together),
    with_time(waiting_for_no_more_sleepers_than_there_are_returns),
    with_time(each_wait_for_sleepers_ends_when_there_are_enough),
    with_time(all_waits_for_the_same_number_of_sleepers_end),
    with_time(wait_for_sleepers_lasts_until_an_added_key_ran),
    with_time(wait_for_sleepers_lasts_until_one_watches_an_earlier_deadline),
    test(monotonic_clock_is_always_there_and_never_goes_back),
    test(monotonic_clock_is_that_of_the_system),
    test(NULL_is_the_monotonic_clock),
    test(boottime_clock_is_not_behind_the_monotonic_one),
    test(deadlines_come_on_the_clocks_of_the_system),
    test(add_wakes_a_get_on_a_clock_of_the_system),
    test(fake_functions_do_not_change_other_clocks),
    test(clocks_of_the_system_are_not_destroyed),
    with_time(clock_outlives_the_queues_that_use_it));
