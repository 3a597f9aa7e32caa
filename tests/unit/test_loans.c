/* SPDX-License-Identifier: MIT */
/* test_loans.c: does a number lead to its loan, and an item that is none of
 * ours nowhere?
 */
#include "support/wq_test.h"

#include <string.h>

#include "core/loans.h"
#include "support/counting.h"
#include "unit/dice.h"

enum { MANY = 3000 }; /* over some ten blocks */

struct fixture {
    struct counting  mem;
    struct wq__loans loans;
    struct wq__loan *all[MANY];
};

static struct fixture f;

static int
open_loans(void **state)
{
    (void)state;
    memset(&f, 0, sizeof f);
    counting_init(&f.mem);
    wq__loans_init(&f.loans, &f.mem.allocator);
    return 0;
}

static int
close_loans(void **state)
{
    (void)state;
    wq__loans_fini(&f.loans);
    assert_int_equal(f.mem.bytes, 0);
    return 0;
}

/* A loan of the record `rec`, which is any number but 0. */
static struct wq__loan *
lend(wq__ref rec)
{
    assert_int_equal(wq__loans_reserve(&f.loans), WQ_OK);
    struct wq__loan *loan = wq__loans_begin(&f.loans, rec);
    assert_non_null(loan);
    return loan;
}

static void
lend_many(size_t n)
{
    for (size_t i = 0; i < n; i++)
        f.all[i] = lend((wq__ref)i + 1);
}

static void
expect_found(const struct wq__loan *loan)
{
    assert_ptr_equal(wq__loans_find(&f.loans, &loan->item), loan);
    assert_ptr_equal(wq__loans_at(&f.loans, loan->item.slot), loan);
}

/* How many loans there is memory for. */
static size_t
room(void)
{
    size_t n = 0;

    for (size_t i = 0; i < WQ__LOANS_BLOCKS; i++)
        n += f.loans.blocks[i] ? (size_t)WQ__LOANS_FIRST << i : 0;
    return n;
}

/* ---- numbers ------------------------------------------------------------- */

TEST(new_loans_ask_for_no_memory)
{
    assert_int_equal(f.mem.calls, 0);
    assert_int_equal(f.loans.live, 0);
}

/* An item is the beginning of its loan: wq__core_latency() relies on it. */
TEST(item_is_the_beginning_of_its_loan)
{
    const struct wq__loan *loan = lend(1);
    assert_ptr_equal(&loan->item, loan);
}

TEST(number_leads_to_its_loan_over_many_blocks)
{
    lend_many(MANY);
    assert_int_equal(f.loans.live, MANY);
    assert_non_null(f.loans.blocks[5]);
    for (size_t i = 0; i < MANY; i++) {
        expect_found(f.all[i]);
        assert_int_equal(f.all[i]->rec, i + 1);
        assert_int_equal(f.all[i]->item.slot, WQ__LOANS_FIRST + i);
    }
}

/* Nobody writes into another one's, and none moves when there are more. */
TEST(loans_keep_their_bytes)
{
    lend_many(MANY);
    for (size_t i = 0; i < MANY; i++) {
        f.all[i]->item.fence = i;
        f.all[i]->waited = (int64_t)(i * i);
    }
    for (size_t i = 0; i < MANY; i++) {
        assert_int_equal(f.all[i]->item.fence, i);
        assert_int_equal(f.all[i]->waited, i * i);
        expect_found(f.all[i]);
    }
}

/* O-10: each block is as large as all before it, and the first is small. */
TEST(memory_grows_with_the_loans)
{
    for (size_t n = 1; n <= MANY; n++) {
        (void)lend(1);
        assert_true(room() >= n);
        assert_true(room() < 2 * n + WQ__LOANS_FIRST);
        assert_int_equal(f.mem.bytes, room() * sizeof(struct wq__loan));
    }
}

/* ---- again --------------------------------------------------------------- */

