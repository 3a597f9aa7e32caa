/* SPDX-License-Identifier: MIT */
/* test_delay.c: what do delays mean in the in-memory queue, and who watches the
 * deadlines there?
 *
 * First the facts that hold for every queue with delays (delay_facts.h); then
 * what several gets that sleep owe each other, and what becomes of keys that
 * wait when the queue is shut down.
 */
#include "delay_facts.h"

#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>

#include "support/counting.h"

enum { SEVERAL = 4 };

/* Gets that sleep, the first of which watches the deadline. */
struct getters {
    struct worker *all[SEVERAL];
    wq_item       *items[SEVERAL];
};

/* Something must wait. When this returns, one get sleeps until then and the
 * others, which went to sleep later, do so without limit. */
static void
start_getters(struct timed *t, struct getters *g)
{
    memset(g, 0, sizeof *g);
    g->all[0] = worker_get(t->q, &g->items[0]);
    await_sleepers(t, 1);
    for (int i = 1; i < SEVERAL; i++)
        g->all[i] = worker_get(t->q, &g->items[i]);
    worker_await_all_blocked(g->all, SEVERAL);
    assert_int_equal(wq_clock_fake_waiters(t->clock), 1);
}

/* Wait for one of the first `n`, take it out, and say what it came back
 * with. */
static wq_item *
join_any(struct getters *g, size_t n)
{
    const size_t   i = worker_await_any_ended(g->all, n);
    struct worker *w = g->all[i];
    wq_item       *item = *w->item;

    g->all[i] = g->all[n - 1];
    assert_err(worker_join(w), WQ_OK);
    return item;
}

static void
join_all(struct worker *const *all, size_t n, wq_err expected)
{
    for (size_t i = 0; i < n; i++)
        assert_err(worker_join(all[i]), expected);
}

/* ---- no thread ----------------------------------------------------------- */

static size_t
count_threads(void)
{
    size_t n = 0;
    DIR   *tasks = opendir("/proc/self/task");

    if (!tasks)
        wq_test_skip("the system does not tell how many threads there are");
    for (const struct dirent *d; (d = readdir(tasks));)
        n += d->d_name[0] != '.';
    (void)closedir(tasks);
    return n;
}

/* D-14 D-15 */
TEST(delays_need_no_thread)
{
    const size_t  before = count_threads();
    struct timed *t = timed_create(WQ_CONFIG(.order = NULL));

    add_after(t, "foo", 10 * MS);
    assert_int_equal(count_threads(), before);
    step(t, 10 * MS);
    work_on(t->q, "foo");
    assert_int_equal(count_threads(), before);
    timed_destroy(t);
}

/* D-14: no heartbeat. What a thread that sleeps has used of the processor does
 * not change while it is left alone. */
TEST(get_sleeps_through_until_the_deadline)
{
    struct timed *t = *state;

    add_after(t, "foo", HOUR);
    struct worker *w = get_in_time(t, WQ_FOREVER);
    await_sleepers(t, 1);
    worker_await_blocked(w);
    const int64_t used = worker_cpu_ns(w);
    for (int minute = 1; minute < 60; minute++)
        step(t, 60 * S);
    worker_await_blocked(w);

    assert_int_equal(worker_cpu_ns(w), used);
    step(t, 60 * S);
    assert_err(worker_join(w), WQ_OK);
}

/* D-02: nobody is disturbed by what concerns nobody. */
TEST(later_deadline_wakes_nobody)
{
    struct timed *t = *state;

    add_after(t, "foo", S);
    struct worker *w = get_in_time(t, WQ_FOREVER);
    await_sleepers(t, 1);
    worker_await_blocked(w);
    const int64_t used = worker_cpu_ns(w);
    add_after(t, "bar", HOUR);
    add_after(t, "foo", HOUR);
    worker_await_blocked(w);

    assert_int_equal(worker_cpu_ns(w), used);
    step(t, S);
    assert_err(worker_join(w), WQ_OK);
}

/* ---- several gets -------------------------------------------------------- */

