/* SPDX-License-Identifier: MIT */
/* test_look.c: is what can be seen of a queue true?
 *
 * One key, all priorities, and walks that go on while keys come and go.
 */
#include <stdio.h>

#include "unit/core_fixture.h"

enum { ALL = 31 }; /* every wq_state */

/* ---- one key ------------------------------------------------------------ */

/* O-32 */
TEST(absent_key_has_no_state)
{
    const wq_key_info info = look_at("nobody", 5);

    assert_int_equal(info.states, 0);
    assert_int_equal(info.priority, 0);
    assert_int_equal(info.ready_ns, -1);
    assert_int_equal(info.held_ns, -1);
    assert_int_equal(info.wait_ns, -1);
    assert_int_equal(info.fence, 0);
}

static const struct scene looks[] = {
    /* O-32: of what it is handed out with; else of its deadline; else it is
     * HELD with. */
    {"the priority of a key is the one that comes next",
     "add foo @50 +2 SCHEDULED; priority foo 2; add foo +1 NEW; "
     "priority foo 1; get foo; priority foo 2; cancel foo OK; priority foo 1; "
     "add foo -4 DIRTY; priority foo -4"},
    {"a deadline that never comes is never nearer",
     "add foo @never SCHEDULED; 1000: waits-for foo never; next-in never; "
     "add bar @1500 SCHEDULED; waits-for bar 500; next-in 500; "
     "2000: waits-for bar 0"},
    /* M-04 O-32: whenever the deadline was noticed; HELD: DIRTY since then. */
    {"a key that was WAITING is READY since its deadline",
     "ages; add foo @50 SCHEDULED; pass 80; ready-for foo 30; 90: get foo; "
     "latency foo 40; add foo @100 SCHEDULED; pass 130; ready-for foo 30; "
     "140: done foo; ready-for foo 40"},
    /* M-04 D-08 */
    {"an age is never negative when time goes back",
     "ages; add foo @50 SCHEDULED; pass 80; 20: ready-for foo 0; get foo; "
     "latency foo 0"},
};

TEST(what_is_known_of_a_key_is_true)
{
    run_scenes(looks, LEN(looks), open_core);
}

TEST(fence_of_a_held_key_is_that_of_its_item)
{
    play("add foo NEW");
    const wq_item *item = get("foo");
    assert_int_equal(look_at("foo", 0).fence, item->fence);
}

/* ---- priorities --------------------------------------------------------- */

static size_t
depth_of(const wq_depth *depths, size_t n, int priority)
{
    for (size_t i = 0; i < n; i++)
        if (depths[i].priority == priority)
            return depths[i].keys;
    return SIZE_MAX;
}

/* O-31 */
TEST(depths_count_ready_and_dirty_keys_of_every_priority)
{
    wq_depth depths[8];
    size_t   n = 0;

    wq__core_depths(&f.core, depths, 8, &n);
    assert_int_equal(n, 1);
    assert_int_equal(depth_of(depths, n, 0), 0);
    play("add held +3 NEW; get held; add held +4 DIRTY; add a +4 NEW; "
         "add b -4 NEW; add c @50 +6 SCHEDULED");
    wq__core_depths(&f.core, depths, 8, &n);
    assert_int_equal(n, 4);
    assert_int_equal(depth_of(depths, n, 0), 0);
    assert_int_equal(depth_of(depths, n, 4), 2);
    assert_int_equal(depth_of(depths, n, -4), 1);
    assert_int_equal(depth_of(depths, n, 6), 0);
    depths[2].priority = 99;
    wq__core_depths(&f.core, depths, 2, &n);
    assert_int_equal(n, 4);
    assert_int_equal(depths[2].priority, 99);
}

/* ---- walks -------------------------------------------------------------- */

enum { KEYS = 600 };

/* Key number `n`: lengths of every kind, so that blocks of many sizes are
 * made. */
static const char *
name_of(int n)
{
    static char text[400];
    const int   len = n % 13 * 24;

    memset(text, '.', sizeof text);
    (void)snprintf(text + len, sizeof text - (size_t)len, "#%d", n);
    return text;
}

static int
number_of(wq_key key)
{
    const char *mark = memchr(key.data, '#', key.len);
    int         n = 0;

    assert_non_null(mark);
    const char *end = (const char *)key.data + key.len;
    for (const char *digit = mark + 1; digit < end; digit++)
        n = n * 10 + (*digit - '0');
    return n;
}

struct walk {
    wq__ref cursor;
    int     seen[KEYS];
};

/* False: that was the last. */
static bool
walk_on(struct walk *walk, size_t budget, unsigned states)
{
    wq_key      key;
    wq_key_info info;

    while (wq__core_walk(&f.core, &walk->cursor, &budget, states, 0, &key,
                         &info)) {
        assert_true(info.states & states);
        walk->seen[number_of(key)]++;
    }
    return budget == 0;
}

