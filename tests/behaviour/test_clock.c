/* SPDX-License-Identifier: MIT */
/* test_clock.c: which time do the clocks show, and whom do they wake?
 *
 * A thread sleeps until a deadline on a clock when it waits for a key with a
 * time-out: wq_get_within() on a queue that lives by the clock.
 */
#include "timed.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>

#include <wq/limiter.h>

/* ---- the time of a fake clock -------------------------------------------- */

/* C-01 */
TEST(fake_clock_shows_the_time_it_was_made_with)
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
TEST(step_moves_a_fake_clock_by_so_much)
{
    struct timed *t = *state;

    step(t, S);
    assert_int_equal(wq_clock_now(t->clock), S);
    step(t, HOUR);
    assert_int_equal(wq_clock_now(t->clock), S + HOUR);
    step(t, 0);
    assert_int_equal(wq_clock_now(t->clock), S + HOUR);
    step(t, -HOUR);
    assert_int_equal(wq_clock_now(t->clock), S);
}

/* C-01 */
TEST(set_moves_a_fake_clock_to_any_time)
{
    struct timed *t = *state;

    wq_clock_fake_set(t->clock, HOUR);
    assert_int_equal(wq_clock_now(t->clock), HOUR);
    wq_clock_fake_set(t->clock, -HOUR);
    assert_int_equal(wq_clock_now(t->clock), -HOUR);
}

