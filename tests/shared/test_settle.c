/* SPDX-License-Identifier: MIT */
/* test_settle.c: which threads wait until a batch is durable, and who settles it?
 *
 * Adds and retries of handle a are durable when its engine has settled their
 * batch. The engine stops in each settle() until the test lets it go on. Whether
 * a settle takes longer than a batch is set by the test.
 */
#include "shared/fixture.h"

#include <wq/backend.h>
#include <wq/workers.h>

#include "shared/shared.h"

enum { SETTLES_MAX = 8 };

static struct {
    const struct wq__engine_ops *inner; /* of the memory store */
    struct wq__engine_ops        ops;
    atomic_uint                  runs; /* batches with operations */
    sem_t                        begun, go;
    wq_err                       err; /* of the settles from now on */
    uint64_t                     numbers[SETTLES_MAX];
    size_t                       n;
} disk;

static bool
promises(const struct wq__op *op)
{
    return op->kind == WQ__OP_ADD ||
           (op->kind == WQ__OP_FINISH &&
            op->as.finish.result.outcome == WQ_RESULT_RETRY);
}

static wq_err
run_without_sync(struct wq__engine *e, struct wq__op *batch,
                 struct wq__pulse *pulse)
{
    const wq_err err = disk.inner->run(e, batch, pulse);

    for (struct wq__op *op = batch; op; op = op->next)
        op->unsettled = promises(op);
    pulse->settles = atomic_fetch_add(&disk.runs, batch != NULL) + 1;
    return err;
}

static wq_err
settle_when_told(struct wq__engine *e, uint64_t number)
{
    (void)e;
    disk.numbers[disk.n++] = number; /* one thread at a time */
    (void)sem_post(&disk.begun);
    while (sem_wait(&disk.go))
        ;
    return disk.err ? wq_fail(disk.err, "disk: gone") : WQ_OK;
}

static struct wq__shared *
handle(void)
{
    return wq__shared_of(f.a);
}

static int
open_disk(void **state)
{
    (void)open_handles(state);
    memset(&disk, 0, sizeof disk);
    assert_int_equal(sem_init(&disk.begun, 0, 0), 0);
    assert_int_equal(sem_init(&disk.go, 0, 0), 0);
    disk.inner = f.engines[0]->ops;
    disk.ops = *disk.inner;
    disk.ops.run = run_without_sync;
    disk.ops.settle = settle_when_told;
    f.engines[0]->ops = &disk.ops;
    handle()->settle_ns = INT64_MAX; /* longer than any batch */
    return 0;
}

static int
close_disk(void **state)
{
    f.engines[0]->ops = disk.inner;
    (void)sem_destroy(&disk.begun);
    (void)sem_destroy(&disk.go);
    return close_all(state);
}

#define with_disk(name) test_with(name, open_disk, close_disk)

static void
await_settle(void)
{
    struct timespec until;

    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += WORKER_LIMIT_S;
    assert_int_equal(sem_timedwait(&disk.begun, &until), 0);
}

static void
let_go(void)
{
    (void)sem_post(&disk.go);
}

/* WQ_EIO only with the sentence of the engine, in the worker's own thread. */
static int
add_one(struct worker *self)
{
    const wq_err err = wq_add_str(f.a, self->arg);

    return err && strcmp(wq_last_error(), "disk: gone") != 0 ? -1 : (int)err;
}

static struct worker *
start_add(char *key)
{
    struct worker *w = worker_start(add_one, key);

    worker_await_blocked(w);
    return w;
}

static char keys[][2] = {"k", "l", "m"};

/* ---- waiting ------------------------------------------------------------- */

TEST(add_returns_when_its_batch_is_durable)
{
    struct worker *w = start_add(keys[0]);

    await_settle();
    work_on(f.a, "k"); /* meanwhile, other batches run */
    worker_await_blocked(w);
    let_go();
    assert_err(worker_join(w), WQ_OK);
    assert_int_equal(disk.n, 1);
}

TEST(operation_that_promises_nothing_waits_for_no_settle)
{
    add(f.b, "k");
    work_on(f.a, "k");
    assert_none_ready(f.a);
    assert_int_equal(disk.n, 0);
}

