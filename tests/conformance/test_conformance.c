/* SPDX-License-Identifier: MIT */
/* test_conformance.c: does a backend keep the contract of wq.h?
 *
 * What a scenario (tests/scenarios) cannot say about any backend: bytes of keys,
 * bad pointers, real time, many threads. Built once for each backend; see
 * support/backend.h.
 */
#include "behaviour/fixture.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "support/worker.h"

/* ---- keys --------------------------------------------------------------- */

/* O-04 */
TEST(long_keys_come_back_whole)
{
    const size_t lengths[] = {100, 1000, 10000, WQ_KEY_MAX - 1, WQ_KEY_MAX};
    wq_queue    *q = *state;
    char        *bytes = malloc(WQ_KEY_MAX);

    assert_non_null(bytes);
    for (size_t i = 0; i < WQ_KEY_MAX; i++)
        bytes[i] = (char)(i * 7 + i / 251);
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        assert_err(wq_add(q, (wq_key){bytes, lengths[i]}), WQ_OK);
        wq_item *item = take(q);
        assert_int_equal(item->key.len, lengths[i]);
        assert_memory_equal(item->key.data, bytes, lengths[i]);
        finish(q, item);
    }
    free(bytes);
}

/* O-04 */
TEST(key_is_copied_on_add)
{
    wq_queue *q = *state;
    char      mine[] = "foo";

    assert_err(wq_add(q, wq_str(mine)), WQ_OK);
    memset(mine, '!', sizeof mine);

    work_on(q, "foo");
}

/* O-04 O-14 */
TEST(bad_keys_are_refused)
{
    wq_queue *q = *state;
    char     *bytes = calloc(1, WQ_KEY_MAX + 1);

    assert_non_null(bytes);
    assert_err(wq_add(q, (wq_key){NULL, 3}), WQ_EINVAL);
    assert_err(wq_add_str(q, ""), WQ_EINVAL);
    assert_err(wq_add(q, (wq_key){bytes, WQ_KEY_MAX + 1}), WQ_ETOOLONG);
    free(bytes);

    assert_none_ready(q, WQ_ETIMEDOUT);
}

/* ---- add, get, done ----------------------------------------------------- */

/* O-06 */
TEST(item_of_another_queue_is_refused)
{
    wq_queue *q = *state;
    wq_queue *other = open_queue(NULL);

    add(q, "foo");
    add(other, "foo");
    wq_item *ours = take(q), *theirs = take(other);

    assert_err(wq_done(q, theirs), WQ_ESTATE);
    assert_err(wq_done(other, ours), WQ_ESTATE);
    finish(q, ours);
    finish(other, theirs);
    wq_destroy(other);
}

/* O-06 */
TEST(copy_of_an_item_is_refused)
{
    wq_queue *q = *state;

    add(q, "foo");
    wq_item *item = take(q);
    wq_item  copy = *item;

    assert_err(wq_done(q, &copy), WQ_ESTATE);
    finish(q, item);
}

/* O-14 */
TEST(missing_arguments_are_refused)
{
    wq_queue *q = *state;

    add(q, "foo");

    assert_err(wq_get(q, NULL), WQ_EINVAL);
    assert_err(wq_get_within(q, 0, NULL), WQ_EINVAL);
    assert_err(wq_done(q, NULL), WQ_EINVAL);
    assert_err(wq_done_key(q, (wq_key){NULL, 0}), WQ_EINVAL);
    assert_int_equal(wq_len(q), 1);
}

/* ---- waiting ------------------------------------------------------------ */

/* O-05 */
TEST(get_times_out_in_real_time_and_not_before)
{
    const int64_t timeout_ns = 3000000;
    wq_queue     *q = *state;
    wq_item      *item = NULL;

    const int64_t begin_ns = now_ns();
    assert_err(wq_get_within(q, timeout_ns, &item), WQ_ETIMEDOUT);

    assert_true(now_ns() - begin_ns >= timeout_ns);
    assert_null(item);
}

/* ---- batches ------------------------------------------------------------ */

/* O-60: all or none, or up to the first that is refused: what is still on loan
 * is what is not NULL. */
TEST(done_many_refuses_an_item_that_is_not_on_loan)
{
    wq_queue *q = *state;

    add(q, "a");
    add(q, "b");
    wq_item *a = take(q), *b = take(q);
    wq_item  copy = *b;
    wq_item *items[] = {a, &copy, b};
    assert_err(wq_done_many(q, items, 3), WQ_ESTATE);
    assert_ptr_equal(items[1], &copy);
    assert_ptr_equal(items[2], b);
    if (items[0])
        finish(q, items[0]);
    finish(q, b);
    assert_none_ready(q, WQ_ETIMEDOUT);
}

