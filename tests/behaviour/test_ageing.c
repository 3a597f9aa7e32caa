/* SPDX-License-Identifier: MIT */
/* test_ageing.c: is a key that has been READY for wq_config.max_ready_ns handed
 * out before all that came after it?
 */
#include "asked.h"
#include "configs.h"

#include <stdio.h>

#include <wq/backend.h>
#include <wq/limiter.h>

enum { LOW = -10, HIGH = 10 };

/* The bound of the queues in these tests. */
#define BOUND S

static struct timed *
create_ageing(int64_t max_ready_ns)
{
    return timed_create(WQ_CONFIG(.max_ready_ns = max_ready_ns));
}

static int
ageing_setup(void **state)
{
    *state = create_ageing(BOUND);
    return 0;
}

#define with_ageing(name) test_with(name, ageing_setup, timed_teardown)

/* Another urgent key; it is handed out next, or `instead` is. */
static void
flood_once(struct timed *t, int i, const char *instead)
{
    char key[32];

    (void)snprintf(key, sizeof key, "urgent%d", i);
    add_at(t->q, HIGH, key);
    work_on(t->q, instead ? instead : key);
}

/* ---- the bound ---------------------------------------------------------- */

/* O-89: the demonstration that ageing exists for. */
TEST(low_key_under_a_flood_leaves_at_the_bound)
{
    struct timed *t = *state;
    int           i = 0;

    add_at(t->q, LOW, "low");
    for (; i < 1000; i++) { /* 1000 of them before the bound */
        flood_once(t, i, NULL);
        step(t, BOUND / 1000 - (i == 999));
    }
    flood_once(t, i++, NULL); /* a nanosecond is missing */
    step(t, 1);
    flood_once(t, i++, "low");
    assert_int_equal(counts_of(t->q).overdue, 1);
    work_on(t->q, "urgent1001");
}

/* O-89: what priorities do without it. */
TEST(low_key_under_a_flood_never_leaves_without_ageing)
{
    struct timed *t = *state; /* of a queue without the bound */

    add_at(t->q, LOW, "low");
    for (int i = 0; i < 10000; i++) {
        flood_once(t, i, NULL);
        step(t, HOUR);
    }
    assert_int_equal(counts_of(t->q).overdue, 0);
    work_on_at(t->q, "low", LOW);
}

/* O-89: "for max_ready_ns and for the keys that were READY before it". */
TEST(overdue_key_waits_for_those_that_were_ready_before)
{
    struct timed *t = *state;

    add_at(t->q, HIGH, "first");
    add_at(t->q, LOW, "second");
    add_at(t->q, LOW, "third");
    add_at(t->q, 0, "fourth");
    step(t, BOUND - 1);
    add_at(t->q, HIGH, "fifth");
    step(t, 1);
    work_on(t->q, "first");
    work_on(t->q, "second");
    work_on(t->q, "third");
    work_on(t->q, "fourth");
    work_on(t->q, "fifth");
}

/* O-89 O-51 */
TEST(priorities_decide_before_the_bound)
{
    struct timed *t = *state;

    add_at(t->q, LOW, "low");
    step(t, 10);
    add_at(t->q, 0, "middle");
    add_at(t->q, HIGH, "high");
    step(t, BOUND - 11);
    work_on_at(t->q, "high", HIGH);
    work_on_at(t->q, "middle", 0);
    work_on_at(t->q, "low", LOW);
    assert_int_equal(counts_of(t->q).overdue, 0);
}

/* O-89: the order is the same, and nobody jumps the queue. */
TEST(equal_priorities_are_not_affected)
{
    struct timed *t = *state;
    char          key[32];

    for (int i = 0; i < 100; i++) {
        (void)snprintf(key, sizeof key, "%d", i);
        add(t->q, key);
        step(t, BOUND / 10);
    }
    for (int i = 0; i < 100; i++) {
        (void)snprintf(key, sizeof key, "%d", i);
        work_on(t->q, key);
    }
    assert_int_equal(counts_of(t->q).overdue, 0);
}

