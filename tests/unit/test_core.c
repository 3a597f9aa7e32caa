/* SPDX-License-Identifier: MIT */
/* test_core.c: does a key live as the picture in core.h says?
 *
 * One test for each arrow, for each way a key can wait, and for what verbs
 * refuse. The core knows no clock: `now` is a number in the call. After every
 * test the auditor must be content and no memory lost.
 */
#include "support/wq_test.h"

#include <string.h>

#include "core/core.h"
#include "support/counting.h"
#include "unit/lifo.h"

#define MS INT64_C(1000000)

struct fixture {
    struct counting mem;
    struct lifo     lifo;
    wq_order        order;
    struct wq__core core;
};

static struct fixture f;

static void
open_with(const wq_order *order)
{
    const struct wq__hash_key secret = {.k0 = 1, .k1 = 2, .mask = UINT32_MAX};

    counting_init(&f.mem);
    wq__core_init(&f.core, secret, order, &f.mem.allocator);
}

static int
open_core(void **state)
{
    (void)state;
    memset(&f, 0, sizeof f);
    open_with(NULL);
    return 0;
}

static int
open_lifo(void **state)
{
    (void)state;
    memset(&f, 0, sizeof f);
    f.order = lifo_order(&f.lifo);
    open_with(&f.order);
    return 0;
}

static int
close_core(void **state)
{
    (void)state;
    const char *broken = wq__core_check(&f.core);
    if (broken)
        fail_msg("%s", broken);
    wq__core_fini(&f.core);
    assert_int_equal(f.mem.bytes, 0);
    return 0;
}

/* ---- words -------------------------------------------------------------- */

static uint32_t
hash_of(const char *s)
{
    return wq__core_hash(&f.core, wq_str(s));
}

static void
add_as(const char *s, wq_added expected)
{
    wq_added what;
    assert_int_equal(wq__core_add(&f.core, wq_str(s), hash_of(s), 0, &what),
                     WQ_OK);
    assert_int_equal(what, expected);
}

static void
add(const char *s)
{
    add_as(s, WQ_ADDED_NEW);
}

static void
add_at(const char *s, int64_t at, wq_added expected)
{
    wq_added what;
    assert_int_equal(
        wq__core_add_after(&f.core, wq_str(s), hash_of(s), 0, at, false, &what),
        WQ_OK);
    assert_int_equal(what, expected);
}

static void
pass_to(int64_t now)
{
    wq__core_promote(&f.core, now);
}

static void
expect_len(size_t len)
{
    assert_int_equal(wq__core_len(&f.core), len);
}

static wq_item *
get(const char *expected)
{
    wq_item *item = NULL;
    assert_int_equal(wq__core_get(&f.core, 0, &item), WQ_OK);
    assert_int_equal(item->key.len, strlen(expected));
    assert_memory_equal(item->key.data, expected, strlen(expected));
    return item;
}

static void
done(wq_item *item)
{
    assert_int_equal(wq__core_done(&f.core, item, 0, NULL), WQ_OK);
}

static void
expect_nothing_to_get(void)
{
    wq_item *item = NULL;
    assert_int_equal(wq__core_get(&f.core, 0, &item), WQ_ENOTFOUND);
    assert_null(item);
}

/* ---- the arrows --------------------------------------------------------- */

TEST(new_core_is_empty_idle_and_costs_no_memory)
{
    expect_len(0);
    assert_true(wq__core_idle(&f.core));
    expect_nothing_to_get();
    assert_int_equal(f.mem.calls, 0);
}

/* absent -> READY; Q-03 */
TEST(added_key_is_ready)
{
    add("foo");
    expect_len(1);
    assert_false(wq__core_idle(&f.core));
}

/* READY -> READY; Q-03 */
TEST(ready_key_added_again_is_ready_once)
{
    add("foo");
    add("bar");
    add_as("foo", WQ_ADDED_MERGED);
    expect_len(2);
    done(get("foo"));
    done(get("bar"));
    expect_nothing_to_get();
}