/* O-61 */
TEST(next_of_an_item_not_on_loan_is_refused)
{
    wq_queue *q = *state;

    add(q, "a");
    add(q, "b");
    wq_item *a = take(q);
    wq_item  copy = *a, *item = &copy;
    assert_err(wq_next(q, LONG_NS, &item), WQ_ESTATE);
    assert_ptr_equal(item, &copy);
    assert_int_equal(wq_len(q), 1);
    finish(q, a);
}

static int
run_next(struct worker *self)
{
    wq_item *item = NULL;
    int      n = 0;

    while (wq_next(self->arg, WQ_FOREVER, &item) == WQ_OK)
        n++;
    return item ? -1 : n;
}

/* O-61 */
TEST(worker_that_calls_next_works_on_every_key)
{
    wq_queue      *q = *state;
    struct worker *w = worker_start(run_next, q);

    worker_await_blocked(w);
    add(q, "a");
    worker_await_blocked(w); /* a is done: nothing is left */
    assert_none_ready(q, WQ_ETIMEDOUT);
    add(q, "b");
    assert_err(wq_shutdown_with_drain_within(q, LONG_NS), WQ_OK);
    assert_int_equal(worker_join(w), 2);
}

/* O-14 O-59 O-60 O-61 */
TEST(batches_refuse_bad_arguments)
{
    wq_queue *q = *state;
    size_t    n = 0;

    add(q, "a");
    wq_item *a = take(q), *item = a;
    wq_item *items[] = {a, NULL};
    assert_err(wq_get_many(q, NULL, 1, 0, &n), WQ_EINVAL);
    assert_err(wq_get_many(q, &item, 0, 0, &n), WQ_EINVAL);
    assert_err(wq_get_many(q, &item, 1, 0, NULL), WQ_EINVAL);
    assert_err(wq_get_many(q, &item, 1, -1, &n), WQ_EINVAL);
    assert_err(wq_done_many(q, items, 2), WQ_EINVAL);
    assert_err(wq_done_many(q, NULL, 1), WQ_EINVAL);
    assert_err(wq_next(q, 0, NULL), WQ_EINVAL);
    assert_err(wq_next(q, -1, &item), WQ_EINVAL);
    assert_ptr_equal(item, a);
    finish(q, a);
}

/* O-50: the whole of it, or nothing. */
TEST(add_with_is_done_or_not_supported)
{
    wq_queue    *q = *state;
    const wq_key keys[] = {wq_str("a"), wq_str("b")};
    const wq_key bad[] = {wq_str("a"), wq_str("")};

    assert_err(wq_add_with(q, NULL, bad, 2), WQ_EINVAL);
    assert_err(wq_add_with(q, WQ_ADD(.max_wait_ns = 1), keys, 2), WQ_EINVAL);
    const wq_err err = wq_add_with(q, NULL, keys, 2);
    const wq_err none = wq_add_with(q, NULL, NULL, 0);
    if (none) /* a layer may be able to add none or one, but not two */
        assert_err(none, err);
    if (!err) {
        work_on(q, "a");
        work_on(q, "b");
    } else {
        assert_err(err, WQ_ENOTSUP);
    }
    assert_none_ready(q, WQ_ETIMEDOUT);
}

/* O-62 */
TEST(drops_are_counted_or_not_supported)
{
    wq_queue    *q = *state;
    const wq_err counted = wq_count_drops(q, 2);

    if (counted != WQ_OK)
        assert_err(counted, WQ_ENOTSUP);
    add(q, "a"); /* it is only a count */
    work_on(q, "a");
    assert_none_ready(q, WQ_ETIMEDOUT);
}

/* O-57 O-58 */
TEST(removal_is_done_or_not_supported)
{
    wq_queue *q = *state;

    assert_err(wq_remove(q, wq_str("")), WQ_EINVAL);
    assert_err(wq_cancel_after(q, wq_str("")), WQ_EINVAL);
    add(q, "a");
    const wq_err cancelled = wq_cancel_after(q, wq_str("a"));
    if (cancelled != WQ_ENOTSUP)
        assert_err(cancelled, WQ_ENOTFOUND);
    const wq_err removed = wq_remove(q, wq_str("a"));
    if (removed != WQ_OK) {
        assert_err(removed, WQ_ENOTSUP);
        work_on(q, "a");
    }
    assert_none_ready(q, WQ_ETIMEDOUT);
}

