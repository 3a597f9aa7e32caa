/* SPDX-License-Identifier: MIT */
/* test_memory.c: does the in-memory queue keep every key it accepted, whichever
 * way the key came in?
 *
 * A test that takes the queue's lock makes its own adds find the lock taken:
 * they go through the inbox, one thread being enough to show it.
 */
#include "unit/queue_fixture.h"
#include "unit/script.h"

#include "support/plug_in.h"

static wq_item *held; /* what a script has got and not done */

/* A queue whose hashes are cut to the bits of `mask`. */
static void
create_masked(uint32_t mask)
{
    const struct wq__hash_key secret = {.k0 = 1, .k1 = 2, .mask = mask};

    counting_init(&mem);
    assert_err(
        wq__memory_create(WQ_CONFIG(.allocator = &mem.allocator), secret, &q),
        WQ_OK);
    m = wq__memory_of(q);
}

/* A queue whose ring exists, as after the first fight for the lock. */
static int
open_with_inbox(void **state)
{
    (void)open_queue(state);
    open_inbox();
    return 0;
}

static int
open_colliding(void **state)
{
    (void)state;
    create_masked(0);
    return 0;
}

static void
expect_sound(void)
{
    wq__lock_take(&m->lock);
    const char *broken = wq__core_check(&m->core);
    wq__lock_release(&m->lock);
    if (broken)
        fail_msg("%s: \"%s\": %s", script.scene, script.step, broken);
}

/* ---- words -------------------------------------------------------------- */

/* Add while the lock is taken. */
static void
hand_over(const char *key)
{
    const size_t before = wq__inbox_len(&m->inbox);

    wq__lock_take(&m->lock);
    const wq_err err = wq_add_str(q, key);
    wq__lock_release(&m->lock);
    assert_err(err, WQ_OK);
    assert_int_equal(wq__inbox_len(&m->inbox), before + 1);
}

static void
no_memory(void)
{
    counting_fail(&mem, 1, COUNTING_FROM_NOW);
}

static void
memory_again(void)
{
    counting_heal(&mem);
}

/* Does something with "key-0" to "key-(n-1)". */
static void
for_keys(int n, void (*act)(const char *))
{
    char key[32];

    for (int i = 0; i < n; i++) {
        (void)snprintf(key, sizeof key, "key-%d", i);
        act(key);
    }
}

/* The verbs of the scripts:
 *
 *     add KEY ERROR      take KEY; done        shutdown    memory no
 *     hand-over KEY      work KEY: both        drain ERROR memory yes
 *     len N              get ERROR             in-core N: without the inbox
 */
static bool
act(const char *const *word)
{
    wq_item *item = NULL;

    if (is(word[0], "add"))
        expect_err(wq_add_str(q, word[1]), word[2]);
    else if (is(word[0], "hand-over"))
        hand_over(word[1]);
    else if (is(word[0], "take"))
        held = take(word[1]);
    else if (is(word[0], "done"))
        assert_err(wq_done(q, held), WQ_OK);
    else if (is(word[0], "work"))
        work_on(word[1]);
    else if (is(word[0], "get"))
        expect_err(wq_get_within(q, 0, &item), word[1]);
    else if (is(word[0], "len"))
        expect_number((int64_t)wq_len(q), word[1]);
    else if (is(word[0], "in-core"))
        expect_number((int64_t)wq__core_len(&m->core), word[1]);
    else if (is(word[0], "shutdown"))
        wq_shutdown(q);
    else if (is(word[0], "drain"))
        expect_err(wq_shutdown_with_drain_within(q, 0), word[1]);
    else if (is(word[0], "memory"))
        is(word[1], "no") ? no_memory() : memory_again();
    else
        return false;
    return true;
}

static void
run_scenes(const struct scene *scenes, size_t n)
{
    script_run_all(scenes, n, open_with_inbox, act, expect_sound, close_queue);
}

/* ---- through the inbox -------------------------------------------------- */