/* READY -> HELD; Q-17 */
TEST(got_key_is_held_and_no_longer_ready)
{
    add("foo");
    get("foo");
    expect_len(0);
    expect_nothing_to_get();
    assert_int_equal(f.core.loans.live, 1);
    assert_false(wq__core_idle(&f.core));
}

/* HELD -> absent; Q-11 */
TEST(done_key_is_forgotten)
{
    add("foo");
    done(get("foo"));
    assert_true(wq__core_idle(&f.core));
    assert_int_equal(f.core.recs.live, 0);
    assert_int_equal(f.core.loans.live, 0);
    add("foo"); /* new again */
}

/* HELD -> HELD+DIRTY -> READY; Q-04 Q-12 */
TEST(key_added_while_held_is_ready_again_after_done)
{
    add("foo");
    wq_item *item = get("foo");
    add_as("foo", WQ_ADDED_DIRTY);
    expect_len(0);
    done(item);
    expect_len(1);
    done(get("foo"));
    expect_nothing_to_get();
}

/* HELD+DIRTY -> HELD+DIRTY; Q-06 */
TEST(key_added_often_while_held_is_handed_out_once_more)
{
    add("foo");
    wq_item *item = get("foo");
    add_as("foo", WQ_ADDED_DIRTY);
    add_as("foo", WQ_ADDED_MERGED);
    add_as("foo", WQ_ADDED_MERGED);
    assert_int_equal(f.core.dirty, 1);
    done(item);
    assert_int_equal(f.core.dirty, 0);
    done(get("foo"));
    expect_nothing_to_get();
}

/* L1 */
TEST(held_key_is_not_handed_out_a_second_time)
{
    add("foo");
    get("foo");
    add_as("foo", WQ_ADDED_DIRTY);
    expect_nothing_to_get();
}

/* L4 Q-23: its place is where done puts it, not where the add came. */
TEST(dirty_key_goes_to_the_tail_at_done)
{
    add("foo");
    wq_item *foo = get("foo");
    add_as("foo", WQ_ADDED_DIRTY);
    add("bar");
    done(foo);
    get("bar");
    get("foo");
}

TEST(keys_leave_first_come_first_served)
{
    add("a");
    add("b");
    add("c");
    get("a");
    add("d");
    get("b");
    get("c");
    get("d");
}

TEST(several_keys_are_held_at_once_and_done_in_any_order)
{
    add("a");
    add("b");
    add("c");
    wq_item *a = get("a"), *b = get("b"), *c = get("c");
    done(b);
    done(c);
    assert_int_equal(f.core.loans.live, 1);
    done(a);
    assert_true(wq__core_idle(&f.core));
}

TEST(item_shows_the_copied_bytes_until_done)
{
    char key[] = "foo";

    add(key);
    memset(key, 'x', 3); /* the caller's own from here on */
    const wq_item *item = get("foo");
    add("bar");
    assert_memory_equal(item->key.data, "foo", 3);
}

TEST(item_of_a_plain_add_has_priority_zero)
{
    add("foo");
    assert_int_equal(get("foo")->priority, 0);
}

TEST(keys_are_bytes_and_may_hold_any)
{
    static const unsigned char zeroes[] = {0, 0, 0};
    wq_added                   what;

    for (size_t len = 1; len <= sizeof zeroes; len++) {
        const wq_key key = {zeroes, len};
        assert_int_equal(
            wq__core_add(&f.core, key, wq__core_hash(&f.core, key), 0, &what),
            WQ_OK);
        assert_int_equal(what, WQ_ADDED_NEW);
    }
    expect_len(3);
}

/* ---- fences ------------------------------------------------------------- */

TEST(fence_grows_with_every_hand_out)
{
    uint64_t last = 0;

    for (int i = 0; i < 10; i++) {
        add(i % 2 ? "foo" : "bar");
        wq_item *item = get(i % 2 ? "foo" : "bar");
        assert_true(item->fence > last);
        last = item->fence;
        done(item);
    }
}

/* ---- long keys ---------------------------------------------------------- */

