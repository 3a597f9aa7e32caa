/* SPDX-License-Identifier: MIT */
/* test_parallelize.c: does wq_parallelize() work on every piece once, in
 * parallel, until it is cancelled? */
#include "fixture.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>

#include <wq/workers.h>

#include "support/checkpoint.h"
#include "support/worker.h"

enum { PIECES_MAX = 1000 };

struct job {
    atomic_uint       visits[PIECES_MAX];
    atomic_uint       total;
    unsigned          cancel_at; /* after so many visits; 0: never */
    atomic_uint       calls;     /* of cancelled() */
    struct checkpoint checkpoint;
    pthread_t         caller;
    atomic_bool       elsewhere; /* a piece ran in another thread */
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

    atomic_fetch_add(&job->calls, 1);
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
TEST(every_piece_is_visited_once)
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

    struct job job = {.caller = pthread_self()};
    assert_err(wq_parallelize(4, 100, visit, &job, NULL), WQ_OK);
    assert_visited_once(&job, 100);
}

/* P-03 */
TEST(bad_arguments_are_refused)
{
    const wq_allocator         incomplete = {.size = sizeof incomplete};
    const wq_parallel_options *none = NULL;
    struct job                 job = {.caller = pthread_self()};
    const struct {
        int                        workers;
        size_t                     pieces;
        const wq_parallel_options *options;
    } rows[] = {
        {0, 10, none},
        {-1, 10, none},
        {INT_MIN, 10, none},
        {0, 0, none},
        {1, 1, &(wq_parallel_options){.size = 0}},
        {1, 1, &(wq_parallel_options){.size = 9}},
        {1, 1, WQ_PARALLEL(.allocator = &incomplete)},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (wq_parallelize(rows[i].workers, rows[i].pieces, visit, &job,
                           rows[i].options) != WQ_EINVAL)
            fail_msg("row %zu", i);
    assert_err(wq_parallelize(1, 1, NULL, &job, NULL), WQ_EINVAL);
    assert_int_equal(job.total, 0);
}

static void
hold(void *ctx, size_t piece)
{
    checkpoint_pass(&((struct job *)ctx)->checkpoint);
    visit(ctx, piece);
}

static void
visit_when_all_are_there(void *ctx, size_t piece)
{
    struct job *job = ctx;

    tally_add(&job->checkpoint.begun, 1);
    if (tally_reaches(&job->checkpoint.begun, 4))
        visit(ctx, piece);
}

/* P-02: four pieces that wait for one another. */
TEST(pieces_run_at_the_same_time)
{
    struct job job = {.caller = pthread_self(), .checkpoint = CHECKPOINT_INIT};

    assert_err(wq_parallelize(4, 4, visit_when_all_are_there, &job, NULL),
               WQ_OK);
    assert_visited_once(&job, 4);
    assert_true(job.elsewhere);
}

/* P-02: no thread is needed for one chunk. */
TEST(caller_works_alone_on_one_chunk)
{
    struct job job = {.caller = pthread_self()};

    assert_err(wq_parallelize(8, 100, visit, &job, WQ_PARALLEL(.chunk = 100)),
               WQ_OK);
    assert_visited_once(&job, 100);
    assert_false(job.elsewhere);
}

/* P-02 PW-23: cancelled() is called before every piece. */
TEST(cancellation_ends_the_work_between_two_pieces)
{
    static const struct {
        const char *name;
        int         workers;
        size_t      pieces, chunk;
        unsigned    before, cancel_at; /* visits */
        wq_err      err;
        unsigned    visits, calls; /* calls of cancelled(); 0: any number */
    } rows[] = {
        {"never", 3, 100, 10, 0, 0, WQ_OK, 100, 100},
        {"in a chunk", 1, 1000, 100, 0, 5, WQ_EINTERRUPTED, 5, 6},
        {"before the first piece", 4, 1000, 0, 1, 1, WQ_EINTERRUPTED, 1, 0},
        {"after the last piece", 1, 10, 0, 0, 10, WQ_OK, 10, 10},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct job   job = {.caller = pthread_self(),
                            .total = rows[i].before,
                            .cancel_at = rows[i].cancel_at};
        const wq_err err = wq_parallelize(
            rows[i].workers, rows[i].pieces, visit, &job,
            WQ_PARALLEL(.chunk = rows[i].chunk, .cancelled = is_cancelled));

        if (err != rows[i].err || job.total != rows[i].visits ||
            (rows[i].calls && job.calls != rows[i].calls))
            fail_msg("cancelled %s: %s, %u visits, %u calls", rows[i].name,
                     wq_err_name(err), job.total, job.calls);
    }
}

/* P-02 */
TEST(without_pieces_nothing_is_called)
{
    struct job job = {.caller = pthread_self(), .cancel_at = 1};

    assert_err(wq_parallelize(4, 0, visit, &job,
                              WQ_PARALLEL(.cancelled = is_cancelled)),
               WQ_OK);
    assert_int_equal(job.total, 0);
    assert_int_equal(job.calls, 0);
}

static void
visit_in_parallel(void *ctx, size_t piece)
{
    (void)piece;
    if (wq_parallelize(3, 10, visit, ctx, NULL) != WQ_OK)
        atomic_fetch_add(&((struct job *)ctx)->total, 1000000);
}

/* P-02 */
TEST(piece_may_call_parallelize)
{
    struct job job = {.caller = pthread_self()};

    assert_err(wq_parallelize(3, 10, visit_in_parallel, &job, NULL), WQ_OK);
    assert_int_equal(job.total, 100);
}

static int
run_held_pieces(struct worker *self)
{
    struct job  *job = self->arg;
    const wq_err err = wq_parallelize(2, 2, hold, job, NULL);

    tally_add(&job->checkpoint.ended, 100);
    return (int)err;
}

/* P-02 */
TEST(parallelize_blocks_until_the_last_piece_has_ended)
{
    struct job     job = {.checkpoint = CHECKPOINT_INIT};
    struct worker *w = worker_start(run_held_pieces, &job);

    tally_await(&job.checkpoint.begun, 2);
    tally_add(&job.checkpoint.allowed, 1);
    tally_await(&job.checkpoint.ended, 1);
    assert_true(tally_read(&job.checkpoint.ended) < 100);
    tally_add(&job.checkpoint.allowed, 1);
    assert_err(worker_join(w), WQ_OK);
    assert_int_equal(job.total, 2);
}

WQ_TESTS(test(every_piece_is_visited_once), test(bad_arguments_are_refused),
         test(pieces_run_at_the_same_time),
         test(caller_works_alone_on_one_chunk),
         test(cancellation_ends_the_work_between_two_pieces),
         test(without_pieces_nothing_is_called),
         test(piece_may_call_parallelize),
         test(parallelize_blocks_until_the_last_piece_has_ended));