/* C-01 */
TEST(step_stops_at_the_ends_of_time)
{
    struct timed *t = *state;

    step(t, S);
    step(t, INT64_MAX);
    assert_int_equal(wq_clock_now(t->clock), WQ_FOREVER);
    step(t, 1);
    assert_int_equal(wq_clock_now(t->clock), WQ_FOREVER);
    wq_clock_fake_set(t->clock, -S);
    step(t, INT64_MIN);
    assert_int_equal(wq_clock_now(t->clock), INT64_MIN);
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

/* ---- who wakes ----------------------------------------------------------- */

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
TEST(each_sleeper_wakes_exactly_when_its_time_has_come)
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
TEST(one_step_wakes_all_whose_time_has_come)
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

/* C-02: three of client-go's own numbers. */
TEST(deadlines_a_millisecond_apart_are_told_apart)
{
    const int64_t  delays[] = {S, S + MS, 2 * S};
    struct timed  *t = *state;
    struct timed   times[3];
    struct worker *all[3];

    for (int i = 0; i < 3; i++) {
        times[i] = *t;
        all[i] = get_in_time(&times[i], delays[i]);
    }
    await_sleepers(t, 3);
    step(t, 999 * MS);
    worker_await_all_blocked(all, 3);
    step(t, MS);
    assert_err(worker_join(all[0]), WQ_ETIMEDOUT);
    worker_await_all_blocked(all + 1, 2);
    step(t, MS);
    assert_err(worker_join(all[1]), WQ_ETIMEDOUT);
    worker_await_blocked(all[2]);
    step(t, S);
    assert_err(worker_join(all[2]), WQ_ETIMEDOUT);
}

/* C-02 */
TEST(clock_that_goes_back_wakes_nobody)
{
    struct timed *t = *state;

    step(t, S);
    struct worker *w = get_in_time(t, S);
    await_sleepers(t, 1);
    wq_clock_fake_set(t->clock, 0);
    step(t, -HOUR);
    worker_await_blocked(w);
    assert_int_equal(wq_clock_fake_waiters(t->clock), 1);
    wq_clock_fake_set(t->clock, 2 * S - 1);
    worker_await_blocked(w);
    step(t, 1);

    assert_err(worker_join(w), WQ_ETIMEDOUT);
}

/* C-02: it was due for a moment, and nobody may miss that it no longer is. */
TEST(clock_that_goes_on_and_back_at_once_leaves_the_deadline_in_force)
{
    struct timed *t = *state;

    for (int round = 0; round < 50; round++) {
        add_after(t, "foo", S);
        struct worker *w = get_in_time(t, WQ_FOREVER);
        await_sleepers(t, 1);
        step(t, S);
        step(t, -S);
        step(t, S);

        assert_err(worker_join(w), WQ_OK);
        finish(t->q, t->item);
    }
}

/* C-07 */
TEST(step_of_nothing_wakes_nobody_who_is_not_due)
{
    struct timed *t = *state;

    struct worker *w = get_in_time(t, 1);
    await_sleepers(t, 1);
    step(t, 0);
    wq_clock_fake_set(t->clock, 0);
    worker_await_blocked(w);
    step(t, 1);

    assert_err(worker_join(w), WQ_ETIMEDOUT);
}

/* C-07 */
TEST(deadline_that_has_come_needs_no_step)
{
    struct timed *t = *state;
    wq_item      *item = NULL;

    add_after(t, "foo", 1);
    step(t, 2);

    assert_err(wq_get(t->q, &item), WQ_OK);
    assert_err(wq_get_within(t->q, 0, &item), WQ_ETIMEDOUT);
    assert_int_equal(wq_clock_fake_waiters(t->clock), 0);
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
TEST(step_is_not_missed_by_a_thread_that_is_about_to_sleep)
{
    struct rounds r = {.t = *state, .wanted = 2000, .delay_ns = S};

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

/* Makes what is due READY, and wakes whoever sleeps. */
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
TEST(steps_in_quick_succession_lose_nobody)
{
    struct rounds  r = {.t = *state, .wanted = 3000, .delay_ns = 5};
    struct bustle  b = {.t = *state};
    struct worker *beside[4];

    for (int i = 0; i < 4; i++)
        beside[i] = worker_start(i % 2 ? keep_stepping : keep_looking, &b);
    assert_err(worker_join(worker_start(wait_for_each, &r)), WQ_OK);
    atomic_store(&b.is_over, true);
    for (int i = 0; i < 4; i++)
        assert_int_equal(worker_join(beside[i]), 0);
}

/* ---- who sleeps ---------------------------------------------------------- */

/* C-05 C-08 */
TEST(sleepers_are_counted_until_they_wake)
{
    struct timed *t = *state;

    assert_int_equal(wq_clock_fake_waiters(t->clock), 0);
    struct worker *w = get_in_time(t, S);
    await_sleepers(t, 1);
    assert_int_equal(wq_clock_fake_waiters(t->clock), 1);
    step(t, S);
    assert_err(worker_join(w), WQ_ETIMEDOUT);

    assert_int_equal(wq_clock_fake_waiters(t->clock), 0);
}

/* C-03 C-05: woken by a key, by an interrupt, by a shutdown. */
TEST(sleeper_that_was_woken_before_its_time_is_gone)
{
    struct timed *t = *state;

    struct worker *w = get_in_time(t, S);
    await_sleepers(t, 1);
    add(t->q, "foo");
    assert_err(worker_join(w), WQ_OK);
    assert_int_equal(wq_clock_fake_waiters(t->clock), 0);

    w = get_in_time(t, S);
    await_sleepers(t, 1);
    wq_interrupt(t->q);
    assert_err(worker_join(w), WQ_EINTERRUPTED);
    assert_int_equal(wq_clock_fake_waiters(t->clock), 0);

    w = get_in_time(t, S);
    await_sleepers(t, 1);
    wq_shutdown(t->q);
    assert_err(worker_join(w), WQ_ESHUTDOWN);
    assert_int_equal(wq_clock_fake_waiters(t->clock), 0);
    step(t, HOUR);
}

/* C-05: the thread that was woken may not have run yet. */
TEST(sleeper_does_not_count_once_a_call_woke_it)
{
    struct timed *t = *state;

    for (int round = 0; round < 200; round++) {
        struct worker *w = get_in_time(t, S);
        await_sleepers(t, 1);
        if (round % 2)
            wq_interrupt(t->q);
        else
            add(t->q, "foo");
        assert_int_equal(wq_clock_fake_waiters(t->clock), 0);
        assert_err(worker_join(w), round % 2 ? WQ_EINTERRUPTED : WQ_OK);
        if (t->item)
            finish(t->q, t->item);
    }
}

/* C-06: a new wait counts from now. */
TEST(thread_that_sleeps_again_has_a_new_deadline)
{
    struct timed *t = *state;

    struct worker *w = get_in_time(t, S);
    await_sleepers(t, 1);
    step(t, 900 * MS);
    wq_interrupt(t->q);
    assert_err(worker_join(w), WQ_EINTERRUPTED);
    w = get_in_time(t, S);
    await_sleepers(t, 1);
    step(t, S - 1);
    worker_await_blocked(w);
    step(t, 1);

    assert_err(worker_join(w), WQ_ETIMEDOUT);
}

/* C-08 */
TEST(thread_that_sleeps_without_limit_is_not_counted)
{
    struct timed *t = *state;

    struct worker *w = get_in_time(t, WQ_FOREVER);
    worker_await_blocked(w);
    assert_int_equal(wq_clock_fake_waiters(t->clock), 0);
    wq_clock_fake_set(t->clock, WQ_FOREVER - 1);
    worker_await_blocked(w);
    wq_interrupt(t->q);

    assert_err(worker_join(w), WQ_EINTERRUPTED);
}

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
TEST(waiting_for_no_sleepers_returns_at_once)
{
    struct timed *t = *state;

    wq_clock_fake_wait_for_waiters(t->clock, 0);
}

/* C-08 */
TEST(waiting_for_fewer_sleepers_than_there_are_returns_at_once)
{
    struct timed   *t = *state;
    struct sleepers s;

    put_to_sleep(t, &s, S);
    wq_clock_fake_wait_for_waiters(t->clock, 1);
    wq_clock_fake_wait_for_waiters(t->clock, SLEEPERS);
    step(t, HOUR);
    for (int i = 0; i < SLEEPERS; i++)
        assert_err(worker_join(s.all[i]), WQ_ETIMEDOUT);
}

/* C-08 */
TEST(each_who_waits_for_sleepers_is_told_when_there_are_enough)
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
TEST(all_who_wait_for_the_same_number_are_told)
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

static void
end_work(struct runs *runs, struct worker *w)
{
    wq_shutdown(runs->q);
    assert_err(worker_join(w), WQ_ESHUTDOWN);
}

/* C-08: the thread that sleeps until "later" is woken for "now". */
TEST(waiting_for_sleepers_after_an_add_lasts_until_it_ran)
{
    struct timed *t = *state;
    struct runs   runs = {.q = t->q};

    add_after(t, "later", HOUR);
    struct worker *w = worker_start(work_until_shutdown, &runs);
    await_sleepers(t, 1);
    for (int round = 1; round <= 1000; round++) {
        add(t->q, "now");
        wq_clock_fake_wait_for_waiters(t->clock, 1);
        assert_int_equal(atomic_load(&runs.n), round);
    }
    end_work(&runs, w);
}

/* C-08: the thread that sleeps until "later" is woken to sleep until "soon". */
TEST(waiting_for_sleepers_after_an_earlier_deadline_lasts_until_one_watches)
{
    struct timed *t = *state;
    struct runs   runs = {.q = t->q};

    add_after(t, "later", HOUR);
    struct worker *w = worker_start(work_until_shutdown, &runs);
    await_sleepers(t, 1);
    for (int round = 1; round <= 1000; round++) {
        add_after(t, "soon", S);
        wq_clock_fake_wait_for_waiters(t->clock, 1);
        step(t, S);
        wq_clock_fake_wait_for_waiters(t->clock, 1);
        assert_int_equal(atomic_load(&runs.n), round);
    }
    end_work(&runs, w);
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
TEST(no_clock_means_the_monotonic_one)
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
    wq_queue     *q = NULL;
    wq_item      *item = NULL;

    assert_err(wq_create(WQ_CONFIG(.clock = clock), &q), WQ_OK);
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
TEST(add_wakes_a_get_that_sleeps_on_a_clock_of_the_system)
{
    wq_clock *const clocks[] = {wq_clock_monotonic(), wq_clock_boottime()};

    for (int i = 0; i < 2; i++) {
        struct timed t = {.clock = clocks[i]};

        assert_err(wq_create(WQ_CONFIG(.clock = t.clock), &t.q), WQ_OK);
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

/* ---- what is left alone -------------------------------------------------- */

/* C-10: they would wait for ever if they did not. */
TEST(fake_functions_leave_other_clocks_alone)
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
TEST(clocks_that_are_nobodys_are_not_destroyed)
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
    test(fake_clock_shows_the_time_it_was_made_with),
    with_time(step_moves_a_fake_clock_by_so_much),
    with_time(set_moves_a_fake_clock_to_any_time),
    with_time(step_stops_at_the_ends_of_time),
    with_time(fake_clocks_move_each_on_its_own),
    with_time(each_sleeper_wakes_exactly_when_its_time_has_come),
    with_time(one_step_wakes_all_whose_time_has_come),
    with_time(deadlines_a_millisecond_apart_are_told_apart),
    with_time(clock_that_goes_back_wakes_nobody),
    with_time(clock_that_goes_on_and_back_at_once_leaves_the_deadline_in_force),
    with_time(step_of_nothing_wakes_nobody_who_is_not_due),
    with_time(deadline_that_has_come_needs_no_step),
    with_time(step_is_not_missed_by_a_thread_that_is_about_to_sleep),
    with_time(steps_in_quick_succession_lose_nobody),
    with_time(sleepers_are_counted_until_they_wake),
    with_time(sleeper_that_was_woken_before_its_time_is_gone),
    with_time(sleeper_does_not_count_once_a_call_woke_it),
    with_time(thread_that_sleeps_again_has_a_new_deadline),
    with_time(thread_that_sleeps_without_limit_is_not_counted),
    with_time(sleepers_of_queues_and_buckets_count_together),
    with_time(waiting_for_no_sleepers_returns_at_once),
    with_time(waiting_for_fewer_sleepers_than_there_are_returns_at_once),
    with_time(each_who_waits_for_sleepers_is_told_when_there_are_enough),
    with_time(all_who_wait_for_the_same_number_are_told),
    with_time(waiting_for_sleepers_after_an_add_lasts_until_it_ran),
    with_time(
        waiting_for_sleepers_after_an_earlier_deadline_lasts_until_one_watches),
    test(monotonic_clock_is_always_there_and_never_goes_back),
    test(monotonic_clock_is_that_of_the_system),
    test(no_clock_means_the_monotonic_one),
    test(boottime_clock_is_not_behind_the_monotonic_one),
    test(deadlines_come_on_the_clocks_of_the_system),
    test(add_wakes_a_get_that_sleeps_on_a_clock_of_the_system),
    test(fake_functions_leave_other_clocks_alone),
    test(clocks_that_are_nobodys_are_not_destroyed),
    with_time(clock_outlives_the_queues_that_use_it));
