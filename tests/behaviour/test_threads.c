/* SPDX-License-Identifier: MIT */
/* test_threads.c: do producers and consumers end well together?
 *
 * The two runs that client-go's users know, each with both kinds of shutdown:
 * many producers that repeat themselves, and consumers that add what they hold.
 */
#include "fixture.h"

#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>

#include <wq/inspect.h>

#include "support/worker.h"

enum { KEYS = 50, PRODUCERS = KEYS, REPEATS = 50, CONSUMERS = 10 };

/* What the threads of one test share. */
struct crowd {
    wq_queue  *queue;
    int        number[PRODUCERS];    /* `arg` of producer i points to [i] */
    atomic_int held[KEYS + 1];       /* by how many at the moment */
    atomic_int handed_out[KEYS + 1]; /* how often; the last: the late key */
    atomic_int overlaps;             /* times a key was in two hands */
    sem_t      added_again;          /* raised by each consumer that did */
};

static struct crowd crowd;

static int
make_crowd(void **state)
{
    memset(&crowd, 0, sizeof crowd);
    for (int i = 0; i < PRODUCERS; i++)
        crowd.number[i] = i;
    assert_int_equal(sem_init(&crowd.added_again, 0, 0), 0);
    crowd.queue = open_queue(NULL);
    *state = &crowd;
    return 0;
}

static int
drop_crowd(void **state)
{
    (void)state;
    wq_destroy(crowd.queue);
    return sem_destroy(&crowd.added_again);
}

static wq_key
key_of(const int *number)
{
    return (wq_key){number, sizeof *number};
}

static int
number_of(const wq_item *item)
{
    int number;

    memcpy(&number, item->key.data, sizeof number);
    return number;
}

static int
produce(struct worker *self)
{
    for (int i = 0; i < REPEATS; i++) {
        if (wq_add(crowd.queue, key_of(self->arg)) != WQ_OK)
            return 1;
        (void)sched_yield();
    }
    return 0;
}

/* Count a hand-out; true for the first of this key. */
static bool
begin_work(int number)
{
    if (atomic_fetch_add(&crowd.held[number], 1) != 0)
        atomic_fetch_add(&crowd.overlaps, 1);
    return atomic_fetch_add(&crowd.handed_out[number], 1) == 0;
}

static wq_err
end_work(wq_item *item)
{
    atomic_fetch_sub(&crowd.held[number_of(item)], 1);
    return wq_done(crowd.queue, item);
}

/* Work until the shutdown; what ended it. */
static int
consume(struct worker *self)
{
    wq_item *item;
    wq_err   err;

    (void)self;
    while ((err = wq_get(crowd.queue, &item)) == WQ_OK) {
        (void)begin_work(number_of(item));
        (void)sched_yield();
        if (end_work(item) != WQ_OK)
            return WQ_ESTATE;
    }
    return (int)err;
}

/* The same, but what is seen for the first time is added again. */
static int
consume_and_add_again(struct worker *self)
{
    wq_item *item;
    wq_err   err;

    (void)self;
    while ((err = wq_get(crowd.queue, &item)) == WQ_OK) {
        if (begin_work(number_of(item))) {
            if (wq_add(crowd.queue, item->key) != WQ_OK)
                return WQ_EINVAL;
            (void)sem_post(&crowd.added_again);
        }
        if (end_work(item) != WQ_OK)
            return WQ_ESTATE;
    }
    return (int)err;
}

static void
drain(wq_queue *q)
{
    assert_err(wq_shutdown_with_drain_within(q, LONG_NS), WQ_OK);
}

static void
start_consumers(struct worker **all, int (*run)(struct worker *))
{
    for (int i = 0; i < CONSUMERS; i++)
        all[i] = worker_start(run, NULL);
}

static void
join_consumers(struct worker **all)
{
    for (int i = 0; i < CONSUMERS; i++)
        assert_err(worker_join(all[i]), WQ_ESHUTDOWN);
}

