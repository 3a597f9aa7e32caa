/* SPDX-License-Identifier: MIT */
/* test_limit_table.c: does the limiters' table keep what it was given?
 *
 * It is held against an array of numbers, with hashes that are spread, that
 * crowd, and that are all the same; and with every allocation refused once.
 */
#include "support/wq_test.h"

#include <stdio.h>
#include <string.h>

#include "limit/table.h"
#include "support/counting.h"
#include "unit/dice.h"

static struct counting mem;

static void
open_table(struct wq__table *t, bool ordered, uint32_t mask)
{
    const struct wq__hash_key secret = {1, 2, mask};

    counting_init(&mem);
    wq__table_init(t, &mem.allocator, secret, ordered ? 16 : 4, ordered);
}

static void
close_table(struct wq__table *t)
{
    wq__table_fini(t);
    assert_int_equal(mem.bytes, 0);
}

enum { KEYS = 300 };

/* Keys of many lengths: some in the entry, some too long for it. */
static wq_key
nth_key(char *buf, int n)
{
    const int width = n % 10 == 0 ? 500 : 1 + n % 40;
    const int len = snprintf(buf, 600, "%0*d", width, n);
    return (wq_key){buf, (size_t)len};
}

/* What is in a table, as plain arrays. */
struct model {
    uint32_t value[KEYS]; /* 0: not in the table */
    int      order[KEYS]; /* by last use, the oldest first */
    int      len;
};

static void
model_drop(struct model *m, int n)
{
    int i = 0;

    while (m->order[i] != n)
        i++;
    m->len--;
    memmove(&m->order[i], &m->order[i + 1],
            (size_t)(m->len - i) * sizeof m->order[0]);
    m->value[n] = 0;
}

static void
model_use(struct model *m, int n, uint32_t value)
{
    if (m->value[n])
        model_drop(m, n);
    m->order[m->len++] = n;
    m->value[n] = value;
}

static wq__ref
find(const struct wq__table *t, int n, uint32_t *hash)
{
    char         buf[600];
    const wq_key key = nth_key(buf, n);

    *hash = wq__table_hash(t, key);
    return wq__table_find(t, key, *hash);
}

static void
check(const struct wq__table *t, const struct model *m)
{
    uint32_t hash;

    assert_int_equal(t->len, m->len);
    for (int n = 0; n < KEYS; n++) {
        const wq__ref entry = find(t, n, &hash);
        assert_int_equal(entry != 0, m->value[n] != 0);
        if (entry)
            assert_int_equal(*(uint32_t *)wq__table_value(t, entry),
                             m->value[n]);
    }
    if (!t->links_at || m->len == 0)
        return;
    char         buf[600];
    const wq_key oldest = nth_key(buf, m->order[0]);
    const wq_key first = wq__table_key(t, t->oldest);
    assert_int_equal(first.len, oldest.len);
    assert_memory_equal(first.data, oldest.data, oldest.len);
}

static void
operate(struct wq__table *t, struct model *m, int n, size_t choice)
{
    uint32_t hash;
    wq__ref  entry = find(t, n, &hash);
    char     buf[600];

    if (entry && choice == 0) {
        wq__table_remove(t, entry, hash);
        model_drop(m, n);
    } else if (entry && t->links_at) {
        wq__table_touch(t, entry);
        model_use(m, n, m->value[n]);
    } else if (!entry) {
        entry = wq__table_find_or_insert(t, nth_key(buf, n), hash);
        assert_true(entry != 0);
        uint32_t *value = wq__table_value(t, entry);
        assert_int_equal(*value, 0);
        *value = (uint32_t)n + 1;
        model_use(m, n, *value);
    }
    if (choice == 1 && t->links_at && m->len > 0) {
        wq__table_drop_oldest(t);
        model_drop(m, m->order[0]);
    }
}

static void
compare(uint32_t mask, bool ordered, uint64_t seed)
{
    struct dice      dice = dice_from(seed);
    struct wq__table t;
    struct model     m = {.len = 0};

    open_table(&t, ordered, mask);
    for (int i = 0; i < 3000; i++) {
        /* It grows for a while, then shrinks. */
        const size_t sides = i % 1000 < 600 ? 10 : 1;
        operate(&t, &m, (int)dice_roll(&dice, KEYS), dice_roll(&dice, sides));
        if (i % 50 == 0)
            check(&t, &m);
    }
    check(&t, &m);
    close_table(&t);
}

TEST(table_holds_what_an_array_holds)
{
    for (uint64_t seed = 1; seed <= 10; seed++) {
        compare(UINT32_MAX, false, seed);
        compare(UINT32_MAX, true, seed);
    }
}

