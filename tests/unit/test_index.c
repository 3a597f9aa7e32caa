/* SPDX-License-Identifier: MIT */
/* test_index.c: is every key found that was inserted, and no other?
 *
 * Most tests run with hashes cut to a few bits, so that all keys crowd into one
 * run of the table and the run wraps around its end. Those of an index of many
 * segments have many keys, with whole hashes.
 */
#define RECORDS 20000
#include "unit/records.h"

#include "core/index.h"
#include "unit/dice.h"

enum { KEYS = 64, MANY = RECORDS };

static const uint32_t masks[] = {0, 1, 3, 7, UINT32_MAX};
enum { MASKS = sizeof masks / sizeof masks[0] };

static struct {
    struct wq__index index;
    bool             inside[MANY];
} f;

static void
open_index(uint32_t mask)
{
    memset(&f, 0, sizeof f);
    open_records(mask);
    wq__index_init(&f.index, &recs.mem.allocator, &recs.slab);
}

static void
close_index(void)
{
    wq__index_fini(&f.index);
    close_records();
}

static int
open_plain(void **state)
{
    (void)state;
    open_index(UINT32_MAX);
    return 0;
}

static int
close_plain(void **state)
{
    (void)state;
    close_index();
    return 0;
}

static uint32_t
hash_of(size_t who)
{
    return record(who)->hash;
}

/* As the core does: look, reserve, put it where it was not found. */
static wq_err
try_to_insert(size_t who)
{
    const uint32_t   hash = hash_of(who);
    struct wq__place place;

    assert_int_equal(
        wq__index_seek(&f.index, wq_u64(&recs.keys[who]), hash, &place), 0);
    const wq_err err = wq__index_reserve(&f.index, hash, &place);
    if (err)
        return err;
    wq__index_insert(&f.index, hash, recs.refs[who], place);
    f.inside[who] = true;
    return WQ_OK;
}

static void
insert(size_t who)
{
    assert_int_equal(try_to_insert(who), WQ_OK);
}

static void
insert_all(void)
{
    for (size_t i = 0; i < KEYS; i++)
        insert(i);
}

static void
take_out(size_t who)
{
    wq__index_remove(&f.index, hash_of(who), recs.refs[who]);
    f.inside[who] = false;
}

static void
expect_exactly_those_inside_of(size_t keys)
{
    size_t len = 0;

    assert_null(wq__index_check(&f.index));
    for (size_t i = 0; i < keys; i++) {
        const wq__ref found =
            wq__index_find(&f.index, wq_u64(&recs.keys[i]), hash_of(i));
        assert_int_equal(found, f.inside[i] ? recs.refs[i] : 0);
        len += f.inside[i];
    }
    assert_int_equal(f.index.len, len);
}

static void
expect_exactly_those_inside(void)
{
    expect_exactly_those_inside_of(KEYS);
}

/* O-11 */
TEST(all_keys_are_found_however_hashes_collide)
{
    for (size_t m = 0; m < MASKS; m++) {
        open_index(masks[m]);
        expect_exactly_those_inside();
        assert_null(f.index.only);
        for (size_t i = 0; i < KEYS; i++) {
            insert(i);
            expect_exactly_those_inside();
        }
        close_index();
    }
}

