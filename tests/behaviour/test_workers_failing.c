/* SPDX-License-Identifier: MIT */
/* test_workers_failing.c: what does a pool do with a key when its queue cannot
 * end the loan, or loses it?
 *
 * The queue is one in memory that stands for a store: some of its verbs return
 * an error as often as the test wants, and change nothing then.
 */
#include "pool.h"

#include <wq/backend.h>
#include <wq/inspect.h>

#define LEN(array) (sizeof(array) / sizeof *(array))

/* Which verbs fail. */
enum fails {
    FAILS_FINISH, /* finish and next_with: the backend has them */
    FAILS_DONE,   /* done; it has no finish and no next_with */
    FAILS_ADDS,   /* the adds of a key that is HELD; likewise */
};

static struct {
    const wq_backend *memory; /* the verbs of the queue in memory */
    wq_backend        verbs;  /* what the pool sees */
    enum fails        fails;
    atomic_int        failures;      /* so many attempts from now on fail */
    wq_err            err;           /* with this */
    struct tally      attempts;      /* to end a loan, or to add its key */
    atomic_llong      hold_until_ns; /* on the fake clock */
    atomic_int        looks;         /* calls of hold_left */
} store;

/* WQ_OK: the verb does its work. */
static wq_err
answer(enum fails verb)
{
    wq_err err = WQ_OK;

    if (store.fails != verb)
        return WQ_OK;
    if (atomic_load(&store.failures) > 0) {
        atomic_fetch_sub(&store.failures, 1);
        err = store.err;
    }
    tally_add(&store.attempts, 1);
    return err;
}

static wq_err
store_finish(wq_queue *q, wq_item **items, const wq_result *results,
             wq_err *errs, size_t n)
{
    const wq_err err = answer(FAILS_FINISH);

    if (!err)
        return store.memory->finish(q, items, results, errs, n);
    if (err == WQ_ELOST)
        items[0] = NULL;
    return err;
}

static wq_err
store_next_with(wq_queue *q, wq_result result, int64_t timeout_ns,
                wq_item **item)
{
    const wq_err err = answer(FAILS_FINISH);

    if (!err)
        return store.memory->next_with(q, result, timeout_ns, item);
    if (err == WQ_ELOST)
        *item = NULL;
    return err;
}

static wq_err
store_done(wq_queue *q, wq_item *item)
{
    const wq_err err = answer(FAILS_DONE);

    return err ? err : store.memory->done(q, item);
}

static wq_err
store_add(wq_queue *q, wq_key key)
{
    wq_key_info  info = {.size = sizeof info};
    const wq_err err =
        wq_read_key(q, key, &info) == WQ_OK && info.states & WQ_STATE_HELD
            ? answer(FAILS_ADDS)
            : WQ_OK;

    return err ? err : store.memory->add(q, key);
}

static wq_err
store_add_after(wq_queue *q, wq_key key, int64_t delay_ns)
{
    const wq_err err = answer(FAILS_ADDS);

    return err ? err : store.memory->add_after(q, key, delay_ns);
}

static wq_err
store_add_rate_limited(wq_queue *q, wq_key key)
{
    const wq_err err = answer(FAILS_ADDS);

    return err ? err : store.memory->add_rate_limited(q, key);
}

static int64_t
store_hold_left(wq_queue *q, const wq_item *item)
{
    const int64_t left = store.hold_until_ns - wq_clock_now(pool.t->clock);

    (void)q;
    atomic_fetch_add(&store.looks, 1);
    if (!item->key.len)
        pool.wrong = __LINE__;
    return store.hold_until_ns == WQ_FOREVER ? WQ_FOREVER : left > 0 ? left : 0;
}

