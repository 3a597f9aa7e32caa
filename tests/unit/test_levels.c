/* SPDX-License-Identifier: MIT */
/* test_levels.c: are priorities found, served from the highest down, and
 * forgotten when nobody has them any more?
 *
 * A line is its `first` alone here: whether that is 0 is all the levels ask.
 */
#include "support/wq_test.h"

#include <limits.h>
#include <string.h>

#include "core/levels.h"
#include "support/counting.h"
#include "unit/dice.h"

struct fixture {
    struct counting   mem;
    struct wq__levels levels;
};

static struct fixture f;

static int
open_levels(void **state)
{
    (void)state;
    memset(&f, 0, sizeof f);
    counting_init(&f.mem);
    wq__levels_init(&f.levels, &f.mem.allocator);
    return 0;
}

static void
expect_sound(void)
{
    const char *broken = wq__levels_check(&f.levels);
    if (broken)
        fail_msg("%s", broken);
}

static int
close_levels(void **state)
{
    (void)state;
    expect_sound();
    wq__levels_fini(&f.levels);
    assert_int_equal(f.mem.bytes, 0);
    return 0;
}

static uint32_t
find(int priority)
{
    uint32_t level;

    assert_int_equal(wq__levels_find(&f.levels, priority, &level), WQ_OK);
    assert_int_equal(wq__levels_priority(&f.levels, level), priority);
    return level;
}

static void
fill(uint32_t level)
{
    f.levels.at[level].first = 1;
    wq__levels_filled(&f.levels, level);
}

static void
empty(uint32_t level)
{
    f.levels.at[level].first = 0;
}

static int
top(void)
{
    return wq__levels_priority(&f.levels, wq__levels_top(&f.levels));
}

TEST(priority_zero_is_there_and_costs_nothing)
{
    assert_int_equal(find(0), 0);
    wq__levels_release(&f.levels, 0);
    wq__levels_hold(&f.levels, 0);
    fill(0);
    assert_int_equal(top(), 0);
    assert_int_equal(f.levels.used, 1);
    assert_int_equal(f.mem.calls, 0);
}

TEST(same_priority_is_the_same_level)
{
    const uint32_t a = find(7), b = find(-7);

    assert_int_not_equal(a, b);
    assert_int_equal(find(7), a);
    assert_int_equal(f.levels.used, 3);
    wq__levels_release(&f.levels, a);
    assert_int_equal(find(7), a); /* somebody still has it */
    wq__levels_release(&f.levels, a);
    wq__levels_release(&f.levels, a);
    wq__levels_release(&f.levels, b);
    assert_int_equal(f.levels.used, 1);
}

/* O-51 */
TEST(highest_with_a_key_is_on_top)
{
    static const int all[] = {INT_MIN, -1, 0, 1, INT_MAX};
    uint32_t         levels[5];

    for (size_t i = 0; i < 5; i++)
        fill(levels[i] = find(all[i]));
    for (size_t i = 5; i-- > 0;) {
        assert_int_equal(top(), all[i]);
        empty(levels[i]);
    }
    fill(levels[0]);
    assert_int_equal(top(), INT_MIN);
    fill(levels[3]);
    assert_int_equal(top(), 1);
    for (size_t i = 0; i < 5; i++)
        wq__levels_release(&f.levels, levels[i]);
}

TEST(line_that_runs_empty_and_fills_again_keeps_its_place)
{
    const uint32_t high = find(5);

    fill(0);
    fill(high);
    empty(high);
    fill(high);
    assert_int_equal(f.levels.heap_len, 2);
    assert_int_equal(top(), 5);
    empty(high);
    assert_int_equal(top(), 0);
    assert_int_equal(f.levels.heap_len, 1);
    wq__levels_release(&f.levels, high);
}

