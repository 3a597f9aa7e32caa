/* SPDX-License-Identifier: MIT */
/* suite.c: the cases of the conformance suite; see suite.h. */
#include "conformance/suite.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support/worker.h"

/* ---- words -------------------------------------------------------------- */

#define assert_err(actual, expected)                                           \
    assert_string_equal(wq_err_name((wq_err)(actual)), wq_err_name(expected))

/* Longer than any case takes: a wait that should end by itself. */
#define LONG_NS (INT64_C(20) * 1000000000)

/* How many threads block where a case wants several. */
enum { SEVERAL = 3 };

static wq_queue *
open_queue(void)
{
    wq_queue *q = NULL;

    assert_err(suite_backend.open(suite_backend.ctx, &q), WQ_OK);
    assert_non_null(q);
    return q;
}

int
suite_open(void **state)
{
    *state = open_queue();
    return 0;
}

int
suite_close(void **state)
{
    wq_destroy(*state);
    return 0;
}

static void
add(wq_queue *q, const char *key)
{
    assert_err(wq_add_str(q, key), WQ_OK);
}

static wq_item *
take(wq_queue *q)
{
    wq_item *item = NULL;

    assert_err(wq_get_within(q, 0, &item), WQ_OK);
    assert_non_null(item);
    return item;
}

static void
assert_key(const wq_item *item, wq_key key)
{
    assert_int_equal(item->key.len, key.len);
    assert_memory_equal(item->key.data, key.data, key.len);
}

static void
finish(wq_queue *q, wq_item *item)
{
    assert_err(wq_done(q, item), WQ_OK);
}

/* The next key is this one; from get to done. */
static void
work_on(wq_queue *q, const char *key)
{
    wq_item *item = take(q);

    assert_key(item, wq_str(key));
    finish(q, item);
}

static void
assert_none_ready(wq_queue *q, wq_err why)
{
    wq_item *item = NULL;

    assert_err(wq_get_within(q, 0, &item), why);
    assert_null(item);
    assert_int_equal(wq_len(q), 0);
}

static int64_t
now_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void
start_gets(wq_queue *q, struct worker **all, wq_item **items)
{
    for (int i = 0; i < SEVERAL; i++)
        all[i] = worker_get(q, items ? &items[i] : NULL);
    worker_await_all_blocked(all, SEVERAL);
}

static void
start_drains(wq_queue *q, struct worker **all)
{
    for (int i = 0; i < SEVERAL; i++)
        all[i] = worker_drain(q);
    worker_await_all_blocked(all, SEVERAL);
}

static void
join_all(struct worker **all, wq_err expected)
{
    for (int i = 0; i < SEVERAL; i++)
        assert_err(worker_join(all[i]), expected);
}

/* ---- keys --------------------------------------------------------------- */

/* O-01 */
void
new_queue_is_empty_and_open(void **state)
{
    wq_queue *q = *state;

    assert_false(wq_shutting_down(q));
    assert_none_ready(q, WQ_ETIMEDOUT);
}

/* Q-03 O-04 */
void
key_comes_back_with_its_bytes(void **state)
{
    wq_queue *q = *state;

    add(q, "namespace/name");

    work_on(q, "namespace/name");
    assert_none_ready(q, WQ_ETIMEDOUT);
}

/* O-04 */
void
binary_keys_are_told_apart(void **state)
{
    wq_queue    *q = *state;
    const wq_key keys[] = {
        {"\0", 1},   {"\0\0", 2}, {"a", 1},    {"a\0", 2},      {"a\0b", 3},
        {"a\0c", 3}, {"\xff", 1}, {"'\";", 3}, {"%s\n\r\t", 5}, {"\x80\0", 2}};
    const size_t n = sizeof keys / sizeof keys[0];

    for (size_t i = 0; i < n; i++)
        assert_err(wq_add(q, keys[i]), WQ_OK);
    assert_int_equal(wq_len(q), n);
    for (size_t i = 0; i < n; i++) {
        wq_item *item = take(q);
        assert_key(item, keys[i]);
        finish(q, item);
    }
}