/* Put such verbs before the queue of the test. */
static void
use_store(enum fails fails, int failures, wq_err err)
{
    store.memory = pool.q->backend;
    store.verbs = *store.memory;
    store.verbs.finish = fails == FAILS_FINISH ? store_finish : NULL;
    store.verbs.next_with = fails == FAILS_FINISH ? store_next_with : NULL;
    store.verbs.next = NULL;
    store.verbs.done = store_done;
    store.verbs.add = store_add;
    store.verbs.add_after = store_add_after;
    store.verbs.add_rate_limited = store_add_rate_limited;
    store.fails = fails;
    store.failures = failures;
    store.err = err;
    store.attempts = (struct tally)TALLY_INIT;
    assert_err(wq_backend_init(pool.q, &store.verbs), WQ_OK);
}

static unsigned
states_of(const char *key)
{
    wq_key_info info = {.size = sizeof info};

    return wq_read_key(pool.q, wq_str(key), &info) == WQ_OK ? info.states : 0;
}

/* The first run has the result of the test, the second one is done. */
static wq_result
answer_once(void *ctx, const wq_item *item)
{
    (void)handle(ctx, item);
    return begun() == 1 ? pool.result : wq_result_done();
}

static void
start_on_store(enum fails fails, int failures, wq_err err)
{
    wq_destroy(pool.q); /* the last one of the test */
    pool.q = pool.t->q =
        open_queue(WQ_CONFIG(.limiter = wq_limiter_exponential(1, 1)));
    use_store(fails, failures, err);
    pool.handlers = (struct checkpoint)CHECKPOINT_INIT;
    let_all();
    start(
        WQ_WORKERS(.threads = 1, .handler = answer_once, .on_drop = note_drop));
    add_keys("foo");
}

static const enum fails each_way[] = {FAILS_FINISH, FAILS_DONE, FAILS_ADDS};

/* Do results of this kind add the key again? */
static bool
runs_again(wq_result result)
{
    return result.outcome == WQ_RESULT_RETRY ||
           result.outcome == WQ_RESULT_AFTER ||
           result.outcome == WQ_RESULT_BACK;
}

/* "foo" runs as its result says although the store fails `n` times. */
static void
assert_runs_as_asked(enum fails fails, int n, wq_err err)
{
    const unsigned runs = runs_again(pool.result) ? 2 : 1;
    const unsigned loans = fails == FAILS_ADDS ? runs - 1 : runs;

    start_on_store(fails, n, err);
    tally_await(&store.attempts, (unsigned)n + loans);
    await_begun(runs);
    await_idle();
    end();
    assert_int_equal(begun(), runs);
    assert_int_equal(pool.last.errors, n);
    assert_int_equal(pool.last.done, 1);
    assert_int_equal(pool.last.retried + pool.last.delayed + pool.last.returned,
                     runs - 1);
    assert_int_equal(pool.last.dropped + pool.last.lost, 0);
    assert_int_equal(tally_read(&pool.drops), 0);
    assert_int_equal(states_of("foo"), 0);
}

/* PW-20 PW-21 */
TEST(key_runs_as_its_result_says_although_the_store_fails)
{
    const wq_result results[] = {wq_result_done(), wq_result_retry(),
                                 wq_result_after(0), wq_result_after(1),
                                 wq_result_back()};
    static const struct {
        wq_err err;
        int    n;
    } rows[] = {{WQ_EIO, 1}, {WQ_EAWAY, 3}, {WQ_ENOMEM, 2}};

    for (size_t way = 0; way < LEN(each_way); way++)
        for (size_t r = 0; r < LEN(results); r++)
            for (size_t i = 0; i < LEN(rows); i++) {
                pool.result = results[r];
                if (each_way[way] == FAILS_ADDS && !runs_again(pool.result))
                    continue;
                assert_runs_as_asked(each_way[way], rows[i].n, rows[i].err);
            }
}

/* PW-20: a stop ends the attempts. The hold ends with the process, so the key
 * is not dropped. */
