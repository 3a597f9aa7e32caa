/* SPDX-License-Identifier: MIT */
/* test_loans.c: does a number lead to its loan, and is an item that is not on
 * loan refused?
 */
#include "unit/counted.h"

#include "core/loans.h"
#include "unit/dice.h"

enum { MANY = 3000 }; /* over some ten blocks */

COUNTED(loans);
static struct wq__loan *all[MANY];

/* A loan of the record `rec`, which is any number but 0. */
static struct wq__loan *
lend(wq__ref rec)
{
    assert_int_equal(wq__loans_reserve(&loans), WQ_OK);
    struct wq__loan *loan = wq__loans_begin(&loans, rec);
    assert_non_null(loan);
    return loan;
}

static void
lend_many(size_t n)
{
    for (size_t i = 0; i < n; i++)
        all[i] = lend((wq__ref)i + 1);
}

static void
expect_found(const struct wq__loan *loan)
{
    assert_ptr_equal(wq__loans_find(&loans, &loan->item), loan);
    assert_ptr_equal(wq__loans_at(&loans, loan->item.loan), loan);
}

/* How many loans there is memory for. */
static size_t
capacity(void)
{
    size_t n = 0;

    for (size_t i = 0; i < WQ__LOANS_BLOCKS; i++)
        n += loans.blocks[i] ? (size_t)WQ__LOANS_FIRST << i : 0;
    return n;
}

/* ---- numbers ------------------------------------------------------------- */

/* Loans do not move when there are more, and none writes into another. An item
 * is the beginning of its loan: wq__core_latency() relies on it. */
TEST(number_leads_to_its_loan_over_many_blocks)
{
    assert_int_equal(mem.calls, 0); /* none is made in advance */
    lend_many(MANY);
    assert_int_equal(loans.live, MANY);
    assert_non_null(loans.blocks[5]);
    for (size_t i = 0; i < MANY; i++) {
        assert_ptr_equal(&all[i]->item, all[i]);
        all[i]->item.fence = i;
        all[i]->waited = (int64_t)(i * i);
    }
    for (size_t i = 0; i < MANY; i++) {
        expect_found(all[i]);
        assert_int_equal(all[i]->rec, i + 1);
        assert_int_equal(all[i]->item.loan, WQ__LOANS_FIRST + i);
        assert_int_equal(all[i]->item.fence, i);
        assert_int_equal(all[i]->waited, i * i);
    }
}

/* O-10: each block is as large as all before it, and the first is small. */
TEST(memory_grows_with_the_loans)
{
    for (size_t n = 1; n <= MANY; n++) {
        (void)lend(1);
        assert_true(capacity() >= n);
        assert_true(capacity() < 2 * n + WQ__LOANS_FIRST);
        assert_int_equal(mem.bytes, capacity() * sizeof(struct wq__loan));
    }
}

/* ---- again --------------------------------------------------------------- */

TEST(loan_that_ended_last_is_the_next_to_begin)
{
    lend_many(3);
    wq__loans_end(&loans, all[0]);
    wq__loans_end(&loans, all[2]);
    wq__loans_end(&loans, all[1]);
    assert_int_equal(loans.live, 0);
    assert_ptr_equal(lend(7), all[1]);
    assert_ptr_equal(lend(8), all[2]);
    assert_ptr_equal(lend(9), all[0]);
    assert_int_equal(all[2]->rec, 8);
    assert_int_equal(loans.live, 3);
}

/* O-10 */
TEST(memory_of_ended_loans_serves_before_new_memory)
{
    struct dice dice = dice_seeded("loans");

    lend_many(MANY);
    const uint64_t calls = mem.calls;
    const size_t   bytes = mem.bytes;
    for (int round = 0; round < 20000; round++) {
        const size_t who = dice_roll(&dice, MANY);
        wq__loans_end(&loans, all[who]);
        assert_ptr_equal(lend((wq__ref)who + 1), all[who]);
    }
    for (size_t i = 0; i < MANY; i++)
        wq__loans_end(&loans, all[i]);
    lend_many(MANY);
    assert_int_equal(mem.calls, calls);
    assert_int_equal(mem.bytes, bytes);
    for (size_t i = 0; i < MANY; i++)
        assert_int_equal(all[i]->rec, i + 1);
}

/* Against a plain list of loans. */
TEST(random_life_finds_exactly_those_on_loan)
{
    enum { N = 200 };
    struct dice dice = dice_seeded("life");
    size_t      live = 0;

    memset(all, 0, sizeof all);
    for (int step = 0; step < 50000; step++) {
        const size_t who = dice_roll(&dice, N);
        if (all[who]) {
            expect_found(all[who]);
            assert_int_equal(all[who]->rec, who + 1);
            wq__loans_end(&loans, all[who]);
            all[who] = NULL;
            live--;
        } else {
            all[who] = lend((wq__ref)who + 1);
            live++;
        }
        assert_int_equal(loans.live, live);
    }
    for (size_t i = 0; i < N; i++)
        for (size_t k = 0; all[i] && k < i; k++)
            assert_ptr_not_equal(all[i], all[k]);
}