TEST(loan_that_ended_last_is_the_next_to_begin)
{
    lend_many(3);
    wq__loans_end(&f.loans, f.all[0]);
    wq__loans_end(&f.loans, f.all[2]);
    wq__loans_end(&f.loans, f.all[1]);
    assert_int_equal(f.loans.live, 0);
    assert_ptr_equal(lend(7), f.all[1]);
    assert_ptr_equal(lend(8), f.all[2]);
    assert_ptr_equal(lend(9), f.all[0]);
    assert_int_equal(f.all[2]->rec, 8);
    assert_int_equal(f.loans.live, 3);
}

/* O-10 */
TEST(memory_of_those_that_ended_serves_before_new_memory)
{
    struct dice dice = dice_seeded("loans");

    lend_many(MANY);
    const uint64_t calls = f.mem.calls;
    const size_t   bytes = f.mem.bytes;
    for (int round = 0; round < 20000; round++) {
        const size_t who = dice_roll(&dice, MANY);
        wq__loans_end(&f.loans, f.all[who]);
        assert_ptr_equal(lend((wq__ref)who + 1), f.all[who]);
    }
    for (size_t i = 0; i < MANY; i++)
        wq__loans_end(&f.loans, f.all[i]);
    lend_many(MANY);
    assert_int_equal(f.mem.calls, calls);
    assert_int_equal(f.mem.bytes, bytes);
    for (size_t i = 0; i < MANY; i++)
        assert_int_equal(f.all[i]->rec, i + 1);
}

/* Against a plain list of who is on loan. */
TEST(random_life_finds_exactly_those_on_loan)
{
    enum { N = 200 };
    struct dice dice = dice_seeded("life");
    size_t      live = 0;

    for (int step = 0; step < 50000; step++) {
        const size_t who = dice_roll(&dice, N);
        if (f.all[who]) {
            expect_found(f.all[who]);
            assert_int_equal(f.all[who]->rec, who + 1);
            wq__loans_end(&f.loans, f.all[who]);
            f.all[who] = NULL;
            live--;
        } else {
            f.all[who] = lend((wq__ref)who + 1);
            live++;
        }
        assert_int_equal(f.loans.live, live);
    }
    for (size_t i = 0; i < N; i++)
        for (size_t k = 0; f.all[i] && k < i; k++)
            assert_ptr_not_equal(f.all[i], f.all[k]);
}

/* ---- items that are none of ours ----------------------------------------- */

/* O-06 */
TEST(loan_that_has_ended_is_not_found)
{
    lend_many(10);
    for (size_t i = 0; i < 10; i++) {
        wq__loans_end(&f.loans, f.all[i]);
        assert_null(wq__loans_find(&f.loans, &f.all[i]->item));
    }
}

/* O-06: whatever number it holds; the first and last of each block included. */
TEST(item_that_was_invented_is_not_found)
{
    wq_item     item = {.key = wq_str("invented")};
    struct dice dice = dice_seeded("numbers");

    for (size_t n = 0; n < 3; n++) { /* none, a few, many */
        for (size_t i = f.loans.live; i < n * n * 100; i++)
            (void)lend(1);
        for (unsigned bit = 0; bit < 32; bit++)
            for (uint32_t beside = 0; beside < 3; beside++) {
                item.slot = (UINT32_C(1) << bit) + beside - 1;
                assert_null(wq__loans_find(&f.loans, &item));
            }
        item.slot = UINT32_MAX;
        assert_null(wq__loans_find(&f.loans, &item));
        for (int i = 0; i < 10000; i++) {
            item.slot = (uint32_t)dice_bits(&dice);
            assert_null(wq__loans_find(&f.loans, &item));
        }
    }
}

/* O-06 */
TEST(copy_of_an_item_is_not_found)
{
    lend_many(10);
    for (size_t i = 0; i < 10; i++) {
        const struct wq__loan copy = *f.all[i];
        assert_null(wq__loans_find(&f.loans, &copy.item));
        expect_found(f.all[i]);
    }
}

