/* SPDX-License-Identifier: MIT */
/* test_inbox.c: does the ring hand over every key it accepted, once, in order,
 * and say no when it cannot?
 */
#include "support/wq_test.h"

#include <sched.h>
#include <string.h>

#include "memory/inbox.h"
#include "support/counting.h"
#include "support/worker.h"

struct fixture {
    struct counting  mem;      /* of the ring */
    struct counting  core_mem; /* of the core, to be failed apart */
    struct wq__core  core;
    struct wq__inbox inbox;
};

static struct fixture f;

static int
open_inbox(void **state)
{
    const struct wq__hash_key secret = {.k0 = 1, .k1 = 2, .mask = UINT32_MAX};

    (void)state;
    counting_init(&f.mem);
    counting_init(&f.core_mem);
    wq__core_init(&f.core, secret, NULL, &f.core_mem.allocator);
    wq__inbox_init(&f.inbox, &f.mem.allocator);
    wq__inbox_open(&f.inbox);
    return 0;
}

static int
close_inbox(void **state)
{
    (void)state;
    assert_null(wq__core_check(&f.core));
    wq__inbox_fini(&f.inbox);
    wq__core_fini(&f.core);
    assert_int_equal(f.mem.bytes, 0);
    assert_int_equal(f.core_mem.bytes, 0);
    return 0;
}

static bool
put(wq_key key)
{
    uint64_t position;

    return wq__inbox_put(&f.inbox, key, wq__core_hash(&f.core, key), 0,
                         &position);
}

static bool
put_number(uint64_t n)
{
    return put(wq_u64(&n));
}

static void
empty(void)
{
    assert_int_equal(wq__inbox_empty(&f.inbox, &f.core, 0, true), WQ_OK);
}

/* The next key of the core, which must be there; 8 bytes. */
static uint64_t
take_number(void)
{
    wq_item *item = NULL;
    uint64_t n;

    assert_int_equal(wq__core_get(&f.core, 0, &item), WQ_OK);
    assert_int_equal(item->key.len, sizeof n);
    memcpy(&n, item->key.data, sizeof n);
    assert_int_equal(wq__core_done(&f.core, item, 0, NULL), WQ_OK);
    return n;
}

/* The core holds exactly the numbers from `from` to `to` - 1, in order. */
static void
expect_numbers(uint64_t from, uint64_t to)
{
    assert_int_equal(wq__core_len(&f.core), to - from);
    for (uint64_t n = from; n < to; n++)
        assert_int_equal(take_number(), n);
}

TEST(ring_that_was_never_opened_says_no_and_costs_nothing)
{
    struct wq__inbox closed;
    uint64_t         position;

    wq__inbox_init(&closed, &f.mem.allocator);
    assert_false(wq__inbox_put(&closed, wq_str("foo"), 0, 0, &position));
    assert_false(wq__inbox_holds(&closed));
    assert_int_equal(wq__inbox_empty(&closed, &f.core, 0, true), WQ_OK);
    assert_null(closed.raw);
    wq__inbox_fini(&closed);
}

TEST(key_that_was_put_reaches_the_core)
{
    assert_true(put(wq_str("foo")));
    assert_true(wq__inbox_holds(&f.inbox));
    assert_int_equal(wq__inbox_len(&f.inbox), 1);
    assert_int_equal(wq__core_len(&f.core), 0);
    empty();
    assert_false(wq__inbox_holds(&f.inbox));
    assert_int_equal(wq__core_len(&f.core), 1);
}

TEST(bytes_are_copied_at_put)
{
    char key[] = "foo";

    assert_true(put(wq_str(key)));
    memset(key, 'x', 3);
    empty();
    wq_item *item = NULL;
    assert_int_equal(wq__core_get(&f.core, 0, &item), WQ_OK);
    assert_memory_equal(item->key.data, "foo", 3);
}

TEST(same_key_put_twice_is_ready_once)
{
    assert_true(put(wq_str("foo")));
    assert_true(put(wq_str("foo")));
    empty();
    assert_int_equal(wq__core_len(&f.core), 1);
}

TEST(key_too_long_for_a_cell_is_refused)
{
    static const char bytes[WQ__INBOX_KEY_MAX + 1];

    assert_true(put((wq_key){bytes, WQ__INBOX_KEY_MAX}));
    assert_false(put((wq_key){bytes, WQ__INBOX_KEY_MAX + 1}));
    assert_int_equal(wq__inbox_len(&f.inbox), 1);
    empty();
    assert_int_equal(wq__core_len(&f.core), 1);
}

/* I2: a cell that was not emptied is never written again. */
TEST(full_ring_says_no_and_keeps_what_it_has)
{
    for (uint64_t n = 0; n < WQ__INBOX_CELLS; n++)
        assert_true(put_number(n));
    assert_false(put_number(WQ__INBOX_CELLS));
    assert_int_equal(wq__inbox_len(&f.inbox), WQ__INBOX_CELLS);
    empty();
    expect_numbers(0, WQ__INBOX_CELLS);
}