/* O-33 */
TEST(walk_with_any_budget_meets_every_key_once)
{
    static struct walk walk;

    for (int n = 0; n < KEYS; n++)
        add(name_of(n), n % 3, WQ_ADDED_NEW);
    for (size_t budget = 1; budget < 50; budget += 7) {
        memset(&walk, 0, sizeof walk);
        while (walk_on(&walk, budget, ALL))
            ;
        for (int n = 0; n < KEYS; n++)
            assert_int_equal(walk.seen[n], 1);
    }
}

TEST(walk_over_nothing_meets_nothing)
{
    struct walk walk = {0};

    assert_false(walk_on(&walk, 100, ALL));
    add(name_of(1), 0, WQ_ADDED_NEW);
    assert_int_equal(take_back(name_of(1), 0), WQ_OK);
    memset(&walk, 0, sizeof walk);
    assert_false(walk_on(&walk, 100, ALL));
    for (int n = 0; n < KEYS; n++)
        assert_int_equal(walk.seen[n], 0);
}

/* O-33 */
TEST(walk_meets_only_keys_in_the_wanted_states)
{
    struct walk walk = {0};

    play("add #0 NEW; get #0; add #1 NEW; add #2 @50 SCHEDULED; "
         "add #3 @50 backoff SCHEDULED; "
         "add #4 throttle=9 +1 NEW; run #4"); /* its cooldown is no state */
    while (walk_on(&walk, 3, WQ_STATE_HELD | WQ_STATE_BACKOFF))
        ;
    assert_int_equal(walk.seen[0], 1);
    assert_int_equal(walk.seen[1], 0);
    assert_int_equal(walk.seen[2], 0);
    assert_int_equal(walk.seen[3], 1);
    memset(&walk, 0, sizeof walk);
    while (walk_on(&walk, 3, ALL))
        ;
    for (int n = 0; n < 5; n++)
        assert_int_equal(walk.seen[n], n < 4);
}

/* O-33: every fifth key stays; the others go, and with them whole blocks, whose
 * numbers come back with slots of another size. */
TEST(key_that_stays_is_met_once_while_others_change)
{
    static struct walk walk;

    for (int round = 0; round < 20; round++) {
        int n = round;

        memset(&walk, 0, sizeof walk);
        for (int k = 0; k < KEYS / 2; k++)
            (void)add_how(HOW(.priority = k % 5), name_of(k), 0);
        while (walk_on(&walk, 1 + (size_t)round, ALL)) {
            for (int k = 0; k < 30; k++, n = (n + 1) % KEYS) {
                if (n % 5 == 0 && n < KEYS / 2)
                    continue;
                if (n % 2 == round % 2)
                    (void)take_back(name_of(n), 0);
                else
                    (void)add_how(HOW(.priority = 0), name_of(n), 0);
            }
        }
        for (int k = 0; k < KEYS / 2; k += 5)
            assert_int_equal(walk.seen[k], 1);
    }
}

/* The cursor stands in the middle of a slot of the new size. */
TEST(walk_goes_on_in_a_block_that_was_cut_anew)
{
    static struct walk walk;
    int                kept = 0;

    for (int n = 0; n < KEYS; n += 13) /* one size */
        add(name_of(n), 0, WQ_ADDED_NEW);
    for (int i = 0; i < 9; i++)
        assert_true(walk_on(&walk, 1, ALL));
    for (int n = 0; n < KEYS; n += 13)
        assert_int_equal(take_back(name_of(n), 0), WQ_OK);
    memset(walk.seen, 0, sizeof walk.seen);
    for (int n = 7; n < KEYS; n += 13)
        add(name_of(n), 0, WQ_ADDED_NEW);
    while (walk_on(&walk, 2, ALL))
        ;
    for (int n = 0; n < KEYS; n++) {
        assert_true(walk.seen[n] <= (n % 13 == 7));
        kept += walk.seen[n];
    }
    assert_true(kept > 0);
}

WQ_TESTS(core_test(absent_key_has_no_state),
         test(what_is_known_of_a_key_is_true),
         core_test(fence_of_a_held_key_is_that_of_its_item),
         core_test(depths_count_ready_and_dirty_keys_of_every_priority),
         core_test(walk_with_any_budget_meets_every_key_once),
         core_test(walk_over_nothing_meets_nothing),
         core_test(walk_meets_only_keys_in_the_wanted_states),
         core_test(key_that_stays_is_met_once_while_others_change),
         core_test(walk_goes_on_in_a_block_that_was_cut_anew));
