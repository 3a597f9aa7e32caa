/* SPDX-License-Identifier: MIT */
/* test_memory.c: does the in-memory queue keep every key it accepted, whichever
 * way the key came in?
 *
 * A test that takes the queue's lock makes its own adds find the lock taken:
 * they go through the inbox, one thread being enough to show it.
 */
#include "support/wq_test.h"

#include <stdio.h>
#include <string.h>

#include "memory/memory.h"
#include "support/counting.h"
#include "support/worker.h"
#include "unit/lifo.h"

struct fixture {
    struct counting    mem;
    wq_queue          *q;
    struct wq__memory *m; /* the same queue, seen from inside */
};

static struct fixture f;

#define assert_err(actual, expected)                                           \
    assert_string_equal(wq_err_name(actual), wq_err_name(expected))

static void
create(uint32_t mask, const wq_order *order)
{
    const struct wq__hash_key secret = {.k0 = 1, .k1 = 2, .mask = mask};

    counting_init(&f.mem);
    assert_err(wq__memory_create(
                   WQ_CONFIG(.allocator = &f.mem.allocator, .order = order),
                   secret, &f.q),
               WQ_OK);
    f.m = (struct wq__memory *)(void *)f.q;
}

/* A queue whose ring exists, as after the first fight for the lock. */
static int
open_queue(void **state)
{
    (void)state;
    create(UINT32_MAX, NULL);
    wq__lock_take(&f.m->lock);
    wq__inbox_open(&f.m->inbox);
    wq__lock_release(&f.m->lock);
    return 0;
}

static int
open_colliding(void **state)
{
    (void)state;
    create(0, NULL);
    return 0;
}

static int
close_queue(void **state)
{
    (void)state;
    const char *broken = wq__core_check(&f.m->core);
    if (broken)
        fail_msg("%s", broken);
    wq_destroy(f.q);
    assert_int_equal(f.mem.bytes, 0);
    return 0;
}

/* ---- words -------------------------------------------------------------- */

static void
add(const char *key)
{
    assert_err(wq_add_str(f.q, key), WQ_OK);
}

/* Add while the lock is taken. */
static void
hand_over(const char *key)
{
    const size_t before = wq__inbox_len(&f.m->inbox);

    wq__lock_take(&f.m->lock);
    const wq_err err = wq_add_str(f.q, key);
    wq__lock_release(&f.m->lock);
    assert_err(err, WQ_OK);
    assert_int_equal(wq__inbox_len(&f.m->inbox), before + 1);
}

static wq_item *
take(const char *key)
{
    wq_item *item = NULL;

    assert_err(wq_get_within(f.q, 0, &item), WQ_OK);
    assert_int_equal(item->key.len, strlen(key));
    assert_memory_equal(item->key.data, key, strlen(key));
    return item;
}

static void
work_on(const char *key)
{
    assert_err(wq_done(f.q, take(key)), WQ_OK);
}

static void
expect_get(wq_err err)
{
    wq_item *item = NULL;
    assert_err(wq_get_within(f.q, 0, &item), err);
    assert_null(item);
}

static void
no_memory(void)
{
    counting_fail(&f.mem, 1, COUNTING_FROM_NOW);
}

static void
memory_again(void)
{
    counting_heal(&f.mem);
}

/* ---- through the inbox -------------------------------------------------- */

TEST(add_that_finds_the_lock_taken_is_accepted_at_once)
{
    hand_over("foo");
    assert_int_equal(wq__core_len(&f.m->core), 0);
    work_on("foo");
    expect_get(WQ_ETIMEDOUT);
}

/* */
TEST(length_counts_keys_handed_over)
{
    hand_over("foo");
    hand_over("bar");
    assert_int_equal(wq_len(f.q), 2);
}

/* */
TEST(key_handed_over_twice_counts_once)
{
    add("foo");
    hand_over("foo");
    hand_over("foo");
    assert_int_equal(wq_len(f.q), 1);
    work_on("foo");
    expect_get(WQ_ETIMEDOUT);
}

