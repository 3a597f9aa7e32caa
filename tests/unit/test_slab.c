/* SPDX-License-Identifier: MIT */
/* test_slab.c: do objects stay where they are, and do empty blocks go back?
 */
#include "unit/counted.h"

#include "core/slab.h"
#include "unit/dice.h"

enum { MANY = 3000 };

COUNTED(slab);
static wq__ref refs[MANY];

static void *
must_alloc(size_t size, wq__ref *ref)
{
    void *p = wq__slab_alloc(&slab, size, ref);
    assert_non_null(p);
    assert_ptr_equal(wq__slab_at(&slab, *ref), p);
    return p;
}

static void
release(size_t who)
{
    wq__slab_free(&slab, refs[who]);
}

/* Fill the object with a pattern of its own. */
static void
sign(size_t who, size_t size)
{
    memset(must_alloc(size, &refs[who]), (int)(who & 0xff), size);
}

static void
expect_signed(size_t who, size_t size)
{
    const unsigned char *p = wq__slab_at(&slab, refs[who]);
    for (size_t i = 0; i < size; i++)
        assert_int_equal(p[i], who & 0xff);
}

static size_t
size_of(size_t who)
{
    return 1 + who % WQ__SLAB_MAX;
}

static uint32_t
blocks_of_class(size_t units)
{
    return units < slab.classes_len ? slab.classes[units].blocks : 0;
}

TEST(objects_of_every_size_are_aligned_and_keep_their_bytes)
{
    assert_int_equal(mem.calls, 0); /* nothing is allocated in advance */
    for (size_t i = 0; i < MANY; i++) {
        sign(i, size_of(i));
        assert_int_not_equal(refs[i], 0);
        assert_int_equal((uintptr_t)wq__slab_at(&slab, refs[i]) % 8, 0);
    }
    for (size_t i = 0; i < MANY; i++)
        expect_signed(i, size_of(i));
    assert_int_equal(slab.live, MANY);
}

TEST(freed_slot_is_used_again_before_new_memory)
{
    for (size_t i = 0; i < 100; i++)
        sign(i, 48);
    const uint64_t calls = mem.calls;
    for (int round = 0; round < 1000; round++) {
        const size_t who = (size_t)round % 100;
        release(who);
        sign(who, 48);
    }
    assert_int_equal(mem.calls, calls);
    for (size_t i = 0; i < 100; i++)
        expect_signed(i, 48);
}

/* How many blocks of a size have no object in them. */
static uint32_t
empty_blocks_of_class(size_t units)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < slab.table_len; i++)
        n += slab.table[i] && slab.table[i]->slot_units == units &&
             slab.table[i]->live == 0;
    return n;
}

/* Orders in which the first `n` objects are freed: the first first, the last
 * first, one out of every so many, at random. */
enum { ORDERS = 4 };

static void
put_in_order(size_t *who, size_t n, int order, struct dice *dice)
{
    enum { STRIDE = 37 }; /* shares no factor with any `n` here */

    for (size_t i = 0; i < n; i++)
        who[i] = order == 0 ? i : order == 1 ? n - 1 - i : i * STRIDE % n;
    for (size_t i = n; order == 3 && i > 1; i--) {
        const size_t other = dice_roll(dice, i), last = who[i - 1];
        who[i - 1] = who[other];
        who[other] = last;
    }
}

/* O-10: what stays after a burst is one spare block per size, and there is
 * never more than one that is empty, in whatever order objects go. */
TEST(one_block_per_size_stays_when_all_is_freed)
{
    struct dice   dice = dice_seeded("order");
    static size_t who[MANY];

    for (int order = 0; order < ORDERS; order++) {
        wq__slab_fini(&slab); /* what is spare is large after a burst */
        for (size_t i = 0; i < MANY; i++)
            sign(i, 8 + i % 3 * 100);
        assert_true(blocks_of_class(1) > 1);
        put_in_order(who, MANY, order, &dice);
        for (size_t i = 0; i < MANY; i++) {
            release(who[i]);
            assert_in_range(empty_blocks_of_class(1), 0, 1);
        }
        assert_int_equal(slab.live, 0);
        assert_int_equal(mem.blocks, 3 + 2); /* three sizes and two tables */
        for (size_t units = 1; units < slab.classes_len; units++) {
            assert_in_range(blocks_of_class(units), 0, 1);
            assert_int_equal(empty_blocks_of_class(units),
                             blocks_of_class(units));
        }
    }
}

/* The spare block serves, another one becomes empty meanwhile and is the spare
 * one instead; then the first becomes empty again. */
