/* SPDX-License-Identifier: MIT */
/* test_index.c: is every key found that was inserted, and no other?
 *
 * Most tests run with hashes cut to a few bits, so that all keys crowd into one
 * run of the table and the run wraps around its end.
 */
#include "support/wq_test.h"

#include "core/index.h"
#include "support/counting.h"
#include "unit/dice.h"
#include "unit/records.h"

enum { KEYS = 64 };

static const uint32_t masks[] = {0, 1, 3, 7, UINT32_MAX};
enum { MASKS = sizeof masks / sizeof masks[0] };

struct fixture {
    struct counting   mem;
    struct wq__slab   recs;
    struct wq__index  index;
    struct wq__hasher hasher;
    uint64_t          keys[KEYS];
    wq__ref           refs[KEYS];
    bool              inside[KEYS];
};

static struct fixture f;

static void
open_index(uint32_t mask)
{
    memset(&f, 0, sizeof f);
    counting_init(&f.mem);
    f.hasher =
        wq__hasher_of((struct wq__hash_key){.k0 = 3, .k1 = 4, .mask = mask});
    wq__slab_init(&f.recs, &f.mem.allocator);
    wq__index_init(&f.index, &f.mem.allocator, &f.recs);
    for (size_t i = 0; i < KEYS; i++) {
        f.keys[i] = i;
        f.refs[i] = record_for(&f.recs, &f.hasher, wq_u64(&f.keys[i]));
    }
}

static void
close_index(void)
{
    wq__index_fini(&f.index);
    wq__slab_fini(&f.recs);
    assert_int_equal(f.mem.bytes, 0);
}

static uint32_t
hash_of(size_t who)
{
    return wq__hash(&f.hasher, wq_u64(&f.keys[who]));
}

/* As the core does: look, make room, put it where it was not found. */
static wq_err
try_to_insert(size_t who)
{
    const uint32_t hash = hash_of(who);
    size_t         place;

    assert_int_equal(
        wq__index_seek(&f.index, wq_u64(&f.keys[who]), hash, &place), 0);
    const wq_err err = wq__index_reserve(&f.index, hash, &place);
    if (err)
        return err;
    wq__index_insert(&f.index, hash, f.refs[who], place);
    f.inside[who] = true;
    return WQ_OK;
}

static void
insert(size_t who)
{
    assert_int_equal(try_to_insert(who), WQ_OK);
}

static void
take_out(size_t who)
{
    wq__index_remove(&f.index, hash_of(who), f.refs[who]);
    f.inside[who] = false;
}

static void
expect_exactly_those_inside(void)
{
    size_t len = 0;

    for (size_t i = 0; i < KEYS; i++) {
        const wq__ref found =
            wq__index_find(&f.index, wq_u64(&f.keys[i]), hash_of(i));
        assert_int_equal(found, f.inside[i] ? f.refs[i] : 0);
        len += f.inside[i];
    }
    assert_int_equal(f.index.len, len);
}

TEST(new_index_finds_nothing_and_has_no_memory)
{
    open_index(UINT32_MAX);
    expect_exactly_those_inside();
    assert_null(f.index.slots);
    close_index();
}

/* O-11 */
TEST(all_keys_are_found_however_hashes_collide)
{
    for (size_t m = 0; m < MASKS; m++) {
        open_index(masks[m]);
        for (size_t i = 0; i < KEYS; i++) {
            insert(i);
            expect_exactly_those_inside();
        }
        close_index();
    }
}

TEST(key_with_the_hash_of_another_is_not_found)
{
    open_index(0);
    insert(0);
    assert_int_equal(wq__index_find(&f.index, wq_u64(&f.keys[1]), 0), 0);
    close_index();
}

TEST(key_that_begins_like_another_is_not_found)
{
    open_index(0);
    insert(0);
    const wq_key beginning = {&f.keys[0], sizeof f.keys[0] - 1};
    assert_int_equal(wq__index_find(&f.index, beginning, 0), 0);
    close_index();
}

/* One run of colliding keys; take out each place of it in turn. */
TEST(removing_from_any_place_of_a_run_keeps_the_others)
{
    for (size_t m = 0; m < MASKS; m++)
        for (size_t hole = 0; hole < 12; hole++) {
            open_index(masks[m]);
            for (size_t i = 0; i < 12; i++)
                insert(i);
            take_out(hole);
            expect_exactly_those_inside();
            close_index();
        }
}

/* Twelve keys whose hashes want the last eight of 32 slots: some find them
 * taken and go on at the first slot. Take out each of the twelve in turn. */
TEST(removing_from_a_run_that_wraps_around_keeps_the_others)
{
    for (size_t hole = 0; hole < 12; hole++) {
        size_t n = 0, taken_out = 0;

        open_index(UINT32_MAX);
        for (size_t i = 0; i < KEYS && n < 12; i++)
            if ((hash_of(i) & 31) >= 24) {
                taken_out = n++ == hole ? i : taken_out;
                insert(i);
            }
        assert_int_equal(n, 12);
        assert_int_not_equal(f.index.slots[0].ref, 0); /* it did wrap */
        take_out(taken_out);
        expect_exactly_those_inside();
        close_index();
    }
}

