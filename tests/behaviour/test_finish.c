/* SPDX-License-Identifier: MIT */
/* test_finish.c: which arguments do wq_finish() and its family refuse, and what
 * do the functions about holds say of a queue in memory?
 *
 * What becomes of the key is in scenarios/finish.scenario.
 */
#include "asked.h"

#include <wq/limiter.h>

#include "narrow.h"

#define LEN(array) (sizeof(array) / sizeof *(array))

/* Every outcome. */
static size_t
all_results(wq_result out[6])
{
    const wq_result all[] = {wq_result_done(),   wq_result_retry(),
                             wq_result_after(1), wq_result_drop(),
                             wq_result_back(),   wq_result_bury()};

    memcpy(out, all, sizeof all);
    return LEN(all);
}

/* ---- misuse -------------------------------------------------------------- */

/* S-14 */
TEST(finish_refuses_null)
{
    struct timed *t = *state;
    wq_item      *item = NULL;

    add(t->q, "foo");
    assert_err(wq_finish(NULL, NULL, wq_result_done()), WQ_EINVAL);
    assert_err(wq_finish(t->q, NULL, wq_result_done()), WQ_EINVAL);
    assert_err(wq_next_with(NULL, wq_result_done(), 0, &item), WQ_EINVAL);
    assert_err(wq_next_with(t->q, wq_result_done(), 0, NULL), WQ_EINVAL);
    assert_err(wq_next_with(t->q, wq_result_done(), -1, &item), WQ_EINVAL);
    item = take(t->q);
    assert_err(wq_finish(NULL, item, wq_result_done()), WQ_EINVAL);
    assert_err(wq_next_with(t->q, wq_result_retry(), -1, &item), WQ_EINVAL);
    assert_int_equal(counts_of(t->q).held, 1);
    assert_int_equal(wq_num_requeues(t->q, wq_str("foo")), 0);
    finish(t->q, item);
}

/* S-14 O-06: nothing happens to the key in either queue. */
TEST(item_of_another_queue_is_refused)
{
    struct timed *t = *state;
    wq_queue     *other = open_queue(NULL);
    wq_result     results[6];
    const size_t  n = all_results(results);

    add(other, "foo");
    add(t->q, "bar");
    wq_item *foreign = take(other), *own = take(t->q);
    for (size_t i = 0; i < n; i++) {
        wq_item *item = foreign;

        assert_err(wq_finish(t->q, foreign, results[i]), WQ_ESTATE);
        assert_err(wq_next_with(t->q, results[i], 0, &item), WQ_ESTATE);
        assert_null(item);
        assert_int_equal(counts_of(t->q).held, 1);
        assert_int_equal(counts_of(t->q).known, 1);
        assert_int_equal(counts_of(t->q).drops, 0);
        assert_int_equal(counts_of(other).held, 1);
        assert_int_equal(counts_of(other).known, 1);
        assert_int_equal(wq_num_requeues(t->q, wq_str("foo")), 0);
    }
    finish(t->q, own);
    finish(other, foreign);
    wq_destroy(other);
}

/* S-14 O-06: a copy of the struct is not the item. */
TEST(copy_of_an_item_is_refused)
{
    struct timed *t = *state;
    wq_result     results[6];
    const size_t  n = all_results(results);

    add(t->q, "foo");
    wq_item *item = take(t->q);
    wq_item  copy = *item;
    for (size_t i = 0; i < n; i++) {
        assert_err(wq_finish(t->q, &copy, results[i]), WQ_ESTATE);
        assert_int_equal(counts_of(t->q).held, 1);
        assert_int_equal(counts_of(t->q).adds, 1);
    }
    finish(t->q, item);
}

/* S-14 O-06: its key, which may be freed, is not read. */
TEST(item_of_a_loan_that_has_ended_is_refused)
{
    static char   key[WQ_KEY_MAX]; /* too long to be kept in the record */
    struct timed *t = *state;
    wq_result     results[6];
    const size_t  n = all_results(results);

    memset(key, 'k', sizeof key);
    for (size_t i = 0; i < n; i++) {
        assert_err(wq_add(t->q, wq_bytes(key, sizeof key)), WQ_OK);
        wq_item *item = take(t->q), *ended = item;
        finish(t->q, item);
        assert_err(wq_next_with(t->q, results[i], 0, &ended), WQ_ESTATE);
        assert_null(ended);
        assert_err(wq_finish(t->q, item, results[i]), WQ_ESTATE);
        assert_int_equal(counts_of(t->q).known, 0);
    }
}

