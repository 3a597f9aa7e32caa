/* SPDX-License-Identifier: MIT */
/* test_levels.c: are priorities found, served from the highest down, and
 * forgotten when no key has them any more?
 *
 * A line is its `first` alone here: the levels only look whether that is 0.
 */
#include "unit/counted.h"

#include <limits.h>

#include "core/levels.h"
#include "unit/dice.h"

COUNTED(levels);

static void
expect_sound(void)
{
    const char *broken = wq__levels_check(&levels);
    if (broken)
        fail_msg("%s", broken);
}

static uint32_t
find(int priority)
{
    uint32_t level;

    assert_int_equal(wq__levels_find(&levels, priority, &level), WQ_OK);
    assert_int_equal(wq__levels_priority(&levels, level), priority);
    return level;
}

static void
fill(uint32_t level)
{
    levels.at[level].first = 1;
    wq__levels_filled(&levels, level);
}

static void
empty(uint32_t level)
{
    levels.at[level].first = 0;
}

static void
release(uint32_t level)
{
    wq__levels_release(&levels, level);
}

static int
top(void)
{
    expect_sound();
    return wq__levels_priority(&levels, wq__levels_top(&levels));
}

TEST(priority_zero_is_there_and_costs_nothing)
{
    assert_int_equal(find(0), 0);
    release(0);
    wq__levels_hold(&levels, 0);
    fill(0);
    assert_int_equal(top(), 0);
    assert_int_equal(levels.used, 1);
    assert_int_equal(mem.calls, 0);
}

TEST(same_priority_is_the_same_level)
{
    const uint32_t a = find(7), b = find(-7);

    assert_int_not_equal(a, b);
    assert_int_equal(find(7), a);
    assert_int_equal(levels.used, 3);
    release(a);
    assert_int_equal(find(7), a); /* it is still held */
    release(a);
    release(a);
    release(b);
    assert_int_equal(levels.used, 1);
}

/* O-51 */
TEST(highest_with_a_key_is_on_top)
{
    static const int priorities[] = {INT_MIN, -1, 0, 1, INT_MAX};
    uint32_t         all[5];

    for (size_t i = 0; i < 5; i++)
        fill(all[i] = find(priorities[i]));
    for (size_t i = 5; i-- > 0;) {
        assert_int_equal(top(), priorities[i]);
        empty(all[i]);
    }
    fill(all[0]);
    fill(all[3]);
    empty(all[3]); /* a line that fills again keeps its place */
    fill(all[3]);
    assert_int_equal(levels.heap_len, 2);
    assert_int_equal(top(), 1);
    empty(all[3]);
    assert_int_equal(top(), INT_MIN);
    assert_int_equal(levels.heap_len, 1);
    for (size_t i = 0; i < 5; i++)
        release(all[i]);
}

/* A level goes away from the middle of the heap, too. */
TEST(level_that_goes_leaves_the_heap_in_order)
{
    enum { N = 40 };
    uint32_t all[N];

    for (int gone = 0; gone < N; gone++) {
        for (int i = 0; i < N; i++)
            fill(all[i] = find(1 + (i * 7) % N));
        empty(all[gone]);
        release(all[gone]);
        expect_sound();
        int last = INT_MAX;
        for (int n = 1; n < N; n++) {
            const uint32_t level = wq__levels_top(&levels);
            assert_true(wq__levels_priority(&levels, level) < last);
            last = wq__levels_priority(&levels, level);
            empty(level);
            release(level);
        }
        assert_int_equal(levels.used, 1);
    }
}

/* Priorities from all over the range of int, and all their neighbours. */
static int
spread(int i)
{
    static const int from[] = {INT_MIN, -1000, 1, INT_MAX - 2000};
    return from[i % 4] + i / 4 + (i % 4 == 3);
}

TEST(thousands_of_priorities_are_all_found_and_given_back)
{
    enum { N = 4000 };
    static uint32_t all[N];
    const size_t    before = mem.bytes;

    for (int i = 0; i < N; i++)
        fill(all[i] = find(spread(i)));
    assert_int_equal(levels.used, N + 1);
    expect_sound();
    for (int i = 0; i < N; i++) {
        assert_int_equal(find(spread(i)), all[i]);
        release(all[i]);
    }
    for (int i = 0; i < N; i++) {
        empty(all[i]);
        release(all[i]);
    }
    assert_int_equal(levels.used, 1);
    assert_int_equal(mem.bytes, before);
}