TEST(emptied_ring_takes_as_many_again)
{
    for (int lap = 0; lap < 5; lap++) {
        for (uint64_t n = 0; n < WQ__INBOX_CELLS; n++)
            assert_true(put_number(n));
        assert_false(put_number(999));
        empty();
        expect_numbers(0, WQ__INBOX_CELLS);
    }
}

/* Batches of all sizes, so that they begin and end in every cell. */
TEST(keys_stay_in_order_over_many_laps)
{
    uint64_t next = 0;

    for (int round = 0; round < 4; round++)
        for (uint64_t batch = 1; batch <= WQ__INBOX_CELLS; batch++) {
            const uint64_t from = next;
            while (next < from + batch)
                assert_true(put_number(next++));
            empty();
            expect_numbers(from, next);
        }
    assert_true(next > 100 * WQ__INBOX_CELLS);
}

TEST(closed_ring_says_no)
{
    wq__inbox_close(&f.inbox);
    assert_false(put(wq_str("foo")));
    assert_false(wq__inbox_holds(&f.inbox));
    assert_int_equal(wq__inbox_len(&f.inbox), 0);
    empty();
}

TEST(keys_accepted_before_closing_are_handed_over)
{
    assert_true(put_number(1));
    assert_true(put_number(2));
    wq__inbox_close(&f.inbox);
    wq__inbox_close(&f.inbox); /* a second time changes nothing */
    assert_true(wq__inbox_holds(&f.inbox));
    assert_int_equal(wq__inbox_len(&f.inbox), 2);
    empty();
    expect_numbers(1, 3);
    assert_false(put_number(3));
}

TEST(keys_accepted_before_shutdown_are_handed_over_after_it)
{
    assert_true(put_number(1));
    wq__inbox_close(&f.inbox);
    wq__core_shut_down(&f.core);
    empty();
    expect_numbers(1, 2);
}

TEST(ring_without_memory_stays_shut_and_opens_later)
{
    struct wq__inbox in;
    uint64_t         position;

    wq__inbox_init(&in, &f.mem.allocator);
    counting_fail(&f.mem, 1, COUNTING_ONCE);
    wq__inbox_open(&in);
    assert_false(wq__inbox_put(&in, wq_str("foo"), 0, 0, &position));
    wq__inbox_open(&in);
    assert_true(wq__inbox_put(&in, wq_str("foo"), 0, 0, &position));
    assert_int_equal(position, 0);
    wq__inbox_fini(&in);
}

TEST(opening_twice_makes_one_ring)
{
    const size_t bytes = f.mem.bytes;

    assert_true(put_number(7));
    wq__inbox_open(&f.inbox);
    assert_int_equal(f.mem.bytes, bytes);
    empty();
    expect_numbers(7, 8);
}

TEST(cells_begin_on_cache_lines)
{
    assert_int_equal((uintptr_t)f.inbox.cells % WQ__CACHE_LINE, 0);
    assert_int_equal((uintptr_t)&f.inbox.cells[1] % WQ__CACHE_LINE, 0);
}

/* I5 O-13: for every allocation that may be refused on the way. */
TEST(emptying_without_memory_leaves_keys_in_order)
{
    enum { MANY = WQ__INBOX_CELLS - 4 };

    for (uint64_t nth = 1; nth <= 12; nth++) {
        for (uint64_t n = 0; n < MANY; n++)
            assert_true(put_number(n));
        counting_fail(&f.core_mem, nth, COUNTING_FROM_NOW);
        const wq_err err = wq__inbox_empty(&f.inbox, &f.core, 0, true);
        assert_true(err == WQ_OK || err == WQ_ENOMEM);
        assert_int_equal(wq__core_len(&f.core) + wq__inbox_len(&f.inbox), MANY);
        counting_heal(&f.core_mem);
        empty();
        expect_numbers(0, MANY);
        wq__core_fini(&f.core); /* begin without any memory again */
        wq__core_init(&f.core, f.core.hasher.secret, NULL,
                      &f.core_mem.allocator);
    }
}

TEST(first_key_without_memory_is_kept)
{
    assert_true(put_number(1));
    assert_true(put_number(2));
    counting_fail(&f.core_mem, 1, COUNTING_FROM_NOW);
    assert_int_equal(wq__inbox_empty(&f.inbox, &f.core, 0, true), WQ_ENOMEM);
    assert_int_equal(wq__inbox_len(&f.inbox), 2);
    assert_int_equal(wq__inbox_empty(&f.inbox, &f.core, 0, true), WQ_ENOMEM);
    counting_heal(&f.core_mem);
    assert_true(put_number(3));
    empty();
    expect_numbers(1, 4);
}

/* I2 with I5: what could not be taken in still takes room. */
TEST(ring_that_could_not_be_emptied_accepts_only_what_fits)
{
    for (uint64_t n = 0; n < WQ__INBOX_CELLS; n++)
        assert_true(put_number(n));
    counting_fail(&f.core_mem, 1, COUNTING_FROM_NOW);
    assert_int_equal(wq__inbox_empty(&f.inbox, &f.core, 0, true), WQ_ENOMEM);
    assert_false(put_number(999));
    counting_heal(&f.core_mem);
    empty();
    expect_numbers(0, WQ__INBOX_CELLS);
}