/* At and around the length where the bytes move out of the record. */
TEST(keys_of_every_length_around_inline_live_alike)
{
    char key[WQ__KEY_INLINE + 10];

    memset(key, 'k', sizeof key);
    for (size_t len = WQ__KEY_INLINE - 3; len <= WQ__KEY_INLINE + 3; len++) {
        key[len] = '\0';
        add(key);
        add_as(key, WQ_ADDED_MERGED);
        wq_item *item = get(key);
        add_as(key, WQ_ADDED_DIRTY);
        done(item);
        done(get(key));
        key[len] = 'k';
    }
    assert_true(wq__core_idle(&f.core));
}

TEST(long_keys_that_differ_in_the_last_byte_are_two)
{
    char a[2000], b[2000];

    memset(a, 'k', sizeof a);
    memset(b, 'k', sizeof b);
    strcpy(a + sizeof a - 2, "a");
    strcpy(b + sizeof b - 2, "b");
    add(a);
    add(b);
    expect_len(2);
    get(a);
    get(b);
}

TEST(key_and_its_beginning_are_two)
{
    add("foo");
    add("foobar");
    expect_len(2);
}

/* bytes beside the record go back with it. */
TEST(long_key_gives_its_memory_back_at_done)
{
    char key[5000];

    memset(key, 'k', sizeof key - 1);
    key[sizeof key - 1] = '\0';
    add("short"); /* keeps a block of records there */
    add(key);
    const size_t with = f.mem.bytes;
    get("short");
    done(get(key));
    assert_true(f.mem.bytes < with);
}

/* ---- done, misused ------------------------------------------------------ */

/* Q-21, where we differ: an error, and nothing changed. */
TEST(done_of_a_key_not_held_is_refused)
{
    add("foo");
    assert_int_equal(
        wq__core_done_key(&f.core, wq_str("foo"), hash_of("foo"), 0, NULL),
        WQ_ESTATE);
    assert_int_equal(
        wq__core_done_key(&f.core, wq_str("bar"), hash_of("bar"), 0, NULL),
        WQ_ESTATE);
    expect_len(1);
    done(get("foo"));
    expect_len(0);
}

TEST(done_by_key_ends_the_loan)
{
    add("foo");
    wq_item *item = get("foo");
    assert_int_equal(
        wq__core_done_key(&f.core, wq_str("foo"), hash_of("foo"), 0, NULL),
        WQ_OK);
    assert_true(wq__core_idle(&f.core));
    assert_int_equal(wq__core_done(&f.core, item, 0, NULL), WQ_ESTATE);
}

TEST(done_by_key_of_a_dirty_key_makes_it_ready)
{
    add("foo");
    get("foo");
    add_as("foo", WQ_ADDED_DIRTY);
    assert_int_equal(
        wq__core_done_key(&f.core, wq_str("foo"), hash_of("foo"), 0, NULL),
        WQ_OK);
    get("foo");
}

TEST(item_done_twice_is_refused)
{
    add("foo");
    add("bar");
    get("foo"); /* stays, and with it the memory of the loans */
    wq_item *item = get("bar");
    done(item);
    assert_int_equal(wq__core_done(&f.core, item, 0, NULL), WQ_ESTATE);
    assert_int_equal(f.core.loans.live, 1);
}

/* O-06: when a burst of loans has ended, asking again with an item of then must
 * still be answered. */
TEST(item_done_twice_is_refused_after_a_burst_of_loans)
{
    enum { BURST = 500 };
    wq_item *items[BURST];
    uint64_t n;

    for (n = 0; n < BURST; n++) {
        wq_added     what;
        const wq_key key = wq_u64(&n);
        assert_int_equal(
            wq__core_add(&f.core, key, wq__core_hash(&f.core, key), 0, &what),
            WQ_OK);
        assert_int_equal(wq__core_get(&f.core, 0, &items[n]), WQ_OK);
    }
    for (size_t i = 0; i < BURST; i++)
        done(items[i]);
    for (size_t i = 0; i < BURST; i++)
        assert_int_equal(wq__core_done(&f.core, items[i], 0, NULL), WQ_ESTATE);
}

