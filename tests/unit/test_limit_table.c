/* SPDX-License-Identifier: MIT */
/* test_limit_table.c: does the limiters' table keep what it was given?
 *
 * It is held against an array of numbers, with hashes that are spread, that
 * crowd, and that are all the same; and with every allocation refused once.
 */
#include "support/wq_test.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "limit/table.h"

/* An allocator that refuses one allocation, and counts what is out. */
struct memory {
    size_t used;
    long   until; /* so many succeed first; below zero: all do */
};

static void *
take(void *ctx, size_t n)
{
    struct memory *m = ctx;

    if (m->until-- == 0)
        return NULL;
    m->used += n;
    return malloc(n);
}

static void
give(void *ctx, void *p, size_t n)
{
    struct memory *m = ctx;

    m->used -= n;
    free(p);
}

static wq_allocator
allocator(struct memory *m)
{
    *m = (struct memory){.until = -1};
    return (wq_allocator){
        .size = sizeof(wq_allocator), .ctx = m, .alloc = take, .free = give};
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

/* What is in a table, told simply. */
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
    const wq_key told = wq__table_key(t, t->oldest);
    assert_int_equal(told.len, oldest.len);
    assert_memory_equal(told.data, oldest.data, oldest.len);
}

static uint64_t
dice(uint64_t *state, uint64_t sides)
{
    *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (*state >> 33) % sides;
}

static void
operate(struct wq__table *t, struct model *m, int n, uint64_t choice)
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
    const struct wq__hash_key secret = {seed, ~seed, mask};
    struct memory             mem;
    const wq_allocator        a = allocator(&mem);
    struct wq__table          t;
    struct model              m = {.len = 0};

    wq__table_init(&t, &a, secret, ordered ? 16 : 4, ordered);
    for (int i = 0; i < 3000; i++) {
        /* It grows for a while, then shrinks. */
        const uint64_t sides = i % 1000 < 600 ? 10 : 1;
        operate(&t, &m, (int)dice(&seed, KEYS), dice(&seed, sides));
        if (i % 50 == 0)
            check(&t, &m);
    }
    check(&t, &m);
    wq__table_fini(&t);
    assert_int_equal(mem.used, 0);
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
    const struct wq__hash_key secret = {1, 2, UINT32_MAX};
    struct memory             mem;
    const wq_allocator        a = allocator(&mem);
    struct wq__table          t;
    const int                 many = 10000;

    wq__table_init(&t, &a, secret, 4, false);
    for (int i = 0; i < many; i++) {
        const wq_key key = {&i, sizeof i};
        assert_true(
            wq__table_find_or_insert(&t, key, wq__table_hash(&t, key)) != 0);
    }
    const size_t full = mem.used;
    for (int i = 0; i < many; i++) {
        const wq_key   key = {&i, sizeof i};
        const uint32_t hash = wq__table_hash(&t, key);
        wq__table_remove(&t, wq__table_find(&t, key, hash), hash);
    }
    assert_true(mem.used < full / 2);
    assert_true(t.cap < 64);
    wq__table_fini(&t);
    assert_int_equal(mem.used, 0);
}

/* Fail the first allocation, the second, ... of filling a table: what was in it
 * stays, and the same insert succeeds after. */
TEST(table_loses_nothing_when_an_allocation_fails)
{
    const struct wq__hash_key secret = {1, 2, UINT32_MAX};
    long                      refusals = 0;

    for (long nth = 0;; nth++) {
        struct memory      mem;
        const wq_allocator a = allocator(&mem);
        struct wq__table   t;
        bool               refused = false;

        wq__table_init(&t, &a, secret, 4, true);
        mem.until = nth;
        for (int n = 0; n < KEYS; n++) {
            char           buf[600];
            const wq_key   key = nth_key(buf, n);
            const uint32_t hash = wq__table_hash(&t, key);
            wq__ref        entry = wq__table_find_or_insert(&t, key, hash);
            if (!entry) {
                refused = true;
                assert_int_equal(t.len, n);
                assert_int_equal(wq__table_find(&t, key, hash), 0);
                entry = wq__table_find_or_insert(&t, key, hash);
            }
            assert_true(entry != 0);
        }
        for (int n = 0; n < KEYS; n++) {
            uint32_t hash;
            assert_true(find(&t, n, &hash) != 0);
        }
        const bool reached = mem.until < 0;
        wq__table_fini(&t);
        assert_int_equal(mem.used, 0);
        refusals += refused;
        if (!reached)
            break;
    }
    assert_true(refusals > 30); /* the long keys alone are as many */
}

/* One slot stays free, or no search for what is not there would end. */
TEST(table_that_cannot_grow_fills_up_but_for_one_slot)
{
    const struct wq__hash_key secret = {1, 2, UINT32_MAX};
    struct memory             mem;
    const wq_allocator        a = allocator(&mem);
    struct wq__table          t;
    uint64_t                  n = 0;
    wq__ref                   entry;

    wq__table_init(&t, &a, secret, 4, false);
    do {
        const wq_key key = wq_u64(&n);
        entry = wq__table_find_or_insert(&t, key, wq__table_hash(&t, key));
        mem.until = 0; /* from the second on, no memory */
    } while (entry && ++n < 100);
    assert_int_equal(t.len, n);
    assert_int_equal(t.len, t.cap - 1);
    for (uint64_t i = 0; i < 100; i++) {
        const wq_key key = wq_u64(&i);
        entry = wq__table_find(&t, key, wq__table_hash(&t, key));
        assert_int_equal(entry != 0, i < n);
    }
    wq__table_fini(&t);
    assert_int_equal(mem.used, 0);
}

/* Shrinking needs memory too, and can do without. */
TEST(table_that_cannot_shrink_stays_as_it_is)
{
    const struct wq__hash_key secret = {1, 2, UINT32_MAX};
    struct memory             mem;
    const wq_allocator        a = allocator(&mem);
    struct wq__table          t;
    struct model              m = {.len = 0};

    wq__table_init(&t, &a, secret, 4, false);
    for (int n = 0; n < KEYS; n++)
        operate(&t, &m, n, 9);
    const uint32_t cap = t.cap;
    for (int n = 0; n < KEYS; n++) {
        mem.until = 0;
        operate(&t, &m, n, 0);
    }
    mem.until = -1;
    check(&t, &m);
    assert_int_equal(t.cap, cap);
    operate(&t, &m, 7, 9);
    check(&t, &m);
    wq__table_fini(&t);
    assert_int_equal(mem.used, 0);
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
