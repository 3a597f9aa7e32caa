/* SPDX-License-Identifier: MIT */
/* test_parallelize.c: is every piece worked on once, in parallel, until told to
 * stop? */
#include "fixture.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>

#include <wq/workers.h>

#include "support/stage.h"

enum { PIECES_MAX = 1000 };

struct job {
    atomic_uint  visits[PIECES_MAX];
    atomic_uint  total;
    unsigned     cancel_at; /* after so many visits; 0: never */
    atomic_uint  asked;     /* how often cancelled() was */
    struct stage stage;
    pthread_t    caller;
    atomic_bool elsewhere; /* a piece ran in another thread than the caller's */
};

static void
visit(void *ctx, size_t piece)
{
    struct job *job = ctx;

    if (piece < PIECES_MAX)
        atomic_fetch_add(&job->visits[piece], 1);
    atomic_fetch_add(&job->total, 1);
    if (!pthread_equal(pthread_self(), job->caller))
        job->elsewhere = true;
}

static bool
is_cancelled(void *ctx)
{
    struct job *job = ctx;

    atomic_fetch_add(&job->asked, 1);
    return job->cancel_at && job->total >= job->cancel_at;
}

static void
assert_visited_once(struct job *job, size_t pieces)
{
    for (size_t i = 0; i < pieces; i++)
        if (job->visits[i] != 1)
            fail_msg("piece %zu: expected 1 visit, got %u", i, job->visits[i]);
    assert_int_equal(job->total, pieces);
}

/* P-01 P-02 */
TEST(every_piece_is_visited_exactly_once)
{
    static const struct {
        size_t pieces;
        int    workers;
        size_t chunk;
    } rows[] = {
        {1000, 10, 1},
        {1000, 10, 10},
        {1000, 10, 100},
        {999, 10, 13},
        {1, 10, 1},
        {7, 3, 100},
        {1000, 1, 0},
        {10, INT_MAX, 1},
        {10, 10, SIZE_MAX},
        {9, 2, 0},
        {1000, 3, SIZE_MAX / 2},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct job job = {.caller = pthread_self()};

        assert_err(wq_parallelize(rows[i].workers, rows[i].pieces, visit, &job,
                                  WQ_PARALLEL(.chunk = rows[i].chunk)),
                   WQ_OK);
        assert_visited_once(&job, rows[i].pieces);
    }
}

/* P-02: the options may be left out. */
TEST(no_options_are_the_defaults)
{
    struct job job = {.caller = pthread_self()};

    assert_err(wq_parallelize(4, 100, visit, &job, NULL), WQ_OK);
    assert_visited_once(&job, 100);
}

/* P-02 */
TEST(no_pieces_no_calls)
{
    struct job job = {.caller = pthread_self(), .cancel_at = 1};

    assert_err(wq_parallelize(4, 0, visit, &job,
                              WQ_PARALLEL(.cancelled = is_cancelled)),
               WQ_OK);
    assert_int_equal(job.total, 0);
    assert_int_equal(job.asked, 0);
}

/* P-03 */
TEST(fewer_than_one_worker_is_refused)
{
    struct job job = {.caller = pthread_self()};

    assert_err(wq_parallelize(0, 10, visit, &job, NULL), WQ_EINVAL);
    assert_err(wq_parallelize(-1, 10, visit, &job, NULL), WQ_EINVAL);
    assert_err(wq_parallelize(INT_MIN, 10, visit, &job, NULL), WQ_EINVAL);
    assert_err(wq_parallelize(0, 0, visit, &job, NULL), WQ_EINVAL);
    assert_int_equal(job.total, 0);
}

/* P-03 */
TEST(bad_arguments_are_refused)
{
    struct job         job = {.caller = pthread_self()};
    const wq_allocator half = {.size = sizeof half};

    assert_err(wq_parallelize(1, 1, NULL, &job, NULL), WQ_EINVAL);
    assert_err(
        wq_parallelize(1, 1, visit, &job, &(wq_parallel_options){.size = 0}),
        WQ_EINVAL);
    assert_err(
        wq_parallelize(1, 1, visit, &job, &(wq_parallel_options){.size = 9}),
        WQ_EINVAL);
    assert_err(
        wq_parallelize(1, 1, visit, &job, WQ_PARALLEL(.allocator = &half)),
        WQ_EINVAL);
    assert_int_equal(job.total, 0);
}

static void
hold(void *ctx, size_t piece)
{
    stage_pass(&((struct job *)ctx)->stage);
    visit(ctx, piece);
}

static void
visit_when_all_are_there(void *ctx, size_t piece)
{
    struct job *job = ctx;

    tally_add(&job->stage.begun, 1);
    if (tally_reaches(&job->stage.begun, 4))
        visit(ctx, piece);
}