/* D-16 Q-26: one watches, one wakes. */
TEST(one_deadline_wakes_one_of_several_gets)
{
    struct timed  *t = *state;
    struct getters g;
    int64_t        used[SEVERAL];

    add_after(t, "foo", S);
    start_getters(t, &g);
    for (int i = 0; i < SEVERAL; i++)
        used[i] = worker_cpu_ns(g.all[i]);
    step(t, S);

    assert_err(worker_join(g.all[0]), WQ_OK);
    assert_key(g.items[0], "foo");
    worker_await_all_blocked(g.all + 1, SEVERAL - 1);
    for (int i = 1; i < SEVERAL; i++)
        assert_int_equal(worker_cpu_ns(g.all[i]), used[i]);
    wq_shutdown(t->q);
    join_all(g.all + 1, SEVERAL - 1, WQ_ESHUTDOWN);
}

/* D-05 Q-26 */
TEST(keys_due_together_wake_as_many_gets)
{
    struct timed  *t = *state;
    struct getters g;
    unsigned       seen = 0;

    add_after(t, "a", S);
    add_after(t, "b", S);
    add_after(t, "c", S);
    start_getters(t, &g);
    step(t, S);

    for (size_t n = SEVERAL; n > 1; n--)
        seen |= 1U << (*(const char *)join_any(&g, n)->key.data - 'a');
    assert_int_equal(seen, 7);
    worker_await_blocked(g.all[0]);
    add(t->q, "d");
    assert_err(worker_join(g.all[0]), WQ_OK);
}

/* D-04: whoever watched leaves with the first key. */
TEST(get_that_leaves_with_a_key_hands_the_watch_over)
{
    struct timed  *t = *state;
    struct getters g;
    char           key[] = "a";

    for (key[0] = 'a'; key[0] < 'a' + SEVERAL; key[0]++)
        add_after(t, key, (key[0] - 'a' + 1) * S);
    start_getters(t, &g);
    for (size_t n = SEVERAL; n > 0; n--) {
        await_sleepers(t, 1);
        step(t, S);
        key[0] = (char)('a' + SEVERAL - n);
        assert_key(join_any(&g, n), key);
    }
}

/* O-05 D-16 */
TEST(get_that_gives_up_hands_the_watch_over)
{
    struct timed *t = *state;
    wq_item      *item = NULL;

    add_after(t, "foo", HOUR);
    struct worker *first = get_in_time(t, 10 * MS);
    await_sleepers(t, 1);
    struct worker *second = worker_get(t->q, &item);
    worker_await_blocked(second);
    assert_int_equal(wq_clock_fake_waiters(t->clock), 1);
    step(t, 10 * MS);
    assert_err(worker_join(first), WQ_ETIMEDOUT);
    await_sleepers(t, 1);
    step(t, HOUR - 10 * MS);

    assert_err(worker_join(second), WQ_OK);
    assert_key(item, "foo");
}

/* O-08 D-16: the second get comes while the first one may still be leaving. */
TEST(get_that_is_interrupted_hands_the_watch_over)
{
    struct timed *t = *state;

    for (int round = 0; round < 50; round++) {
        wq_item *item = NULL;

        add_after(t, "foo", HOUR);
        struct worker *first = worker_get(t->q, NULL);
        await_sleepers(t, 1);
        worker_await_blocked(first);
        wq_interrupt(t->q);
        struct worker *second = worker_get(t->q, &item);
        assert_err(worker_join(first), WQ_EINTERRUPTED);
        await_sleepers(t, 1);
        step(t, HOUR);

        assert_err(worker_join(second), WQ_OK);
        assert_key(item, "foo");
        finish(t->q, item);
    }
}

/* A thread that is frozen stays where it is until all are thawed. It is held in
 * a signal handler, which a program watched by the thread sanitizer does not
 * enter while it sleeps; nobody is frozen there, and what is tested holds too.
 */