/* O-06: of those that have no memory yet, no memory is read. */
TEST(item_with_the_number_of_one_to_come_is_not_found)
{
    lend_many(WQ__LOANS_FIRST + 1); /* the second block is half used */
    wq_item item = f.all[0]->item;

    for (uint32_t slot = f.loans.fresh; slot < 8 * f.loans.limit; slot++) {
        item.slot = slot;
        assert_null(wq__loans_find(&f.loans, &item));
    }
    /* Where it would be, if it were. */
    struct wq__loan *next = wq__loans_at(&f.loans, f.loans.fresh);
    next->item.slot = f.loans.fresh;
    assert_null(wq__loans_find(&f.loans, &next->item));
}

/* O-06 */
TEST(item_of_another_queue_is_not_found)
{
    struct wq__loans others;

    wq__loans_init(&others, &f.mem.allocator);
    lend_many(100);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(wq__loans_reserve(&others), WQ_OK);
        const struct wq__loan *loan = wq__loans_begin(&others, 1);
        assert_null(wq__loans_find(&f.loans, &loan->item));
        assert_null(wq__loans_find(&others, &f.all[i]->item));
    }
    wq__loans_fini(&others);
}

/* ---- ages ---------------------------------------------------------------- */

/* The list from both ends is `who`, the oldest first, and the sum is theirs. */
static void
expect_ages(const size_t *who, size_t n)
{
    uint32_t slot = f.loans.oldest, before = 0;
    uint64_t sum = 0;

    for (size_t i = 0; i < n; i++) {
        assert_int_equal(slot, f.all[who[i]]->item.slot);
        assert_int_equal(f.all[who[i]]->older, before);
        sum += (uint64_t)f.all[who[i]]->got;
        before = slot;
        slot = f.all[who[i]]->newer;
    }
    assert_int_equal(slot, 0);
    assert_int_equal(f.loans.newest, before);
    assert_int_equal(f.loans.got_sum, sum);
}

static void
lend_at(size_t who, int64_t now)
{
    f.all[who] = lend((wq__ref)who + 1);
    wq__loans_note_age(&f.loans, f.all[who], now);
}

static void
take_back(size_t who)
{
    wq__loans_forget_age(&f.loans, f.all[who]);
    wq__loans_end(&f.loans, f.all[who]);
}

TEST(loans_are_listed_by_age)
{
    lend_at(0, 10);
    expect_ages((size_t[]){0}, 1);
    lend_at(1, 20);
    lend_at(2, 20);
    lend_at(3, 35);
    expect_ages((size_t[]){0, 1, 2, 3}, 4);
    assert_int_equal(f.loans.got_sum, 85);
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
    lend_at(0, INT64_MIN);
    lend_at(1, -1);
    lend_at(2, INT64_MAX);
    lend_at(3, INT64_MAX);
    lend_at(4, INT64_MAX);
    expect_ages((size_t[]){0, 1, 2, 3, 4}, 5);
    for (size_t i = 0; i < 5; i++)
        take_back(i);
    assert_int_equal(f.loans.got_sum, 0);
}

/* ---- no memory ----------------------------------------------------------- */

/* L6: every allocation on the way is refused once. */
TEST(refused_memory_changes_nothing_and_retry_works)
{
    size_t refusals = 0;

    for (size_t i = 0; i < MANY; i++) {
        const struct wq__loans before = f.loans;

        counting_fail(&f.mem, 1, COUNTING_ONCE);
        const wq_err err = wq__loans_reserve(&f.loans);
        counting_heal(&f.mem);
        if (err) {
            refusals++;
            assert_int_equal(err, WQ_ENOMEM);
            assert_memory_equal(&f.loans, &before, sizeof before);
        }
        f.all[i] = lend((wq__ref)i + 1);
    }
    assert_true(refusals > 5);
    for (size_t i = 0; i < MANY; i++)
        expect_found(f.all[i]);
}