/* O-04 */
void
long_keys_come_back_whole(void **state)
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
        assert_key(item, (wq_key){bytes, lengths[i]});
        finish(q, item);
    }
    free(bytes);
}

/* O-04 */
void
key_is_copied_on_add(void **state)
{
    wq_queue *q = *state;
    char      mine[] = "foo";

    assert_err(wq_add(q, wq_str(mine)), WQ_OK);
    memset(mine, '!', sizeof mine);

    work_on(q, "foo");
}

/* O-04 O-14 */
void
bad_keys_are_refused(void **state)
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

/* */
void
key_added_twice_is_handed_out_once(void **state)
{
    wq_queue *q = *state;

    add(q, "foo");
    add(q, "foo");

    assert_int_equal(wq_len(q), 1);
    work_on(q, "foo");
    assert_none_ready(q, WQ_ETIMEDOUT);
}

/* */
void
keys_leave_first_come_first_served(void **state)
{
    wq_queue *q = *state;

    for (uint64_t i = 0; i < 100; i++)
        assert_err(wq_add(q, wq_u64(&i)), WQ_OK);
    for (uint64_t i = 0; i < 100; i++) {
        wq_item *item = take(q);
        assert_key(item, wq_u64(&i));
        finish(q, item);
    }
}

/* */
void
key_added_again_keeps_its_place(void **state)
{
    wq_queue *q = *state;

    add(q, "foo");
    add(q, "bar");
    add(q, "foo");

    work_on(q, "foo");
    work_on(q, "bar");
}

/* Q-04 Q-06 */
void
key_added_while_held_is_handed_out_once_after_done(void **state)
{
    wq_queue *q = *state;

    add(q, "foo");
    wq_item *item = take(q);
    add(q, "foo");
    add(q, "foo");
    assert_none_ready(q, WQ_ETIMEDOUT);
    finish(q, item);

    work_on(q, "foo");
    assert_none_ready(q, WQ_ETIMEDOUT);
}

/* Q-18 Q-23 */
void
dirty_key_goes_to_the_tail_at_done(void **state)
{
    wq_queue *q = *state;

    add(q, "foo");
    wq_item *item = take(q);
    add(q, "foo");
    add(q, "bar");
    finish(q, item);
    add(q, "baz");

    work_on(q, "bar");
    work_on(q, "foo");
    work_on(q, "baz");
}

/* Q-03 Q-12 */
void
len_counts_ready_keys_only(void **state)
{
    wq_queue *q = *state;

    add(q, "foo");
    add(q, "bar");
    assert_int_equal(wq_len(q), 2);
    wq_item *item = take(q);
    assert_int_equal(wq_len(q), 1);
    add(q, "foo");
    assert_int_equal(wq_len(q), 1);
    finish(q, item);
    assert_int_equal(wq_len(q), 2);
}

/* seen by another thread. */
void
held_key_is_nobody_elses(void **state)
{
    wq_queue *q = *state;
    wq_item  *theirs = NULL;

    add(q, "foo");
    wq_item *item = take(q);
    add(q, "foo");
    struct worker *w = worker_get(q, &theirs);
    worker_await_blocked(w);
    add(q, "bar");

    assert_err(worker_join(w), WQ_OK);
    assert_key(theirs, wq_str("bar"));
    finish(q, item);
    work_on(q, "foo");
}

/* */
void
fence_grows_with_every_hand_out_of_a_key(void **state)
{
    wq_queue *q = *state;
    uint64_t  last = 0;

    add(q, "foo");
    for (int i = 0; i < 5; i++) {
        wq_item *item = take(q);
        assert_true(item->fence > last);
        last = item->fence;
        if (i % 2)
            add(q, "foo"); /* while held */
        finish(q, item);
        if (i % 2 == 0)
            add(q, "foo"); /* while absent */
    }
}

struct loan {
    wq_queue *queue;
    wq_item  *item;
};

static int
say_done(struct worker *self)
{
    const struct loan *loan = self->arg;
    return (int)wq_done(loan->queue, loan->item);
}