#ifdef __has_feature
#if __has_feature(thread_sanitizer)
#define CAN_FREEZE 0
#endif
#endif
#ifdef __SANITIZE_THREAD__
#define CAN_FREEZE 0
#endif
#ifndef CAN_FREEZE
#define CAN_FREEZE 1
#endif

static atomic_bool is_frozen, is_thawed;

static void
stay(int signal_number)
{
    (void)signal_number;
    atomic_store(&is_frozen, true);
    while (!atomic_load(&is_thawed))
        (void)sched_yield();
}

static void
freeze(struct worker *w)
{
    const struct sigaction action = {.sa_handler = stay};
    const int64_t          begin_ns = now_ns();

    if (!CAN_FREEZE)
        return;
    atomic_store(&is_frozen, false);
    atomic_store(&is_thawed, false);
    assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
    assert_int_equal(pthread_kill(w->thread, SIGUSR1), 0);
    while (!atomic_load(&is_frozen))
        assert_true(now_ns() - begin_ns < WORKER_LIMIT_S * S);
}

static void
thaw(void)
{
    atomic_store(&is_thawed, true);
}

/* O-08 D-03 D-16: a new deadline comes up when whoever watched has been told to
 * go and has not gone yet. */
TEST(get_on_its_way_out_hands_a_new_deadline_over)
{
    struct timed *t = *state;
    wq_item      *item = NULL;

    add_after(t, "later", HOUR);
    struct worker *first = worker_get(t->q, NULL);
    await_sleepers(t, 1);
    worker_await_blocked(first);
    freeze(first);
    wq_interrupt(t->q);
    struct worker *second = worker_get(t->q, &item);
    worker_await_blocked(second);
    add_after(t, "sooner", S);
    worker_await_blocked(second);
    thaw();
    assert_err(worker_join(first), WQ_EINTERRUPTED);
    await_sleepers(t, 1);
    step(t, S);

    assert_err(worker_join(second), WQ_OK);
    assert_key(item, "sooner");
}

/* O-05 D-16: its time is up after it was told to look, and before it could. */
TEST(get_whose_time_is_up_while_it_is_woken_takes_the_key)
{
    struct timed *t = *state;

    struct worker *w = get_in_time(t, S);
    await_sleepers(t, 1);
    worker_await_blocked(w);
    freeze(w);
    add(t->q, "foo");
    step(t, S);
    thaw();

    assert_err(worker_join(w), WQ_OK);
    assert_key(t->item, "foo");
}

/* D-11 D-16 */
TEST(deadline_stays_watched_while_adds_wake_the_other_gets)
{
    struct timed  *t = *state;
    struct getters g;

    add_after(t, "later", HOUR);
    start_getters(t, &g);
    for (int i = 1; i < SEVERAL; i++) {
        add(t->q, "now");
        wq_item *item = join_any(&g, (size_t)(SEVERAL - i + 1));
        assert_key(item, "now");
        finish(t->q, item);
    }
    await_sleepers(t, 1);
    step(t, HOUR);

    assert_key(join_any(&g, 1), "later");
}

/* D-03: nobody watched so far, then one does, then sooner. */
TEST(gets_that_sleep_without_limit_share_each_new_deadline)
{
    struct timed  *t = *state;
    struct getters g;

    memset(&g, 0, sizeof g);
    for (int i = 0; i < SEVERAL; i++)
        g.all[i] = worker_get(t->q, &g.items[i]);
    worker_await_all_blocked(g.all, SEVERAL);
    add_after(t, "c", 3 * S);
    add_after(t, "b", 2 * S);
    add_after(t, "a", S);
    worker_await_all_blocked(g.all, SEVERAL);
    assert_int_equal(wq_clock_fake_waiters(t->clock), 1);

    for (size_t n = SEVERAL; n > 1; n--) {
        const char key[] = {(char)('a' + SEVERAL - n), '\0'};

        await_sleepers(t, 1);
        step(t, S);
        assert_key(join_any(&g, n), key);
    }
    wq_shutdown(t->q);
    assert_err(worker_join(g.all[0]), WQ_ESHUTDOWN);
}