TEST(level_zero_keeps_its_line_when_the_others_go)
{
    enum { OTHERS = 20 }; /* more than memory is kept for */
    uint32_t high[OTHERS];

    for (int i = 0; i < OTHERS; i++)
        high[i] = find(i + 1);
    fill(0);
    levels.at[0].len = 3;
    levels.at[0].dirty = 2;
    for (int i = 0; i < OTHERS; i++) {
        fill(high[i]);
        empty(high[i]);
        release(high[i]);
    }
    assert_int_equal(mem.bytes, 0);
    assert_int_equal(levels.at[0].len, 3);
    assert_int_equal(levels.at[0].dirty, 2);
    assert_int_equal(top(), 0);
}

/* Random life against a plain table: how often each priority is held, and
 * whether it has a key. */
enum { CHURN = 200 };

struct churn {
    int      held[CHURN];
    bool     filled[CHURN];
    uint32_t level[CHURN];
};

static int
priority_of(int i)
{
    return (i - CHURN / 2) * 21474836 + 1; /* never 0 */
}

static void
step(struct churn *c, struct dice *dice)
{
    const int i = (int)dice_roll(dice, CHURN);

    switch (dice_roll(dice, 4)) {
    case 0:
    case 1:
        c->level[i] = find(priority_of(i));
        c->held[i]++;
        break;
    case 2:
        if (!c->held[i])
            break;
        if (c->held[i] == 1)
            empty(c->level[i]);
        c->filled[i] &= --c->held[i] > 0;
        release(c->level[i]);
        break;
    default:
        if (!c->held[i])
            break;
        c->filled[i] = !c->filled[i];
        if (c->filled[i])
            fill(c->level[i]);
        else
            empty(c->level[i]);
        break;
    }
}

static void
compare(const struct churn *c)
{
    int    highest = -1;
    size_t used = 1;

    for (int i = 0; i < CHURN; i++) {
        used += c->held[i] > 0;
        if (c->filled[i])
            highest = i;
    }
    assert_int_equal(levels.used, used);
    expect_sound();
    if (highest >= 0)
        assert_int_equal(top(), priority_of(highest));
}

TEST(random_life_agrees_with_a_plain_table)
{
    static struct churn c;
    struct dice         dice = dice_seeded("levels");

    memset(&c, 0, sizeof c);
    for (int i = 0; i < 40000; i++) {
        step(&c, &dice);
        compare(&c);
    }
    for (int i = 0; i < CHURN; i++) {
        if (c.held[i])
            empty(c.level[i]);
        for (; c.held[i]; c.held[i]--)
            release(c.level[i]);
    }
    assert_int_equal(mem.bytes, 0);
}

/* L6 */
TEST(refused_memory_changes_nothing_and_retry_works)
{
    uint32_t level = 77;

    for (int n = 1; n <= 20; n++) {
        const uint32_t used = levels.used;
        for (uint64_t nth = 1; nth <= 3; nth++) {
            counting_fail(&mem, nth, COUNTING_ONCE);
            const wq_err err = wq__levels_find(&levels, n, &level);
            counting_heal(&mem);
            if (err) {
                assert_int_equal(err, WQ_ENOMEM);
                assert_int_equal(levels.used, used);
            } else {
                release(level);
            }
            expect_sound();
        }
        fill(find(n));
    }
    for (int n = 20; n > 0; n--) {
        assert_int_equal(top(), n);
        empty(level = wq__levels_top(&levels));
        release(level);
    }
}

WQ_TESTS(counted_test(levels, priority_zero_is_there_and_costs_nothing),
         counted_test(levels, same_priority_is_the_same_level),
         counted_test(levels, highest_with_a_key_is_on_top),
         counted_test(levels, level_that_goes_leaves_the_heap_in_order),
         counted_test(levels,
                      thousands_of_priorities_are_all_found_and_given_back),
         counted_test(levels, level_zero_keeps_its_line_when_the_others_go),
         counted_test(levels, random_life_agrees_with_a_plain_table),
         counted_test(levels, refused_memory_changes_nothing_and_retry_works));