TEST(copy_of_an_item_is_not_the_item)
{
    add("foo");
    wq_item *item = get("foo");
    wq_item  copy = *item;
    assert_int_equal(wq__core_done(&f.core, &copy, 0, NULL), WQ_ESTATE);
    assert_int_equal(f.core.loans.live, 1);
    done(item);
}

TEST(item_with_any_slot_is_refused)
{
    add("foo");
    wq_item *item = get("foo");
    for (uint32_t slot = 0; slot < 70000; slot++) {
        const wq_item foreign = {.key = item->key, .slot = slot};
        assert_int_equal(wq__core_done(&f.core, &foreign, 0, NULL), WQ_ESTATE);
    }
    done(item);
}

/* ---- shutdown ----------------------------------------------------------- */

/* Q-15 Q-16, where we differ: adds are refused aloud. */
TEST(shut_down_core_refuses_adds)
{
    wq_added what = WQ_ADDED_SOONER;

    wq__core_shut_down(&f.core);
    assert_int_equal(
        wq__core_add(&f.core, wq_str("foo"), hash_of("foo"), 0, &what),
        WQ_ESHUTDOWN);
    assert_int_equal(wq__core_add_after(&f.core, wq_str("foo"), hash_of("foo"),
                                        0, 5, false, &what),
                     WQ_ESHUTDOWN);
    assert_int_equal(what, WQ_ADDED_SOONER);
    assert_true(wq__core_idle(&f.core));
}

/* */
TEST(ready_keys_can_be_taken_after_shutdown)
{
    add("foo");
    wq__core_shut_down(&f.core);
    done(get("foo"));
    expect_nothing_to_get();
}

/* */
TEST(key_made_dirty_before_shutdown_is_handed_out_after_it)
{
    add("foo");
    wq_item *item = get("foo");
    add_as("foo", WQ_ADDED_DIRTY);
    wq__core_shut_down(&f.core);
    done(item);
    done(get("foo"));
    assert_true(wq__core_idle(&f.core));
}

/* */
TEST(held_key_is_not_made_dirty_after_shutdown)
{
    wq_added what;

    add("foo");
    wq_item *item = get("foo");
    wq__core_shut_down(&f.core);
    assert_int_equal(
        wq__core_add(&f.core, wq_str("foo"), hash_of("foo"), 0, &what),
        WQ_ESHUTDOWN);
    done(item);
    expect_nothing_to_get();
}

/* O-13: what the inbox accepted before the shutdown still goes in. */
TEST(accepted_key_is_admitted_after_shutdown)
{
    wq_added what;

    wq__core_shut_down(&f.core);
    assert_int_equal(
        wq__core_admit(&f.core, wq_str("foo"), hash_of("foo"), 0, &what),
        WQ_OK);
    assert_int_equal(what, WQ_ADDED_NEW);
    done(get("foo"));
}

/* */
TEST(second_shutdown_changes_nothing)
{
    add("foo");
    wq__core_shut_down(&f.core);
    wq__core_shut_down(&f.core);
    expect_len(1);
}

/* D-13 */
TEST(shutdown_drops_what_waits)
{
    add_at("foo", 50 * MS, WQ_ADDED_SCHEDULED);
    add_at("bar", 60 * MS, WQ_ADDED_SCHEDULED);
    add("bar");
    wq__core_shut_down(&f.core);
    wq__core_drop_waiting(&f.core);
    assert_int_equal(wq__core_next_deadline(&f.core), WQ_FOREVER);
    pass_to(100 * MS);
    expect_len(1);
    done(get("bar"));
    assert_int_equal(f.core.recs.live, 0);
}

/* ---- waiting ------------------------------------------------------------ */