TEST(key_of_a_store_that_never_answers_is_left_on_loan)
{
    static const wq_err errors[] = {WQ_EIO, WQ_EAWAY};
    const wq_result     results[] = {wq_result_done(), wq_result_retry(),
                                     wq_result_drop(), wq_result_back()};

    for (size_t way = 0; way < 2; way++)
        for (size_t r = 0; r < LEN(results); r++)
            for (size_t i = 0; i < LEN(errors); i++) {
                pool.result = results[r];
                start_on_store(each_way[way], 1000000, errors[i]);
                tally_await(&store.attempts, 2);
                end();
                assert_int_equal(tally_read(&pool.drops), 0);
                assert_int_equal(pool.last.errors, tally_read(&store.attempts));
                assert_int_equal(pool.last.done + pool.last.dropped +
                                     pool.last.lost + pool.last.retried +
                                     pool.last.returned,
                                 0);
                assert_true(states_of("foo") & WQ_STATE_HELD);
                assert_int_equal(begun(), 1);
            }
}

/* PW-20 */
TEST(key_that_a_queue_never_takes_back_is_dropped_by_a_stop)
{
    pool.result = wq_result_retry();
    start_on_store(FAILS_FINISH, 1000000, WQ_ENOMEM);
    tally_await(&store.attempts, 3);
    assert_int_equal(tally_read(&pool.drops), 0);
    end();
    assert_int_equal(tally_read(&pool.drops), 1);
    assert_err(pool.drop_why, WQ_ENOMEM);
    assert_int_equal(pool.last.dropped, 1);
}

/* PW-20 PW-21: it is no drop, and the worker goes on. */
TEST(key_that_was_lost_is_counted_and_not_dropped)
{
    const wq_result results[] = {wq_result_done(), wq_result_retry(),
                                 wq_result_drop(), wq_result_bury(),
                                 wq_result_back(), wq_result_after(1)};

    for (size_t way = 0; way < 2; way++)
        for (size_t r = 0; r < LEN(results); r++) {
            pool.result = results[r];
            start_on_store(each_way[way], 1, WQ_ELOST);
            tally_await(&store.attempts, 1);
            add_keys("bar");
            await_begun(2);
            await_idle();
            end();
            assert_int_equal(tally_read(&pool.drops), 0);
            assert_int_equal(pool.last.lost, 1);
            assert_int_equal(pool.last.done, 1); /* bar */
            assert_int_equal(pool.last.errors + pool.last.dropped +
                                 pool.last.retried + pool.last.delayed +
                                 pool.last.returned + pool.last.buried,
                             0);
            assert_int_equal(begun(), 2);
        }
}

/* S-04: the loop of a user goes on, too. */
TEST(next_with_goes_on_to_the_get_after_a_loss)
{
    for (size_t way = 0; way < 2; way++) {
        wq_item *item = NULL;

        use_queue(NULL);
        use_store(each_way[way], 1, WQ_ELOST);
        add_keys("foo bar");
        assert_err(wq_next_with(pool.q, wq_result_done(), 0, &item), WQ_OK);
        assert_err(wq_next_with(pool.q, wq_result_done(), 0, &item), WQ_OK);
        assert_key(item, "bar");
        store.failures = 1;
        assert_err(wq_next_with(pool.q, wq_result_retry(), 0, &item),
                   WQ_ETIMEDOUT);
        assert_null(item);
    }
}

/* PW-14 PW-20 */
TEST(resize_does_not_wait_for_a_worker_that_repeats)
{
    start_on_store(FAILS_FINISH, 1000000, WQ_EAWAY);
    tally_await(&store.attempts, 2);
    resize(0);
    assert_threads(1, 1);
    store.failures = 0; /* the store is back */
    await_threads(0);
    assert_int_equal(pool_stats().done, 1);
}

/* PW-21: a queue that keeps DEAD keys. */
static wq_err
bury(wq_queue *q, wq_item **items, const wq_result *results, wq_err *errs,
     size_t n)
{
    wq_result done = wq_result_done();

    if (n != 1 || results[0].outcome != WQ_RESULT_BURY)
        pool.wrong = __LINE__;
    return store.memory->finish(q, items, &done, errs, n);
}