/* ---- items that are not on loan ------------------------------------------- */

static void
expect_not_found(const struct wq__loans *in, const wq_item *item)
{
    assert_null(wq__loans_find(in, item));
}

/* O-06 */
TEST(copy_and_ended_loan_are_not_found)
{
    lend_many(10);
    for (size_t i = 0; i < 10; i++) {
        const struct wq__loan copy = *all[i];
        expect_not_found(&loans, &copy.item);
        expect_found(all[i]);
        wq__loans_end(&loans, all[i]);
        expect_not_found(&loans, &all[i]->item);
    }
}

/* O-06: whatever number it holds; the first and last of each block included. */
TEST(item_that_was_invented_is_not_found)
{
    wq_item     item = {.key = wq_str("invented")};
    struct dice dice = dice_seeded("numbers");

    for (size_t n = 0; n < 3; n++) { /* none, a few, many */
        for (size_t i = loans.live; i < n * n * 100; i++)
            (void)lend(1);
        for (unsigned bit = 0; bit < 32; bit++)
            for (uint32_t beside = 0; beside < 3; beside++) {
                item.loan = (UINT32_C(1) << bit) + beside - 1;
                expect_not_found(&loans, &item);
            }
        item.loan = UINT32_MAX;
        expect_not_found(&loans, &item);
        for (int i = 0; i < 10000; i++) {
            item.loan = (uint32_t)dice_bits(&dice);
            expect_not_found(&loans, &item);
        }
    }
}

/* O-06: of those that have no memory yet, no memory is read. */
TEST(item_with_a_number_to_come_is_not_found)
{
    lend_many(WQ__LOANS_FIRST + 1); /* the second block is half used */
    wq_item item = all[0]->item;

    for (uint32_t slot = loans.fresh; slot < 8 * loans.limit; slot++) {
        item.loan = slot;
        expect_not_found(&loans, &item);
    }
    /* Where it would be, if it were. */
    struct wq__loan *next = wq__loans_at(&loans, loans.fresh);
    next->item.loan = loans.fresh;
    expect_not_found(&loans, &next->item);
}

/* O-06 */
TEST(item_of_another_queue_is_not_found)
{
    struct wq__loans others;

    wq__loans_init(&others, &mem.allocator);
    lend_many(100);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(wq__loans_reserve(&others), WQ_OK);
        const struct wq__loan *loan = wq__loans_begin(&others, 1);
        expect_not_found(&loans, &loan->item);
        expect_not_found(&others, &all[i]->item);
    }
    wq__loans_fini(&others);
}

/* ---- ages ---------------------------------------------------------------- */

/* The list from both ends is `who`, the oldest first, and the sum is theirs. */
static void
expect_ages(const size_t *who, size_t n)
{
    uint32_t slot = loans.oldest, before = 0;
    uint64_t sum = 0;

    for (size_t i = 0; i < n; i++) {
        assert_int_equal(slot, all[who[i]]->item.loan);
        assert_int_equal(all[who[i]]->older, before);
        sum += (uint64_t)all[who[i]]->got;
        before = slot;
        slot = all[who[i]]->newer;
    }
    assert_int_equal(slot, 0);
    assert_int_equal(loans.newest, before);
    assert_int_equal(loans.got_sum, sum);
}

static void
lend_at(size_t who, int64_t now)
{
    all[who] = lend((wq__ref)who + 1);
    wq__loans_note_age(&loans, all[who], now);
}

static void
take_back(size_t who)
{
    wq__loans_forget_age(&loans, all[who]);
    wq__loans_end(&loans, all[who]);
}

TEST(loans_are_listed_by_age)
{
    lend_at(0, 10);
    expect_ages((size_t[]){0}, 1);
    lend_at(1, 20);
    lend_at(2, 20);
    lend_at(3, 35);
    expect_ages((size_t[]){0, 1, 2, 3}, 4);
    assert_int_equal(loans.got_sum, 85);
    take_back(1); /* one between */
    expect_ages((size_t[]){0, 2, 3}, 3);
    take_back(3); /* the newest */
    expect_ages((size_t[]){0, 2}, 2);
    take_back(0); /* the oldest */
    expect_ages((size_t[]){2}, 1);
    lend_at(0, 50); /* in memory that was another one's */
    expect_ages((size_t[]){2, 0}, 2);
    take_back(2);
    take_back(0);
    expect_ages(NULL, 0);
}

/* Times below zero are times like any other, and the sum wraps. [O-15] */
TEST(sum_of_ages_comes_back_to_nothing)
{
    static const int64_t times[] = {INT64_MIN, -1, INT64_MAX, INT64_MAX,
                                    INT64_MAX};

    for (size_t i = 0; i < 5; i++)
        lend_at(i, times[i]);
    expect_ages((size_t[]){0, 1, 2, 3, 4}, 5);
    for (size_t i = 0; i < 5; i++)
        take_back(i);
    assert_int_equal(loans.got_sum, 0);
}