static int
run_flush(struct worker *self)
{
    return (int)wq_flush(self->arg, WQ_FOREVER);
}

/* O-81 O-82 O-83 */
TEST(flushes_are_done_or_not_supported)
{
    wq_queue    *q = *state;
    const wq_err flushed = wq_flush(q, 0);

    assert_err(wq_flush(q, -1), WQ_EINVAL);
    assert_err(wq_wait_idle(q, -1), WQ_EINVAL);
    assert_err(wq_flush_key(q, wq_str(""), 0), WQ_EINVAL);
    add(q, "a");
    if (flushed != WQ_OK) {
        assert_err(flushed, WQ_ENOTSUP);
        assert_err(wq_flush(q, WQ_FOREVER), WQ_ENOTSUP);
        assert_err(wq_wait_idle(q, WQ_FOREVER), WQ_ENOTSUP);
        assert_err(wq_flush_key(q, wq_str("a"), WQ_FOREVER), WQ_ENOTSUP);
        work_on(q, "a");
        return;
    }
    struct worker *w = worker_start(run_flush, q);
    worker_await_blocked(w);
    assert_err(wq_wait_idle(q, 0), WQ_ETIMEDOUT);
    assert_err(wq_flush_key(q, wq_str("a"), 0), WQ_ETIMEDOUT);
    wq_item *item = take(q);
    assert_err(wq_flush(q, WQ_FOREVER), WQ_ESTATE);
    add(q, "b"); /* later */
    finish(q, item);
    assert_err(worker_join(w), WQ_OK);
    work_on(q, "b");
    assert_err(wq_wait_idle(q, WQ_FOREVER), WQ_OK);
}

static int
run_removal(struct worker *self)
{
    return (int)wq_remove_wait(self->arg, wq_str("a"), WQ_FOREVER);
}

/* O-84 */
TEST(removal_that_waits_is_done_or_not_supported)
{
    wq_queue *q = *state;

    assert_err(wq_remove_wait(q, wq_str(""), 0), WQ_EINVAL);
    assert_err(wq_remove_wait(q, wq_str("a"), -1), WQ_EINVAL);
    add(q, "a");
    wq_item     *item = take(q);
    const wq_err removed = wq_remove_wait(q, wq_str("b"), WQ_FOREVER);
    if (removed != WQ_OK) {
        assert_err(removed, WQ_ENOTSUP);
        finish(q, item);
        return;
    }
    assert_err(wq_remove_wait(q, wq_str("a"), WQ_FOREVER), WQ_ESTATE);
    struct worker *w = worker_start(run_removal, q);
    worker_await_blocked(w);
    add(q, "a");
    finish(q, item);
    assert_err(worker_join(w), WQ_OK);
    assert_none_ready(q, WQ_ETIMEDOUT);
}

/* O-85 */
TEST(pauses_are_done_or_not_supported)
{
    wq_queue *q = *state;
    wq_item  *item;

    add(q, "a");
    const wq_err paused = wq_pause(q);
    if (paused != WQ_OK) {
        assert_err(paused, WQ_ENOTSUP);
        assert_err(wq_resume(q), WQ_ENOTSUP);
        work_on(q, "a");
        return;
    }
    assert_err(wq_get_within(q, 0, &item), WQ_ETIMEDOUT);
    assert_int_equal(wq_len(q), 1);
    assert_err(wq_resume(q), WQ_OK);
    work_on(q, "a");
    assert_err(wq_pause(q), WQ_OK);
    wq_shutdown(q);
    assert_err(wq_pause(q), WQ_ESHUTDOWN);
    assert_none_ready(q, WQ_ESHUTDOWN);
}

/* ---- shutdown ----------------------------------------------------------- */

/* O-07 */
TEST(drain_times_out_in_real_time)
{
    const int64_t timeout_ns = 3000000;
    wq_queue     *q = *state;

    add(q, "foo");
    assert_err(wq_shutdown_with_drain_within(q, 0), WQ_ETIMEDOUT);
    const int64_t begin_ns = now_ns();
    assert_err(wq_shutdown_with_drain_within(q, timeout_ns), WQ_ETIMEDOUT);
    assert_true(now_ns() - begin_ns >= timeout_ns);

    work_on(q, "foo");
    assert_err(wq_shutdown_with_drain_within(q, 0), WQ_OK);
}