/* P-02: four pieces that wait for one another. */
TEST(pieces_run_at_the_same_time)
{
    struct job job = {.caller = pthread_self(), .stage = STAGE_INIT};

    assert_err(wq_parallelize(4, 4, visit_when_all_are_there, &job, NULL),
               WQ_OK);
    assert_visited_once(&job, 4);
    assert_true(job.elsewhere);
}

/* P-02: no thread is needed for one chunk. */
TEST(one_chunk_is_done_by_the_caller)
{
    struct job job = {.caller = pthread_self()};

    assert_err(wq_parallelize(8, 100, visit, &job, WQ_PARALLEL(.chunk = 100)),
               WQ_OK);
    assert_visited_once(&job, 100);
    assert_false(job.elsewhere);
}

/* P-02 */
TEST(cancellation_is_asked_before_every_piece)
{
    struct job job = {.caller = pthread_self()};

    assert_err(
        wq_parallelize(3, 100, visit, &job,
                       WQ_PARALLEL(.chunk = 10, .cancelled = is_cancelled)),
        WQ_OK);
    assert_int_equal(job.asked, 100);
}

/* P-02 PW-23 */
TEST(cancelled_in_the_middle_of_a_chunk_begins_no_further_piece)
{
    struct job job = {.caller = pthread_self(), .cancel_at = 5};

    assert_err(
        wq_parallelize(1, 1000, visit, &job,
                       WQ_PARALLEL(.chunk = 100, .cancelled = is_cancelled)),
        WQ_EINTERRUPTED);
    assert_int_equal(job.total, 5);
}

/* PW-23 */
TEST(cancelled_from_the_beginning_does_nothing)
{
    struct job job = {.caller = pthread_self(), .cancel_at = 1, .total = 1};

    assert_err(wq_parallelize(4, 1000, visit, &job,
                              WQ_PARALLEL(.cancelled = is_cancelled)),
               WQ_EINTERRUPTED);
    assert_int_equal(job.total, 1);
}

/* PW-23: too late to leave anything undone. */
TEST(cancelled_after_the_last_piece_is_a_success)
{
    struct job job = {.caller = pthread_self(), .cancel_at = 10};

    assert_err(wq_parallelize(1, 10, visit, &job,
                              WQ_PARALLEL(.cancelled = is_cancelled)),
               WQ_OK);
    assert_visited_once(&job, 10);
}

static void
visit_in_parallel(void *ctx, size_t piece)
{
    (void)piece;
    if (wq_parallelize(3, 10, visit, ctx, NULL) != WQ_OK)
        atomic_fetch_add(&((struct job *)ctx)->total, 1000000);
}

/* P-02 */
TEST(piece_may_itself_be_done_in_parallel)
{
    struct job job = {.caller = pthread_self()};

    assert_err(wq_parallelize(3, 10, visit_in_parallel, &job, NULL), WQ_OK);
    assert_int_equal(job.total, 100);
}

struct call {
    struct job *job;
    wq_err      err;
};

static void *
call_with_stage(void *arg)
{
    struct call *call = arg;

    call->job->caller = pthread_self();
    call->err = wq_parallelize(2, 2, hold, call->job, NULL);
    tally_add(&call->job->stage.ended, 100);
    return NULL;
}

/* P-02 */
TEST(blocks_until_the_last_piece_has_ended)
{
    struct job  job = {.stage = STAGE_INIT};
    struct call call = {.job = &job};
    pthread_t   thread;

    assert_int_equal(pthread_create(&thread, NULL, call_with_stage, &call), 0);
    tally_await(&job.stage.begun, 2);
    tally_add(&job.stage.allowed, 1);
    tally_await(&job.stage.ended, 1);
    assert_true(tally_read(&job.stage.ended) < 100);
    tally_add(&job.stage.allowed, 1);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_err(call.err, WQ_OK);
    assert_int_equal(job.total, 2);
}

WQ_TESTS(test(every_piece_is_visited_exactly_once),
         test(no_options_are_the_defaults), test(no_pieces_no_calls),
         test(fewer_than_one_worker_is_refused),
         test(bad_arguments_are_refused), test(pieces_run_at_the_same_time),
         test(one_chunk_is_done_by_the_caller),
         test(cancellation_is_asked_before_every_piece),
         test(cancelled_in_the_middle_of_a_chunk_begins_no_further_piece),
         test(cancelled_from_the_beginning_does_nothing),
         test(cancelled_after_the_last_piece_is_a_success),
         test(piece_may_itself_be_done_in_parallel),
         test(blocks_until_the_last_piece_has_ended));