/* */
void
item_may_be_done_by_another_thread(void **state)
{
    wq_queue *q = *state;

    add(q, "foo");
    struct loan loan = {.queue = q, .item = take(q)};
    add(q, "foo");
    assert_err(worker_join(worker_start(say_done, &loan)), WQ_OK);

    work_on(q, "foo");
}

/* O-06 */
void
item_done_twice_is_refused(void **state)
{
    wq_queue *q = *state;

    add(q, "foo");
    wq_item *item = take(q);
    add(q, "foo");
    finish(q, item);

    assert_err(wq_done(q, item), WQ_ESTATE);
    assert_int_equal(wq_len(q), 1);
    work_on(q, "foo");
}

/* O-06 */
void
item_of_another_queue_is_refused(void **state)
{
    wq_queue *q = *state;
    wq_queue *other = open_queue();

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
void
copy_of_an_item_is_refused(void **state)
{
    wq_queue *q = *state;

    add(q, "foo");
    wq_item *item = take(q);
    wq_item  copy = *item;

    assert_err(wq_done(q, &copy), WQ_ESTATE);
    finish(q, item);
}

/* */
void
done_by_key_ends_the_loan(void **state)
{
    wq_queue *q = *state;

    add(q, "foo");
    wq_item *item = take(q);
    add(q, "foo");
    assert_err(wq_done_key(q, wq_str("foo")), WQ_OK);

    assert_err(wq_done(q, item), WQ_ESTATE);
    work_on(q, "foo");
    assert_none_ready(q, WQ_ETIMEDOUT);
}

/* Q-21 O-06 */
void
done_by_key_of_what_is_not_held_is_refused(void **state)
{
    wq_queue *q = *state;

    assert_err(wq_done_key(q, wq_str("foo")), WQ_ESTATE);
    add(q, "foo");
    assert_err(wq_done_key(q, wq_str("foo")), WQ_ESTATE);
    assert_int_equal(wq_len(q), 1);
    work_on(q, "foo");
    assert_err(wq_done_key(q, wq_str("foo")), WQ_ESTATE);
    assert_none_ready(q, WQ_ETIMEDOUT);
}

/* O-14 */
void
missing_arguments_are_refused(void **state)
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

/* */
void
get_blocks_until_a_key_is_added(void **state)
{
    wq_queue *q = *state;
    wq_item  *item = NULL;

    struct worker *w = worker_get(q, &item);
    worker_await_blocked(w);
    add(q, "foo");

    assert_err(worker_join(w), WQ_OK);
    assert_key(item, wq_str("foo"));
}

/* Q-06 Q-18 */
void
get_blocks_until_a_dirty_key_is_done(void **state)
{
    wq_queue *q = *state;
    wq_item  *again = NULL;

    add(q, "foo");
    wq_item *item = take(q);
    add(q, "foo");
    struct worker *w = worker_get(q, &again);
    worker_await_blocked(w);
    finish(q, item);

    assert_err(worker_join(w), WQ_OK);
    assert_key(again, wq_str("foo"));
}

/* */
void
every_blocked_get_is_woken_by_a_key_of_its_own(void **state)
{
    wq_queue      *q = *state;
    struct worker *all[SEVERAL];
    wq_item       *items[SEVERAL] = {NULL};
    unsigned       seen = 0;

    start_gets(q, all, items);
    add(q, "a");
    add(q, "b");
    add(q, "c");
    join_all(all, WQ_OK);

    for (int i = 0; i < SEVERAL; i++)
        seen |= 1U << (*(const char *)items[i]->key.data - 'a');
    assert_int_equal(seen, 7);
}

/* O-05 */
void
get_within_no_time_does_not_wait(void **state)
{
    wq_queue *q = *state;

    assert_none_ready(q, WQ_ETIMEDOUT);
    add(q, "foo");
    work_on(q, "foo");
    assert_none_ready(q, WQ_ETIMEDOUT);
}

/* O-05 */
void
get_gives_up_when_its_time_is_up_and_not_before(void **state)
{
    const int64_t timeout_ns = 3000000;
    wq_queue     *q = *state;
    wq_item      *item = NULL;

    const int64_t begin_ns = now_ns();
    assert_err(wq_get_within(q, timeout_ns, &item), WQ_ETIMEDOUT);

    assert_true(now_ns() - begin_ns >= timeout_ns);
    assert_null(item);
}

/* O-05 O-07 */
void
negative_timeouts_are_refused(void **state)
{
    wq_queue *q = *state;
    wq_item  *item = NULL;

    add(q, "foo");

    assert_err(wq_get_within(q, -1, &item), WQ_EINVAL);
    assert_err(wq_shutdown_with_drain_within(q, -1), WQ_EINVAL);
    assert_null(item);
    assert_int_equal(wq_len(q), 1);
    assert_false(wq_shutting_down(q));
}

/* O-08 */
void
interrupt_ends_every_blocked_get(void **state)
{
    wq_queue      *q = *state;
    struct worker *all[SEVERAL];

    start_gets(q, all, NULL);
    wq_interrupt(q);
    join_all(all, WQ_EINTERRUPTED);

    assert_false(wq_shutting_down(q));
    add(q, "foo");
    work_on(q, "foo");
}

/* O-08 */
void
interrupt_is_remembered_once(void **state)
{
    wq_queue *q = *state;
    wq_item  *item = NULL;

    wq_interrupt(q);
    wq_interrupt(q);
    assert_err(wq_get_within(q, LONG_NS, &item), WQ_EINTERRUPTED);

    struct worker *w = worker_get(q, &item);
    worker_await_blocked(w);
    add(q, "foo");
    assert_err(worker_join(w), WQ_OK);
}

/* O-08 */
void
interrupt_leaves_a_get_that_need_not_block_alone(void **state)
{
    wq_queue *q = *state;
    wq_item  *item = NULL;

    add(q, "foo");
    wq_interrupt(q);

    assert_err(wq_get(q, &item), WQ_OK);
    finish(q, item);
    assert_err(wq_get_within(q, LONG_NS, &item), WQ_EINTERRUPTED);
}

/* ---- batches ------------------------------------------------------------ */

/* O-59 */
void
get_of_many_takes_what_there_is_up_to_its_limit(void **state)
{
    wq_queue *q = *state;
    wq_item  *items[4] = {NULL};
    size_t    n = 0;

    add(q, "a");
    add(q, "b");
    add(q, "c");
    assert_err(wq_get_many(q, items, 2, 0, &n), WQ_OK);
    assert_int_equal(n, 2);
    assert_key(items[0], wq_str("a"));
    assert_key(items[1], wq_str("b"));
    assert_null(items[2]);
    assert_err(wq_get_many(q, items + 2, 2, LONG_NS, &n), WQ_OK);
    assert_int_equal(n, 1);
    assert_key(items[2], wq_str("c"));
    assert_none_ready(q, WQ_ETIMEDOUT);
}

static int
run_get_many(struct worker *self)
{
    wq_item *items[4];
    size_t   n = 0;

    const wq_err err = wq_get_many(self->arg, items, 4, WQ_FOREVER, &n);
    return err || n != 1 ? 1 : 0;
}

/* O-59 */
void
get_of_many_blocks_until_there_is_one(void **state)
{
    struct worker *w = worker_start(run_get_many, *state);

    worker_await_blocked(w);
    add(*state, "a");
    assert_int_equal(worker_join(w), 0);
}

/* O-59 */
void
get_of_many_says_why_it_got_none(void **state)
{
    wq_item *item = NULL;
    size_t   n = 77;

    assert_err(wq_get_many(*state, &item, 1, 0, &n), WQ_ETIMEDOUT);
    wq_shutdown(*state);
    assert_err(wq_get_many(*state, &item, 1, WQ_FOREVER, &n), WQ_ESHUTDOWN);
    assert_null(item);
    assert_int_equal(n, 77);
}

/* O-60 */
void
done_of_many_ends_their_loans(void **state)
{
    wq_queue *q = *state;
    wq_item  *items[3];
    size_t    n = 0;

    add(q, "a");
    add(q, "b");
    add(q, "c");
    assert_err(wq_get_many(q, items, 3, 0, &n), WQ_OK);
    assert_int_equal(n, 3);
    add(q, "b");
    assert_err(wq_done_many(q, items, 3), WQ_OK);
    for (int i = 0; i < 3; i++)
        assert_null(items[i]);
    work_on(q, "b");
    assert_err(wq_done_many(q, NULL, 0), WQ_OK);
    wq_shutdown(q);
    assert_none_ready(q, WQ_ESHUTDOWN);
}

/* O-60: all or none, or up to the first that is refused: what is still on loan
 * is what is not NULL. */
void
done_of_many_refuses_what_is_not_on_loan(void **state)
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
void
next_gives_back_and_takes(void **state)
{
    wq_queue *q = *state;
    wq_item  *item = NULL;

    add(q, "a");
    add(q, "b");
    assert_err(wq_next(q, 0, &item), WQ_OK);
    assert_key(item, wq_str("a"));
    add(q, "a");
    assert_err(wq_next(q, LONG_NS, &item), WQ_OK);
    assert_key(item, wq_str("b"));
    assert_err(wq_next(q, LONG_NS, &item), WQ_OK);
    assert_key(item, wq_str("a"));
    finish(q, item);
    assert_none_ready(q, WQ_ETIMEDOUT);
}

/* O-61 */
void
next_of_what_is_not_on_loan_is_refused(void **state)
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

/* O-61 */
void
next_that_gets_none_leaves_no_item(void **state)
{
    wq_queue *q = *state;
    wq_item  *item = NULL;

    add(q, "a");
    assert_err(wq_next(q, 0, &item), WQ_OK);
    assert_err(wq_next(q, 0, &item), WQ_ETIMEDOUT);
    assert_null(item);
    add(q, "a");
    assert_err(wq_next(q, 0, &item), WQ_OK);
    wq_shutdown(q);
    assert_err(wq_next(q, WQ_FOREVER, &item), WQ_ESHUTDOWN);
    assert_null(item);
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
void
worker_that_calls_next_works_on_everything(void **state)
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
void
batches_refuse_bad_arguments(void **state)
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
void
adds_with_a_purpose_are_done_or_not_supported(void **state)
{
    wq_queue    *q = *state;
    const wq_key keys[] = {wq_str("a"), wq_str("b")};
    const wq_key bad[] = {wq_str("a"), wq_str("")};

    assert_err(wq_add_with(q, NULL, bad, 2), WQ_EINVAL);
    assert_err(wq_add_with(q, WQ_ADD(.max_wait_ns = 1), keys, 2), WQ_EINVAL);
    const wq_err err = wq_add_with(q, NULL, keys, 2);
    assert_err(wq_add_with(q, NULL, NULL, 0), err);
    if (!err) {
        work_on(q, "a");
        work_on(q, "b");
    } else {
        assert_err(err, WQ_ENOTSUP);
    }
    assert_none_ready(q, WQ_ETIMEDOUT);
}

/* O-62 */
void
drops_are_counted_or_not_supported(void **state)
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
void
taking_back_is_done_or_not_supported(void **state)
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
void
flushes_are_done_or_not_supported(void **state)
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
void
removal_that_waits_is_done_or_not_supported(void **state)
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
void
pauses_are_done_or_not_supported(void **state)
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

/* Q-13 Q-15 Q-16 Q-19 */
void
shutdown_refuses_adds_and_hands_out_what_is_ready(void **state)
{
    wq_queue *q = *state;

    add(q, "foo");
    add(q, "bar");
    wq_item *item = take(q);
    wq_shutdown(q);
    assert_true(wq_shutting_down(q));
    assert_err(wq_add_str(q, "foo"), WQ_ESHUTDOWN);
    assert_err(wq_add_str(q, "bar"), WQ_ESHUTDOWN);
    assert_err(wq_add_str(q, "baz"), WQ_ESHUTDOWN);
    finish(q, item);

    assert_int_equal(wq_len(q), 1);
    work_on(q, "bar");
    assert_none_ready(q, WQ_ESHUTDOWN);
    assert_err(wq_get(q, &item), WQ_ESHUTDOWN);
}

/* */
void
shutdown_wakes_every_blocked_get(void **state)
{
    wq_queue      *q = *state;
    struct worker *all[SEVERAL];

    start_gets(q, all, NULL);
    wq_shutdown(q);

    join_all(all, WQ_ESHUTDOWN);
}

/* */
void
shutdown_does_not_wait_for_held_items(void **state)
{
    wq_queue *q = *state;

    add(q, "foo");
    wq_item *item = take(q);

    wq_shutdown(q);

    finish(q, item);
}

/* */
void
shutdown_keeps_a_dirty_key(void **state)
{
    wq_queue *q = *state;

    add(q, "foo");
    wq_item *item = take(q);
    add(q, "foo");
    wq_shutdown(q);
    assert_none_ready(q, WQ_ESHUTDOWN);
    finish(q, item);

    work_on(q, "foo");
    assert_none_ready(q, WQ_ESHUTDOWN);
}

/* */
void
second_shutdown_is_harmless(void **state)
{
    wq_queue *q = *state;

    add(q, "foo");
    wq_shutdown(q);
    wq_shutdown(q);

    work_on(q, "foo");
    assert_none_ready(q, WQ_ESHUTDOWN);
}

/* O-07 */
void
drain_of_an_idle_queue_returns_at_once(void **state)
{
    wq_queue *q = *state;

    assert_err(wq_shutdown_with_drain(q), WQ_OK);

    assert_true(wq_shutting_down(q));
    assert_err(wq_add_str(q, "foo"), WQ_ESHUTDOWN);
    assert_none_ready(q, WQ_ESHUTDOWN);
}

/* Q-07 Q-10 Q-20 O-07 */
void
drain_waits_for_ready_held_and_dirty_keys(void **state)
{
    wq_queue *q = *state;

    add(q, "dirty");
    add(q, "ready");
    wq_item *dirty = take(q);
    add(q, "dirty");
    struct worker *drain = worker_drain(q);
    worker_await_blocked(drain);

    work_on(q, "ready");
    worker_await_blocked(drain);
    assert_none_ready(q, WQ_ESHUTDOWN);
    finish(q, dirty);
    worker_await_blocked(drain);
    wq_item *last = take(q);
    worker_await_blocked(drain);
    finish(q, last);
    assert_err(worker_join(drain), WQ_OK);
}

/* O-07 */
void
drain_wakes_every_drainer(void **state)
{
    wq_queue      *q = *state;
    struct worker *all[SEVERAL];

    add(q, "foo");
    start_drains(q, all);
    work_on(q, "foo");

    join_all(all, WQ_OK);
}

/* Q-09 O-07 */
void
drain_is_ended_by_shutdown(void **state)
{
    wq_queue      *q = *state;
    struct worker *all[SEVERAL];

    add(q, "foo");
    (void)take(q);
    start_drains(q, all);
    wq_shutdown(q);

    join_all(all, WQ_EINTERRUPTED);
}

/* */
void
drain_after_shutdown_waits_again(void **state)
{
    wq_queue *q = *state;

    add(q, "foo");
    wq_shutdown(q);
    struct worker *drain = worker_drain(q);
    worker_await_blocked(drain);
    work_on(q, "foo");

    assert_err(worker_join(drain), WQ_OK);
}

/* O-07 */
void
drain_gives_up_when_its_time_is_up(void **state)
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

/* O-03: a queue of its own, since the case's is destroyed later. */
void
destroy_sends_blocked_threads_home(void **state)
{
    wq_queue      *getting = open_queue(), *draining = open_queue();
    struct worker *all[SEVERAL];

    (void)state;
    start_gets(getting, all, NULL);
    wq_destroy(getting);
    join_all(all, WQ_ESHUTDOWN);

    add(draining, "foo");
    start_drains(draining, all);
    wq_destroy(draining);
    join_all(all, WQ_EINTERRUPTED);
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
void
no_key_is_in_two_hands_and_no_add_is_lost(void **state)
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