/* ---- with threads ------------------------------------------------------- */

enum { PRODUCERS = 3, EACH = 20000 };

struct producer {
    uint64_t id;
};

static uint64_t
number(uint64_t producer, uint64_t n)
{
    return producer << 32 | n;
}

/* Cells of all lengths: the number comes first, the rest repeats its low byte,
 * so that a cell read before it was full is noticed. */
static wq_key
fill_key(unsigned char *bytes, uint64_t producer, uint64_t n)
{
    const uint64_t value = number(producer, n);
    const size_t   spare = WQ__INBOX_KEY_MAX - sizeof value;
    const size_t   len = sizeof value + (size_t)(n % (spare + 1));

    memcpy(bytes, &value, sizeof value);
    memset(bytes + sizeof value, (int)(n & 0xff), len - sizeof value);
    return (wq_key){bytes, len};
}

static int
produce(struct worker *self)
{
    const struct producer *p = self->arg;
    unsigned char          bytes[WQ__INBOX_KEY_MAX];

    for (uint64_t n = 0; n < EACH; n++) {
        const wq_key key = fill_key(bytes, p->id, n);
        while (!put(key))
            (void)sched_yield();
    }
    return 0;
}

/* I1 I2 I3 I6 */
TEST(keys_of_several_producers_arrive_whole_once_and_in_their_order)
{
    struct producer producers[PRODUCERS];
    struct worker  *workers[PRODUCERS];
    uint64_t        next[PRODUCERS] = {0};
    unsigned char   expected[WQ__INBOX_KEY_MAX];

    for (uint64_t i = 0; i < PRODUCERS; i++) {
        producers[i].id = i;
        workers[i] = worker_start(produce, &producers[i]);
    }
    for (size_t got = 0; got < PRODUCERS * EACH;) {
        wq_item *item;
        empty();
        if (wq__core_len(&f.core) == 0)
            (void)sched_yield();
        while (wq__core_get(&f.core, 0, &item) == WQ_OK) {
            uint64_t value;
            memcpy(&value, item->key.data, sizeof value);
            assert_in_range(value >> 32, 0, PRODUCERS - 1);
            const wq_key key =
                fill_key(expected, value >> 32, next[value >> 32]++);
            assert_int_equal(item->key.len, key.len);
            assert_memory_equal(item->key.data, key.data, key.len);
            assert_int_equal(wq__core_done(&f.core, item, 0, NULL), WQ_OK);
            got++;
        }
    }
    for (size_t i = 0; i < PRODUCERS; i++)
        assert_int_equal(worker_join(workers[i]), 0);
    assert_false(wq__inbox_holds(&f.inbox));
}

static int
produce_until_closed(struct worker *self)
{
    uint64_t accepted = 0;

    (void)self;
    while (!(atomic_load(&f.inbox.tail) >> 63))
        accepted += put_number(accepted);
    return (int)accepted;
}

/* I1: what a put said yes to before the ring closed is in it, nothing else. */
TEST(closing_and_accepting_exclude_each_other)
{
    struct worker *w = worker_start(produce_until_closed, NULL);
    uint64_t       taken = 0;

    while (taken < 10000) {
        empty();
        for (; wq__core_len(&f.core); taken++)
            assert_int_equal(take_number(), taken);
    }
    wq__inbox_close(&f.inbox);
    empty();
    for (; wq__core_len(&f.core); taken++)
        assert_int_equal(take_number(), taken);
    assert_int_equal(worker_join(w), taken);
    empty();
    assert_int_equal(wq__core_len(&f.core), 0);
}

#define inbox_test(name) test_with(name, open_inbox, close_inbox)

WQ_TESTS(
    inbox_test(ring_that_was_never_opened_says_no_and_costs_nothing),
    inbox_test(key_that_was_put_reaches_the_core),
    inbox_test(bytes_are_copied_at_put),
    inbox_test(same_key_put_twice_is_ready_once),
    inbox_test(key_too_long_for_a_cell_is_refused),
    inbox_test(full_ring_says_no_and_keeps_what_it_has),
    inbox_test(emptied_ring_takes_as_many_again),
    inbox_test(keys_stay_in_order_over_many_laps),
    inbox_test(closed_ring_says_no),
    inbox_test(keys_accepted_before_closing_are_handed_over),
    inbox_test(keys_accepted_before_shutdown_are_handed_over_after_it),
    inbox_test(ring_without_memory_stays_shut_and_opens_later),
    inbox_test(opening_twice_makes_one_ring),
    inbox_test(cells_begin_on_cache_lines),
    inbox_test(emptying_without_memory_leaves_keys_in_order),
    inbox_test(first_key_without_memory_is_kept),
    inbox_test(ring_that_could_not_be_emptied_accepts_only_what_fits),
    inbox_test(keys_of_several_producers_arrive_whole_once_and_in_their_order),
    inbox_test(closing_and_accepting_exclude_each_other));