TEST(of_two_blocks_that_empty_in_turn_one_stays)
{
    size_t n = 0;

    while (blocks_of_class(6) < 3)
        sign(n++, 48);
    const uint32_t last = refs[n - 1] >> WQ__SLAB_UNIT_BITS;
    size_t         begin = n - 1; /* of those in the block before the last */
    while (begin && refs[begin - 1] >> WQ__SLAB_UNIT_BITS != 0)
        begin--;
    assert_true(begin > 0 && begin < n - 1);

    release(n - 1); /* the last one is the spare one */
    assert_int_equal(slab.table[last]->live, 0);
    sign(n - 1, 48); /* and serves */
    assert_int_equal(refs[n - 1] >> WQ__SLAB_UNIT_BITS, last);
    for (size_t i = begin; i < n - 1; i++) /* the one before is it */
        release(i);
    assert_int_equal(blocks_of_class(6), 3);
    assert_int_equal(empty_blocks_of_class(6), 1);
    release(n - 1); /* and this one has to go */
    assert_int_equal(blocks_of_class(6), 2);
    assert_int_equal(empty_blocks_of_class(6), 1);
    for (size_t i = 0; i < begin; i++)
        expect_signed(i, 48);
}

/* A slab that is at a boundary, and goes some steps over it and back. */
static void
expect_no_memory_for_steps(size_t n, size_t steps)
{
    const uint64_t calls = mem.calls;
    const size_t   blocks = mem.blocks;

    for (int round = 0; round < 100; round++) {
        for (size_t i = 0; i < steps; i++)
            release(n - 1 - i);
        for (size_t i = steps; i-- > 0;)
            sign(n - 1 - i, 48);
    }
    assert_int_equal(mem.calls, calls);
    assert_int_equal(mem.blocks, blocks);
    for (size_t i = 0; i < n; i++)
        expect_signed(i, 48);
}

TEST(queue_that_hovers_at_a_boundary_allocates_nothing)
{
    size_t n = 0;

    for (uint32_t blocks = 1; blocks <= 4; blocks++) {
        while (blocks_of_class(6) < blocks) /* the one that opened it */
            sign(n++, 48);
        for (size_t steps = 1; steps <= 3 && steps <= n; steps++)
            expect_no_memory_for_steps(n, steps);
    }
}

/* From nothing to something and back, as a queue that keeps up does. */
TEST(queue_that_hovers_at_zero_allocates_nothing)
{
    for (size_t n = 1; n <= 2; n++) {
        for (size_t i = 0; i < n; i++)
            sign(i, 48);
        expect_no_memory_for_steps(n, n);
        for (size_t i = 0; i < n; i++)
            release(i);
    }
}

static void
fill_and_drain(size_t n)
{
    for (size_t i = 0; i < n; i++)
        sign(i, 56);
    for (size_t i = 0; i < n; i++)
        release(i);
}

/* The largest of its blocks stays, and soon all objects fit it. */
TEST(queue_that_fills_and_drains_soon_allocates_nothing)
{
    const size_t sizes[] = {8, 32, 50, 100, 128, 500, 1000};

    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        for (int lap = 0; lap < 8; lap++)
            fill_and_drain(sizes[k]);
        const uint64_t calls = mem.calls;
        fill_and_drain(sizes[k]);
        assert_int_equal(mem.calls, calls);
    }
}

/* The oldest go first, as they do in a queue. */
TEST(queue_that_moves_on_allocates_nothing)
{
    enum { KEPT = 200 };
    uint64_t calls = 0;

    for (size_t i = 0; i < KEPT; i++)
        sign(i, 48);
    for (size_t i = 0; i < 13 * KEPT; i++) {
        release(i % KEPT);
        sign(i % KEPT, 48);
        if (i == 3 * KEPT) /* its blocks are settled */
            calls = mem.calls;
    }
    assert_int_equal(mem.calls, calls);
}

/* Numbers of blocks that went back are given out again: after any number of
 * bursts references are as small as after the first. */
TEST(block_numbers_are_used_again)
{
    uint32_t table_len = 0;

    for (int burst = 0; burst < 50; burst++) {
        for (size_t i = 0; i < MANY; i++)
            sign(i, 64);
        for (size_t i = 0; i < MANY; i++)
            release(i);
        if (burst == 0)
            table_len = slab.table_len;
        assert_int_equal(slab.table_len, table_len);
    }
}

/* L6: every allocation on the way is refused once. */
TEST(refused_memory_changes_nothing_and_retry_works)
{
    size_t refusals = 0;

    for (size_t i = 0; i < MANY; i++) {
        const size_t live = slab.live;
        counting_fail(&mem, 1, COUNTING_ONCE);
        const void *p = wq__slab_alloc(&slab, size_of(i), &refs[i]);
        counting_heal(&mem);
        if (!p) {
            refusals++;
            assert_int_equal(slab.live, live);
            must_alloc(size_of(i), &refs[i]);
        }
        memset(wq__slab_at(&slab, refs[i]), (int)(i & 0xff), size_of(i));
    }
    assert_true(refusals > WQ__SLAB_MAX / WQ__SLAB_UNIT);
    for (size_t i = 0; i < MANY; i++)
        expect_signed(i, size_of(i));
}

