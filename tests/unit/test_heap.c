/* SPDX-License-Identifier: MIT */
/* test_heap.c: does the key with the earliest deadline come first, always?
 *
 * The heap is held against a plain array that is searched from end to end.
 */
#include "unit/records.h"

#include "core/heap.h"
#include "unit/dice.h"

enum { KEYS = RECORDS };

struct fixture {
    struct wq__heap heap;

    /* The plain array: by key, its deadline and when it got it; 0: no. */
    int64_t  at[KEYS];
    uint64_t arrival[KEYS];
    uint64_t arrivals;
};

static struct fixture f;

static int
open_heap(void **state)
{
    (void)state;
    memset(&f, 0, sizeof f);
    open_records(UINT32_MAX);
    wq__heap_init(&f.heap, &recs.mem.allocator, &recs.slab);
    return 0;
}

static int
close_heap(void **state)
{
    (void)state;
    wq__heap_fini(&f.heap);
    close_records();
    return 0;
}

static void
note(size_t who, int64_t at)
{
    f.at[who] = at;
    f.arrival[who] = ++f.arrivals;
}

/* Into memory that was reserved. */
static void
push_reserved(size_t who, int64_t at)
{
    wq__heap_push(&f.heap, recs.refs[who], at);
    note(who, at);
}

static void
push(size_t who, int64_t at)
{
    assert_int_equal(wq__heap_reserve(&f.heap, 1), WQ_OK);
    push_reserved(who, at);
}

static void
change(size_t who, int64_t at)
{
    wq__heap_change(&f.heap, recs.refs[who], at);
    note(who, at);
}

static void
take_out(size_t who)
{
    wq__heap_remove(&f.heap, recs.refs[who]);
    f.arrival[who] = 0;
}

static size_t
owner(wq__ref ref)
{
    for (size_t i = 0; i < KEYS; i++)
        if (recs.refs[i] == ref)
            return i;
    fail_msg("reference %u is of no key", ref);
    return 0;
}

/* The key due first by the plain array; KEYS: none is WAITING. */
static size_t
expected_first(void)
{
    size_t best = KEYS;

    for (size_t i = 0; i < KEYS; i++)
        if (f.arrival[i] &&
            (best == KEYS || f.at[i] < f.at[best] ||
             (f.at[i] == f.at[best] && f.arrival[i] < f.arrival[best])))
            best = i;
    return best;
}

static void
expect_first_as_in_the_array(void)
{
    const size_t           expected = expected_first();
    const struct wq__wait *first = wq__heap_first(&f.heap);

    if (expected == KEYS) {
        assert_null(first);
        return;
    }
    assert_non_null(first);
    assert_int_equal(owner(first->ref), expected);
    assert_int_equal(first->at, f.at[expected]);
}

static void
expect_all_leave_in_order(void)
{
    while (f.heap.len) {
        expect_first_as_in_the_array();
        take_out(owner(wq__heap_first(&f.heap)->ref));
    }
    assert_int_equal(expected_first(), KEYS);
}

TEST(deadlines_in_any_order_leave_sorted)
{
    static const int64_t extremes[] = {INT64_MAX, 0, INT64_MIN, -1, 1};
    struct dice          dice = dice_seeded("heap order");

    assert_null(wq__heap_first(&f.heap));
    assert_null(f.heap.entries);
    for (size_t i = 0; i < KEYS; i++)
        push(i, i < 5 ? extremes[i] : (int64_t)dice_bits(&dice));
    expect_all_leave_in_order();
}

/* L4, and where we differ from D-12. */
TEST(equal_deadlines_leave_in_arrival_order)
{
    for (size_t i = 0; i < KEYS; i++)
        push(i, 7);
    for (size_t i = 0; i < KEYS; i++) {
        assert_int_equal(owner(wq__heap_first(&f.heap)->ref), i);
        take_out(i);
    }
}

/* L4: a key that gets another deadline arrives anew among its equals. */
TEST(changed_deadline_queues_behind_its_equals)
{
    push(0, 9);
    push(1, 5);
    push(2, 5);
    change(0, 5);
    assert_int_equal(owner(wq__heap_first(&f.heap)->ref), 1);
    expect_all_leave_in_order();
}

TEST(deadline_may_change_to_earlier_and_to_later)
{
    for (size_t i = 0; i < KEYS; i++)
        push(i, (int64_t)i);
    for (size_t i = 0; i < KEYS; i += 2)
        change(i, (int64_t)(KEYS - i));
    expect_all_leave_in_order();
}