/* O-05: each has a time of its own, whoever watches. */
TEST(gets_with_different_timeouts_give_up_each_in_time)
{
    struct timed *t = *state;

    add_after(t, "foo", HOUR);
    struct timed   times[SEVERAL];
    struct worker *all[SEVERAL];
    for (int i = 0; i < SEVERAL; i++) {
        times[i] = *t;
        all[i] = get_in_time(&times[i], (SEVERAL - i) * S);
    }
    await_sleepers(t, SEVERAL);
    for (int i = SEVERAL - 1; i >= 0; i--) {
        step(t, S);
        assert_err(worker_join(all[i]), WQ_ETIMEDOUT);
        if (i > 0)
            worker_await_all_blocked(all, (size_t)i);
    }

    assert_due_in(t, "foo", HOUR - SEVERAL * S);
}

/* D-13 Q-19 */
TEST(shutdown_sends_all_gets_home_when_what_waits_is_dropped)
{
    struct timed  *t = *state;
    struct getters g;

    add_after(t, "foo", S);
    start_getters(t, &g);
    wq_shutdown(t->q);

    join_all(g.all, SEVERAL, WQ_ESHUTDOWN);
    assert_int_equal(wq_clock_fake_waiters(t->clock), 0);
}

/* O-08 */
TEST(interrupt_ends_all_gets_and_the_deadline_stays)
{
    struct timed  *t = *state;
    struct getters g;

    add_after(t, "foo", S);
    start_getters(t, &g);
    wq_interrupt(t->q);
    join_all(g.all, SEVERAL, WQ_EINTERRUPTED);

    assert_due_in(t, "foo", S);
}

/* O-03 */
TEST(destroy_sends_all_gets_home_whatever_waits)
{
    struct timed  *t = *state;
    struct getters g;

    add_after(t, "foo", S);
    start_getters(t, &g);
    wq_destroy(t->q);
    t->q = NULL;

    join_all(g.all, SEVERAL, WQ_ESHUTDOWN);
}

/* ---- shutdown with WQ_WAITING_KEEP --------------------------------------- */

static int
keeping_setup(void **state)
{
    *state = timed_create(WQ_CONFIG(.waiting = WQ_WAITING_KEEP));
    return 0;
}

#define with_keeping(name) test_with(name, keeping_setup, timed_teardown)

/* O-15 */
TEST(kept_key_is_handed_out_after_the_shutdown_when_its_time_has_come)
{
    struct timed *t = *state;

    add_after(t, "foo", 10 * MS);
    wq_shutdown(t->q);
    assert_none_due(t);

    assert_due_in(t, "foo", 10 * MS);
    assert_none_ready(t->q, WQ_ESHUTDOWN);
}

/* O-15 */
TEST(kept_keys_outlive_a_second_shutdown)
{
    struct timed *t = *state;

    add_after(t, "foo", 10 * MS);
    wq_shutdown(t->q);
    wq_shutdown(t->q);

    assert_due_in(t, "foo", 10 * MS);
}

/* O-15 D-13 */
TEST(adds_are_refused_while_keys_are_kept)
{
    struct timed *t = *state;

    add_after(t, "foo", 10 * MS);
    wq_shutdown(t->q);

    assert_err(wq_add(t->q, wq_str("foo")), WQ_ESHUTDOWN);
    assert_err(wq_add_after(t->q, wq_str("foo"), 5 * MS), WQ_ESHUTDOWN);
    assert_err(wq_add_after(t->q, wq_str("bar"), 5 * MS), WQ_ESHUTDOWN);
    assert_due_in(t, "foo", 10 * MS);
    assert_none_ready(t->q, WQ_ESHUTDOWN);
}

/* O-15 D-10 */
TEST(kept_deadline_that_comes_while_held_hands_the_key_out_after_done)
{
    struct timed *t = *state;

    add(t->q, "foo");
    wq_item *item = take_key(t->q, "foo");
    add_after(t, "foo", 10 * MS);
    wq_shutdown(t->q);
    step(t, 10 * MS);
    finish(t->q, item);

    work_on(t->q, "foo");
    assert_none_ready(t->q, WQ_ESHUTDOWN);
}