static const struct scene hand_overs[] = {
    {"an add that finds the lock taken is accepted at once",
     "hand-over foo; in-core 0; work foo; get ETIMEDOUT"},
    /* */
    {"the length counts keys in the inbox",
     "hand-over foo; hand-over bar; len 2"},
    /* */
    {"a key handed over twice counts once",
     "add foo OK; hand-over foo; hand-over foo; len 1; work foo; "
     "get ETIMEDOUT"},
    /* I6 L4 */
    {"keys of one thread stay in order, whichever way they take",
     "add a OK; hand-over b; add c OK; hand-over d; hand-over e; work a; "
     "work b; work c; work d; work e"},
    /* Q-04 L3 */
    {"a key handed over while HELD is handed out after done",
     "add foo OK; take foo; hand-over foo; done; len 1; work foo; "
     "get ETIMEDOUT"},
    /* Q-12 L1 */
    {"a key handed over while HELD is not handed out before done",
     "add foo OK; take foo; hand-over foo; get ETIMEDOUT; len 0; done; "
     "work foo"},
    /* */
    {"keys handed over before shutdown are handed out after it",
     "hand-over foo; shutdown; len 1; work foo; get ESHUTDOWN"},
    /* O-07 */
    {"drain waits for keys in the inbox",
     "hand-over foo; drain ETIMEDOUT; work foo; drain OK"},
    {"a key handed over comes before one that done makes READY",
     "add dirty OK; take dirty; add dirty OK; hand-over first; done; "
     "work first; work dirty"},
};

TEST(key_handed_over_is_as_good_as_added)
{
    run_scenes(hand_overs, LEN(hand_overs));
}

static int
add_in_worker(struct worker *self)
{
    return (int)wq_add(q, *(const wq_key *)self->arg);
}

/* Hold the lock until an add in another thread sleeps for it. */
static wq_err
add_that_must_wait(wq_key key)
{
    wq__lock_take(&m->lock);
    struct worker *w = worker_start(add_in_worker, &key);
    worker_await_blocked(w);
    wq__lock_release(&m->lock);
    return (wq_err)worker_join(w);
}

/* Q-15 O-04 */
TEST(add_after_shutdown_is_refused_while_the_lock_is_taken)
{
    wq_shutdown(q);
    assert_err(add_that_must_wait(wq_str("foo")), WQ_ESHUTDOWN);
    expect_get(WQ_ESHUTDOWN);
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
    for_keys(WQ__INBOX_CELLS, hand_over);
    assert_err(add_that_must_wait(wq_str("last")), WQ_OK);
    assert_int_equal(wq_len(q), WQ__INBOX_CELLS + 1);
    for_keys(WQ__INBOX_CELLS, work_on);
    work_on("last");
}

TEST(first_fight_for_the_lock_makes_the_ring)
{
    for_keys(100, add);
    for_keys(100, work_on);
    assert_null(m->inbox.raw); /* without a fight: no ring */
    assert_err(add_that_must_wait(wq_str("foo")), WQ_OK);
    assert_non_null(m->inbox.raw);
    hand_over("bar");
    work_on("foo");
    work_on("bar");
}

/* ---- another thread takes the keys out ---------------------------------- */

static int
get_in_worker(struct worker *self)
{
    return (int)wq_get_within(q, 0, self->arg);
}

/* A key is handed out to another thread. */
static wq_item *
let_other_take(void)
{
    wq_item *item = NULL;

    assert_err(worker_join(worker_start(get_in_worker, &item)), WQ_OK);
    return item;
}

static bool
is_handed_over(const char *key)
{
    const size_t before = wq__inbox_len(&m->inbox);

    add(key);
    return wq__inbox_len(&m->inbox) == before + 1;
}

/* Although the lock is free. */
TEST(key_is_handed_over_while_another_thread_takes_keys_out)
{
    assert_false(is_handed_over("a")); /* none was taken yet */
    wq_item *item = let_other_take();
    assert_true(is_handed_over("b"));
    assert_true(is_handed_over("a"));
    assert_err(wq_done(q, item), WQ_OK); /* this thread did not get it */
    assert_true(is_handed_over("c"));
    for_words("b a c", work_on);
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
    add("a");
    add("b");
    assert_null(m->inbox.raw);
    (void)let_other_take();
    assert_false(is_handed_over("c"));
    assert_non_null(m->inbox.raw);
    assert_true(is_handed_over("d"));
    for_words("b c d", work_on);
}

/* It is to be woken, which needs the lock. */
TEST(key_is_not_handed_over_to_a_thread_that_sleeps)
{
    wq_item *item = NULL;

    add("a");
    (void)let_other_take();
    struct worker *w = worker_get(q, &item);
    worker_await_blocked(w);
    assert_false(is_handed_over("b"));
    assert_err(worker_join(w), WQ_OK);
    assert_memory_equal(item->key.data, "b", 1);
}

/* ---- no memory ---------------------------------------------------------- */

#define KEY25 "kkkkkkkkkkkkkkkkkkkkkkkkk"
#define BIG KEY25 KEY25 KEY25 KEY25 /* its record is of another size */