/* I6 L4: one thread's keys stay in order, whichever way they take. */
TEST(keys_of_one_thread_stay_in_order)
{
    add("a");
    hand_over("b");
    add("c");
    hand_over("d");
    hand_over("e");
    work_on("a");
    work_on("b");
    work_on("c");
    work_on("d");
    work_on("e");
}

/* Q-04 L3 */
TEST(key_handed_over_while_held_is_handed_out_after_done)
{
    add("foo");
    wq_item *item = take("foo");
    hand_over("foo");
    assert_err(wq_done(f.q, item), WQ_OK);
    assert_int_equal(wq_len(f.q), 1);
    work_on("foo");
    expect_get(WQ_ETIMEDOUT);
}

/* Q-12 L1 */
TEST(key_handed_over_while_held_is_not_handed_out_before_done)
{
    add("foo");
    wq_item *item = take("foo");
    hand_over("foo");
    expect_get(WQ_ETIMEDOUT);
    assert_int_equal(wq_len(f.q), 0);
    assert_err(wq_done(f.q, item), WQ_OK);
    work_on("foo");
}

/* */
TEST(keys_handed_over_before_shutdown_are_handed_out_after_it)
{
    hand_over("foo");
    wq_shutdown(f.q);
    assert_int_equal(wq_len(f.q), 1);
    work_on("foo");
    expect_get(WQ_ESHUTDOWN);
}

/* O-07 */
TEST(drain_waits_for_keys_handed_over)
{
    hand_over("foo");
    assert_err(wq_shutdown_with_drain_within(f.q, 0), WQ_ETIMEDOUT);
    work_on("foo");
    assert_err(wq_shutdown_with_drain_within(f.q, 0), WQ_OK);
}

static int
add_in_worker(struct worker *self)
{
    return (int)wq_add(f.q, *(const wq_key *)self->arg);
}

/* Hold the lock until an add in another thread sleeps for it. */
static wq_err
add_that_must_wait(wq_key key)
{
    wq__lock_take(&f.m->lock);
    struct worker *w = worker_start(add_in_worker, &key);
    worker_await_blocked(w);
    wq__lock_release(&f.m->lock);
    return (wq_err)worker_join(w);
}

/* Q-15 O-04 */
TEST(add_after_shutdown_is_refused_also_when_the_lock_is_taken)
{
    wq_shutdown(f.q);
    assert_err(add_that_must_wait(wq_str("foo")), WQ_ESHUTDOWN);
    expect_get(WQ_ESHUTDOWN);
}

TEST(key_handed_over_goes_before_a_key_that_done_makes_ready)
{
    add("dirty");
    wq_item *item = take("dirty");
    add("dirty");
    hand_over("first");
    assert_err(wq_done(f.q, item), WQ_OK);

    work_on("first");
    work_on("dirty");
}

TEST(key_too_long_for_the_ring_waits_for_the_lock)
{
    char key[WQ__INBOX_KEY_MAX + 2] = {0};

    memset(key, 'k', sizeof key - 1);
    assert_err(add_that_must_wait(wq_str(key)), WQ_OK);
    work_on(key);
}

/* The ring is full: the add that no longer fits takes the lock instead, and
 * comes last. */
TEST(add_to_a_full_ring_waits_for_the_lock)
{
    char key[32];

    for (int i = 0; i < WQ__INBOX_CELLS; i++) {
        (void)snprintf(key, sizeof key, "%d", i);
        hand_over(key);
    }
    assert_err(add_that_must_wait(wq_str("last")), WQ_OK);
    assert_int_equal(wq_len(f.q), WQ__INBOX_CELLS + 1);
    for (int i = 0; i < WQ__INBOX_CELLS; i++) {
        (void)snprintf(key, sizeof key, "%d", i);
        work_on(key);
    }
    work_on("last");
}

TEST(first_fight_for_the_lock_makes_the_ring)
{
    wq_destroy(f.q);
    create(UINT32_MAX, NULL);
    for (int i = 0; i < 100; i++) {
        add("foo");
        work_on("foo");
    }
    assert_null(f.m->inbox.raw); /* nobody fought: no ring */
    assert_err(add_that_must_wait(wq_str("foo")), WQ_OK);
    assert_non_null(f.m->inbox.raw);
    hand_over("bar");
    work_on("foo");
    work_on("bar");
}