/* A done and a get after it need none. */
TEST(loan_that_ended_makes_room_without_memory)
{
    lend_many(WQ__LOANS_FIRST); /* the first block is full */
    counting_fail(&f.mem, 1, COUNTING_FROM_NOW);
    assert_int_equal(wq__loans_reserve(&f.loans), WQ_ENOMEM);
    wq__loans_end(&f.loans, f.all[1]);
    assert_int_equal(wq__loans_reserve(&f.loans), WQ_OK);
    assert_ptr_equal(wq__loans_begin(&f.loans, 5), f.all[1]);
    assert_int_equal(wq__loans_reserve(&f.loans), WQ_ENOMEM);
    counting_heal(&f.mem);
    assert_int_equal(wq__loans_reserve(&f.loans), WQ_OK);
}

/* A block that was reserved is not asked for again. */
TEST(room_that_was_reserved_stays)
{
    assert_int_equal(wq__loans_reserve(&f.loans), WQ_OK);
    const uint64_t calls = f.mem.calls;
    for (int i = 0; i < 10; i++)
        assert_int_equal(wq__loans_reserve(&f.loans), WQ_OK);
    assert_int_equal(f.mem.calls, calls);
}

/* Sizes are as in real life, memory is not: what is asked for is counted. */
static size_t asked; /* bytes, all in all */
static char   nowhere[sizeof(struct wq__loan)];

static void *
promise(void *unused, size_t n)
{
    (void)unused;
    asked += n;
    return nowhere;
}

static void
forget(void *unused, void *p, size_t n)
{
    (void)unused;
    (void)p;
    asked -= n;
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
    struct wq__loans   loans;
    size_t             blocks = 0;

    asked = 0;
    wq__loans_init(&loans, &promises);
    while (blocks <= WQ__LOANS_BLOCKS && wq__loans_grow(&loans) == WQ_OK)
        blocks++;
    assert_int_equal(loans.limit, last_limit());
    assert_int_equal(asked, (loans.limit - (size_t)WQ__LOANS_FIRST) *
                                sizeof(struct wq__loan));
    loans.fresh = loans.limit; /* all of them are made */
    assert_int_equal(wq__loans_reserve(&loans), WQ_ENOMEM);
    wq__loans_fini(&loans);
    assert_int_equal(asked, 0);
}

TEST(end_gives_all_back_and_may_come_twice)
{
    lend_many(MANY);
    wq__loans_fini(&f.loans);
    assert_int_equal(f.mem.bytes, 0);
    wq__loans_fini(&f.loans);
    (void)lend(1); /* as good as new */
    assert_int_equal(f.loans.live, 1);
}

#define loans_test(name) test_with(name, open_loans, close_loans)

WQ_TESTS(loans_test(new_loans_ask_for_no_memory),
         loans_test(item_is_the_beginning_of_its_loan),
         loans_test(number_leads_to_its_loan_over_many_blocks),
         loans_test(loans_keep_their_bytes),
         loans_test(memory_grows_with_the_loans),
         loans_test(loan_that_ended_last_is_the_next_to_begin),
         loans_test(memory_of_those_that_ended_serves_before_new_memory),
         loans_test(random_life_finds_exactly_those_on_loan),
         loans_test(loan_that_has_ended_is_not_found),
         loans_test(item_that_was_invented_is_not_found),
         loans_test(copy_of_an_item_is_not_found),
         loans_test(item_with_the_number_of_one_to_come_is_not_found),
         loans_test(item_of_another_queue_is_not_found),
         loans_test(loans_are_listed_by_age),
         loans_test(sum_of_ages_comes_back_to_nothing),
         loans_test(refused_memory_changes_nothing_and_retry_works),
         loans_test(loan_that_ended_makes_room_without_memory),
         loans_test(room_that_was_reserved_stays),
         loans_test(numbers_end_before_they_wrap),
         loans_test(end_gives_all_back_and_may_come_twice));