/* O-15: a get that comes after the shutdown. */
TEST(get_waits_for_a_kept_key)
{
    struct timed *t = *state;

    add_after(t, "foo", HOUR);
    wq_shutdown(t->q);
    struct worker *w = get_in_time(t, WQ_FOREVER);
    await_sleepers(t, 1);
    worker_await_blocked(w);
    step(t, HOUR);

    assert_err(worker_join(w), WQ_OK);
    assert_key(t->item, "foo");
}

/* O-15: a get that was asleep before. */
TEST(get_that_sleeps_goes_on_waiting_for_a_kept_key)
{
    struct timed *t = *state;

    add_after(t, "foo", HOUR);
    struct worker *w = get_in_time(t, WQ_FOREVER);
    await_sleepers(t, 1);
    wq_shutdown(t->q);
    worker_await_blocked(w);
    await_sleepers(t, 1);
    step(t, HOUR);

    assert_err(worker_join(w), WQ_OK);
    assert_key(t->item, "foo");
}

/* O-15 Q-13: nothing is left for the others. */
TEST(last_kept_key_sends_the_other_gets_home)
{
    struct timed  *t = *state;
    struct getters g;

    add_after(t, "foo", S);
    start_getters(t, &g);
    wq_shutdown(t->q);
    worker_await_all_blocked(g.all, SEVERAL);
    await_sleepers(t, 1);
    step(t, S);
    wq_item *item = NULL;
    for (int i = 0; i < SEVERAL; i++) {
        const wq_err err = (wq_err)worker_join(g.all[i]);
        assert_err(err, err == WQ_OK ? WQ_OK : WQ_ESHUTDOWN);
        if (err == WQ_OK) {
            assert_null(item);
            item = g.items[i];
        }
    }

    assert_non_null(item);
    assert_key(item, "foo");
}

/* O-15 O-05 */
TEST(get_gives_up_while_keys_are_kept)
{
    struct timed *t = *state;

    add_after(t, "foo", HOUR);
    wq_shutdown(t->q);
    struct worker *w = get_in_time(t, S);
    await_sleepers(t, 1);
    step(t, S);

    assert_err(worker_join(w), WQ_ETIMEDOUT);
    assert_due_in(t, "foo", HOUR - S);
}

/* O-15 Q-20 */
TEST(drain_waits_for_kept_keys)
{
    struct timed *t = *state;

    add_after(t, "foo", 10 * MS);
    struct worker *drain = worker_drain(t->q);
    worker_await_blocked(drain);
    step(t, 10 * MS);
    worker_await_blocked(drain);
    wq_item *item = take_key(t->q, "foo");
    worker_await_blocked(drain);
    finish(t->q, item);

    assert_err(worker_join(drain), WQ_OK);
}

/* O-15 O-07 */
TEST(drain_gives_up_on_kept_keys_in_time)
{
    struct timed *t = *state;

    add_after(t, "foo", HOUR);

    assert_err(wq_shutdown_with_drain_within(t->q, 0), WQ_ETIMEDOUT);
    assert_due_in(t, "foo", HOUR);
    assert_err(wq_shutdown_with_drain_within(t->q, 0), WQ_OK);
}

static int
drain_in_time(struct worker *self)
{
    const struct timed *t = self->arg;

    return (int)wq_shutdown_with_drain_within(t->q, t->timeout_ns);
}

/* O-07: on the queue's clock. */
TEST(drain_gives_up_at_its_time_on_the_queues_clock)
{
    struct timed *t = *state;

    add(t->q, "foo");
    t->timeout_ns = S;
    struct worker *drain = worker_start(drain_in_time, t);
    await_sleepers(t, 1);
    step(t, S - 1);
    worker_await_blocked(drain);
    step(t, 1);

    assert_err(worker_join(drain), WQ_ETIMEDOUT);
}