/* ---- no memory ----------------------------------------------------------- */

/* L6: every allocation on the way is refused once. */
TEST(refused_memory_changes_nothing_and_retry_works)
{
    size_t refusals = 0;

    for (size_t i = 0; i < MANY; i++) {
        const struct wq__loans before = loans;

        counting_fail(&mem, 1, COUNTING_ONCE);
        const wq_err err = wq__loans_reserve(&loans);
        counting_heal(&mem);
        if (err) {
            refusals++;
            assert_int_equal(err, WQ_ENOMEM);
            assert_memory_equal(&loans, &before, sizeof before);
        }
        all[i] = lend((wq__ref)i + 1);
    }
    assert_true(refusals > 5);
    for (size_t i = 0; i < MANY; i++)
        expect_found(all[i]);
}

static void
expect_reserve(wq_err err)
{
    assert_int_equal(wq__loans_reserve(&loans), err);
}

/* A done and a get after it need none; and a block that was reserved is not
 * allocated again. */
TEST(loan_that_ended_serves_again_without_memory)
{
    lend_many(WQ__LOANS_FIRST); /* the first block is full */
    counting_fail(&mem, 1, COUNTING_FROM_NOW);
    expect_reserve(WQ_ENOMEM);
    wq__loans_end(&loans, all[1]);
    expect_reserve(WQ_OK);
    assert_ptr_equal(wq__loans_begin(&loans, 5), all[1]);
    expect_reserve(WQ_ENOMEM);
    counting_heal(&mem);
    expect_reserve(WQ_OK);
    const uint64_t calls = mem.calls;
    for (int i = 0; i < 10; i++)
        expect_reserve(WQ_OK);
    assert_int_equal(mem.calls, calls);
}

/* Sizes are as in real life; nothing is allocated, only counted. */
static size_t counted; /* bytes, all in all */
static char   nowhere[sizeof(struct wq__loan)];

static void *
promise(void *unused, size_t n)
{
    (void)unused;
    counted += n;
    return nowhere;
}

static void
forget(void *unused, void *p, size_t n)
{
    (void)unused;
    (void)p;
    counted -= n;
}

/* How far blocks that double can go: numbers have 32 bits, and where a size_t
 * has no more than that, the size of a block ends first. */
static uint32_t
last_limit(void)
{
    const size_t longest = SIZE_MAX / sizeof(struct wq__loan);
    uint32_t     limit = WQ__LOANS_FIRST;

    while (limit < UINT32_C(1) << 31 && limit <= longest)
        limit *= 2;
    return limit;
}

/* Numbers have 32 bits: when there are none left it is as if there were no
 * memory, and nothing wraps. */
TEST(numbers_end_before_they_wrap)
{
    const wq_allocator promises = {.alloc = promise, .free = forget};
    struct wq__loans   many;
    size_t             blocks = 0;

    counted = 0;
    wq__loans_init(&many, &promises);
    while (blocks <= WQ__LOANS_BLOCKS && wq__loans_grow(&many) == WQ_OK)
        blocks++;
    assert_int_equal(many.limit, last_limit());
    assert_int_equal(counted, (many.limit - (size_t)WQ__LOANS_FIRST) *
                                  sizeof(struct wq__loan));
    many.fresh = many.limit; /* all of them are made */
    assert_int_equal(wq__loans_reserve(&many), WQ_ENOMEM);
    wq__loans_fini(&many);
    assert_int_equal(counted, 0);
}

TEST(fini_gives_all_back_and_may_come_twice)
{
    lend_many(MANY);
    wq__loans_fini(&loans);
    assert_int_equal(mem.bytes, 0);
    wq__loans_fini(&loans);
    (void)lend(1); /* as good as new */
    assert_int_equal(loans.live, 1);
}

WQ_TESTS(counted_test(loans, number_leads_to_its_loan_over_many_blocks),
         counted_test(loans, memory_grows_with_the_loans),
         counted_test(loans, loan_that_ended_last_is_the_next_to_begin),
         counted_test(loans, memory_of_ended_loans_serves_before_new_memory),
         counted_test(loans, random_life_finds_exactly_those_on_loan),
         counted_test(loans, copy_and_ended_loan_are_not_found),
         counted_test(loans, item_that_was_invented_is_not_found),
         counted_test(loans, item_with_a_number_to_come_is_not_found),
         counted_test(loans, item_of_another_queue_is_not_found),
         counted_test(loans, loans_are_listed_by_age),
         counted_test(loans, sum_of_ages_comes_back_to_nothing),
         counted_test(loans, refused_memory_changes_nothing_and_retry_works),
         counted_test(loans, loan_that_ended_serves_again_without_memory),
         counted_test(loans, numbers_end_before_they_wrap),
         counted_test(loans, fini_gives_all_back_and_may_come_twice));