/* PW-21 PQ-47 */
TEST(key_that_is_buried_is_not_dropped)
{
    pool.result = wq_result_bury();
    let_all();
    use_store(FAILS_FINISH, 0, WQ_OK);
    store.verbs.finish = bury;
    start(WQ_WORKERS(.threads = 1, .on_drop = note_drop));
    add_keys("foo");
    await_begun(1);
    await_idle();
    end();
    assert_int_equal(pool.last.buried, 1);
    assert_int_equal(pool.last.dropped, 0);
    assert_int_equal(tally_read(&pool.drops), 0);
}

/* ---- on_drop ------------------------------------------------------------- */

static struct {
    char       key[1001]; /* what the test adds */
    atomic_int refused;   /* allocations of this size, from now on */
    atomic_int given;     /* bytes that were not freed */
} copied;

/* The key is a copy: it is not HELD any more, and may be used again. */
static void
check_drop(void *ctx, wq_key key, unsigned retries, wq_err why)
{
    const size_t len = strlen(copied.key);

    if (key.len != len || strcmp(key.data, copied.key) != 0 ||
        states_of(copied.key) & WQ_STATE_HELD || wq_add(pool.q, key) ||
        wq_remove(pool.q, key))
        pool.wrong = __LINE__;
    note_drop(ctx, key, retries, why);
}

static void *
alloc_copy(void *ctx, size_t n)
{
    (void)ctx;
    if (n == strlen(copied.key) + 1 && atomic_fetch_sub(&copied.refused, 1) > 0)
        return NULL;
    atomic_fetch_add(&copied.given, (int)n);
    return malloc(n);
}

static void
free_copy(void *ctx, void *p, size_t n)
{
    (void)ctx;
    atomic_fetch_sub(&copied.given, (int)n);
    free(p);
}

/* PW-07 PW-08: without memory for the copy the worker tries again. */
TEST(dropped_key_is_reported_as_a_copy_after_its_loan)
{
    const wq_allocator mem = {
        .size = sizeof mem, .alloc = alloc_copy, .free = free_copy};
    static const size_t lengths[] = {1, 255, 256, 1000};
    const wq_result     results[] = {wq_result_drop(), wq_result_bury()};

    for (size_t i = 0; i < LEN(lengths); i++)
        for (size_t r = 0; r < LEN(results); r++) {
            const bool allocates = lengths[i] > 255;

            use_queue(NULL);
            pool.result = results[r];
            pool.drops = (struct tally)TALLY_INIT;
            let_all();
            memset(copied.key, 'k', lengths[i]);
            copied.key[lengths[i]] = '\0';
            copied.refused = 2;
            start(WQ_WORKERS(.threads = 1, .on_drop = check_drop,
                             .allocator = &mem));
            add_keys(copied.key);
            tally_await(&pool.drops, 1);
            end();
            assert_int_equal(tally_read(&pool.drops), 1);
            assert_err(pool.drop_why, WQ_EDROPPED);
            assert_int_equal(pool.last.errors, allocates ? 2 : 0);
            assert_int_equal(pool.last.dropped, 1);
            assert_int_equal(copied.given, 0);
        }
}

/* ---- on_lost ------------------------------------------------------------- */

static void
note_lost(void *ctx, const wq_item *item)
{
    checkpoint_pass(&pool.reports);
    /* The handler may have returned meanwhile; the key is still valid. */
    if (ctx != &pool || item->key.len != 3 ||
        wq_workers_stop(pool.workers) != WQ_ESTATE)
        pool.wrong = __LINE__;
}

/* Holds are certain until `hold_until_ns`. */
static void
start_with_holds(int64_t hold_until_ns)
{
    use_store(FAILS_FINISH, 0, WQ_OK);
    store.verbs.hold_left = store_hold_left;
    store.hold_until_ns = hold_until_ns;
    store.looks = 0;
    start(
        WQ_WORKERS(.threads = 2, .on_lost = note_lost, .clock = pool.t->clock));
}