/* O-15 Q-09 */
TEST(shutdown_ends_a_drain_that_waits_for_kept_keys)
{
    struct timed *t = *state;

    add_after(t, "foo", 10 * MS);
    struct worker *drain = worker_drain(t->q);
    worker_await_blocked(drain);
    wq_shutdown(t->q);
    assert_err(worker_join(drain), WQ_EINTERRUPTED);

    assert_due_in(t, "foo", 10 * MS);
}

/* O-15 O-03 */
TEST(destroy_sends_gets_home_that_wait_for_kept_keys)
{
    struct timed  *t = *state;
    struct getters g;

    add_after(t, "foo", HOUR);
    start_getters(t, &g);
    wq_shutdown(t->q);
    worker_await_all_blocked(g.all, SEVERAL);
    wq_destroy(t->q);
    t->q = NULL;

    join_all(g.all, SEVERAL, WQ_ESHUTDOWN);
}

static int
work_until_shutdown(struct worker *self)
{
    wq_queue *q = self->arg;
    wq_item  *item;
    wq_err    err;

    while ((err = wq_get(q, &item)) == WQ_OK)
        (void)wq_done(q, item);
    return (int)err;
}

/* O-15 Q-01: the loop that the manual shows ends by itself. */
TEST(workers_and_drain_end_after_the_last_kept_key)
{
    struct timed  *t = *state;
    struct worker *workers[SEVERAL];

    for (uint64_t i = 0; i < 10; i++)
        assert_err(wq_add_after(t->q, wq_u64(&i), (int64_t)i * S), WQ_OK);
    for (int i = 0; i < SEVERAL; i++)
        workers[i] = worker_start(work_until_shutdown, t->q);
    struct worker *drain = worker_drain(t->q);
    for (int i = 0; i < 9; i++) {
        await_sleepers(t, 1);
        step(t, S);
    }

    assert_err(worker_join(drain), WQ_OK);
    join_all(workers, SEVERAL, WQ_ESHUTDOWN);
}

/* O-15 O-02 */
TEST(config_that_says_something_unknown_about_what_waits_is_refused)
{
    wq_queue *q = NULL;

    for (int i = WQ_WAITING_FLUSH_ALL + 1; i < 7; i++)
        assert_err(wq_create(WQ_CONFIG(.waiting = (wq_waiting)i), &q),
                   WQ_EINVAL);
    assert_null(q);
}

/* ---- memory -------------------------------------------------------------- */

/* D-01 Q-11: what the queue keeps for itself, it has after the first time. */
TEST(nothing_is_kept_of_a_key_that_was_due_and_done)
{
    struct counting mem;
    counting_init(&mem);
    struct timed *t = timed_create(WQ_CONFIG(.allocator = &mem.allocator));
    char          key[5000];
    size_t        kept[2];

    memset(key, 'x', sizeof key);
    for (int i = 0; i < 2; i++) {
        assert_err(wq_add_after(t->q, (wq_key){key, sizeof key}, S), WQ_OK);
        step(t, S);
        finish(t->q, take(t->q));
        kept[i] = mem.bytes;
    }
    assert_int_equal(kept[0], kept[1]);
    timed_destroy(t);

    assert_int_equal(mem.bytes, 0);
}

/* D-13 */
TEST(shutdown_gives_back_what_it_drops)
{
    struct counting mem;
    counting_init(&mem);
    struct timed *t = timed_create(WQ_CONFIG(.allocator = &mem.allocator));
    char          key[5000];

    memset(key, 'x', sizeof key);
    assert_err(wq_add_after(t->q, (wq_key){key, sizeof key}, S), WQ_OK);
    const size_t before = mem.bytes;
    wq_shutdown(t->q);

    assert_true(mem.bytes + sizeof key <= before);
    timed_destroy(t);
}

/* D-13 */
TEST(destroy_gives_back_what_waits)
{
    struct counting mem;
    counting_init(&mem);
    struct timed *t = timed_create(WQ_CONFIG(.allocator = &mem.allocator));

    for (uint64_t i = 0; i < 1000; i++)
        assert_err(wq_add_after(t->q, wq_u64(&i), (int64_t)i * S), WQ_OK);
    timed_destroy(t);

    assert_int_equal(mem.bytes, 0);
}

