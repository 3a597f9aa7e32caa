/* SPDX-License-Identifier: MIT */
/* test_inbox.c: does the ring hand over every key it accepted, once, in order,
 * and refuse the others?
 */
#include "unit/script.h"

#include <sched.h>

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

static wq_err
try_to_empty(void)
{
    return wq__inbox_empty(&f.inbox, &f.core, 0, true);
}

static void
empty(void)
{
    assert_int_equal(try_to_empty(), WQ_OK);
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

/* put N: it is accepted; full N: it is not; fill: put 0 and up until the ring
 * is full; empty [ERROR]; ready FROM TO: the core has those keys, in order;
 * all: it has what `fill` put; len N: of the ring; open; close; shutdown: of
 * the core; memory yes; memory no: the core has none. */
static bool
act(const char *const *word)
{
    const uint64_t from = strtoull(word[1], NULL, 10);

    if (is(word[0], "put"))
        assert_true(put_number(from));
    else if (is(word[0], "full"))
        assert_false(put_number(from));
    else if (is(word[0], "fill"))
        for (uint64_t n = 0; n < WQ__INBOX_CELLS; n++)
            assert_true(put_number(n));
    else if (is(word[0], "empty"))
        expect_err(try_to_empty(), *word[1] ? word[1] : "OK");
    else if (is(word[0], "ready"))
        expect_numbers(from, (uint64_t)number(word[2]) + 1);
    else if (is(word[0], "all"))
        expect_numbers(0, WQ__INBOX_CELLS);
    else if (is(word[0], "len"))
        expect_number((int64_t)wq__inbox_len(&f.inbox), word[1]);
    else if (is(word[0], "open"))
        wq__inbox_open(&f.inbox);
    else if (is(word[0], "close"))
        wq__inbox_close(&f.inbox);
    else if (is(word[0], "shutdown"))
        wq__core_shut_down(&f.core);
    else if (is(word[0], "memory") && is(word[1], "no"))
        counting_fail(&f.core_mem, 1, COUNTING_FROM_NOW);
    else if (is(word[0], "memory"))
        counting_heal(&f.core_mem);
    else
        return false;
    return true;
}

static void
check(void)
{
    assert_int_equal(wq__inbox_holds(&f.inbox), wq__inbox_len(&f.inbox) > 0);
    assert_int_equal(f.mem.blocks, 1); /* one ring */
}

static const struct scene scenes[] = {
    {"a key that was put reaches the core when the ring is emptied",
     "put 7; len 1; empty; len 0; ready 7 7"},
    {"the same key put twice is READY once", "put 7; put 7; empty; ready 7 7"},
    /* I2: a cell that was not emptied is never written again. */
    {"a full ring refuses keys and keeps what it has",
     "fill; full 999; empty; all"},
    {"an emptied ring accepts as many again",
     "fill; full 999; empty; all; fill; full 999; empty; all; fill; full 999; "
     "empty; all; fill; full 999; empty; all; fill; full 999; empty; all"},
    {"a closed ring refuses keys", "close; full 7; len 0; empty"},
    {"keys accepted before closing are handed over",
     "put 1; put 2; close; close; len 2; empty; ready 1 2; full 3"},
    {"keys accepted before shutdown are handed over after it",
     "put 1; close; shutdown; empty; ready 1 1"},
    {"opening twice makes one ring", "put 7; open; empty; ready 7 7"},
    /* I5 */
    {"keys that there is no memory for stay in the ring, in order",
     "put 1; put 2; memory no; empty ENOMEM; len 2; empty ENOMEM; memory yes; "
     "put 3; empty; ready 1 3"},
    /* I2 I5 */
    {"a ring that could not be emptied accepts only what fits",
     "fill; memory no; empty ENOMEM; full 999; memory yes; empty; all"},
};

TEST(ring_hands_over_what_it_accepted)
{
    script_run_all(scenes, LEN(scenes), open_inbox, act, check, close_inbox);
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

TEST(key_too_long_for_a_cell_is_refused)
{
    static const char bytes[WQ__INBOX_KEY_MAX + 1];

    assert_true(put((wq_key){bytes, WQ__INBOX_KEY_MAX}));
    assert_false(put((wq_key){bytes, WQ__INBOX_KEY_MAX + 1}));
    assert_int_equal(wq__inbox_len(&f.inbox), 1);
    empty();
    assert_int_equal(wq__core_len(&f.core), 1);
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

TEST(ring_that_was_not_opened_refuses_and_costs_nothing)
{
    struct wq__inbox in;
    uint64_t         position;

    wq__inbox_init(&in, &f.mem.allocator);
    for (int attempt = 0; attempt < 2; attempt++) {
        assert_false(wq__inbox_put(&in, wq_str("foo"), 0, 0, &position));
        assert_false(wq__inbox_holds(&in));
        assert_int_equal(wq__inbox_empty(&in, &f.core, 0, true), WQ_OK);
        assert_null(in.raw);
        counting_fail(&f.mem, 1, COUNTING_ONCE);
        wq__inbox_open(&in); /* there is no memory, and no ring */
    }
    wq__inbox_open(&in);
    assert_true(wq__inbox_put(&in, wq_str("foo"), 0, 0, &position));
    assert_int_equal(position, 0);
    wq__inbox_fini(&in);
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
        const wq_err err = try_to_empty();
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

/* ---- with threads ------------------------------------------------------- */

enum { PRODUCERS = 3, EACH = 20000 };

/* Cells of all lengths: the number comes first, the rest repeats its low byte,
 * so that a cell read before it was full is noticed. */
static wq_key
fill_key(unsigned char *bytes, uint64_t producer, uint64_t n)
{
    const uint64_t value = producer << 32 | n;
    const size_t   spare = WQ__INBOX_KEY_MAX - sizeof value;
    const size_t   len = sizeof value + (size_t)(n % (spare + 1));

    memcpy(bytes, &value, sizeof value);
    memset(bytes + sizeof value, (int)(n & 0xff), len - sizeof value);
    return (wq_key){bytes, len};
}

static int
produce(struct worker *self)
{
    const uint64_t *id = self->arg;
    unsigned char   bytes[WQ__INBOX_KEY_MAX];

    for (uint64_t n = 0; n < EACH; n++) {
        const wq_key key = fill_key(bytes, *id, n);
        while (!put(key))
            (void)sched_yield();
    }
    return 0;
}

/* I1 I2 I3 I6 */
TEST(keys_of_several_producers_arrive_whole_and_in_order)
{
    uint64_t       ids[PRODUCERS], next[PRODUCERS] = {0};
    struct worker *workers[PRODUCERS];
    unsigned char  expected[WQ__INBOX_KEY_MAX];

    for (uint64_t i = 0; i < PRODUCERS; i++) {
        ids[i] = i;
        workers[i] = worker_start(produce, &ids[i]);
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

/* Takes all numbers, which go on from `next`, and returns the one after. */
static uint64_t
take_from(uint64_t next)
{
    empty();
    for (; wq__core_len(&f.core); next++)
        assert_int_equal(take_number(), next);
    return next;
}

/* I1: what a put accepted before the ring closed is in it, nothing else. */
TEST(closing_and_accepting_exclude_each_other)
{
    struct worker *w = worker_start(produce_until_closed, NULL);
    uint64_t       taken = 0;

    while (taken < 10000)
        taken = take_from(taken);
    wq__inbox_close(&f.inbox);
    taken = take_from(taken);
    assert_int_equal(worker_join(w), taken);
    empty();
    assert_int_equal(wq__core_len(&f.core), 0);
}

#define inbox_test(name) test_with(name, open_inbox, close_inbox)

WQ_TESTS(test(ring_hands_over_what_it_accepted),
         inbox_test(bytes_are_copied_at_put),
         inbox_test(key_too_long_for_a_cell_is_refused),
         inbox_test(keys_stay_in_order_over_many_laps),
         inbox_test(ring_that_was_not_opened_refuses_and_costs_nothing),
         inbox_test(cells_begin_on_cache_lines),
         inbox_test(emptying_without_memory_leaves_keys_in_order),
         inbox_test(keys_of_several_producers_arrive_whole_and_in_order),
         inbox_test(closing_and_accepting_exclude_each_other));
