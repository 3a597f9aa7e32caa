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
    assert_err(wq_create(NULL, &crowd.queue), WQ_OK);
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

WQ_TESTS(with_crowd(all_consumers_leave_when_the_producers_ended_with_shutdown),
         with_crowd(all_consumers_leave_when_the_producers_ended_with_drain),
         with_crowd(keys_added_again_by_their_consumers_end_with_shutdown),
         with_crowd(keys_added_again_by_their_consumers_end_with_drain));