/* The table was made, the block was not: the table is used the next time. */
TEST(refused_block_leaves_tables_that_serve_later)
{
    counting_fail(&mem, 3, COUNTING_ONCE);
    assert_null(wq__slab_alloc(&slab, 8, &refs[0]));
    assert_int_equal(mem.blocks, 2);
    counting_heal(&mem);
    must_alloc(8, &refs[0]);
    assert_int_equal(mem.blocks, 3);
}

/* How often each of the first `n` is met from `cursor` on, with so small a
 * budget at a time. */
static void
walk(wq__ref *cursor, size_t budget, size_t n, size_t *met)
{
    for (;;) {
        size_t left = budget;
        while (wq__slab_next(&slab, cursor, &left))
            for (size_t i = 0; i < n; i++)
                met[i] += refs[i] == *cursor;
        if (left)
            return;
    }
}

TEST(walk_meets_every_object_once)
{
    enum { N = 300 };
    size_t met[N];

    for (size_t i = 0; i < N; i++)
        sign(i, size_of(i));
    for (size_t budget = 1; budget < 20; budget += 3) {
        wq__ref cursor = 0;
        memset(met, 0, sizeof met);
        walk(&cursor, budget, N, met);
        for (size_t i = 0; i < N; i++)
            assert_int_equal(met[i], 1);
    }
}

/* It looks at no more than it may, blocks that are gone included. */
TEST(walk_without_a_budget_does_not_move)
{
    wq__ref cursor = 0;
    size_t  budget = 1;

    assert_false(wq__slab_next(&slab, &cursor, &budget)); /* it is empty */
    assert_int_equal(budget, 1);
    sign(0, 8);
    budget = 0;
    assert_false(wq__slab_next(&slab, &cursor, &budget));
    assert_int_equal(cursor, 0);
    budget = 1;
    assert_true(wq__slab_next(&slab, &cursor, &budget));
    assert_int_equal(cursor, refs[0]);
    assert_int_equal(budget, 0);
}

/* The block the walk is in is gone, and its number serves another size. */
TEST(walk_goes_on_when_its_block_was_cut_anew)
{
    enum { N = 60, STAYS = 5 };
    size_t  met[N] = {0};
    wq__ref cursor = 0;
    size_t  budget = 7;

    for (size_t i = 0; i < N; i++) /* the last few are in other blocks */
        sign(i, i < N - STAYS ? 16 : 200);
    while (wq__slab_next(&slab, &cursor, &budget))
        ;
    for (size_t i = 0; i < N - STAYS; i++) {
        release(i);
        refs[i] = 0;
    }
    for (size_t i = 0; i < N - STAYS; i++)
        sign(i, 56);
    walk(&cursor, 2, N, met);
    for (size_t i = 0; i < N; i++)
        assert_true(met[i] <= 1);
    for (size_t i = N - STAYS; i < N; i++)
        assert_int_equal(met[i], 1);
}

TEST(random_life_never_mixes_objects_up)
{
    struct dice dice = dice_seeded("slab");
    size_t      sizes[200] = {0};

    for (int step = 0; step < 100000; step++) {
        const size_t who = dice_roll(&dice, 200);
        if (sizes[who]) {
            expect_signed(who, sizes[who]);
            release(who);
            sizes[who] = 0;
        } else {
            sizes[who] = 1 + dice_roll(&dice, WQ__SLAB_MAX);
            sign(who, sizes[who]);
        }
    }
    size_t live = 0;
    for (size_t who = 0; who < 200; who++)
        live += sizes[who] != 0;
    assert_int_equal(slab.live, live);
}

WQ_TESTS(counted_test(slab,
                      objects_of_every_size_are_aligned_and_keep_their_bytes),
         counted_test(slab, freed_slot_is_used_again_before_new_memory),
         counted_test(slab, one_block_per_size_stays_when_all_is_freed),
         counted_test(slab, of_two_blocks_that_empty_in_turn_one_stays),
         counted_test(slab, queue_that_hovers_at_a_boundary_allocates_nothing),
         counted_test(slab, queue_that_hovers_at_zero_allocates_nothing),
         counted_test(slab, queue_that_fills_and_drains_soon_allocates_nothing),
         counted_test(slab, queue_that_moves_on_allocates_nothing),
         counted_test(slab, block_numbers_are_used_again),
         counted_test(slab, refused_memory_changes_nothing_and_retry_works),
         counted_test(slab, refused_block_leaves_tables_that_serve_later),
         counted_test(slab, walk_meets_every_object_once),
         counted_test(slab, walk_without_a_budget_does_not_move),
         counted_test(slab, walk_goes_on_when_its_block_was_cut_anew),
         counted_test(slab, random_life_never_mixes_objects_up));