static void
run_producers(void)
{
    struct worker *all[PRODUCERS];

    for (int i = 0; i < PRODUCERS; i++)
        all[i] = worker_start(produce, &crowd.number[i]);
    for (int i = 0; i < PRODUCERS; i++)
        assert_int_equal(worker_join(all[i]), 0);
}

static void
producers_then_shutdown(void (*shut_down)(wq_queue *q))
{
    struct worker *consumers[CONSUMERS];
    const int      late = KEYS;

    start_consumers(consumers, consume);
    run_producers();
    shut_down(crowd.queue);
    assert_err(wq_add(crowd.queue, key_of(&late)), WQ_ESHUTDOWN);
    join_consumers(consumers);

    for (int i = 0; i < KEYS; i++)
        assert_in_range(atomic_load(&crowd.handed_out[i]), 1, REPEATS);
    assert_int_equal(atomic_load(&crowd.handed_out[late]), 0);
    assert_int_equal(atomic_load(&crowd.overlaps), 0);
    assert_none_ready(crowd.queue, WQ_ESHUTDOWN);
}

/* Wait until consumers have added `n` keys again. */
static void
await_added_again(int n)
{
    struct timespec deadline;

    (void)clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += WORKER_LIMIT_S;
    for (int i = 0; i < n; i++)
        assert_int_equal(sem_timedwait(&crowd.added_again, &deadline), 0);
}

static void
add_again_then_shutdown(void (*shut_down)(wq_queue *q))
{
    struct worker *consumers[CONSUMERS];

    start_consumers(consumers, consume_and_add_again);
    for (int i = 0; i < KEYS; i++)
        assert_err(wq_add(crowd.queue, key_of(&i)), WQ_OK);
    await_added_again(KEYS);
    shut_down(crowd.queue);
    join_consumers(consumers);

    for (int i = 0; i < KEYS; i++)
        assert_int_equal(atomic_load(&crowd.handed_out[i]), 2);
    assert_int_equal(atomic_load(&crowd.overlaps), 0);
    assert_none_ready(crowd.queue, WQ_ESHUTDOWN);
}

/* */
TEST(all_consumers_leave_when_the_producers_ended_with_shutdown)
{
    producers_then_shutdown(wq_shutdown);
}

/* */
TEST(all_consumers_leave_when_the_producers_ended_with_drain)
{
    producers_then_shutdown(drain);
}

/* */
TEST(keys_added_again_by_their_consumers_end_with_shutdown)
{
    add_again_then_shutdown(wq_shutdown);
}

/* */
TEST(keys_added_again_by_their_consumers_end_with_drain)
{
    add_again_then_shutdown(drain);
}

#define with_crowd(name) test_with(name, make_crowd, drop_crowd)

/* ---- races with one call ---- */

/* a get that was woken but finds its key taken goes on waiting. */
TEST(blocked_gets_share_keys_with_gets_that_do_not_block)
{
    wq_queue *q = *state;

    for (int round = 0; round < 200; round++) {
        wq_item       *theirs = NULL, *ours = NULL;
        struct worker *w = worker_get(q, &theirs);

        add(q, "foo");
        const bool stolen = wq_get_within(q, 0, &ours) == WQ_OK;
        if (stolen)
            add(q, "bar");
        assert_err(worker_join(w), WQ_OK);
        assert_key(theirs, stolen ? "bar" : "foo");
        finish(q, theirs);
        if (stolen)
            finish(q, ours);
        assert_none_ready(q, WQ_ETIMEDOUT);
    }
}

/* A worker as the manual of wq_interrupt() describes it. */
struct stop {
    wq_queue   *queue;
    atomic_bool stopping;
};