static const struct scene shortages[] = {
    /* O-13: accepted, so they come out, in order, once there is memory. */
    {"keys handed over survive a lack of memory in order",
     "memory no; hand-over a; hand-over b; hand-over c; get ENOMEM; "
     "get ENOMEM; memory yes; work a; work b; work c; get ETIMEDOUT"},
    /* The warm key leaves memory for a loan. */
    {"a READY key is handed out although the inbox cannot be emptied",
     "add warm OK; work warm; add foo OK; memory no; hand-over " BIG "; "
     "work foo; get ENOMEM; memory yes; work " BIG},
    {"the length counts keys that wait for memory",
     "memory no; hand-over foo; hand-over bar; len 2; memory yes"},
    /* I6: it may not overtake the key that waits for memory. */
    {"an add behind a key that waits for memory is refused",
     "memory no; hand-over a; add b ENOMEM; memory yes; len 1; work a; "
     "get ETIMEDOUT"},
    /* O-13 Q-13 */
    {"shutdown without memory keeps keys handed over",
     "memory no; hand-over foo; shutdown; get ENOMEM; drain ETIMEDOUT; "
     "memory yes; work foo; get ESHUTDOWN; drain OK"},
    {"keys that wait for memory end with the queue",
     "memory no; hand-over foo; memory yes"},
    {"a get without memory for the loan keeps the key first",
     "add foo OK; add bar OK; memory no; get ENOMEM; memory yes; work foo; "
     "work bar"},
};

TEST(lack_of_memory_loses_no_key)
{
    run_scenes(shortages, LEN(shortages));
}

/* O-13: the lack may begin in the middle. */
TEST(lack_of_memory_may_begin_at_any_allocation)
{
    for (uint64_t nth = 1; nth < 10; nth++) {
        for_keys(50, hand_over);
        counting_fail(&mem, nth, COUNTING_FROM_NOW);
        assert_int_equal(wq_len(q), 50);
        memory_again();
        assert_int_equal(wq_len(q), 50);
        for_keys(50, work_on);
        (void)close_queue(NULL);
        (void)open_with_inbox(NULL);
    }
}

/* O-13: a getter sleeps, and a key is accepted that there is no memory for: the
 * getter returns the error. */
TEST(sleeping_getter_learns_of_a_key_without_memory)
{
    wq_item       *item = NULL;
    struct worker *getter = worker_get(q, &item);
    const wq_key   key = wq_str("foo");

    worker_await_blocked(getter);
    no_memory();
    wq__lock_take(&m->lock);
    struct worker *adder = worker_start(add_in_worker, (void *)(uintptr_t)&key);
    worker_await_blocked(adder); /* in the ring; now it wants to wake */
    assert_int_equal(wq__inbox_len(&m->inbox), 1);
    wq__lock_release(&m->lock);
    assert_err(worker_join(adder), WQ_OK);
    const int err = worker_join(getter);
    memory_again();
    assert_err(err, WQ_ENOMEM);
    work_on("foo");
}

/* O-13: the ring only makes adds faster. */
TEST(add_succeeds_although_there_is_no_memory_for_the_ring)
{
    add("warm"); /* leaves memory for a record */
    work_on("warm");
    no_memory();
    assert_err(add_that_must_wait(wq_str("foo")), WQ_OK);
    assert_null(m->inbox.raw);
    memory_again();
    work_on("foo");
}

/* ---- hashes that are all equal ------------------------------------------ */

static void
work_on_and_add_meanwhile(const char *key)
{
    wq_item *item = take(key);

    add(key);
    assert_err(wq_done(q, item), WQ_OK);
}

/* O-11 */
TEST(queue_stays_correct_when_all_hashes_are_equal)
{
    enum { N = 300 };

    for (int round = 0; round < 2; round++) {
        for_keys(N, add);
        for_keys(N, add);
        assert_int_equal(wq_len(q), N);
        for_keys(N, work_on_and_add_meanwhile);
        for_keys(N, work_on);
    }
    expect_sound();
    expect_get(WQ_ETIMEDOUT);
}

/* O-11: a queue made the public way has a secret of its own. */
TEST(two_queues_have_two_secrets)
{
    wq_queue *a, *b;

    assert_err(wq_create(NULL, &a), WQ_OK);
    assert_err(wq_create(NULL, &b), WQ_OK);
    const struct wq__core *ca = &wq__memory_of(a)->core;
    const struct wq__core *cb = &wq__memory_of(b)->core;
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
        assert_err(wq_add(q, burst_key(text, i)), WQ_OK);
}