/* O-89: nothing but the order of arrival is left, or of priorities. */
TEST(bound_may_be_short_or_endless)
{
    struct timed *t = create_ageing(1);

    add_at(t->q, LOW, "low");
    add_at(t->q, HIGH, "high");
    step(t, 1);
    work_on(t->q, "low");
    work_on(t->q, "high");
    timed_destroy(t);

    t = create_ageing(WQ_FOREVER);
    add_at(t->q, LOW, "low");
    step(t, 1000 * HOUR);
    flood_once(t, 1, NULL);
    timed_destroy(t);
}

/* O-89 O-59 O-61 */
TEST(every_get_hands_out_overdue_keys_first)
{
    struct timed *t = *state;
    wq_item      *items[4], *next = NULL;
    size_t        n = 0;

    add_at(t->q, LOW, "low1");
    add_at(t->q, LOW, "low2");
    step(t, BOUND);
    add_at(t->q, 0, "zero");
    add_at(t->q, HIGH, "high");
    assert_err(wq_next(t->q, 0, &next), WQ_OK);
    assert_key(next, "low1");
    assert_err(wq_get_many(t->q, items, 4, 0, &n), WQ_OK);
    assert_int_equal(n, 3);
    assert_key(items[0], "low2");
    assert_key(items[1], "high");
    assert_key(items[2], "zero");
    assert_int_equal(counts_of(t->q).overdue, 2);
}

/* ---- when an age begins ------------------------------------------------- */

/* O-89 O-51 */
TEST(raised_key_keeps_its_age)
{
    struct timed *t = *state;

    add_at(t->q, LOW, "low");
    step(t, 1);
    add_at(t->q, 0, "zero");
    step(t, BOUND - 2);
    assert_added(add_how(t->q, WQ_ADD(.priority = -5), "low"), WQ_ADDED_RAISED);
    add_at(t->q, HIGH, "high1");
    work_on(t->q, "high1");
    step(t, 1);
    add_at(t->q, HIGH, "high2");
    work_on_at(t->q, "low", -5);
    assert_int_equal(counts_of(t->q).overdue, 1);
}

/* O-89: its new level was not its turn yet. */
TEST(raised_key_that_leaves_before_its_line_is_overdue)
{
    struct timed *t = *state;

    add_at(t->q, LOW, "raised");
    step(t, 1);
    add_at(t->q, HIGH, "first");
    (void)add_how(t->q, WQ_ADD(.priority = HIGH), "raised");
    step(t, BOUND - 1);
    work_on_at(t->q, "raised", HIGH);
    assert_int_equal(counts_of(t->q).overdue, 1);
    work_on(t->q, "first");
    assert_int_equal(counts_of(t->q).overdue, 1);
}

/* O-89 D-01: also if nobody looked at that moment. */
TEST(age_of_a_delayed_key_begins_at_its_deadline)
{
    for (int looks = 0; looks < 2; looks++) {
        struct timed *t = create_ageing(BOUND);

        (void)add_how(t->q, WQ_ADD(.priority = LOW, .after_ns = 5 * S), "low");
        step(t, 5 * S);
        if (looks)
            assert_int_equal(wq_len(t->q), 1);
        step(t, BOUND - 1);
        flood_once(t, 1, NULL);
        step(t, 1);
        flood_once(t, 2, "low");
        timed_destroy(t);
    }
}

/* O-89 O-32: what is said of it counts from the add. */
TEST(age_of_a_dirty_key_begins_at_its_done)
{
    struct timed *t = *state;

    add_at(t->q, LOW, "low");
    wq_item *item = take_at(t->q, "low", LOW);
    add_at(t->q, LOW, "low");
    step(t, BOUND);
    finish(t->q, item);
    step(t, BOUND - 1);
    flood_once(t, 1, NULL);
    assert_int_equal(info_of(t->q, "low").ready_ns, 2 * BOUND - 1);
    step(t, 1);
    flood_once(t, 2, "low");
}