TEST(key_with_hash_or_prefix_of_another_is_not_found)
{
    open_index(0);
    insert(0);
    const wq_key prefix = {&recs.keys[0], sizeof recs.keys[0] - 1};
    assert_int_equal(wq__index_find(&f.index, wq_u64(&recs.keys[1]), 0), 0);
    assert_int_equal(wq__index_find(&f.index, prefix, 0), 0);
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
        assert_int_not_equal(f.index.only->slots[0].ref, 0); /* it did wrap */
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

TEST(table_grows_and_stays_a_power_of_two)
{
    for (size_t i = 0; i < KEYS; i++) {
        insert(i);
        assert_int_equal(f.index.cap & (f.index.cap - 1), 0);
        assert_true(f.index.len * 4 <= f.index.cap * 3);
    }
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
TEST(table_less_than_a_sixteenth_full_becomes_a_quarter)
{
    insert_all();
    for (size_t i = 0; i < KEYS; i++) {
        const size_t before = f.index.cap;
        take_out(i);
        assert_int_equal(f.index.cap, cap_after(before, f.index.len));
        expect_exactly_those_inside();
    }
    assert_true(f.index.cap <= KEPT);
    insert_all();
    expect_exactly_those_inside();
}

/* Wherever it stands, a few keys more or less do not make it allocate. */
TEST(table_that_hovers_allocates_nothing)
{
    enum { ROUND = 2 };

    insert_all();
    for (size_t i = KEYS; i-- > 8;) { /* of a few, a few are many */
        take_out(i);
        const uint64_t calls = recs.mem.calls;
        for (int round = 0; round < 10; round++) {
            for (size_t k = 0; k < ROUND && i + k < KEYS; k++)
                insert(i + k);
            for (size_t k = 0; k < ROUND && i + k < KEYS; k++)
                take_out(i + k);
        }
        assert_int_equal(recs.mem.calls, calls);
    }
}

/* A table that cannot grow serves on until its last free slot, which ends every
 * search. L6: then it refuses, and nothing has changed. */
TEST(table_that_cannot_grow_serves_until_its_last_slot)
{
    counting_fail(&recs.mem, 1, COUNTING_FROM_NOW);
    assert_int_equal(try_to_insert(0), WQ_ENOMEM); /* no table yet */
    counting_heal(&recs.mem);
    for (size_t i = 0; i < 10; i++)
        insert(i);
    const size_t cap = f.index.cap;

    counting_fail(&recs.mem, 1, COUNTING_FROM_NOW);
    size_t n = 10;
    while (n < KEYS && try_to_insert(n) == WQ_OK)
        n++;
    assert_int_equal(f.index.cap, cap);
    assert_int_equal(n, cap - 1);
    expect_exactly_those_inside();

    counting_heal(&recs.mem);
    insert(n);
    assert_true(f.index.cap > cap);
    expect_exactly_those_inside();
}

TEST(table_that_cannot_shrink_stays_and_works)
{
    open_index(3);
    insert_all();
    const size_t cap = f.index.cap;
    counting_fail(&recs.mem, 1, COUNTING_FROM_NOW);
    for (size_t i = 0; i < KEYS; i++) {
        take_out(i);
        expect_exactly_those_inside();
    }
    assert_int_equal(f.index.cap, cap);
    counting_heal(&recs.mem);
    close_index();
}

/* ---- many segments -------------------------------------------------------- */

enum {
    SEGMENT_BYTES =
        sizeof(struct wq__segment) + WQ__SEGMENT_MAX * sizeof(struct wq__slot),
};

static size_t
directory_bytes(void)
{
    return f.index.depth
               ? ((size_t)1 << f.index.depth) * sizeof *f.index.directory
               : 0;
}

/* An insert allocates a segment, and a directory if it doubles: so it moves no
 * more than that. */
TEST(large_index_grows_by_a_segment_at_a_time)
{
    for (size_t i = 0; i < MANY; i++) {
        const uint64_t calls = recs.mem.calls;
        const size_t   bytes = recs.mem.bytes, directory = directory_bytes();

        insert(i);
        assert_true(recs.mem.calls - calls <= 2);
        assert_true(recs.mem.bytes - bytes + directory <=
                    SEGMENT_BYTES + directory_bytes());
        assert_true(f.index.cap <= WQ__SEGMENT_MAX);
        if (i % 997 == 0)
            expect_exactly_those_inside_of(MANY);
    }
    expect_exactly_those_inside_of(MANY);
    assert_true(f.index.depth >= 2);
}

/* O-10 */
TEST(drained_index_gives_its_segments_back)
{
    const size_t before = recs.mem.bytes;

    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < MANY; i++)
            insert(i);
        for (size_t i = 0; i < MANY; i++) {
            take_out(i);
            if (i % 997 == 0)
                expect_exactly_those_inside_of(MANY);
        }
        assert_int_equal(f.index.depth, 0);
        assert_true(f.index.cap <= KEPT);
        assert_true(recs.mem.bytes - before <=
                    sizeof(struct wq__segment) +
                        KEPT * sizeof(struct wq__slot));
    }
}

/* The directory stays as it is while there is no memory for a smaller one, also
 * when only one segment is left. */
TEST(directory_that_cannot_shrink_stays_and_works)
{
    size_t n = 0;

    for (; n < MANY; n++)
        insert(n);
    const uint32_t depth = f.index.depth;
    counting_fail(&recs.mem, 1, COUNTING_FROM_NOW);
    while (n > 1)
        take_out(--n);
    assert_int_equal(f.index.depth, depth);
    assert_int_equal(f.index.directory[0]->depth, 0);
    expect_exactly_those_inside_of(MANY);
    counting_heal(&recs.mem);
    for (int i = 0; i < 40 && f.index.depth; i++) {
        insert(1);
        take_out(1);
        expect_exactly_those_inside_of(MANY);
    }
    assert_int_equal(f.index.depth, 0);
}

/* It would be full again soon, and split. */
TEST(empty_segment_does_not_join_a_full_one)
{
    const size_t n = (size_t)WQ__SEGMENT_MAX * 5 / 4; /* two segments */

    for (size_t i = 0; i < n; i++)
        insert(i);
    assert_int_equal(f.index.depth, 1);
    for (size_t i = 0; i < n; i++)
        if (hash_of(i) >> 31)
            take_out(i);
    assert_int_equal(f.index.depth, 1);
    expect_exactly_those_inside_of(MANY);
}