/* O-10 */
TEST(memory_of_a_burst_goes_back_when_it_is_drained)
{
    wq_item *item;

    fill();
    const size_t full = mem.bytes;
    assert_int_equal(wq_len(q), BURST);
    for (int i = 0; i < BURST; i++) {
        assert_err(wq_get_within(q, 0, &item), WQ_OK);
        assert_err(wq_done(q, item), WQ_OK);
    }
    const size_t left = mem.bytes;
    print_message("full: %zu bytes, peak %zu, left %zu\n", full,
                  (size_t)mem.peak, left);
    assert_true(full / BURST <= 80);
    assert_true(left < full / 100);
}

/* O-10 O-06: keys held all at once cost loans. Only these stay, so that an item
 * that was done already can be distinguished from a loan; and as many again
 * at most, since their memory doubles. */
TEST(memory_of_loans_stays_and_is_used_again)
{
    enum { LOANS = 20000 };
    static wq_item *items[LOANS];
    char            text[BURST_KEY];

    for (int i = 0; i < LOANS; i++) {
        assert_err(wq_add(q, burst_key(text, i)), WQ_OK);
        assert_err(wq_get_within(q, 0, &items[i]), WQ_OK);
    }
    for (int i = 0; i < LOANS; i++)
        assert_err(wq_done(q, items[i]), WQ_OK);
    const size_t left = mem.bytes;
    const size_t rest = 256 * 1024; /* the queue itself, a block of each size */
    print_message("left: %zu bytes\n", left);
    assert_true(left < 2 * LOANS * sizeof(struct wq__loan) + rest);

    for (int i = 0; i < LOANS; i++)
        assert_err(wq_done(q, items[i]), WQ_ESTATE);
    assert_err(wq_add(q, burst_key(text, 0)), WQ_OK);
    assert_err(wq_get_within(q, 0, &items[0]), WQ_OK);
    assert_err(wq_done(q, items[0]), WQ_OK);
    assert_true(mem.bytes < left + 1024); /* an index of a few slots */
}

TEST(full_queue_is_destroyed_without_a_leak)
{
    wq_item *item;

    fill();
    assert_err(wq_get_within(q, 0, &item), WQ_OK);
}

/* ---- wake-ups ---------------------------------------------------------- */

enum { GETTERS = 3 };

static struct worker *getters[GETTERS];
static wq_item       *got[GETTERS];

/* Starts `n` getters; they sleep. */
static void
start_getters(size_t n)
{
    for (size_t i = 0; i < n; i++)
        getters[i] = worker_get(q, &got[i]);
    worker_await_all_blocked(getters, n);
    assert_int_equal(m->wake_from, 0);
}

static void
expect_asleep(size_t n)
{
    wq__lock_take(&m->lock);
    const size_t len = m->getters.len;
    wq__lock_release(&m->lock);
    assert_int_equal(len, n);
}

static void
expect_none_inside(void)
{
    expect_asleep(0);
    assert_true(m->wake_from == WQ__WAKE_NOBODY);
    assert_int_equal(m->woken_getters, 0);
    assert_int_equal(m->blocked, 0);
}

/* */
TEST(one_key_wakes_one_getter)
{
    start_getters(GETTERS);
    expect_asleep(GETTERS);
    add("foo");
    const size_t who = worker_await_any_ended(getters, GETTERS);
    assert_err(worker_join(getters[who]), WQ_OK);
    getters[who] = getters[GETTERS - 1];
    worker_await_all_blocked(getters, GETTERS - 1);
    expect_asleep(GETTERS - 1);
    wq_shutdown(q);
    for (int i = 0; i < GETTERS - 1; i++)
        assert_err(worker_join(getters[i]), WQ_ESHUTDOWN);
    expect_none_inside();
}

/* The count of getters on their way returns to nothing, so that later sleepers
 * are woken: three rounds of as many keys as getters. */
TEST(every_key_wakes_a_getter_round_after_round)
{
    for (int round = 0; round < 3; round++) {
        start_getters(GETTERS);
        for_keys(GETTERS, add);
        for (int i = 0; i < GETTERS; i++)
            assert_err(worker_join(getters[i]), WQ_OK);
        expect_none_inside();
        for (int i = 0; i < GETTERS; i++)
            assert_err(wq_done(q, got[i]), WQ_OK);
    }
}

/* Keys that come in one by one, each taken by another thread before the getter
 * woken for it arrives, must not make the count drift. */