/* The worst that can happen: all keys want one slot, the first or the last. */
TEST(table_holds_keys_whose_hashes_agree)
{
    compare(0, false, 1);
    compare(0, true, 2);
    compare(1, true, 3);
    compare(UINT32_C(0xf0000000), false, 4);
    compare(UINT32_C(0x80000000), true, 5);
}

TEST(table_gives_memory_back_when_it_empties)
{
    struct wq__table t;
    const int        many = 10000;

    open_table(&t, false, UINT32_MAX);
    for (int i = 0; i < many; i++) {
        const wq_key key = {&i, sizeof i};
        assert_true(
            wq__table_find_or_insert(&t, key, wq__table_hash(&t, key)) != 0);
    }
    const size_t full = mem.bytes;
    for (int i = 0; i < many; i++) {
        const wq_key   key = {&i, sizeof i};
        const uint32_t hash = wq__table_hash(&t, key);
        wq__table_remove(&t, wq__table_find(&t, key, hash), hash);
    }
    assert_true(mem.bytes < full / 2);
    assert_true(t.cap < 64);
    close_table(&t);
}

/* Fail the first allocation, the second, ... of filling a table: what was in it
 * stays, and the same insert succeeds after. */
TEST(table_loses_nothing_when_an_allocation_fails)
{
    long     refusals = 0;
    uint64_t reached = 1;

    for (uint64_t nth = 1; reached; nth++) {
        struct wq__table t;
        bool             refused = false;
        uint32_t         hash;

        open_table(&t, true, UINT32_MAX);
        counting_fail(&mem, nth, COUNTING_ONCE);
        for (int n = 0; n < KEYS; n++) {
            char         buf[600];
            const wq_key key = nth_key(buf, n);
            hash = wq__table_hash(&t, key);
            wq__ref entry = wq__table_find_or_insert(&t, key, hash);
            if (!entry) {
                refused = true;
                assert_int_equal(t.len, n);
                assert_int_equal(wq__table_find(&t, key, hash), 0);
                entry = wq__table_find_or_insert(&t, key, hash);
            }
            assert_true(entry != 0);
        }
        for (int n = 0; n < KEYS; n++)
            assert_true(find(&t, n, &hash) != 0);
        reached = mem.refused;
        refusals += refused;
        close_table(&t);
    }
    assert_true(refusals > 30); /* the long keys alone are as many */
}

/* One slot stays free, or no search for what is not there would end. */
TEST(table_that_cannot_grow_fills_up_but_for_one_slot)
{
    struct wq__table t;
    uint64_t         n = 0;
    wq__ref          entry;

    open_table(&t, false, UINT32_MAX);
    do {
        const wq_key key = wq_u64(&n);
        entry = wq__table_find_or_insert(&t, key, wq__table_hash(&t, key));
        counting_fail(&mem, 1, COUNTING_ONCE); /* from the second on */
    } while (entry && ++n < 100);
    assert_int_equal(t.len, n);
    assert_int_equal(t.len, t.cap - 1);
    for (uint64_t i = 0; i < 100; i++) {
        const wq_key key = wq_u64(&i);
        entry = wq__table_find(&t, key, wq__table_hash(&t, key));
        assert_int_equal(entry != 0, i < n);
    }
    close_table(&t);
}

/* Shrinking needs memory too, and can do without. */
TEST(table_that_cannot_shrink_stays_as_it_is)
{
    struct wq__table t;
    struct model     m = {.len = 0};

    open_table(&t, false, UINT32_MAX);
    for (int n = 0; n < KEYS; n++)
        operate(&t, &m, n, 9);
    const uint32_t cap = t.cap;
    counting_fail(&mem, 1, COUNTING_FROM_NOW);
    for (int n = 0; n < KEYS; n++)
        operate(&t, &m, n, 0);
    counting_heal(&mem);
    check(&t, &m);
    assert_int_equal(t.cap, cap);
    operate(&t, &m, 7, 9);
    check(&t, &m);
    close_table(&t);
}

TEST(zeroed_table_can_be_ended)
{
    struct wq__table t = {0};
    wq__table_fini(&t);
}

WQ_TESTS(test(table_holds_what_an_array_holds),
         test(table_holds_keys_whose_hashes_agree),
         test(table_gives_memory_back_when_it_empties),
         test(table_loses_nothing_when_an_allocation_fails),
         test(table_that_cannot_grow_fills_up_but_for_one_slot),
         test(table_that_cannot_shrink_stays_as_it_is),
         test(zeroed_table_can_be_ended));