/* S-14 */
TEST(item_of_a_loan_that_has_ended_forgets_nothing)
{
    struct timed *t = *state;

    add(t->q, "foo");
    wq_item *item = take(t->q), *ended = item;
    assert_err(wq_finish(t->q, item, wq_result_retry()), WQ_OK);
    assert_err(wq_next_with(t->q, wq_result_done(), 0, &ended), WQ_ESTATE);
    assert_null(ended);
    assert_int_equal(wq_num_requeues(t->q, wq_str("foo")), 1);
}

/* PW-05: it must not lose the key. */
TEST(unknown_outcome_is_a_retry)
{
    struct timed *t = *state;
    const int     outcomes[] = {-1, 99};

    for (size_t i = 0; i < LEN(outcomes); i++) {
        const wq_result result = {.outcome = (wq_outcome)outcomes[i]};

        add(t->q, "foo");
        assert_err(wq_finish(t->q, take(t->q), result), WQ_OK);
        assert_int_equal(wq_num_requeues(t->q, wq_str("foo")), 1);
        step(t, HOUR);
        assert_err(wq_finish(t->q, take_key(t->q, "foo"), wq_result_done()),
                   WQ_OK);
    }
}

/* ---- many ---------------------------------------------------------------- */

/* Get "a", "b" and "c". */
static void
take_three(struct timed *t, wq_item *items[3])
{
    add(t->q, "a");
    add(t->q, "b");
    add(t->q, "c");
    for (size_t i = 0; i < 3; i++)
        items[i] = take(t->q);
}

/* S-14 */
TEST(finish_many_refuses_null_and_changes_nothing)
{
    struct timed   *t = *state;
    wq_item        *items[3], *with_null[3];
    const wq_result results[3] = {wq_result_retry()};
    wq_err          errs[3] = {WQ_EFULL, WQ_EFULL, WQ_EFULL};

    take_three(t, items);
    memcpy(with_null, items, sizeof items);
    with_null[2] = NULL;
    assert_err(wq_finish_many(NULL, items, results, errs, 3), WQ_EINVAL);
    assert_err(wq_finish_many(t->q, NULL, results, errs, 3), WQ_EINVAL);
    assert_err(wq_finish_many(t->q, with_null, results, errs, 3), WQ_EINVAL);
    assert_err(wq_finish_many(t->q, with_null, NULL, NULL, 3), WQ_EINVAL);
    assert_err(wq_finish_many(t->q, NULL, NULL, NULL, 0), WQ_OK);
    assert_int_equal(counts_of(t->q).held, 3);
    assert_int_equal(wq_num_requeues(t->q, wq_str("a")), 0);
    for (size_t i = 0; i < 3; i++) {
        assert_err(errs[i], WQ_EFULL);
        assert_non_null(items[i]);
        finish(t->q, items[i]);
    }
}

/* S-14 */
TEST(finish_many_without_results_is_done)
{
    struct timed *t = *state;
    wq_item      *items[3];
    wq_err        errs[3] = {WQ_EFULL, WQ_EFULL, WQ_EFULL};

    for (int with_errs = 0; with_errs < 2; with_errs++) {
        take_three(t, items);
        assert_err(
            wq_finish_many(t->q, items, NULL, with_errs ? errs : NULL, 3),
            WQ_OK);
        for (size_t i = 0; i < 3; i++) {
            assert_null(items[i]);
            assert_err(errs[i], with_errs ? WQ_OK : WQ_EFULL);
        }
        assert_int_equal(counts_of(t->q).known, 0);
    }
}