/* ---- another thread takes the keys out ---------------------------------- */

static int
get_in_worker(struct worker *self)
{
    return (int)wq_get_within(f.q, 0, self->arg);
}

/* A key is handed out to another thread. */
static wq_item *
let_other_take(void)
{
    wq_item *item = NULL;

    assert_err((wq_err)worker_join(worker_start(get_in_worker, &item)), WQ_OK);
    return item;
}

static bool
is_handed_over(const char *key)
{
    const size_t before = wq__inbox_len(&f.m->inbox);

    add(key);
    return wq__inbox_len(&f.m->inbox) == before + 1;
}

/* Although the lock is free. What comes of it, tests/behaviour asks. */
TEST(key_is_handed_over_while_another_thread_takes_keys_out)
{
    assert_false(is_handed_over("a")); /* nobody has taken any */
    wq_item *item = let_other_take();
    assert_true(is_handed_over("b"));
    assert_true(is_handed_over("a"));
    assert_err(wq_done(f.q, item), WQ_OK); /* this thread did not get it */
    assert_true(is_handed_over("c"));
    work_on("b");
    work_on("a");
    work_on("c");
    for (int i = 0; i < 64; i++) { /* now it is this one; that is seen soon */
        add("a");
        work_on("a");
    }
    assert_false(is_handed_over("d"));
    work_on("d");
}

/* There is no ring until then: 8 KiB, for queues that need it. */
TEST(second_thread_makes_the_ring)
{
    wq_destroy(f.q);
    create(UINT32_MAX, NULL);
    add("a");
    add("b");
    assert_null(f.m->inbox.raw);
    (void)let_other_take();
    assert_false(is_handed_over("c"));
    assert_non_null(f.m->inbox.raw);
    assert_true(is_handed_over("d"));
    work_on("b");
    work_on("c");
    work_on("d");
}

/* It is to be woken, which needs the lock. */
TEST(key_is_not_handed_over_to_a_thread_that_sleeps)
{
    wq_item *item = NULL;

    add("a");
    (void)let_other_take();
    struct worker *w = worker_get(f.q, &item);
    worker_await_blocked(w);
    assert_false(is_handed_over("b"));
    assert_err((wq_err)worker_join(w), WQ_OK);
    assert_memory_equal(item->key.data, "b", 1);
}

/* ---- no memory ---------------------------------------------------------- */

/* O-13: said yes to, so it comes out, in order, once there is memory. */
TEST(keys_handed_over_survive_a_lack_of_memory_in_order)
{
    no_memory();
    hand_over("a");
    hand_over("b");
    hand_over("c");
    expect_get(WQ_ENOMEM);
    expect_get(WQ_ENOMEM);
    memory_again();
    work_on("a");
    work_on("b");
    work_on("c");
    expect_get(WQ_ETIMEDOUT);
}

/* O-13: the lack may begin in the middle. */
TEST(lack_of_memory_may_begin_at_any_allocation)
{
    for (uint64_t nth = 1; nth < 10; nth++) {
        char key[32];
        for (int i = 0; i < 50; i++) {
            (void)snprintf(key, sizeof key, "key-%d", i);
            hand_over(key);
        }
        counting_fail(&f.mem, nth, COUNTING_FROM_NOW);
        assert_int_equal(wq_len(f.q), 50);
        memory_again();
        assert_int_equal(wq_len(f.q), 50);
        for (int i = 0; i < 50; i++) {
            (void)snprintf(key, sizeof key, "key-%d", i);
            work_on(key);
        }
        wq_destroy(f.q);
        assert_int_equal(f.mem.bytes, 0);
        (void)open_queue(NULL);
    }
}

TEST(ready_key_is_handed_out_although_the_inbox_cannot_be_emptied)
{
    static char big[100];

    memset(big, 'k', sizeof big - 1);
    add("warm"); /* makes room for a loan, which stays */
    work_on("warm");
    add("foo");
    no_memory();
    hand_over(big);
    work_on("foo");
    expect_get(WQ_ENOMEM);
    memory_again();
    work_on(big);
}