/* A level goes away from the middle of the heap, too. */
TEST(level_that_goes_leaves_the_heap_in_order)
{
    enum { N = 40 };
    uint32_t levels[N];

    for (int gone = 0; gone < N; gone++) {
        for (int i = 0; i < N; i++)
            fill(levels[i] = find(1 + (i * 7) % N));
        empty(levels[gone]);
        wq__levels_release(&f.levels, levels[gone]);
        expect_sound();
        int last = INT_MAX;
        for (int n = 1; n < N; n++) {
            const uint32_t level = wq__levels_top(&f.levels);
            assert_true(wq__levels_priority(&f.levels, level) < last);
            last = wq__levels_priority(&f.levels, level);
            empty(level);
            wq__levels_release(&f.levels, level);
        }
        assert_int_equal(f.levels.used, 1);
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
    static uint32_t levels[N];
    const size_t    before = f.mem.bytes;

    for (int i = 0; i < N; i++)
        fill(levels[i] = find(spread(i)));
    assert_int_equal(f.levels.used, N + 1);
    expect_sound();
    for (int i = 0; i < N; i++) {
        assert_int_equal(find(spread(i)), levels[i]);
        wq__levels_release(&f.levels, levels[i]);
    }
    for (int i = 0; i < N; i++) {
        empty(levels[i]);
        wq__levels_release(&f.levels, levels[i]);
    }
    assert_int_equal(f.levels.used, 1);
    assert_int_equal(f.mem.bytes, before);
}

TEST(level_zero_keeps_its_line_when_the_others_go)
{
    enum { OTHERS = 20 }; /* more than are kept room for */
    uint32_t high[OTHERS];

    for (int i = 0; i < OTHERS; i++)
        high[i] = find(i + 1);
    fill(0);
    f.levels.at[0].len = 3;
    f.levels.at[0].dirty = 2;
    for (int i = 0; i < OTHERS; i++) {
        fill(high[i]);
        empty(high[i]);
        wq__levels_release(&f.levels, high[i]);
    }
    assert_int_equal(f.mem.bytes, 0);
    assert_int_equal(f.levels.at[0].len, 3);
    assert_int_equal(f.levels.at[0].dirty, 2);
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
        wq__levels_release(&f.levels, c->level[i]);
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
    assert_int_equal(f.levels.used, used);
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
            wq__levels_release(&f.levels, c.level[i]);
    }
    assert_int_equal(f.mem.bytes, 0);
}

/* L6 */
TEST(refused_memory_changes_nothing_and_retry_works)
{
    uint32_t level = 77;

    for (int n = 1; n <= 20; n++) {
        const uint32_t used = f.levels.used;
        for (uint64_t nth = 1; nth <= 3; nth++) {
            counting_fail(&f.mem, nth, COUNTING_ONCE);
            const wq_err err = wq__levels_find(&f.levels, n, &level);
            counting_heal(&f.mem);
            if (err) {
                assert_int_equal(err, WQ_ENOMEM);
                assert_int_equal(f.levels.used, used);
            } else {
                wq__levels_release(&f.levels, level);
            }
            expect_sound();
        }
        fill(find(n));
    }
    for (int n = 20; n > 0; n--) {
        assert_int_equal(top(), n);
        empty(level = wq__levels_top(&f.levels));
        wq__levels_release(&f.levels, level);
    }
}

#define levels_test(name) test_with(name, open_levels, close_levels)

WQ_TESTS(levels_test(priority_zero_is_there_and_costs_nothing),
         levels_test(same_priority_is_the_same_level),
         levels_test(highest_with_a_key_is_on_top),
         levels_test(line_that_runs_empty_and_fills_again_keeps_its_place),
         levels_test(level_that_goes_leaves_the_heap_in_order),
         levels_test(thousands_of_priorities_are_all_found_and_given_back),
         levels_test(level_zero_keeps_its_line_when_the_others_go),
         levels_test(random_life_agrees_with_a_plain_table),
         levels_test(refused_memory_changes_nothing_and_retry_works));