/* S-14: also an item that is in the array twice. */
TEST(finish_many_treats_each_item_alone)
{
    struct timed   *t = *state;
    wq_item        *items[3];
    const wq_result results[4] = {wq_result_done(), wq_result_retry(),
                                  wq_result_retry(), wq_result_bury()};

    for (int with_errs = 0; with_errs < 2; with_errs++) {
        wq_err errs[4] = {WQ_EFULL, WQ_EFULL, WQ_EFULL, WQ_EFULL};

        take_three(t, items);
        wq_item *many[4] = {items[0], items[1], items[1], items[2]};
        assert_err(
            wq_finish_many(t->q, many, results, with_errs ? errs : NULL, 4),
            WQ_ESTATE);
        for (size_t i = 0; i < 4; i++)
            assert_null(many[i]);
        if (with_errs) {
            assert_err(errs[0], WQ_OK);
            assert_err(errs[1], WQ_OK);
            assert_err(errs[2], WQ_ESTATE);
            assert_err(errs[3], WQ_EDROPPED);
        }
        assert_int_equal(counts_of(t->q).held, 0);
        step(t, HOUR);
        work_on(t->q, "b");
        assert_none_due(t);
    }
}

/* ---- an order that refuses keys ------------------------------------------ */

/* S-14 Q-24: the item is still on loan, and a second finish succeeds. */
TEST(item_stays_on_loan_if_the_order_refuses_its_key)
{
    wq_queue       *q = open_queue(WQ_CONFIG(.order = &narrow_order));
    const wq_result results[] = {wq_result_done(), wq_result_back(),
                                 wq_result_after(0), wq_result_drop()};

    narrow.err = WQ_EIO;
    for (size_t i = 0; i < LEN(results); i++)
        for (int with_get = 0; with_get < 2; with_get++) {
            wq_item *next;

            narrow.refuses = false;
            add(q, "foo");
            wq_item *item = next = take(q);
            add(q, "foo"); /* DIRTY */
            narrow.refuses = true;
            assert_err(with_get ? wq_next_with(q, results[i], 0, &next)
                                : wq_finish(q, item, results[i]),
                       WQ_EIO);
            assert_ptr_equal(next, item);
            assert_int_equal(counts_of(q).held, 1);
            assert_int_equal(counts_of(q).drops, 0);
            narrow.refuses = false;
            assert_err(wq_finish(q, item, wq_result_done()), WQ_OK);
            work_on(q, "foo");
        }
    wq_destroy(q);
}

/* ---- holds --------------------------------------------------------------- */

/* S-03 */
TEST(holds_of_a_queue_in_memory_do_not_end)
{
    struct timed *t = *state;

    add(t->q, "foo");
    wq_item *item = take(t->q);
    assert_int_equal(wq_hold_left(t->q, item), WQ_FOREVER);
    step(t, HOUR);
    assert_int_equal(wq_hold_left(t->q, item), WQ_FOREVER);
    assert_int_equal(wq_hold_left(t->q, NULL), 0);
    assert_int_equal(wq_hold_left(NULL, item), 0);
    assert_err(wq_renew(t->q), WQ_OK);
    assert_err(wq_renew(NULL), WQ_EINVAL);
    finish(t->q, item);
}

/* S-13 */
TEST(queue_in_memory_has_no_keys_to_revive)
{
    static const char   too_long[WQ_KEY_MAX + 1];
    const struct timed *t = *state;

    assert_err(wq_revive_str(t->q, "foo"), WQ_ENOTSUP);
    assert_err(wq_revive_str(NULL, "foo"), WQ_EINVAL);
    assert_err(wq_revive_str(t->q, ""), WQ_EINVAL);
    assert_err(wq_revive(t->q, wq_bytes(too_long, sizeof too_long)),
               WQ_ETOOLONG);
    assert_int_equal(counts_of(t->q).known, 0);
}

WQ_TESTS(with_time(finish_refuses_null),
         with_time(item_of_another_queue_is_refused),
         with_time(copy_of_an_item_is_refused),
         with_time(item_of_a_loan_that_has_ended_is_refused),
         with_time(item_of_a_loan_that_has_ended_forgets_nothing),
         with_time(unknown_outcome_is_a_retry),
         with_time(finish_many_refuses_null_and_changes_nothing),
         with_time(finish_many_without_results_is_done),
         with_time(finish_many_treats_each_item_alone),
         test(item_stays_on_loan_if_the_order_refuses_its_key),
         with_time(holds_of_a_queue_in_memory_do_not_end),
         with_time(queue_in_memory_has_no_keys_to_revive));