TEST(length_counts_keys_that_wait_for_memory)
{
    no_memory();
    hand_over("foo");
    hand_over("bar");
    assert_int_equal(wq_len(f.q), 2);
    memory_again();
}

/* I6: it may not overtake the key that waits for memory. */
TEST(add_behind_a_key_that_waits_for_memory_is_refused)
{
    no_memory();
    hand_over("a");
    assert_err(wq_add_str(f.q, "b"), WQ_ENOMEM);
    memory_again();
    assert_int_equal(wq_len(f.q), 1);
    work_on("a");
    expect_get(WQ_ETIMEDOUT);
}

/* O-13 Q-13 */
TEST(shutdown_without_memory_keeps_keys_handed_over)
{
    no_memory();
    hand_over("foo");
    wq_shutdown(f.q);
    expect_get(WQ_ENOMEM);
    assert_err(wq_shutdown_with_drain_within(f.q, 0), WQ_ETIMEDOUT);
    memory_again();
    work_on("foo");
    expect_get(WQ_ESHUTDOWN);
    assert_err(wq_shutdown_with_drain_within(f.q, 0), WQ_OK);
}

TEST(keys_that_wait_for_memory_end_with_the_queue)
{
    no_memory();
    hand_over("foo");
    memory_again();
} /* close_queue() sees that nothing leaked */

/* O-13: a getter sleeps, and a key is accepted that there is no memory for. It
 * must learn of that: a key said yes to is no use when nobody looks. */
TEST(sleeping_getter_learns_of_a_key_there_is_no_memory_for)
{
    wq_item       *item = NULL;
    struct worker *getter = worker_get(f.q, &item);
    const wq_key   key = wq_str("foo");

    worker_await_blocked(getter);
    no_memory();
    wq__lock_take(&f.m->lock);
    struct worker *adder = worker_start(add_in_worker, (void *)(uintptr_t)&key);
    worker_await_blocked(adder); /* in the ring; now it wants to wake */
    assert_int_equal(wq__inbox_len(&f.m->inbox), 1);
    wq__lock_release(&f.m->lock);
    assert_err((wq_err)worker_join(adder), WQ_OK);
    const wq_err err = (wq_err)worker_join(getter);
    memory_again();
    assert_err(err, WQ_ENOMEM);
    work_on("foo");
}

TEST(get_without_memory_for_the_loan_keeps_the_key_first)
{
    add("foo");
    add("bar");
    no_memory();
    expect_get(WQ_ENOMEM);
    memory_again();
    work_on("foo");
    work_on("bar");
}

/* O-13: making the ring is a favour; failing to is none of the caller's. */
TEST(add_succeeds_although_there_is_no_memory_for_the_ring)
{
    wq_destroy(f.q);
    create(UINT32_MAX, NULL);
    add("warm"); /* room for a record, which stays */
    work_on("warm");
    no_memory();
    assert_err(add_that_must_wait(wq_str("foo")), WQ_OK);
    assert_null(f.m->inbox.raw);
    memory_again();
    work_on("foo");
}

/* ---- hashes that are all equal ------------------------------------------ */

/* O-11 */
TEST(queue_stays_correct_when_all_hashes_are_equal)
{
    enum { N = 300 };
    char key[32];

    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < N; i++) {
            (void)snprintf(key, sizeof key, "key-%d", i);
            add(key);
            add(key);
        }
        assert_int_equal(wq_len(f.q), N);
        for (int i = 0; i < N; i++) {
            (void)snprintf(key, sizeof key, "key-%d", i);
            wq_item *item = take(key);
            add(key);
            assert_err(wq_done(f.q, item), WQ_OK);
        }
        for (int i = 0; i < N; i++) {
            (void)snprintf(key, sizeof key, "key-%d", i);
            work_on(key);
        }
    }
    assert_null(wq__core_check(&f.m->core));
    expect_get(WQ_ETIMEDOUT);
}

