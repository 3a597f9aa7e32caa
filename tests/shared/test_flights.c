/* SPDX-License-Identifier: MIT */
/* test_flights.c: when do two batches fly, and what if one fails? (S-28)
 *
 * The engine of handle a writes down which batches are begun (b), run (r) and
 * reconciled (c), and how many operations they have. The first run() waits until
 * all other threads of the test have posted. Nine threads are a crowd, and three
 * of them a batch.
 */
#include "shared/fixture.h"

#include <wq/backend.h>

#include "shared/batch.h"

enum { THREADS = 9, MOST = 16 };

static struct {
    const struct wq__engine_ops *inner; /* of the memory store */
    struct wq__engine_ops        ops;
    sem_t                        go;
    char                         log[200];
    bool                         refuses; /* begin() is false */
    unsigned                     refused; /* so is this one */
    unsigned                     begun;
    int64_t                      begins_ns; /* how long each begin() takes */
    unsigned                     forgets;   /* the run() that is forgetful */
    unsigned                     fails;     /* the run() that says why not */
    unsigned                     runs;
} calls;

static void
note(char what, const struct wq__op *batch)
{
    const size_t at = strlen(calls.log);
    size_t       n = 0;

    for (; batch; batch = batch->next)
        n++;
    (void)snprintf(calls.log + at, sizeof calls.log - at, "%s%c%zu",
                   at ? " " : "", what, n);
}

static bool
begin_and_note(struct wq__engine *e, struct wq__op *batch)
{
    (void)e;
    note('b', batch);
    if (calls.begins_ns)
        pass(calls.begins_ns);
    return !calls.refuses && ++calls.begun != calls.refused;
}

static wq_err
run_and_note(struct wq__engine *e, struct wq__op *batch,
             struct wq__pulse *pulse)
{
    note('r', batch);
    if (calls.runs++ == 0)
        while (sem_wait(&calls.go))
            ;
    if (calls.runs == calls.forgets) {
        e->forgetful = true;
        return WQ_EAWAY;
    }
    if (calls.runs == calls.fails)
        return wq_fail(WQ_EIO, "disk: no space left");
    return calls.inner->run(e, batch, pulse);
}

static wq_err
reconcile_and_note(struct wq__engine *e, const struct wq__known *known,
                   size_t n, bool *lost)
{
    note('c', NULL);
    return calls.inner->reconcile(e, known, n, lost);
}

static void
note_calls(void)
{
    memset(&calls, 0, sizeof calls);
    assert_int_equal(sem_init(&calls.go, 0, 0), 0);
    calls.inner = f.engines[0]->ops;
    calls.ops = *calls.inner;
    calls.ops.begin = begin_and_note;
    calls.ops.run = run_and_note;
    calls.ops.reconcile = reconcile_and_note;
    f.engines[0]->ops = &calls.ops;
}

/* From now on the handle has known nine threads. */
static void
pretend_crowd(void)
{
    struct wq__shared *s = wq__shared_of(f.a);

    s->crowd = s->begins = true;
    s->threads = THREADS;
}

enum { OTHER_SENTENCE = 99 };

/* A call that succeeds changes no sentence, also if its thread leads on, and a
 * batch of others fails. */
static int
add_one(struct worker *self)
{
    (void)wq_fail(WQ_EINVAL, "before");
    const wq_err err = wq_add_str(f.a, self->arg);

    return !err && strcmp(wq_last_error(), "before") != 0 ? OTHER_SENTENCE
                                                          : (int)err;
}

/* So many threads add a key each; their results. */
static void
add_at_once(size_t n, wq_err out[MOST])
{
    static char    keys[MOST][2];
    struct worker *w[MOST];

    for (size_t i = 0; i < n; i++) {
        keys[i][0] = (char)('A' + i);
        w[i] = worker_start(add_one, keys[i]);
        worker_await_blocked(w[i]);
    }
    (void)sem_post(&calls.go);
    for (size_t i = 0; i < n; i++)
        out[i] = (wq_err)worker_join(w[i]);
    f.engines[0]->ops = calls.inner;
    (void)sem_destroy(&calls.go);
}

/* Posts of the second batch fail with `err`, all others succeed. */
static void
expect_errors(const wq_err err, const wq_err got[THREADS])
{
    for (size_t i = 0; i < THREADS; i++)
        assert_err(got[i], i >= 1 && i <= 3 ? err : WQ_OK);
}

/* The last batch follows: two threads are a crowd in debug builds only. */
static void
expect_begin(const char *expected)
{
    calls.log[strlen(expected)] = '\0';
    assert_string_equal(calls.log, expected);
}

/* ---- when ----------------------------------------------------------------- */

TEST(two_batches_of_a_crowd_fly)
{
    wq_err got[MOST];

    note_calls();
    pretend_crowd();
    add_at_once(THREADS, got);
    assert_string_equal(calls.log, "b1 r1 b3 b3 r3 b2 r3 r2");
    expect_errors(WQ_OK, got);
    assert_int_equal(wq_len(f.b), THREADS);
}

TEST(few_threads_are_no_crowd)
{
    wq_err got[MOST];
    char   expected[20];

    note_calls();
    add_at_once(WQ__CROWD - 1, got);
    (void)snprintf(expected, sizeof expected, "r1 r%d", WQ__CROWD - 2);
    assert_string_equal(calls.log, expected);
}