/* PW-27 */
TEST(handler_whose_hold_ends_is_told_once)
{
    start_with_holds(2500 * MS);
    let_reports();
    add_keys("foo");
    await_begun(1);
    for (int i = 0; i < 2; i++) { /* at most 1 s at a time */
        await_sleepers(pool.t, 1);
        pass(1000 * MS);
    }
    await_sleepers(pool.t, 1);
    store.hold_until_ns = 2700 * MS; /* it was renewed */
    pass(500 * MS);
    await_sleepers(pool.t, 1);
    pass(200 * MS - 1);
    assert_int_equal(tally_read(&pool.reports.begun), 0);
    pass(1);
    tally_await(&pool.reports.ended, 1);
    pass(HOUR); /* not again */
    let(1);
    tally_await(&pool.handlers.ended, 1);
    await_idle();

    add_keys("foo"); /* another hand-out: it is lost already */
    tally_await(&pool.reports.ended, 2);
    end();
    assert_int_equal(tally_read(&pool.reports.begun), 2);
}

/* PW-27 */
TEST(handler_that_returns_before_its_hold_ends_is_not_told)
{
    let_all();
    start_with_holds(1000 * MS);
    for (unsigned n = 1; n <= 5; n++) {
        add_keys("foo");
        tally_await(&pool.handlers.ended, n);
        await_idle();
        pass(199 * MS);
    }
    pass(HOUR);
    end();
    assert_int_equal(tally_read(&pool.reports.begun), 0);
}

/* PW-27 PW-18 */
TEST(item_is_not_given_back_while_on_lost_runs)
{
    start_with_holds(10 * MS);
    end_handler_while_it_is_reported();
    struct worker *stop = start_blocked(run_stop);
    assert_true(states_of("foo") & WQ_STATE_HELD);
    let_reports();
    assert_err(worker_join(stop), WQ_OK);
    assert_int_equal(states_of("foo"), 0);
}

/* PW-27: only the hand-out looks. */
TEST(holds_that_do_not_end_are_not_looked_at)
{
    start_with_holds(WQ_FOREVER);
    add_keys("foo bar");
    await_begun(2);
    pass(HOUR);
    assert_int_equal(store.looks, 2);
    end();
    assert_int_equal(tally_read(&pool.reports.begun), 0);
}

/* PW-27: each at its own time. */
TEST(every_handler_whose_hold_ends_is_told)
{
    start_with_holds(1500 * MS);
    let_reports();
    add_keys("foo bar");
    await_begun(2);
    await_sleepers(pool.t, 1);
    pass(1000 * MS);
    await_sleepers(pool.t, 1);
    assert_int_equal(tally_read(&pool.reports.begun), 0);
    pass(500 * MS);
    tally_await(&pool.reports.ended, 2);
}

WQ_TESTS(with_pool(key_runs_as_its_result_says_although_the_store_fails),
         with_pool(key_of_a_store_that_never_answers_is_left_on_loan),
         with_pool(key_that_a_queue_never_takes_back_is_dropped_by_a_stop),
         with_pool(key_that_was_lost_is_counted_and_not_dropped),
         with_pool(next_with_goes_on_to_the_get_after_a_loss),
         with_pool(resize_does_not_wait_for_a_worker_that_repeats),
         with_pool(key_that_is_buried_is_not_dropped),
         with_pool(dropped_key_is_reported_as_a_copy_after_its_loan),
         with_pool(handler_whose_hold_ends_is_told_once),
         with_pool(handler_that_returns_before_its_hold_ends_is_not_told),
         with_pool(item_is_not_given_back_while_on_lost_runs),
         with_pool(holds_that_do_not_end_are_not_looked_at),
         with_pool(every_handler_whose_hold_ends_is_told));