TEST(walk_meets_every_key_once)
{
    static bool met[MANY];
    size_t      n = 0;

    for (size_t i = 0; i < MANY; i += 3)
        insert(i);
    const struct wq__slot *slot;
    for (size_t at = 0; (slot = wq__index_next(&f.index, &at)); n++) {
        const struct wq__rec *rec = wq__slab_at(&recs.slab, slot->ref);
        uint64_t              who;

        memcpy(&who, rec->bytes, sizeof who);
        assert_false(met[who]);
        met[who] = true;
        assert_true(f.inside[who]);
    }
    assert_int_equal(n, f.index.len);
}

/* The number of keys goes up and down, over many splits and merges. */
TEST(random_life_of_many_keys_agrees_with_a_plain_list)
{
    struct dice dice = dice_seeded("segments");

    for (int wave = 0; wave < 6; wave++) {
        const uint32_t bias = wave % 2 ? 1 : 7; /* of 8: inserts */
        for (size_t step = 0; step < 3 * (size_t)MANY; step++) {
            const size_t who = dice_roll(&dice, MANY);
            const bool   in = dice_roll(&dice, 8) < bias;
            if (in && !f.inside[who])
                insert(who);
            else if (!in && f.inside[who])
                take_out(who);
            if (step % 4999 == 0)
                expect_exactly_those_inside_of(MANY);
        }
    }
}

/* No split, or no directory: keys go on to be inserted until a segment is full.
 * L6: then nothing has changed. */
TEST(segment_that_cannot_split_serves_until_its_last_slot)
{
    size_t n = 0;

    while (!f.index.depth)
        insert(n++);
    counting_fail(&recs.mem, 1, COUNTING_FROM_NOW);
    while (try_to_insert(n) == WQ_OK)
        n++;
    const struct wq__segment *full = wq__index_segment(&f.index, hash_of(n));
    assert_int_equal(full->len, f.index.cap - 1);
    expect_exactly_those_inside_of(MANY);
    counting_heal(&recs.mem);
    insert(n);
    expect_exactly_those_inside_of(MANY);
}

/* Every allocation fails once: the segment's, and the directory's. */
TEST(every_failure_of_a_split_leaves_the_index_as_it_was)
{
    for (size_t i = 0; i < MANY; i++) {
        for (unsigned k = 1; k <= 2; k++) {
            const uint32_t depth = f.index.depth;
            const size_t   bytes = recs.mem.bytes;
            const uint64_t refused = recs.mem.refused;

            counting_fail(&recs.mem, k, COUNTING_ONCE);
            const wq_err err = try_to_insert(i);
            counting_heal(&recs.mem);
            if (recs.mem.refused != refused) {
                assert_int_equal(f.index.depth, depth);
                assert_int_equal(recs.mem.bytes, bytes);
            }
            if (!err)
                take_out(i);
        }
        insert(i);
        if (i % 997 == 0)
            expect_exactly_those_inside_of(MANY);
    }
    expect_exactly_those_inside_of(MANY);
}

/* O-11: if all hashes begin alike, more entries of a directory do not help: the
 * index becomes one table. */
TEST(hashes_that_begin_alike_make_no_large_directory)
{
    const size_t n = (size_t)4 * WQ__SEGMENT_MAX;

    open_index(WQ__SEGMENT_MAX - 1);
    const size_t before = recs.mem.bytes;
    for (size_t i = 0; i < n; i++) {
        insert(i);
        assert_true(f.index.depth <= 6);
    }
    assert_int_equal(f.index.depth, 0);
    assert_true(recs.mem.bytes - before <= n * 6 * sizeof(struct wq__slot));
    expect_exactly_those_inside_of(MANY);
    for (size_t i = 0; i < n; i++)
        take_out(i);
    assert_true(f.index.cap < WQ__SEGMENT_MAX);
    expect_exactly_those_inside_of(MANY);
    close_index();
}

#define index_test(name) test_with(name, open_plain, close_plain)

WQ_TESTS(test(all_keys_are_found_however_hashes_collide),
         test(key_with_hash_or_prefix_of_another_is_not_found),
         test(removing_from_any_place_of_a_run_keeps_the_others),
         test(removing_from_a_run_that_wraps_around_keeps_the_others),
         test(random_life_agrees_with_a_plain_list),
         index_test(table_grows_and_stays_a_power_of_two),
         index_test(table_less_than_a_sixteenth_full_becomes_a_quarter),
         index_test(table_that_hovers_allocates_nothing),
         index_test(table_that_cannot_grow_serves_until_its_last_slot),
         test(table_that_cannot_shrink_stays_and_works),
         index_test(large_index_grows_by_a_segment_at_a_time),
         index_test(drained_index_gives_its_segments_back),
         index_test(directory_that_cannot_shrink_stays_and_works),
         index_test(empty_segment_does_not_join_a_full_one),
         index_test(walk_meets_every_key_once),
         index_test(random_life_of_many_keys_agrees_with_a_plain_list),
         index_test(segment_that_cannot_split_serves_until_its_last_slot),
         index_test(every_failure_of_a_split_leaves_the_index_as_it_was),
         test(hashes_that_begin_alike_make_no_large_directory));