TEST(getter_whose_key_was_taken_is_woken_again)
{
    start_getters(1);
    for (int i = 0; i < 200; i++) {
        wq_item *mine;
        add("foo");
        if (wq_get_within(q, 0, &mine) != WQ_OK)
            break; /* the getter was faster and has it */
        assert_err(wq_done(q, mine), WQ_OK);
    }
    if (!worker_has_ended(getters[0]))
        add("foo");
    assert_err(worker_join(getters[0]), WQ_OK);
    expect_none_inside();
}

/* */
TEST(done_of_a_dirty_key_wakes_a_getter)
{
    add("foo");
    wq_item *mine = take("foo");
    add("foo");
    start_getters(1);
    assert_err(wq_done(q, mine), WQ_OK);
    assert_err(worker_join(getters[0]), WQ_OK);
    expect_none_inside();
}

/* Q-18 O-07 */
TEST(last_done_wakes_every_drain)
{
    add("foo");
    wq_item       *item = take("foo");
    struct worker *drains[] = {worker_drain(q), worker_drain(q)};

    worker_await_all_blocked(drains, 2);
    assert_err(wq_done(q, item), WQ_OK);
    assert_err(worker_join(drains[0]), WQ_OK);
    assert_err(worker_join(drains[1]), WQ_OK);
    expect_none_inside();
}

/* I4: through the ring, while a getter sleeps. */
TEST(key_handed_over_wakes_a_getter)
{
    start_getters(1);
    assert_err(add_that_must_wait(wq_str("foo")),
               WQ_OK); /* in wake_getter_if_needed() */
    assert_err(worker_join(getters[0]), WQ_OK);
    assert_string_equal(got[0]->key.data, "foo");
    expect_none_inside();
}

/* Q-05 through the ring */
TEST(plug_in_orders_keys_handed_over)
{
    static struct plug_in newest = {.newest_first = true}; /* outlives us */
    const wq_order        order = plug_in_order(&newest);

    wq_destroy(q);
    create(WQ_CONFIG(.order = &order));
    wq__inbox_open(&m->inbox);
    hand_over("a");
    hand_over("b");
    hand_over("a");
    work_on("b");
    work_on("a");
    assert_int_equal(newest.touches, 1);
}

/* O-74: a producer that lost its processor between two steps of a hand-over
 * would keep the thread that takes its key waiting. */
TEST(real_time_queue_hands_no_key_over)
{
    wq_destroy(q);
    create(WQ_CONFIG(.real_time = true));
    assert_false(m->may_spin);
    assert_err(add_that_must_wait(wq_str("a")), WQ_OK);
    assert_err(add_that_must_wait(wq_str("b")), WQ_OK);
    work_on("a");
    work_on("b");
}

#define inbox_test(name) test_with(name, open_with_inbox, close_queue)
#define colliding_test(name) test_with(name, open_colliding, close_queue)

WQ_TESTS(test(key_handed_over_is_as_good_as_added),
         test(lack_of_memory_loses_no_key),
         inbox_test(add_after_shutdown_is_refused_while_the_lock_is_taken),
         inbox_test(key_too_long_for_the_ring_waits_for_the_lock),
         inbox_test(add_to_a_full_ring_waits_for_the_lock),
         queue_test(first_fight_for_the_lock_makes_the_ring),
         inbox_test(key_is_handed_over_while_another_thread_takes_keys_out),
         queue_test(second_thread_makes_the_ring),
         inbox_test(key_is_not_handed_over_to_a_thread_that_sleeps),
         inbox_test(lack_of_memory_may_begin_at_any_allocation),
         inbox_test(sleeping_getter_learns_of_a_key_without_memory),
         queue_test(add_succeeds_although_there_is_no_memory_for_the_ring),
         colliding_test(queue_stays_correct_when_all_hashes_are_equal),
         test(two_queues_have_two_secrets),
         inbox_test(memory_of_a_burst_goes_back_when_it_is_drained),
         inbox_test(memory_of_loans_stays_and_is_used_again),
         inbox_test(full_queue_is_destroyed_without_a_leak),
         inbox_test(one_key_wakes_one_getter),
         inbox_test(every_key_wakes_a_getter_round_after_round),
         inbox_test(getter_whose_key_was_taken_is_woken_again),
         inbox_test(done_of_a_dirty_key_wakes_a_getter),
         inbox_test(last_done_wakes_every_drain),
         inbox_test(key_handed_over_wakes_a_getter),
         inbox_test(real_time_queue_hands_no_key_over),
         inbox_test(plug_in_orders_keys_handed_over));