/* O-89: a key behind an older one waits for that one alone. */
TEST(key_that_was_dirty_is_not_overtaken_when_overdue)
{
    struct timed *t = *state;

    add_at(t->q, LOW, "dirty");
    wq_item *item = take_at(t->q, "dirty", LOW);
    add_at(t->q, LOW, "dirty");
    step(t, BOUND);
    add_at(t->q, LOW, "older");
    step(t, 1);
    finish(t->q, item);
    step(t, BOUND);
    add_at(t->q, HIGH, "high");
    work_on(t->q, "older");
    work_on(t->q, "dirty");
    work_on(t->q, "high");
}

/* O-89: the run before is over. */
TEST(age_begins_anew_with_every_run)
{
    struct timed *t = *state;

    add_at(t->q, LOW, "low");
    step(t, BOUND);
    work_on(t->q, "low");
    add_at(t->q, LOW, "low");
    flood_once(t, 1, NULL);
    step(t, BOUND);
    flood_once(t, 2, "low");
}

/* ---- keys that go ------------------------------------------------------- */

/* O-89 O-57 O-52 */
TEST(key_that_is_taken_back_does_not_count)
{
    struct timed *t = *state;

    add_at(t->q, LOW, "removed");
    add_at(t->q, LOW, "put off");
    step(t, BOUND - 1);
    add_at(t->q, LOW, "low");
    assert_err(wq_remove(t->q, wq_str("removed")), WQ_OK);
    (void)add_how(t->q,
                  WQ_ADD(.after_ns = 2 * S, .waiting = WQ_IF_WAITING_REPLACE),
                  "put off");
    step(t, 1);
    flood_once(t, 1, NULL);
    step(t, BOUND - 1);
    flood_once(t, 2, "low");
    work_on(t->q, "urgent2");
    step(t, S); /* the deadline; and its age begins */
    flood_once(t, 3, NULL);
    step(t, BOUND);
    flood_once(t, 4, "put off");
}

/* O-89 O-55 */
TEST(dropped_key_is_not_the_oldest_any_more)
{
    struct timed *t =
        timed_create(WQ_CONFIG(.max_ready_ns = BOUND, .max_len = 3,
                               .overflow = WQ_OVERFLOW_DROP_OLDEST));

    add_at(t->q, LOW, "low1");
    add_at(t->q, LOW, "low2");
    add_at(t->q, LOW, "low3");
    step(t, BOUND);
    add_at(t->q, HIGH, "high");
    work_on(t->q, "low2");
    work_on(t->q, "low3");
    work_on(t->q, "high");
    timed_destroy(t);
}

/* O-89 O-86 */
TEST(flushed_key_is_ready_since_the_shutdown)
{
    struct timed *t = timed_create(
        WQ_CONFIG(.max_ready_ns = BOUND, .waiting = WQ_WAITING_FLUSH));

    (void)add_how(t->q, WQ_ADD(.priority = LOW, .after_ns = HOUR), "low");
    (void)add_how(t->q, WQ_ADD(.priority = HIGH, .after_ns = 2 * HOUR), "high");
    step(t, 10);
    wq_shutdown(t->q);
    step(t, BOUND - 1);
    work_on(t->q, "high");
    assert_int_equal(info_of(t->q, "low").ready_ns, BOUND - 1);
    work_on(t->q, "low");
    timed_destroy(t);
}

/* ---- with groups -------------------------------------------------------- */

/* O-89 O-80: whatever its group, and the turn of its group stays. */
TEST(overdue_key_leaves_before_the_turn_of_its_group)
{
    struct timed *t = timed_create(
        WQ_CONFIG(.max_ready_ns = BOUND, .group = wq_group_before_slash));

    add(t->q, "a/1");
    add(t->q, "a/2");
    step(t, 1);
    add(t->q, "b/1");
    add(t->q, "b/2");
    work_on(t->q, "a/1"); /* it is b's turn */
    step(t, BOUND - 1);
    work_on(t->q, "a/2");
    assert_int_equal(counts_of(t->q).overdue, 1);
    work_on(t->q, "b/1");
    work_on(t->q, "b/2");
    assert_int_equal(counts_of(t->q).overdue, 1);
    timed_destroy(t);
}