/* D-01 */
TEST(delayed_key_becomes_ready_once_when_its_time_has_come)
{
    add_at("foo", 50 * MS, WQ_ADDED_SCHEDULED);
    expect_len(0);
    assert_true(wq__core_idle(&f.core));
    assert_int_equal(wq__core_next_deadline(&f.core), 50 * MS);
    pass_to(60 * MS);
    expect_len(1);
    done(get("foo"));
    pass_to(10000 * MS);
    expect_len(0);
}

/* D-02 L5 */
TEST(later_deadline_is_dropped)
{
    add_at("foo", 50 * MS, WQ_ADDED_SCHEDULED);
    add_at("foo", 70 * MS, WQ_ADDED_KEPT);
    pass_to(60 * MS);
    expect_len(1);
    done(get("foo"));
    pass_to(80 * MS);
    expect_len(0);
}

/* D-03 L5 */
TEST(earlier_deadline_wins)
{
    add_at("foo", 50 * MS, WQ_ADDED_SCHEDULED);
    add_at("foo", 30 * MS, WQ_ADDED_SOONER);
    pass_to(40 * MS);
    expect_len(1);
    done(get("foo"));
    pass_to(60 * MS);
    expect_len(0);
}

TEST(equal_deadline_changes_nothing)
{
    add_at("foo", 50 * MS, WQ_ADDED_SCHEDULED);
    add_at("bar", 50 * MS, WQ_ADDED_SCHEDULED);
    add_at("foo", 50 * MS, WQ_ADDED_KEPT);
    pass_to(50 * MS);
    get("foo");
    get("bar");
}

/* D-05 L4 */
TEST(keys_due_at_once_leave_by_deadline)
{
    add_at("foo", 1000 * MS, WQ_ADDED_SCHEDULED);
    add_at("bar", 500 * MS, WQ_ADDED_SCHEDULED);
    add_at("baz", 250 * MS, WQ_ADDED_SCHEDULED);
    pass_to(2000 * MS);
    expect_len(3);
    get("baz");
    get("bar");
    get("foo");
}

/* D-08 */
TEST(key_is_due_exactly_at_its_deadline)
{
    add_at("foo", 50 * MS, WQ_ADDED_SCHEDULED);
    pass_to(50 * MS - 1);
    expect_len(0);
    pass_to(50 * MS);
    expect_len(1);
}

/* D-08: what was promoted stays READY; the rest waits for its time. */
TEST(time_that_goes_back_takes_no_ready_key_back)
{
    add_at("foo", 50 * MS, WQ_ADDED_SCHEDULED);
    add_at("bar", 60 * MS, WQ_ADDED_SCHEDULED);
    pass_to(50 * MS);
    pass_to(10 * MS);
    expect_len(1);
    done(get("foo"));
    pass_to(60 * MS - 1);
    expect_len(0);
    pass_to(60 * MS);
    expect_len(1);
}

/* D-10 */
TEST(deadline_that_comes_while_held_makes_dirty)
{
    add("foo");
    wq_item *item = get("foo");
    add_at("foo", 10 * MS, WQ_ADDED_SCHEDULED);
    pass_to(10 * MS);
    expect_len(0);
    assert_int_equal(f.core.dirty, 1);
    done(item);
    expect_len(1);
}

/* D-10 */
TEST(deadline_that_comes_while_ready_merges)
{
    add("foo");
    add_at("foo", 10 * MS, WQ_ADDED_SCHEDULED);
    pass_to(10 * MS);
    expect_len(1);
    done(get("foo"));
    assert_int_equal(f.core.recs.live, 0);
}

/* D-11 */
TEST(add_does_not_end_the_waiting)
{
    add_at("foo", 10 * MS, WQ_ADDED_SCHEDULED);
    add("foo");
    done(get("foo"));
    expect_len(0);
    assert_int_equal(wq__core_next_deadline(&f.core), 10 * MS);
    pass_to(10 * MS);
    expect_len(1);
}

/* D-12, where we differ: L4. */
TEST(equal_deadlines_become_ready_in_arrival_order)
{
    static const char *const keys[] = {"d", "a", "c", "b", "e", "g", "f"};
    enum { N = sizeof keys / sizeof keys[0] };

    for (size_t i = 0; i < N; i++)
        add_at(keys[i], 10 * MS, WQ_ADDED_SCHEDULED);
    pass_to(10 * MS);
    for (size_t i = 0; i < N; i++)
        get(keys[i]);
}