TEST(entry_may_leave_from_anywhere)
{
    for (size_t hole = 0; hole < 30; hole++) {
        for (size_t i = 0; i < 30; i++)
            push(i, (int64_t)(i * 7 % 30));
        take_out(hole);
        expect_all_leave_in_order();
    }
}

TEST(record_knows_its_deadline_while_it_waits)
{
    push(3, 77);
    push(4, 33);
    assert_int_equal(wq__heap_entry(&f.heap, recs.refs[3])->at, 77);
    assert_int_equal(wq__heap_entry(&f.heap, recs.refs[4])->at, 33);
    take_out(3);
    assert_int_equal(record(3)->wait, 0);
}

TEST(random_life_agrees_with_a_plain_array)
{
    struct dice dice = dice_seeded("heap");

    for (int step = 0; step < 30000; step++) {
        const size_t  who = dice_roll(&dice, KEYS);
        const int64_t at = (int64_t)dice_roll(&dice, 20); /* often equal */
        if (!f.arrival[who])
            push(who, at);
        else if (dice_roll(&dice, 2))
            change(who, at);
        else
            take_out(who);
        if (dice_roll(&dice, 50) == 0)
            wq__heap_sort(&f.heap);
        expect_first_as_in_the_array();
    }
    expect_all_leave_in_order();
}

static int64_t
place_of(size_t who)
{
    return wq__heap_entry(&f.heap, recs.refs[who]) - f.heap.entries;
}

/* Equal delays: each deadline is the latest. */
TEST(deadlines_in_order_leave_without_moving_others)
{
    for (size_t i = 0; i < KEYS; i++)
        push(i, (int64_t)i);
    assert_true(f.heap.is_sorted);
    for (size_t i = 0; i < KEYS; i++) {
        const uint32_t last = record(KEYS - 1)->wait;
        assert_int_equal(place_of(KEYS - 1), KEYS - 1 - i);
        take_out(i);
        assert_int_equal(record(KEYS - 1)->wait, i < KEYS - 1 ? last : 0);
    }
    assert_true(f.heap.is_sorted);
}

/* They come and go, in order: the places of those that went are used again. */
TEST(deadlines_that_come_and_go_in_order_need_no_more_memory)
{
    enum { WAIT = 20 };

    for (size_t i = 0; i < WAIT; i++)
        push(i, (int64_t)i);
    size_t most = 0;
    for (size_t i = WAIT; i < 50 * (size_t)KEYS; i++) {
        expect_first_as_in_the_array();
        take_out((i - WAIT) % KEYS);
        push(i % KEYS, (int64_t)i);
        assert_true(f.heap.is_sorted);
        most = f.heap.cap > most ? f.heap.cap : most;
    }
    assert_true(most <= 4 * (size_t)WAIT);
    expect_all_leave_in_order();
}

/* A change, an early deadline, a removal from the middle: a heap again. */
TEST(what_breaks_the_order_of_a_sorted_heap_keeps_it_a_heap)
{
    for (int how = 0; how < 3; how++) {
        for (size_t i = 0; i < KEYS - 1; i++)
            push(i, (int64_t)(i * 37 % KEYS));
        wq__heap_sort(&f.heap);
        assert_true(f.heap.is_sorted);
        take_out(owner(wq__heap_first(&f.heap)->ref));
        if (how == 0)
            change(KEYS / 2, 1);
        else if (how == 1)
            push(KEYS - 1, 1);
        else
            take_out(KEYS / 2);
        assert_false(f.heap.is_sorted);
        expect_all_leave_in_order();
        assert_true(f.heap.is_sorted);
    }
}

TEST(quarter_of_the_deadlines_is_most_of_them)
{
    for (size_t i = 0; i < KEYS; i++)
        push(i, (int64_t)(i * 37 % KEYS));
    for (int64_t now = -1; now <= KEYS; now++)
        assert_int_equal(wq__heap_is_mostly_due(&f.heap, now),
                         (now + 1) * 4 > KEYS);
}

/* Memory for new ones, or, if there is none, the places of those that went. */
TEST(places_of_those_that_went_are_used_if_memory_is_refused)
{
    for (size_t i = 0; i < KEYS / 2; i++)
        push(i, (int64_t)i);
    const size_t cap = f.heap.cap;
    for (size_t i = 0; i < 3; i++)
        take_out(i);
    counting_fail(&recs.mem, 1, COUNTING_FROM_NOW);
    size_t n = KEYS / 2;
    for (; n < KEYS && wq__heap_reserve(&f.heap, 1) == WQ_OK; n++)
        push_reserved(n, (int64_t)n);
    counting_heal(&recs.mem);
    assert_true(n == KEYS || f.heap.len == cap);
    expect_all_leave_in_order();
}