static int
work_until_stopped(struct worker *self)
{
    struct stop *stop = self->arg;
    wq_item     *item;

    while (!atomic_load(&stop->stopping)) {
        const wq_err err = wq_get(stop->queue, &item);
        if (err == WQ_OK)
            (void)wq_done(stop->queue, item);
        else if (err != WQ_EINTERRUPTED)
            return (int)err;
    }
    wq_interrupt(stop->queue); /* tell the next one */
    return WQ_OK;
}

/* O-08: without waiting for the workers to block, so that some are just about
 * to. */
TEST(workers_that_pass_an_interrupt_on_all_stop)
{
    enum { WORKERS = 6, ROUNDS = 20 };
    wq_queue *q = *state;

    for (int round = 0; round < ROUNDS; round++) {
        struct stop    stop = {.queue = q};
        struct worker *all[WORKERS];

        for (int i = 0; i < WORKERS; i++)
            all[i] = worker_start(work_until_stopped, &stop);
        add(q, "foo");
        atomic_store(&stop.stopping, true);
        wq_interrupt(q);
        for (int i = 0; i < WORKERS; i++)
            assert_err(worker_join(all[i]), WQ_OK);
    }
    assert_false(wq_shutting_down(q));
}

/* O-03: a get that was woken for a key has it, or is sent home; never is it
 * left behind in a queue that is gone. */
TEST(destroy_meets_a_get_that_is_just_waking_up)
{
    enum { ROUNDS = 50, GETTERS = 2 };

    for (int round = 0; round < ROUNDS; round++) {
        wq_queue      *q = open_queue(NULL);
        struct worker *all[GETTERS];

        for (int i = 0; i < GETTERS; i++)
            all[i] = worker_get(q, NULL);
        worker_await_all_blocked(all, GETTERS);
        add(q, "foo");
        wq_destroy(q);

        int handed_out = 0;
        for (int i = 0; i < GETTERS; i++) {
            const int err = worker_join(all[i]);
            handed_out += err == WQ_OK;
            if (err)
                assert_err(err, WQ_ESHUTDOWN);
        }
        assert_in_range(handed_out, 0, 1);
    }
}

/* O-03 */
TEST(destroy_of_NULL_does_nothing)
{
    wq_destroy(NULL);
}

static int
work_until_shutdown(struct worker *self)
{
    wq_item *item = NULL;

    while (wq_next(self->arg, WQ_FOREVER, &item) == WQ_OK)
        if (wq_add(self->arg, item->key) != WQ_OK)
            break;
    return item ? (int)wq_done(self->arg, item) : 0;
}

/* O-30 */
TEST(stats_are_one_snapshot_while_threads_work)
{
    enum { WORKERS = 3, LOOKS = 3000 };
    wq_queue      *q = *state;
    struct worker *all[WORKERS];

    add(q, "foo");
    add(q, "bar");
    for (int i = 0; i < WORKERS; i++)
        all[i] = worker_start(work_until_shutdown, q);
    for (int i = 0; i < LOOKS; i++) {
        wq_stats s = {.size = sizeof s};

        assert_err(wq_read_stats(q, &s), WQ_OK);
        assert_int_equal(s.adds, s.gets + s.ready + s.dirty);
        assert_int_equal(s.gets, s.dones + s.held);
    }
    wq_shutdown(q);
    for (int i = 0; i < WORKERS; i++)
        assert_int_equal(worker_join(all[i]), 0);
}

WQ_TESTS(with_queue(blocked_gets_share_keys_with_gets_that_do_not_block),
         with_queue(workers_that_pass_an_interrupt_on_all_stop),
         test(destroy_meets_a_get_that_is_just_waking_up),
         test(destroy_of_NULL_does_nothing),
         with_queue(stats_are_one_snapshot_while_threads_work),
         with_crowd(all_consumers_leave_when_the_producers_ended_with_shutdown),
         with_crowd(all_consumers_leave_when_the_producers_ended_with_drain),
         with_crowd(keys_added_again_by_their_consumers_end_with_shutdown),
         with_crowd(keys_added_again_by_their_consumers_end_with_drain));