TEST(held_key_that_waits_is_remembered_after_done)
{
    add("foo");
    wq_item *item = get("foo");
    add_at("foo", 10 * MS, WQ_ADDED_SCHEDULED);
    done(item);
    expect_len(0);
    assert_true(wq__core_idle(&f.core)); /* waiting is not work, yet */
    assert_int_equal(f.core.recs.live, 1);
    pass_to(10 * MS);
    done(get("foo"));
    assert_int_equal(f.core.recs.live, 0);
}

TEST(deadline_in_the_past_is_due_at_the_next_look)
{
    add_at("foo", -5, WQ_ADDED_SCHEDULED);
    add_at("bar", INT64_MIN, WQ_ADDED_SCHEDULED);
    expect_len(0);
    pass_to(0);
    get("bar");
    get("foo");
}

TEST(deadline_for_ever_never_comes)
{
    add_at("foo", WQ_FOREVER, WQ_ADDED_SCHEDULED);
    pass_to(WQ_FOREVER - 1);
    expect_len(0);
    assert_int_equal(wq__core_next_deadline(&f.core), WQ_FOREVER);
}

/* ---- a plug-in decides the order ---------------------------------------- */

TEST(plug_in_hands_out_the_newest_first)
{
    add("a");
    add("b");
    add("c");
    get("c");
    get("b");
    get("a");
}

/* Q-05 Q-06: told of a READY key only. */
TEST(plug_in_is_touched_for_ready_keys_only)
{
    add("foo");
    add_as("foo", WQ_ADDED_MERGED);
    assert_int_equal(f.lifo.touches, 1);
    get("foo");
    add_as("foo", WQ_ADDED_DIRTY);
    add_as("foo", WQ_ADDED_MERGED);
    assert_int_equal(f.lifo.touches, 1);
}

/* L6 */
TEST(add_that_the_plug_in_refuses_leaves_no_trace)
{
    wq_added what;

    f.lifo.refuse = 1;
    assert_int_equal(
        wq__core_add(&f.core, wq_str("foo"), hash_of("foo"), 0, &what),
        WQ_ENOMEM);
    assert_int_equal(f.core.recs.live, 0);
    assert_int_equal(f.core.index.len, 0);
    add("foo");
    get("foo");
}

/* L6 Q-24: it waits on, and holds up nobody. */
TEST(key_that_the_plug_in_refuses_when_due_is_offered_again)
{
    add_at("a", 1, WQ_ADDED_SCHEDULED);
    add_at("b", 2, WQ_ADDED_SCHEDULED);
    add_at("c", 3, WQ_ADDED_SCHEDULED);
    f.lifo.refuse = 2;
    pass_to(10);
    expect_len(2);
    assert_int_equal(wq__core_next_deadline(&f.core), 10 + WQ__OFFER_AGAIN_NS);
    get("c");
    get("a");
    pass_to(10 + WQ__OFFER_AGAIN_NS);
    get("b");
}

/* L6: wq_done() says so, and the key is still on loan and still dirty. */
TEST(done_that_the_plug_in_refuses_keeps_the_loan)
{
    add("foo");
    wq_item *item = get("foo");
    add_as("foo", WQ_ADDED_DIRTY);
    f.lifo.refuse = 1;
    assert_int_equal(wq__core_done(&f.core, item, 0, NULL), WQ_ENOMEM);
    assert_int_equal(f.core.loans.live, 1);
    assert_int_equal(f.core.dirty, 1);
    expect_len(0);
    done(item);
    get("foo");
}

TEST(plug_in_that_denies_its_keys_costs_no_loan)
{
    wq_item *item = NULL;

    add("foo");
    f.lifo.len = 0; /* it lost the key */
    assert_int_equal(wq__core_get(&f.core, 0, &item), WQ_ESTATE);
    assert_null(item);
    assert_int_equal(f.core.loans.live, 0);
    f.lifo.len = 1;
    get("foo");
}