TEST(random_life_agrees_with_a_plain_list)
{
    struct dice dice = dice_seeded("index");

    for (size_t m = 0; m < MASKS; m++) {
        open_index(masks[m]);
        for (int step = 0; step < 5000; step++) {
            const size_t who = dice_roll(&dice, KEYS);
            if (f.inside[who])
                take_out(who);
            else
                insert(who);
            if (step % 16 == 0)
                expect_exactly_those_inside();
        }
        close_index();
    }
}

TEST(table_grows_with_the_keys_and_stays_a_power_of_two)
{
    open_index(UINT32_MAX);
    for (size_t i = 0; i < KEYS; i++) {
        insert(i);
        assert_int_equal(f.index.cap & (f.index.cap - 1), 0);
        assert_true(f.index.len * 4 <= f.index.cap * 3);
    }
    close_index();
}

/* Slots that a table keeps for good: see index.c. */
enum { KEPT = WQ_DEBUG ? 2 : 2048 };

/* What becomes of a table of `cap` slots when a key leaves. */
static size_t
cap_after(size_t cap, size_t len)
{
    if (cap <= KEPT || len * 16 >= cap)
        return cap;
    return cap / 4 > KEPT ? cap / 4 : KEPT;
}

/* O-10 */
TEST(table_becomes_a_quarter_when_less_than_a_sixteenth_is_full)
{
    open_index(UINT32_MAX);
    for (size_t i = 0; i < KEYS; i++)
        insert(i);
    for (size_t i = 0; i < KEYS; i++) {
        const size_t before = f.index.cap;
        take_out(i);
        assert_int_equal(f.index.cap, cap_after(before, f.index.len));
        expect_exactly_those_inside();
    }
    assert_true(f.index.cap <= KEPT);
    close_index();
}

/* Wherever it stands, a few keys more or less do not make it ask again. */
TEST(table_that_hovers_asks_for_nothing)
{
    enum { ROUND = 2 };

    open_index(UINT32_MAX);
    for (size_t i = 0; i < KEYS; i++)
        insert(i);
    for (size_t i = KEYS; i-- > 8;) { /* of a few, a few are many */
        take_out(i);
        const uint64_t calls = f.mem.calls;
        for (int round = 0; round < 10; round++) {
            for (size_t k = 0; k < ROUND && i + k < KEYS; k++)
                insert(i + k);
            for (size_t k = 0; k < ROUND && i + k < KEYS; k++)
                take_out(i + k);
        }
        assert_int_equal(f.mem.calls, calls);
    }
    close_index();
}

/* O-10 */
TEST(table_shrinks_when_keys_leave)
{
    open_index(UINT32_MAX);
    for (size_t i = 0; i < KEYS; i++)
        insert(i);
    const size_t cap = f.index.cap;
    for (size_t i = 0; i < KEYS; i++)
        take_out(i);
    assert_true(f.index.cap <= (cap / 4 > KEPT ? cap / 4 : KEPT));
    for (size_t i = 0; i < KEYS; i++)
        insert(i);
    expect_exactly_those_inside();
    close_index();
}

/* A table that cannot grow serves on until its last free slot, which ends every
 * search. L6: then it refuses, and nothing has changed. */
TEST(table_that_cannot_grow_serves_until_its_last_slot)
{
    open_index(UINT32_MAX);
    for (size_t i = 0; i < 10; i++)
        insert(i);
    const size_t cap = f.index.cap;

    counting_fail(&f.mem, 1, COUNTING_FROM_NOW);
    size_t n = 10;
    while (n < KEYS && try_to_insert(n) == WQ_OK)
        n++;
    assert_int_equal(f.index.cap, cap);
    assert_int_equal(n, cap - 1);
    expect_exactly_those_inside();

    counting_heal(&f.mem);
    insert(n);
    assert_true(f.index.cap > cap);
    expect_exactly_those_inside();
    close_index();
}

TEST(first_reserve_without_memory_is_refused)
{
    open_index(UINT32_MAX);
    counting_fail(&f.mem, 1, COUNTING_FROM_NOW);
    assert_int_equal(try_to_insert(0), WQ_ENOMEM);
    counting_heal(&f.mem);
    insert(0);
    expect_exactly_those_inside();
    close_index();
}

TEST(table_that_cannot_shrink_stays_and_works)
{
    open_index(3);
    for (size_t i = 0; i < KEYS; i++)
        insert(i);
    const size_t cap = f.index.cap;
    counting_fail(&f.mem, 1, COUNTING_FROM_NOW);
    for (size_t i = 0; i < KEYS; i++) {
        take_out(i);
        expect_exactly_those_inside();
    }
    assert_int_equal(f.index.cap, cap);
    counting_heal(&f.mem);
    close_index();
}

WQ_TESTS(test(new_index_finds_nothing_and_has_no_memory),
         test(all_keys_are_found_however_hashes_collide),
         test(key_with_the_hash_of_another_is_not_found),
         test(key_that_begins_like_another_is_not_found),
         test(removing_from_any_place_of_a_run_keeps_the_others),
         test(removing_from_a_run_that_wraps_around_keeps_the_others),
         test(random_life_agrees_with_a_plain_list),
         test(table_grows_with_the_keys_and_stays_a_power_of_two),
         test(table_becomes_a_quarter_when_less_than_a_sixteenth_is_full),
         test(table_that_hovers_asks_for_nothing),
         test(table_shrinks_when_keys_leave),
         test(table_that_cannot_grow_serves_until_its_last_slot),
         test(first_reserve_without_memory_is_refused),
         test(table_that_cannot_shrink_stays_and_works));