/* O-11: a queue made the public way has a secret of its own. */
TEST(two_queues_have_two_secrets)
{
    wq_queue *a, *b;

    assert_err(wq_create(NULL, &a), WQ_OK);
    assert_err(wq_create(NULL, &b), WQ_OK);
    const struct wq__core *ca = &((struct wq__memory *)(void *)a)->core;
    const struct wq__core *cb = &((struct wq__memory *)(void *)b)->core;
    assert_true(ca->hasher.secret.k0 != cb->hasher.secret.k0 ||
                ca->hasher.secret.k1 != cb->hasher.secret.k1);
    assert_int_equal(ca->hasher.secret.mask, UINT32_MAX);
    wq_destroy(a);
    wq_destroy(b);
}

/* ---- memory after a burst ----------------------------------------------- */

enum { BURST = 1000000, BURST_KEY = 40 };

/* Names as long as those of real objects: 31 bytes. */
static wq_key
burst_key(char *text, int i)
{
    (void)snprintf(text, BURST_KEY, "namespace-42/pod-name-%09d", i);
    return wq_str(text);
}

static void
fill(void)
{
    char text[BURST_KEY];

    for (int i = 0; i < BURST; i++)
        assert_err(wq_add(f.q, burst_key(text, i)), WQ_OK);
}

/* O-10 */
TEST(memory_of_a_burst_goes_back_when_it_is_drained)
{
    wq_item *item;

    fill();
    const size_t full = f.mem.bytes;
    assert_int_equal(wq_len(f.q), BURST);
    for (int i = 0; i < BURST; i++) {
        assert_err(wq_get_within(f.q, 0, &item), WQ_OK);
        assert_err(wq_done(f.q, item), WQ_OK);
    }
    const size_t left = f.mem.bytes;
    print_message("full: %zu bytes, peak %zu, left %zu\n", full,
                  (size_t)f.mem.peak, left);
    assert_true(full / BURST <= 80);
    assert_true(left < full / 100);
}

/* O-10 O-06: keys held all at once cost loans. Only these stay, so that an item
 * that was done already can be told from one that is on loan; and as many again
 * at most, since their memory doubles. */
TEST(memory_of_loans_stays_and_is_used_again)
{
    enum { LOANS = 20000 };
    static wq_item *items[LOANS];
    char            text[BURST_KEY];

    for (int i = 0; i < LOANS; i++) {
        assert_err(wq_add(f.q, burst_key(text, i)), WQ_OK);
        assert_err(wq_get_within(f.q, 0, &items[i]), WQ_OK);
    }
    for (int i = 0; i < LOANS; i++)
        assert_err(wq_done(f.q, items[i]), WQ_OK);
    const size_t left = f.mem.bytes;
    const size_t rest = 256 * 1024; /* the queue itself, a block of each size */
    print_message("left: %zu bytes\n", left);
    assert_true(left < 2 * LOANS * sizeof(struct wq__loan) + rest);

    for (int i = 0; i < LOANS; i++)
        assert_err(wq_done(f.q, items[i]), WQ_ESTATE);
    assert_err(wq_add(f.q, burst_key(text, 0)), WQ_OK);
    assert_err(wq_get_within(f.q, 0, &items[0]), WQ_OK);
    assert_err(wq_done(f.q, items[0]), WQ_OK);
    assert_true(f.mem.bytes < left + 1024); /* an index of a few slots */
}

TEST(full_queue_is_destroyed_without_a_leak)
{
    wq_item *item;

    fill();
    assert_err(wq_get_within(f.q, 0, &item), WQ_OK);
}

/* ---- who is woken ------------------------------------------------------- */

enum { GETTERS = 3 };

/* How many getters are on the list of those who sleep. */
static size_t
count_asleep(void)
{
    wq__lock_take(&f.m->lock);
    const size_t n = f.m->getters.len;
    wq__lock_release(&f.m->lock);
    return n;
}

static void
start_getters(struct worker **workers, wq_item **items)
{
    for (int i = 0; i < GETTERS; i++)
        workers[i] = worker_get(f.q, &items[i]);
    worker_await_all_blocked(workers, GETTERS);
    assert_int_equal(count_asleep(), GETTERS);
    assert_int_equal(f.m->rouse_from, 0);
}

