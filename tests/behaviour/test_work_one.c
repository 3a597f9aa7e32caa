/* SPDX-License-Identifier: MIT */
/* test_work_one.c: what may a handler of wq_work_one() do, and which arguments
 * does the function refuse?
 *
 * What it does with a key is in scenarios/work_one.scenario. It refuses the same
 * configs as wq_workers_start(): see test_workers.c.
 */
#include "asked.h"

#include <stdatomic.h>

#include <wq/workers.h>

static char       keys[8]; /* that were handled, of one byte each */
static atomic_int reports; /* calls of on_stuck() */

static wq_err work_on_next(wq_queue *q);

/* Works on all other keys before it returns. */
static wq_result
work_on_others(void *ctx, const wq_item *item)
{
    strncat(keys, item->key.data, 1);
    if (wq_len(ctx))
        assert_err(work_on_next(ctx), WQ_OK);
    return wq_result_done();
}

static wq_err
work_on_next(wq_queue *q)
{
    return wq_work_one(q, WQ_WORKERS(.handler = work_on_others, .ctx = q), 0);
}

/* PW-25 */
TEST(handler_may_work_on_other_keys)
{
    struct timed *t = *state;

    add(t->q, "a");
    add(t->q, "b");
    add(t->q, "c");
    assert_err(work_on_next(t->q), WQ_OK);
    assert_string_equal(keys, "abc");
    assert_int_equal(counts_of(t->q).dones, 3);
    assert_none_due(t);
}

static wq_result
take_an_hour(void *ctx, const wq_item *item)
{
    (void)item;
    step(ctx, HOUR);
    return wq_result_done();
}

/* PW-25 PW-01 */
TEST(null_and_negative_arguments_are_refused)
{
    struct timed            *t = *state;
    const wq_workers_config *config =
        WQ_WORKERS(.handler = take_an_hour, .ctx = t);

    add(t->q, "foo");
    assert_err(wq_work_one(NULL, config, 0), WQ_EINVAL);
    assert_err(wq_work_one(t->q, NULL, 0), WQ_EINVAL);
    assert_err(wq_work_one(t->q, config, -1), WQ_EINVAL);
    assert_int_equal(wq_len(t->q), 1);
    assert_int_equal(wq_clock_now(t->clock), 0);
}

static void
count_report(void *ctx, const wq_item *item, int64_t running_ns)
{
    (void)ctx;
    (void)item;
    (void)running_ns;
    atomic_fetch_add(&reports, 1);
}

/* PW-25 */
TEST(work_one_has_no_watchdog)
{
    struct timed *t = *state;

    add(t->q, "foo");
    assert_err(
        wq_work_one(t->q,
                    WQ_WORKERS(.handler = take_an_hour, .ctx = t, .threads = 7,
                               .name = "not used", .item_deadline_ns = 1,
                               .on_stuck = count_report, .clock = t->clock),
                    0),
        WQ_OK);
    assert_int_equal(wq_clock_now(t->clock), HOUR);
    assert_int_equal(reports, 0);
}

WQ_TESTS(with_time(handler_may_work_on_other_keys),
         with_time(null_and_negative_arguments_are_refused),
         with_time(work_one_has_no_watchdog));