/* L6 */
TEST(refused_memory_changes_nothing_and_retry_works)
{
    size_t refusals = 0;

    for (size_t i = 0; i < KEYS; i++) {
        counting_fail(&recs.mem, 1, COUNTING_ONCE);
        if (wq__heap_reserve(&f.heap, 1) != WQ_OK) {
            refusals++;
            expect_first_as_in_the_array();
            assert_int_equal(f.heap.len, i);
        }
        counting_heal(&recs.mem);
        push(i, (int64_t)(KEYS - i));
    }
    assert_true(refusals > 0);
    expect_all_leave_in_order();
}

/* O-10 */
TEST(array_shrinks_when_keys_leave_if_it_can)
{
    for (int can = 0; can < 2; can++) {
        for (size_t i = 0; i < KEYS; i++)
            push(i, (int64_t)(i * 13 % KEYS));
        const size_t cap = f.heap.cap;
        if (!can)
            counting_fail(&recs.mem, 1, COUNTING_FROM_NOW);
        expect_all_leave_in_order();
        counting_heal(&recs.mem);
        assert_true(can ? f.heap.cap <= cap / 4 : f.heap.cap == cap);
    }
}

/* O-10: whatever leaves meanwhile, until they are given up. */
TEST(reserved_entries_do_not_shrink_away)
{
    enum { MORE = KEYS - 1 };

    push(0, 5);
    assert_int_equal(wq__heap_reserve(&f.heap, MORE), WQ_OK);
    const size_t cap = f.heap.cap;
    take_out(0);
    assert_int_equal(f.heap.cap, cap);
    counting_fail(&recs.mem, 1, COUNTING_FROM_NOW);
    for (size_t i = 0; i < MORE; i++)
        push_reserved(i, (int64_t)i);
    counting_heal(&recs.mem);
    assert_int_equal(f.heap.reserved, 0);
    expect_all_leave_in_order();

    push(0, 5);
    assert_int_equal(wq__heap_reserve(&f.heap, MORE), WQ_OK);
    wq__heap_release_reserved(&f.heap);
    take_out(0);
    assert_true(f.heap.cap <= cap / 4);
}

/* What the caller keeps there moves along. */
TEST(level_and_pace_stay_with_their_entry)
{
    for (size_t i = 0; i < KEYS; i++) {
        push(i, (int64_t)(i * 37 % KEYS));
        assert_int_equal(wq__heap_entry(&f.heap, recs.refs[i])->level, 0);
        assert_int_equal(wq__heap_entry(&f.heap, recs.refs[i])->throttle, 0);
        wq__heap_entry(&f.heap, recs.refs[i])->level = (uint32_t)i;
        wq__heap_entry(&f.heap, recs.refs[i])->throttle = (wq__ref)(2 * i);
    }
    for (size_t i = 0; i < KEYS; i++) {
        change(i, (int64_t)(i * 11 % KEYS));
        assert_int_equal(wq__heap_entry(&f.heap, recs.refs[i])->level, i);
        assert_int_equal(wq__heap_entry(&f.heap, recs.refs[i])->throttle,
                         2 * i);
    }
}

#define heap_test(name) test_with(name, open_heap, close_heap)

WQ_TESTS(heap_test(deadlines_in_any_order_leave_sorted),
         heap_test(equal_deadlines_leave_in_arrival_order),
         heap_test(changed_deadline_queues_behind_its_equals),
         heap_test(deadline_may_change_to_earlier_and_to_later),
         heap_test(entry_may_leave_from_anywhere),
         heap_test(record_knows_its_deadline_while_it_waits),
         heap_test(random_life_agrees_with_a_plain_array),
         heap_test(deadlines_in_order_leave_without_moving_others),
         heap_test(deadlines_that_come_and_go_in_order_need_no_more_memory),
         heap_test(what_breaks_the_order_of_a_sorted_heap_keeps_it_a_heap),
         heap_test(quarter_of_the_deadlines_is_most_of_them),
         heap_test(places_of_those_that_went_are_used_if_memory_is_refused),
         heap_test(refused_memory_changes_nothing_and_retry_works),
         heap_test(array_shrinks_when_keys_leave_if_it_can),
         heap_test(reserved_entries_do_not_shrink_away),
         heap_test(level_and_pace_stay_with_their_entry));