static void
expect_nobody_inside(void)
{
    assert_int_equal(f.m->getters.len, 0);
    assert_true(f.m->rouse_from == WQ__ROUSE_NOBODY);
    assert_int_equal(f.m->coming, 0);
    assert_int_equal(f.m->blocked, 0);
}

/* */
TEST(one_key_wakes_one_getter)
{
    struct worker *workers[GETTERS];
    wq_item       *items[GETTERS];

    start_getters(workers, items);
    add("foo");
    const size_t who = worker_await_any_ended(workers, GETTERS);
    assert_err((wq_err)worker_join(workers[who]), WQ_OK);
    workers[who] = workers[GETTERS - 1];
    worker_await_all_blocked(workers, GETTERS - 1);
    assert_int_equal(count_asleep(), GETTERS - 1);
    wq_shutdown(f.q);
    for (int i = 0; i < GETTERS - 1; i++)
        assert_err((wq_err)worker_join(workers[i]), WQ_ESHUTDOWN);
    expect_nobody_inside();
}

/* The count of getters on their way returns to nothing, so that later sleepers
 * are woken: three rounds of as many keys as getters. */
TEST(every_key_wakes_a_getter_round_after_round)
{
    static const char *const keys[GETTERS] = {"a", "b", "c"};
    struct worker           *workers[GETTERS];
    wq_item                 *items[GETTERS];

    for (int round = 0; round < 3; round++) {
        start_getters(workers, items);
        for (int i = 0; i < GETTERS; i++)
            add(keys[i]);
        for (int i = 0; i < GETTERS; i++)
            assert_err((wq_err)worker_join(workers[i]), WQ_OK);
        expect_nobody_inside();
        for (int i = 0; i < GETTERS; i++)
            assert_err(wq_done(f.q, items[i]), WQ_OK);
    }
}

/* Keys that come in one by one, each taken by another thread before the getter
 * woken for it arrives, must not make the count drift. */
TEST(getter_whose_key_was_taken_away_sleeps_again_and_is_woken_again)
{
    wq_item       *item = NULL;
    struct worker *w = worker_get(f.q, &item);

    worker_await_blocked(w);
    for (int i = 0; i < 200; i++) {
        wq_item *mine;
        add("foo");
        if (wq_get_within(f.q, 0, &mine) != WQ_OK)
            break; /* the getter was faster and has it */
        assert_err(wq_done(f.q, mine), WQ_OK);
    }
    if (!worker_has_ended(w))
        add("foo");
    assert_err((wq_err)worker_join(w), WQ_OK);
    expect_nobody_inside();
}

/* done of a dirty key is an add to those who sleep. */
TEST(done_of_a_dirty_key_wakes_a_getter)
{
    wq_item *mine, *item = NULL;

    add("foo");
    mine = take("foo");
    add("foo");
    struct worker *w = worker_get(f.q, &item);
    worker_await_blocked(w);
    assert_err(wq_done(f.q, mine), WQ_OK);
    assert_err((wq_err)worker_join(w), WQ_OK);
    expect_nobody_inside();
}

/* Q-18 O-07 */
TEST(last_done_wakes_every_drain)
{
    add("foo");
    wq_item       *item = take("foo");
    struct worker *workers[] = {worker_drain(f.q), worker_drain(f.q)};

    worker_await_all_blocked(workers, 2);
    assert_err(wq_done(f.q, item), WQ_OK);
    assert_err((wq_err)worker_join(workers[0]), WQ_OK);
    assert_err((wq_err)worker_join(workers[1]), WQ_OK);
    expect_nobody_inside();
}

/* I4: handed over through the ring while a getter sleeps. */
TEST(key_handed_over_wakes_a_getter)
{
    wq_item       *item = NULL;
    struct worker *w = worker_get(f.q, &item);
    const wq_key   key = wq_str("foo");

    worker_await_blocked(w);
    assert_err(add_that_must_wait(key), WQ_OK); /* in rouse() */
    assert_err((wq_err)worker_join(w), WQ_OK);
    assert_memory_equal(item->key.data, "foo", 3);
    expect_nobody_inside();
}