/* O-89 O-80: in the middle of its lane, because it was raised. */
TEST(raised_key_leaves_the_middle_of_its_group)
{
    struct timed *t = timed_create(
        WQ_CONFIG(.max_ready_ns = BOUND, .group = wq_group_before_slash));

    add_at(t->q, LOW, "a/1");
    step(t, 1);
    add(t->q, "a/2");
    add(t->q, "b/1");
    (void)add_how(t->q, WQ_ADD(.priority = 0), "a/1");
    add(t->q, "a/3");
    step(t, BOUND - 1);
    work_on(t->q, "a/1");
    work_on(t->q, "a/2");
    work_on(t->q, "b/1");
    work_on(t->q, "a/3");
    timed_destroy(t);
}

/* ---- the config --------------------------------------------------------- */

/* O-20 O-89 */
TEST(bound_below_zero_is_refused)
{
    assert_err(try_config(WQ_CONFIG(.max_ready_ns = -1)), WQ_EINVAL);
    assert_err(try_config(WQ_CONFIG(.max_ready_ns = INT64_MIN)), WQ_EINVAL);
    assert_err(try_config(WQ_CONFIG(.max_ready_ns = WQ_FOREVER)), WQ_OK);
}

/* O-20 O-89 */
TEST(ageing_cannot_be_combined_with_an_order_or_bounded_groups)
{
    assert_err(
        try_config(WQ_CONFIG(.max_ready_ns = 1, .order = &order_of_nothing)),
        WQ_ENOTSUP);
    assert_err(
        try_config(WQ_CONFIG(.max_ready_ns = 1, .group = wq_group_before_slash,
                             .group_max_held = 1)),
        WQ_ENOTSUP);
    assert_err(
        try_config(WQ_CONFIG(.max_ready_ns = 1, .ages = true, .max_len = 1,
                             .max_bytes = 1, .group = wq_group_before_slash)),
        WQ_OK);
}

/* O-18 */
TEST(layer_has_no_ageing)
{
    wq_queue *inner = NULL, *out = NULL;

    assert_err(wq_create(NULL, &inner), WQ_OK);
    assert_err(wq_delaying_wrap(inner, WQ_CONFIG(.max_ready_ns = 1), &out),
               WQ_ENOTSUP);
    assert_err(wq_rate_limiting_wrap(inner, WQ_CONFIG(.max_ready_ns = 1), &out),
               WQ_ENOTSUP);
    assert_err(wq_delaying_wrap(inner, WQ_CONFIG(.max_ready_ns = -1), &out),
               WQ_EINVAL);
    assert_null(out);
    wq_destroy(inner);
}

WQ_TESTS(with_ageing(low_key_under_a_flood_leaves_at_the_bound),
         with_time(low_key_under_a_flood_never_leaves_without_ageing),
         with_ageing(overdue_key_waits_for_those_that_were_ready_before),
         with_ageing(priorities_decide_before_the_bound),
         with_ageing(equal_priorities_are_not_affected),
         test(bound_may_be_short_or_endless),
         with_ageing(every_get_hands_out_overdue_keys_first),
         with_ageing(raised_key_keeps_its_age),
         with_ageing(raised_key_that_leaves_before_its_line_is_overdue),
         test(age_of_a_delayed_key_begins_at_its_deadline),
         with_ageing(age_of_a_dirty_key_begins_at_its_done),
         with_ageing(key_that_was_dirty_is_not_overtaken_when_overdue),
         with_ageing(age_begins_anew_with_every_run),
         with_ageing(key_that_is_taken_back_does_not_count),
         test(dropped_key_is_not_the_oldest_any_more),
         test(flushed_key_is_ready_since_the_shutdown),
         test(overdue_key_leaves_before_the_turn_of_its_group),
         test(raised_key_leaves_the_middle_of_its_group),
         test(bound_below_zero_is_refused),
         test(ageing_cannot_be_combined_with_an_order_or_bounded_groups),
         test(layer_has_no_ageing));