/* D-14: for each allocation it might need. */
TEST(delay_refused_for_lack_of_memory_changes_nothing)
{
    for (uint64_t nth = 1;; nth++) {
        struct counting mem;
        counting_init(&mem);
        struct timed *t = timed_create(WQ_CONFIG(.allocator = &mem.allocator));

        counting_fail(&mem, nth, COUNTING_ONCE);
        const wq_err err = wq_add_after(t->q, wq_str("foo"), S);
        counting_heal(&mem);
        assert_err(err, err ? WQ_ENOMEM : WQ_OK);
        step(t, S);
        if (err)
            assert_none_due(t);
        else
            work_on(t->q, "foo");
        timed_destroy(t);
        assert_int_equal(mem.bytes, 0);
        if (!err) {
            assert_true(nth > 1);
            return;
        }
    }
}

/* ---- many threads -------------------------------------------------------- */

enum { KEYS = 32, PRODUCERS = 3, CONSUMERS = 3, ADDS = 400 };

/* Each add asks for what was wanted by then: `wanted` is raised before it, and
 * read by whoever works on the key. So an add is lost if `seen` is behind in
 * the end. */
struct run {
    struct timed *t;
    atomic_int    wanted[KEYS];
    atomic_int    seen[KEYS];
    atomic_int    hands[KEYS]; /* that hold it at the moment */
    atomic_int    overlaps;    /* times there were two */
};

static int
produce(struct worker *self)
{
    struct run *run = self->arg;
    uint64_t    seed = (uint64_t)(uintptr_t)self;

    for (int i = 0; i < ADDS; i++) {
        const uint64_t key = draw(&seed) % KEYS;
        const int64_t  delay_ns = (int64_t)(draw(&seed) % 20) - 2;

        atomic_fetch_add(&run->wanted[key], 1);
        if (wq_add_after(run->t->q, wq_u64(&key), delay_ns) != WQ_OK)
            return 1;
    }
    return 0;
}

static int
consume(struct worker *self)
{
    struct run *run = self->arg;
    wq_item    *item;
    wq_err      err;

    while ((err = wq_get(run->t->q, &item)) == WQ_OK) {
        uint64_t key;

        memcpy(&key, item->key.data, sizeof key);
        if (atomic_fetch_add(&run->hands[key], 1) != 0)
            atomic_fetch_add(&run->overlaps, 1);
        atomic_store(&run->seen[key], atomic_load(&run->wanted[key]));
        atomic_fetch_sub(&run->hands[key], 1);
        (void)wq_done(run->t->q, item);
    }
    return (int)err;
}

static bool
all_was_seen(const struct run *run)
{
    for (int i = 0; i < KEYS; i++)
        if (atomic_load(&run->seen[i]) != atomic_load(&run->wanted[i]))
            return false;
    return true;
}

/* D-06 D-10 D-11: the last step makes everything due that waits, so from then
 * on nothing but a lost wake-up can keep the consumers from it. */
TEST(no_delayed_add_is_lost_while_time_moves_and_threads_meet)
{
    struct run     run = {.t = *state};
    struct worker *producers[PRODUCERS], *consumers[CONSUMERS];
    size_t         left = PRODUCERS;

    for (int i = 0; i < CONSUMERS; i++)
        consumers[i] = worker_start(consume, &run);
    for (int i = 0; i < PRODUCERS; i++)
        producers[i] = worker_start(produce, &run);
    while (left) {
        step(run.t, 1);
        if (worker_has_ended(producers[left - 1]))
            assert_int_equal(worker_join(producers[--left]), 0);
    }
    step(run.t, 20);
    worker_await_all_blocked(consumers, CONSUMERS);

    assert_true(all_was_seen(&run));
    assert_int_equal(atomic_load(&run.overlaps), 0);
    wq_shutdown(run.t->q);
    join_all(consumers, CONSUMERS, WQ_ESHUTDOWN);
}