/* ---- many threads ------------------------------------------------------- */

enum { KEYS = 16, PRODUCERS = 4, CONSUMERS = 4, ADDS = 500 };

/* Each add of a key asks for what was wanted by then: `wanted` is raised before
 * it, and read by whoever works on the key. So an add is lost if and only if
 * `seen` is behind in the end. */
struct run {
    wq_queue  *queue;
    atomic_int wanted[KEYS];
    atomic_int seen[KEYS];
    atomic_int hands[KEYS]; /* that hold it at the moment */
    atomic_int overlaps;    /* times there were two */
    atomic_int handed_out;
};

static int
produce(struct worker *self)
{
    struct run *run = self->arg;

    for (uint64_t i = 0; i < ADDS; i++) {
        const uint64_t key = i * 7 % KEYS;

        atomic_fetch_add(&run->wanted[key], 1);
        if (wq_add(run->queue, wq_u64(&key)) != WQ_OK)
            return 1;
        if (i % 32 == 0)
            (void)sched_yield();
    }
    return 0;
}

static void
work(struct run *run, const wq_item *item)
{
    uint64_t key;

    memcpy(&key, item->key.data, sizeof key);
    if (atomic_fetch_add(&run->hands[key], 1) != 0)
        atomic_fetch_add(&run->overlaps, 1);
    atomic_store(&run->seen[key], atomic_load(&run->wanted[key]));
    atomic_fetch_add(&run->handed_out, 1);
    if (atomic_load(&run->handed_out) % 16 == 0)
        (void)sched_yield();
    atomic_fetch_sub(&run->hands[key], 1);
}

static int
consume(struct worker *self)
{
    struct run *run = self->arg;
    wq_item    *item;
    wq_err      err;

    while ((err = wq_get(run->queue, &item)) == WQ_OK) {
        work(run, item);
        err = wq_done(run->queue, item);
        if (err)
            break;
    }
    return (int)err;
}

/* Q-01 Q-02 Q-04 Q-26 */
TEST(no_key_has_two_holders_and_no_add_is_lost)
{
    struct run     run = {.queue = *state};
    struct worker *producers[PRODUCERS], *consumers[CONSUMERS];

    for (int i = 0; i < CONSUMERS; i++)
        consumers[i] = worker_start(consume, &run);
    for (int i = 0; i < PRODUCERS; i++)
        producers[i] = worker_start(produce, &run);
    for (int i = 0; i < PRODUCERS; i++)
        assert_int_equal(worker_join(producers[i]), 0);
    assert_err(wq_shutdown_with_drain_within(run.queue, LONG_NS), WQ_OK);
    for (int i = 0; i < CONSUMERS; i++)
        assert_err(worker_join(consumers[i]), WQ_ESHUTDOWN);

    for (int i = 0; i < KEYS; i++)
        assert_int_equal(atomic_load(&run.seen[i]),
                         atomic_load(&run.wanted[i]));
    assert_int_equal(atomic_load(&run.overlaps), 0);
    assert_in_range(atomic_load(&run.handed_out), 1, PRODUCERS * ADDS);
    assert_none_ready(run.queue, WQ_ESHUTDOWN);
}

WQ_TESTS(with_queue(long_keys_come_back_whole),
         with_queue(key_is_copied_on_add), with_queue(bad_keys_are_refused),
         with_queue(item_of_another_queue_is_refused),
         with_queue(copy_of_an_item_is_refused),
         with_queue(missing_arguments_are_refused),
         with_queue(get_times_out_in_real_time_and_not_before),
         with_queue(done_many_refuses_an_item_that_is_not_on_loan),
         with_queue(next_of_an_item_not_on_loan_is_refused),
         with_queue(worker_that_calls_next_works_on_every_key),
         with_queue(batches_refuse_bad_arguments),
         with_queue(add_with_is_done_or_not_supported),
         with_queue(drops_are_counted_or_not_supported),
         with_queue(removal_is_done_or_not_supported),
         with_queue(flushes_are_done_or_not_supported),
         with_queue(removal_that_waits_is_done_or_not_supported),
         with_queue(pauses_are_done_or_not_supported),
         with_queue(drain_times_out_in_real_time),
         with_queue(no_key_has_two_holders_and_no_add_is_lost));