TEST(plug_in_is_destroyed_before_the_keys_it_may_look_at)
{
    f.lifo.letter = 'k';
    add("key1");
    add("key2");
    wq__core_fini(&f.core);
    assert_int_equal(f.lifo.destroys, 1);
    assert_int_equal(f.lifo.seen, 2);
    f.lifo.len = 0;
    open_with(&f.order); /* for close_core() */
}

#define core_test(name) test_with(name, open_core, close_core)
#define lifo_test(name) test_with(name, open_lifo, close_core)

WQ_TESTS(core_test(new_core_is_empty_idle_and_costs_no_memory),
         core_test(added_key_is_ready),
         core_test(ready_key_added_again_is_ready_once),
         core_test(got_key_is_held_and_no_longer_ready),
         core_test(done_key_is_forgotten),
         core_test(key_added_while_held_is_ready_again_after_done),
         core_test(key_added_often_while_held_is_handed_out_once_more),
         core_test(held_key_is_not_handed_out_a_second_time),
         core_test(dirty_key_goes_to_the_tail_at_done),
         core_test(keys_leave_first_come_first_served),
         core_test(several_keys_are_held_at_once_and_done_in_any_order),
         core_test(item_shows_the_copied_bytes_until_done),
         core_test(item_of_a_plain_add_has_priority_zero),
         core_test(keys_are_bytes_and_may_hold_any),
         core_test(fence_grows_with_every_hand_out),
         core_test(keys_of_every_length_around_inline_live_alike),
         core_test(long_keys_that_differ_in_the_last_byte_are_two),
         core_test(key_and_its_beginning_are_two),
         core_test(long_key_gives_its_memory_back_at_done),
         core_test(done_of_a_key_not_held_is_refused),
         core_test(done_by_key_ends_the_loan),
         core_test(done_by_key_of_a_dirty_key_makes_it_ready),
         core_test(item_done_twice_is_refused),
         core_test(item_done_twice_is_refused_after_a_burst_of_loans),
         core_test(copy_of_an_item_is_not_the_item),
         core_test(item_with_any_slot_is_refused),
         core_test(shut_down_core_refuses_adds),
         core_test(ready_keys_can_be_taken_after_shutdown),
         core_test(key_made_dirty_before_shutdown_is_handed_out_after_it),
         core_test(held_key_is_not_made_dirty_after_shutdown),
         core_test(accepted_key_is_admitted_after_shutdown),
         core_test(second_shutdown_changes_nothing),
         core_test(shutdown_drops_what_waits),
         core_test(delayed_key_becomes_ready_once_when_its_time_has_come),
         core_test(later_deadline_is_dropped), core_test(earlier_deadline_wins),
         core_test(equal_deadline_changes_nothing),
         core_test(keys_due_at_once_leave_by_deadline),
         core_test(key_is_due_exactly_at_its_deadline),
         core_test(time_that_goes_back_takes_no_ready_key_back),
         core_test(deadline_that_comes_while_held_makes_dirty),
         core_test(deadline_that_comes_while_ready_merges),
         core_test(add_does_not_end_the_waiting),
         core_test(equal_deadlines_become_ready_in_arrival_order),
         core_test(held_key_that_waits_is_remembered_after_done),
         core_test(deadline_in_the_past_is_due_at_the_next_look),
         core_test(deadline_for_ever_never_comes),
         lifo_test(plug_in_hands_out_the_newest_first),
         lifo_test(plug_in_is_touched_for_ready_keys_only),
         lifo_test(add_that_the_plug_in_refuses_leaves_no_trace),
         lifo_test(key_that_the_plug_in_refuses_when_due_is_offered_again),
         lifo_test(done_that_the_plug_in_refuses_keeps_the_loan),
         lifo_test(plug_in_that_denies_its_keys_costs_no_loan),
         lifo_test(plug_in_is_destroyed_before_the_keys_it_may_look_at));