static int
work_through_interrupts(struct worker *self)
{
    const struct timed *t = self->arg;
    wq_item            *item;

    for (;;) {
        const wq_err err = wq_get(t->q, &item);
        if (err == WQ_OK)
            (void)wq_done(t->q, item);
        else if (err != WQ_EINTERRUPTED)
            return (int)err;
    }
}

/* O-08 D-03 D-16: whoever watches is interrupted while others come and the
 * deadline moves; in the end it is watched. */
TEST(interrupts_and_earlier_deadlines_may_meet)
{
    struct timed  *t = *state;
    struct worker *all[CONSUMERS];

    for (int i = 0; i < CONSUMERS; i++)
        all[i] = worker_start(work_through_interrupts, t);
    for (int round = 0; round < 1000; round++) {
        const uint64_t key = (uint64_t)round;
        const int64_t  delay_ns = HOUR - round * S;

        assert_err(wq_add_after(t->q, wq_u64(&key), delay_ns), WQ_OK);
        wq_interrupt(t->q);
        assert_err(wq_add_after(t->q, wq_u64(&key), delay_ns - 1), WQ_OK);
    }
    step(t, HOUR);
    worker_await_all_blocked(all, CONSUMERS);

    assert_none_due(t);
    wq_shutdown(t->q);
    join_all(all, CONSUMERS, WQ_ESHUTDOWN);
}

WQ_TESTS(DELAY_FACTS(with_time), test(delays_need_no_thread),
         with_time(get_sleeps_through_until_the_deadline),
         with_time(later_deadline_wakes_nobody),
         with_time(one_deadline_wakes_one_of_several_gets),
         with_time(keys_due_together_wake_as_many_gets),
         with_time(get_that_leaves_with_a_key_hands_the_watch_over),
         with_time(get_that_gives_up_hands_the_watch_over),
         with_time(get_that_is_interrupted_hands_the_watch_over),
         with_time(get_on_its_way_out_hands_a_new_deadline_over),
         with_time(get_whose_time_is_up_while_it_is_woken_takes_the_key),
         with_time(deadline_stays_watched_while_adds_wake_the_other_gets),
         with_time(gets_that_sleep_without_limit_share_each_new_deadline),
         with_time(gets_with_different_timeouts_give_up_each_in_time),
         with_time(shutdown_sends_all_gets_home_when_what_waits_is_dropped),
         with_time(interrupt_ends_all_gets_and_the_deadline_stays),
         with_time(destroy_sends_all_gets_home_whatever_waits),
         with_keeping(
             kept_key_is_handed_out_after_the_shutdown_when_its_time_has_come),
         with_keeping(kept_keys_outlive_a_second_shutdown),
         with_keeping(adds_are_refused_while_keys_are_kept),
         with_keeping(
             kept_deadline_that_comes_while_held_hands_the_key_out_after_done),
         with_keeping(get_waits_for_a_kept_key),
         with_keeping(get_that_sleeps_goes_on_waiting_for_a_kept_key),
         with_keeping(last_kept_key_sends_the_other_gets_home),
         with_keeping(get_gives_up_while_keys_are_kept),
         with_keeping(drain_waits_for_kept_keys),
         with_keeping(drain_gives_up_on_kept_keys_in_time),
         with_keeping(drain_gives_up_at_its_time_on_the_queues_clock),
         with_keeping(shutdown_ends_a_drain_that_waits_for_kept_keys),
         with_keeping(destroy_sends_gets_home_that_wait_for_kept_keys),
         with_keeping(workers_and_drain_end_after_the_last_kept_key),
         test(config_that_says_something_unknown_about_what_waits_is_refused),
         test(nothing_is_kept_of_a_key_that_was_due_and_done),
         test(shutdown_gives_back_what_it_drops),
         test(destroy_gives_back_what_waits),
         test(delay_refused_for_lack_of_memory_changes_nothing),
         with_time(no_delayed_add_is_lost_while_time_moves_and_threads_meet),
         with_time(interrupts_and_earlier_deadlines_may_meet));