TEST(many_threads_are_a_crowd)
{
    enum { REST = WQ__CROWD - 1 };
    wq_err got[MOST];
    char   expected[20];

    note_calls();
    add_at_once(WQ__CROWD, got);
    (void)snprintf(expected, sizeof expected, "r1 b%d r%d", REST, REST);
    assert_string_equal(calls.log, expected);
    assert_true(wq__shared_of(f.a)->begins);
}

TEST(crowd_that_goes_away_is_forgotten)
{
    struct wq__shared *s = wq__shared_of(f.a);
    wq_err             got[MOST];

    note_calls();
    pretend_crowd();
    add_at_once(1, got);
    assert_true(s->crowd);
    f.engines[0]->ops = &calls.ops;
    for (int i = 0; i < 40; i++)
        add(f.a, "k");
    f.engines[0]->ops = calls.inner;
    assert_false(s->crowd);
}

/* Then a crowd is not divided: its batches would run one after the other. */
TEST(engine_that_begins_no_batch_gets_large_ones)
{
    wq_err got[MOST];

    note_calls();
    pretend_crowd();
    calls.refuses = true;
    add_at_once(THREADS, got);
    assert_string_equal(calls.log, "b1 r1 b8 r8");
    expect_errors(WQ_OK, got);
}

/* ---- failures ------------------------------------------------------------- */

/* The next batch, which is under way, lands before the handle reconciles, and no
 * other takes off before that. */
static void
expect_doubt(enum store_fault fault)
{
    wq_err got[MOST];

    note_calls();
    pretend_crowd();
    plan_at(0, fault, 2, STORE_RUN);
    add_at_once(THREADS, got);
    expect_begin("b1 r1 b3 b3 r3 r3 c0");
    expect_errors(WQ_EIO, got);
}

TEST(batch_in_doubt_lets_the_next_one_land_and_none_take_off)
{
    expect_doubt(STORE_EIO_BEFORE);
    assert_int_equal(wq_len(f.b), THREADS - 3);
}

TEST(batch_in_doubt_may_have_happened)
{
    expect_doubt(STORE_EIO_AFTER);
    assert_int_equal(wq_len(f.b), THREADS);
}

TEST(batch_that_has_not_happened_fails_alone)
{
    wq_err got[MOST];

    note_calls();
    pretend_crowd();
    plan_at(0, STORE_AWAY, 2, STORE_RUN);
    add_at_once(THREADS, got);
    assert_string_equal(calls.log, "b1 r1 b3 b3 r3 b2 r3 r2");
    expect_errors(WQ_EAWAY, got);
}

/* E-03 */
TEST(leader_of_a_batch_of_others_that_fails_knows_nothing_of_it)
{
    wq_err got[MOST];

    note_calls();
    pretend_crowd();
    calls.fails = 3;
    add_at_once(THREADS, got);
    for (size_t i = 0; i < THREADS; i++)
        assert_err(got[i], i >= 4 && i <= 6 ? WQ_EIO : WQ_OK);
}

/* The keys that the next batch has got must be known when the handle reconciles. */
TEST(batch_runs_again_after_the_next_one_has_landed)
{
    wq_err got[MOST];

    note_calls();
    pretend_crowd();
    calls.forgets = 2;
    add_at_once(THREADS, got);
    expect_begin("b1 r1 b3 b3 r3 r3 c0 r3");
    expect_errors(WQ_OK, got);
    assert_int_equal(wq_len(f.b), THREADS);
}

/* It has taken off, but the engine has not begun it: nothing of it may happen
 * before the handle has reconciled. */
TEST(batch_that_was_not_begun_waits_until_the_doubt_is_over)
{
    wq_err got[MOST];

    note_calls();
    pretend_crowd();
    calls.refused = 3;
    plan_at(0, STORE_EIO_AFTER, 2, STORE_RUN);
    add_at_once(THREADS, got);
    expect_begin("b1 r1 b3 b3 r3 c0 r3");
    expect_errors(WQ_EIO, got);
}

/* Holds that are not certain any more put the handle in doubt. */
TEST(no_batch_takes_off_after_the_lease_has_ended)
{
    wq_err got[MOST];

    note_calls();
    pretend_crowd();
    calls.begins_ns = LEASE;
    add_at_once(THREADS, got);
    assert_non_null(strstr(calls.log, "b1 r1 c0 b3 r3 c0 b"));
    expect_errors(WQ_OK, got);
}

WQ_TESTS(
    with_handles(two_batches_of_a_crowd_fly),
    with_handles(few_threads_are_no_crowd),
    with_handles(many_threads_are_a_crowd),
    with_handles(crowd_that_goes_away_is_forgotten),
    with_handles(engine_that_begins_no_batch_gets_large_ones),
    with_handles(batch_in_doubt_lets_the_next_one_land_and_none_take_off),
    with_handles(batch_in_doubt_may_have_happened),
    with_handles(batch_that_has_not_happened_fails_alone),
    with_handles(leader_of_a_batch_of_others_that_fails_knows_nothing_of_it),
    with_handles(batch_runs_again_after_the_next_one_has_landed),
    with_handles(batch_that_was_not_begun_waits_until_the_doubt_is_over),
    with_leases(no_batch_takes_off_after_the_lease_has_ended));