/* Q-05 through the ring */
TEST(plug_in_orders_keys_handed_over)
{
    static struct lifo lifo; /* the audit at the end asks it once more */
    const wq_order     order = lifo_order(&lifo);

    wq_destroy(f.q);
    create(UINT32_MAX, &order);
    wq__inbox_open(&f.m->inbox);
    hand_over("a");
    hand_over("b");
    hand_over("a");
    work_on("b");
    work_on("a");
    assert_int_equal(lifo.touches, 1);
}

/* O-74: a producer that lost its processor between two steps of a hand-over
 * would keep the thread that takes its key waiting. */
TEST(real_time_queue_hands_no_key_over)
{
    const struct wq__hash_key secret = {.k0 = 1, .k1 = 2, .mask = UINT32_MAX};

    wq_destroy(f.q);
    assert_err(wq__memory_create(
                   WQ_CONFIG(.allocator = &f.mem.allocator, .real_time = true),
                   secret, &f.q),
               WQ_OK);
    f.m = (struct wq__memory *)(void *)f.q;
    assert_false(f.m->may_spin);
    assert_err(add_that_must_wait(wq_str("a")), WQ_OK);
    assert_err(add_that_must_wait(wq_str("b")), WQ_OK);
    work_on("a");
    work_on("b");
}

#define queue_test(name) test_with(name, open_queue, close_queue)
#define colliding_test(name) test_with(name, open_colliding, close_queue)

WQ_TESTS(
    queue_test(add_that_finds_the_lock_taken_is_accepted_at_once),
    queue_test(length_counts_keys_handed_over),
    queue_test(key_handed_over_twice_counts_once),
    queue_test(keys_of_one_thread_stay_in_order),
    queue_test(key_handed_over_while_held_is_handed_out_after_done),
    queue_test(key_handed_over_while_held_is_not_handed_out_before_done),
    queue_test(keys_handed_over_before_shutdown_are_handed_out_after_it),
    queue_test(drain_waits_for_keys_handed_over),
    queue_test(add_after_shutdown_is_refused_also_when_the_lock_is_taken),
    queue_test(key_handed_over_goes_before_a_key_that_done_makes_ready),
    queue_test(key_too_long_for_the_ring_waits_for_the_lock),
    queue_test(add_to_a_full_ring_waits_for_the_lock),
    queue_test(first_fight_for_the_lock_makes_the_ring),
    queue_test(key_is_handed_over_while_another_thread_takes_keys_out),
    queue_test(second_thread_makes_the_ring),
    queue_test(key_is_not_handed_over_to_a_thread_that_sleeps),
    queue_test(keys_handed_over_survive_a_lack_of_memory_in_order),
    queue_test(lack_of_memory_may_begin_at_any_allocation),
    queue_test(ready_key_is_handed_out_although_the_inbox_cannot_be_emptied),
    queue_test(length_counts_keys_that_wait_for_memory),
    queue_test(add_behind_a_key_that_waits_for_memory_is_refused),
    queue_test(shutdown_without_memory_keeps_keys_handed_over),
    queue_test(keys_that_wait_for_memory_end_with_the_queue),
    queue_test(sleeping_getter_learns_of_a_key_there_is_no_memory_for),
    queue_test(get_without_memory_for_the_loan_keeps_the_key_first),
    queue_test(add_succeeds_although_there_is_no_memory_for_the_ring),
    colliding_test(queue_stays_correct_when_all_hashes_are_equal),
    test(two_queues_have_two_secrets),
    queue_test(memory_of_a_burst_goes_back_when_it_is_drained),
    queue_test(memory_of_loans_stays_and_is_used_again),
    queue_test(full_queue_is_destroyed_without_a_leak),
    queue_test(one_key_wakes_one_getter),
    queue_test(every_key_wakes_a_getter_round_after_round),
    queue_test(getter_whose_key_was_taken_away_sleeps_again_and_is_woken_again),
    queue_test(done_of_a_dirty_key_wakes_a_getter),
    queue_test(last_done_wakes_every_drain),
    queue_test(key_handed_over_wakes_a_getter),
    queue_test(real_time_queue_hands_no_key_over),
    queue_test(plug_in_orders_keys_handed_over));
