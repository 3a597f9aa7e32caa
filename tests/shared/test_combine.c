/* SPDX-License-Identifier: MIT */
/* test_combine.c: which thread runs a batch, and what is in it?
 *
 * The engine of handle a stops at the beginning of each call until the test lets
 * it go on, so it is known which calls come while a batch runs.
 */
#include "shared/fixture.h"

#include <wq/backend.h>

#include "shared/shared.h"

enum { CALLS_MAX = 8 };

static struct {
    const struct wq__engine_ops *inner; /* of the memory store */
    struct wq__engine_ops        ops;
    sem_t                        go;
    pthread_t                    by[CALLS_MAX]; /* which thread ran it */
    size_t                       ops_in[CALLS_MAX];
    size_t                       n;
} calls;

static wq_err
run_when_told(struct wq__engine *e, struct wq__op *batch,
              struct wq__pulse *pulse)
{
    const size_t i = calls.n++; /* one thread at a time */

    calls.by[i] = pthread_self();
    calls.ops_in[i] = 0;
    for (const struct wq__op *op = batch; op; op = op->next)
        calls.ops_in[i]++;
    while (sem_wait(&calls.go))
        ;
    return calls.inner->run(e, batch, pulse);
}

static void
stop_calls(void)
{
    memset(&calls, 0, sizeof calls);
    assert_int_equal(sem_init(&calls.go, 0, 0), 0);
    calls.inner = f.engines[0]->ops;
    calls.ops = *calls.inner;
    calls.ops.run = run_when_told;
    f.engines[0]->ops = &calls.ops;
}

static void
let_calls_pass(void)
{
    f.engines[0]->ops = calls.inner;
    (void)sem_destroy(&calls.go);
}

static int
add_one(struct worker *self)
{
    return (int)wq_add_str(f.a, self->arg);
}

/* A thread that adds a key, and sleeps: in the engine, or until it has its
 * result. */
static struct worker *
start_add(char *key)
{
    struct worker *w = worker_start(add_one, key);

    worker_await_blocked(w);
    return w;
}

/* The first is in the engine, the others wait for it. */
static void
stop_three_adds(struct worker **w)
{
    static char keys[][2] = {"k", "l", "m"};

    stop_calls();
    for (size_t i = 0; i < 3; i++)
        w[i] = start_add(keys[i]);
}

/* ---- tests --------------------------------------------------------------- */

TEST(calls_that_come_while_a_batch_runs_are_one_batch)
{
    struct worker *w[3];

    stop_three_adds(w);
    (void)sem_post(&calls.go);
    (void)sem_post(&calls.go);
    for (size_t i = 0; i < 3; i++)
        assert_err(worker_join(w[i]), WQ_OK);
    let_calls_pass();

    assert_int_equal(calls.n, 2);
    assert_int_equal(calls.ops_in[0], 1);
    assert_int_equal(calls.ops_in[1], 2);
}

/* Else its next call could not be in that batch. */
TEST(thread_that_has_its_result_runs_no_batch_of_others)
{
    char           keys[][2] = {"k", "l"};
    struct worker *first, *second;

    stop_calls();
    first = start_add(keys[0]);
    second = start_add(keys[1]);
    const pthread_t second_thread = second->thread;
    (void)sem_post(&calls.go);
    assert_err(worker_join(first), WQ_OK); /* while the next batch is stopped */
    (void)sem_post(&calls.go);
    assert_err(worker_join(second), WQ_OK);
    let_calls_pass();

    assert_int_equal(calls.n, 2);
    assert_true(pthread_equal(calls.by[1], second_thread));
}

/* Fails, and says why. */
static wq_err
fail_when_told(struct wq__engine *e, struct wq__op *batch,
               struct wq__pulse *pulse)
{
    const wq_err err = run_when_told(e, batch, pulse);

    return calls.n == 2 ? wq_fail(WQ_EIO, "disk: no space left") : err;
}

/* The sentence is that of the worker's own thread. */
static int
add_and_read_the_sentence(struct worker *self)
{
    const wq_err err = wq_add_str(f.a, self->arg);

    return err && !strcmp(wq_last_error(), "disk: no space left") ? (int)err
                                                                  : 0;
}

/* E-03 S-02 */
TEST(every_call_of_a_batch_that_fails_knows_what_the_store_said)
{
    static char    keys[][2] = {"k", "l", "m"};
    struct worker *w[3];

    stop_calls();
    calls.ops.run = fail_when_told;
    for (size_t i = 0; i < 3; i++) {
        w[i] = worker_start(add_and_read_the_sentence, keys[i]);
        worker_await_blocked(w[i]);
    }
    for (size_t i = 0; i < 3; i++)
        (void)sem_post(&calls.go);
    assert_int_equal(worker_join(w[0]), 0);
    assert_err(worker_join(w[1]), WQ_EIO);
    assert_err(worker_join(w[2]), WQ_EIO);
    let_calls_pass();

    plan_at(0, STORE_AWAY, 1, STORE_RUN); /* it says nothing */
    assert_err(wq_add_str(f.a, "n"), WQ_EAWAY);
    assert_non_null(strstr(wq_last_error(), wq_strerror(WQ_EAWAY)));
}

TEST(batch_that_fails_fails_for_each_of_its_calls)
{
    struct worker *w[3];

    stop_three_adds(w);
    plan_at(0, STORE_AWAY, 2, STORE_RUN);
    (void)sem_post(&calls.go);
    (void)sem_post(&calls.go);
    assert_err(worker_join(w[0]), WQ_OK);
    assert_err(worker_join(w[1]), WQ_EAWAY);
    assert_err(worker_join(w[2]), WQ_EAWAY);
    let_calls_pass();
    assert_int_equal(wq_len(f.a), 1);
}

/* One of its items twice: no hold ends. */
TEST(done_many_of_an_item_named_twice_changes_nothing)
{
    add(f.a, "k");
    add(f.a, "l");
    wq_item *k = take_key(f.a, "k"), *l = take_key(f.a, "l");

    assert_err(wq_done_many(f.a, (wq_item *[]){k, l, k}, 3), WQ_ESTATE);
    assert_err(wq_done_many(f.a, (wq_item *[]){k, l}, 2), WQ_OK);
    assert_err(wq_done_many(f.a, (wq_item *[]){k, l}, 2), WQ_ESTATE);
}

WQ_TESTS(
    with_handles(calls_that_come_while_a_batch_runs_are_one_batch),
    with_handles(thread_that_has_its_result_runs_no_batch_of_others),
    with_handles(every_call_of_a_batch_that_fails_knows_what_the_store_said),
    with_handles(batch_that_fails_fails_for_each_of_its_calls),
    with_handles(done_many_of_an_item_named_twice_changes_nothing));