TEST(adds_that_come_during_a_settle_share_the_next_one)
{
    struct worker *w[3];

    w[0] = start_add(keys[0]);
    await_settle();
    w[1] = start_add(keys[1]);
    w[2] = start_add(keys[2]);
    assert_int_equal(disk.runs, 3);
    let_go();
    assert_err(worker_join(w[0]), WQ_OK);
    await_settle();
    worker_await_all_blocked(w + 1, 2);
    let_go();
    assert_err(worker_join(w[1]), WQ_OK);
    assert_err(worker_join(w[2]), WQ_OK);
    assert_int_equal(disk.n, 2);
    assert_int_equal(disk.numbers[0], 1);
    assert_int_equal(disk.numbers[1], 3);
}

/* ---- large batches ------------------------------------------------------- */

/* The others are one batch, and have one settle. */
TEST(batch_that_is_settled_fast_is_durable_before_the_next_one_runs)
{
    struct worker *w[3];

    handle()->settle_ns = 0;
    w[0] = start_add(keys[0]);
    await_settle();
    w[1] = start_add(keys[1]);
    w[2] = start_add(keys[2]);
    assert_int_equal(disk.runs, 1);
    let_go();
    assert_err(worker_join(w[0]), WQ_OK);
    await_settle();
    let_go();
    assert_err(worker_join(w[1]), WQ_OK);
    assert_err(worker_join(w[2]), WQ_OK);
    assert_int_equal(disk.runs, 2);
    assert_int_equal(disk.n, 2);
}

/* ---- failures ------------------------------------------------------------ */

TEST(settle_that_fails_fails_for_all_that_it_was_for)
{
    struct worker *w[3];

    w[0] = start_add(keys[0]);
    await_settle();
    w[1] = start_add(keys[1]);
    w[2] = start_add(keys[2]);
    let_go();
    await_settle();
    assert_err(worker_join(w[0]), WQ_OK);
    disk.err = WQ_EIO;
    let_go();
    assert_err(worker_join(w[1]), WQ_EIO);
    assert_err(worker_join(w[2]), WQ_EIO);
    assert_int_equal(disk.n, 2);

    disk.err = WQ_OK; /* a repetition is a batch of its own */
    let_go();
    assert_err(wq_add_str(f.a, "l"), WQ_OK);
    assert_int_equal(disk.n, 3);
    assert_int_equal(wq_len(f.b), 3); /* the failed ones may have happened */
}

/* However fast it would be. */
TEST(batch_that_promises_nothing_repeats_no_failed_settle)
{
    disk.err = WQ_EIO;
    let_go();
    assert_err(wq_add_str(f.a, "k"), WQ_EIO);
    handle()->settle_ns = 0;
    work_on(f.a, "k");
    assert_int_equal(disk.n, 1);
}

/* A disk reports once that it could not write. */
TEST(thread_that_comes_after_its_settle_failed_knows_it)
{
    disk.err = WQ_EIO;
    let_go();
    assert_err(wq_add_str(f.a, "k"), WQ_EIO);
    const uint64_t batch = handle()->answered;
    disk.err = WQ_OK;
    let_go();
    assert_err(wq_add_str(f.a, "l"), WQ_OK);

    assert_err(wq__shared_settle(handle(), batch), WQ_EIO);
    assert_string_equal(wq_last_error(), "disk: gone");
    assert_err(wq__shared_settle(handle(), batch + 1), WQ_OK);
    assert_int_equal(disk.n, 2);
}

/* The hold goes on, and the key that was handed out with it goes back. */
TEST(finish_that_may_not_be_durable_hands_out_nothing)
{
    add(f.b, "k");
    add(f.b, "l");
    wq_item *item = take_key(f.a, "k"), *const k = item;

    disk.err = WQ_EIO;
    let_go();
    assert_err(wq_next_with(f.a, wq_result_retry(), 0, &item), WQ_EIO);
    assert_ptr_equal(item, k);
    assert_int_equal(wq_len(f.a), 1); /* any batch gives it back */
    work_on(f.b, "l");

    disk.err = WQ_OK;
    assert_err(wq_finish(f.a, item, wq_result_done()), WQ_OK);
}

WQ_TESTS(
    with_disk(add_returns_when_its_batch_is_durable),
    with_disk(operation_that_promises_nothing_waits_for_no_settle),
    with_disk(adds_that_come_during_a_settle_share_the_next_one),
    with_disk(batch_that_is_settled_fast_is_durable_before_the_next_one_runs),
    with_disk(settle_that_fails_fails_for_all_that_it_was_for),
    with_disk(batch_that_promises_nothing_repeats_no_failed_settle),
    with_disk(thread_that_comes_after_its_settle_failed_knows_it),
    with_disk(finish_that_may_not_be_durable_hands_out_nothing));
