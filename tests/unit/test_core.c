/* SPDX-License-Identifier: MIT */
/* test_core.c: does a key change its state as core.h describes?
 *
 * One scene for each arrow, for each way a key can wait, and for what verbs
 * refuse. The verbs of the scripts are in core_fixture.h.
 */
#include "unit/core_fixture.h"

/* ---- the arrows --------------------------------------------------------- */

static const struct scene arrows[] = {
    {"a new core is empty and idle", "len 0; idle 1; get -"},
    /* absent -> READY; Q-03 */
    {"an added key is READY", "add foo NEW; len 1; idle 0"},
    /* READY -> READY; Q-03 */
    {"a READY key added again is READY once",
     "add foo NEW; add bar NEW; add foo MERGED; len 2; run foo; run bar; "
     "get -"},
    /* READY -> HELD; Q-17 */
    {"a key handed out is HELD and no longer READY",
     "add foo NEW; get foo; len 0; get -; loans 1; idle 0"},
    /* HELD -> absent; Q-11 */
    {"a key that is done is forgotten",
     "add foo NEW; run foo; idle 1; records 0; loans 0; add foo NEW"},
    /* HELD -> HELD+DIRTY -> READY; Q-04 Q-12 */
    {"a key added while HELD is READY again after done",
     "add foo NEW; get foo; add foo DIRTY; len 0; done foo; len 1; run foo; "
     "get -"},
    /* HELD+DIRTY -> HELD+DIRTY; Q-06 */
    {"a key added often while HELD is handed out once more",
     "add foo NEW; get foo; add foo DIRTY; add foo MERGED; add foo MERGED; "
     "dirty 1; done foo; dirty 0; run foo; get -"},
    /* L1 */
    {"a HELD key is not handed out a second time",
     "add foo NEW; get foo; add foo DIRTY; get -"},
    /* L4 Q-23: its place is where done puts it, not where the add came. */
    {"a DIRTY key goes to the tail at done",
     "add foo NEW; get foo; add foo DIRTY; add bar NEW; done foo; get bar; "
     "get foo"},
    {"keys leave first come, first served",
     "add a NEW; add b NEW; add c NEW; get a; add d NEW; get b; get c; get d"},
    {"several keys are HELD at once and done in any order",
     "add a NEW; add b NEW; add c NEW; get a; get b; get c; done b; done c; "
     "loans 1; done a; idle 1"},
    {"the item of a plain add has priority 0", "add foo NEW; get foo +0"},
    {"a key without a backoff is added as ever where backoffs are respected",
     "respect; add foo NEW; add foo MERGED; get foo; add foo DIRTY"},
    {"a key and its prefix are two keys", "add foo NEW; add foobar NEW; len 2"},
    /* Q-21, where we differ: an error, and nothing changed. */
    {"done of a key that is not HELD is refused",
     "add foo NEW; done-key foo ESTATE; done-key bar ESTATE; len 1; run foo; "
     "len 0"},
    {"done by key ends the loan",
     "add foo NEW; get foo; done-key foo OK; idle 1"},
    {"done by key of a DIRTY key makes it READY",
     "add foo NEW; get foo; add foo DIRTY; done-key foo OK; get foo"},
};

TEST(key_moves_along_the_arrows)
{
    run_scenes(arrows, LEN(arrows), open_core);
}

TEST(new_core_allocates_nothing)
{
    expect_nothing_to_get();
    assert_int_equal(f.mem.calls, 0);
}

TEST(core_without_an_allocator_has_the_default_one)
{
    const struct wq__hash_key secret = {.mask = UINT32_MAX};

    wq__core_init(&f.core, secret, NULL, NULL);
    play("add foo NEW; run foo");
    assert_int_equal(f.mem.calls, 0);
}

/* ---- shutdown ----------------------------------------------------------- */

static const struct scene shutdowns[] = {
    /* Q-15 Q-16, where we differ: adds are refused aloud. */
    {"adds after shutdown are refused",
     "shutdown; add foo ESHUTDOWN; add foo @5 ESHUTDOWN; idle 1"},
    /* */
    {"READY keys are handed out after shutdown",
     "add foo NEW; shutdown; run foo; get -"},
    /* */
    {"a key made DIRTY before shutdown is handed out after it",
     "add foo NEW; get foo; add foo DIRTY; shutdown; done foo; run foo; "
     "idle 1"},
    /* */
    {"a HELD key does not become DIRTY after shutdown",
     "add foo NEW; get foo; shutdown; add foo ESHUTDOWN; done foo; get -"},
    /* */
    {"a second shutdown changes nothing",
     "add foo NEW; shutdown; shutdown; len 1"},
    /* D-13 */
    {"shutdown drops WAITING keys",
     "add foo @50 SCHEDULED; add bar @60 SCHEDULED; add bar NEW; shutdown; "
     "drop-waiting; next never; pass 100; len 1; run bar; records 0"},
};

TEST(shutdown_refuses_adds_and_keeps_ready_keys)
{
    run_scenes(shutdowns, LEN(shutdowns), open_core);
}

TEST(refused_add_leaves_the_result_alone)
{
    const wq_key key = wq_str("foo");
    wq_added     what = WQ_ADDED_SOONER;

    wq__core_shut_down(&f.core);
    assert_int_equal(wq__core_add(&f.core, key, hash_of("foo"), 0, &what),
                     WQ_ESHUTDOWN);
    assert_int_equal(
        wq__core_add_after(&f.core, key, hash_of("foo"), 0, 5, false, &what),
        WQ_ESHUTDOWN);
    assert_int_equal(what, WQ_ADDED_SOONER);
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

/* ---- waiting ------------------------------------------------------------ */

static const struct scene deadlines[] = {
    /* D-01 */
    {"a WAITING key becomes READY once, at its deadline",
     "add foo @50 SCHEDULED; len 0; idle 1; next 50; pass 60; len 1; run foo; "
     "pass 10000; len 0"},
    /* D-02 L5 */
    {"a later deadline is dropped",
     "add foo @50 SCHEDULED; add foo @70 KEPT; pass 60; len 1; run foo; "
     "pass 80; len 0"},
    /* D-03 L5 */
    {"an earlier deadline wins",
     "add foo @50 SCHEDULED; add foo @30 SOONER; pass 40; len 1; run foo; "
     "pass 60; len 0"},
    {"an equal deadline changes nothing",
     "add foo @50 SCHEDULED; add bar @50 SCHEDULED; add foo @50 KEPT; pass 50; "
     "get foo; get bar"},
    /* D-05 L4 */
    {"keys due at once leave by deadline",
     "add foo @1000 SCHEDULED; add bar @500 SCHEDULED; add baz @250 SCHEDULED; "
     "pass 2000; len 3; get baz; get bar; get foo"},
    /* D-08 */
    {"a key is due exactly at its deadline",
     "add foo @50 SCHEDULED; pass 49; len 0; pass 50; len 1"},
    /* D-08 */
    {"time that goes back takes no READY key back",
     "add foo @50 SCHEDULED; add bar @60 SCHEDULED; pass 50; pass 10; len 1; "
     "run foo; pass 59; len 0; pass 60; len 1"},
    /* D-10 */
    {"a deadline that comes while HELD makes the key DIRTY",
     "add foo NEW; get foo; add foo @10 SCHEDULED; pass 10; len 0; dirty 1; "
     "done foo; len 1"},
    /* D-10 */
    {"a deadline that comes while READY merges",
     "add foo NEW; add foo @10 SCHEDULED; pass 10; len 1; run foo; records 0"},
    /* D-11 */
    {"an add does not end the waiting",
     "add foo @10 SCHEDULED; add foo NEW; run foo; len 0; next 10; pass 10; "
     "len 1"},
    /* D-12, where we differ: L4. */
    {"equal deadlines become READY in arrival order",
     "add d @10 SCHEDULED; add a @10 SCHEDULED; add c @10 SCHEDULED; "
     "add b @10 SCHEDULED; add e @10 SCHEDULED; add g @10 SCHEDULED; "
     "add f @10 SCHEDULED; pass 10; get d; get a; get c; get b; get e; get g; "
     "get f"},
    {"a HELD key with a deadline is remembered after done",
     "add foo NEW; get foo; add foo @10 SCHEDULED; done foo; len 0; idle 1; "
     "records 1; pass 10; run foo; records 0"},
    {"a deadline in the past is due at the next look",
     "add foo @-5 SCHEDULED; add bar @-9223372036854775808 SCHEDULED; len 0; "
     "pass 0; get bar; get foo"},
    {"a deadline of WQ_FOREVER never comes",
     "add foo @never SCHEDULED; pass 9223372036854775806; len 0; next never"},
};

TEST(waiting_key_becomes_ready_at_its_deadline)
{
    run_scenes(deadlines, LEN(deadlines), open_core);
}

/* ---- a plug-in decides the order ---------------------------------------- */

_Static_assert(WQ__OFFER_AGAIN_NS == 10000000, "the script below counts on it");

static const struct scene plug_ins[] = {
    {"the plug-in hands out the newest first",
     "add a NEW; add b NEW; add c NEW; get c; get b; get a"},
    /* Q-05 Q-06 */
    {"the plug-in is touched for READY keys only",
     "add foo NEW; add foo MERGED; touches 1; get foo; add foo DIRTY; "
     "add foo MERGED; touches 1"},
    /* L6 */
    {"an add that the plug-in refuses leaves no trace",
     "refuse 1; add foo ENOMEM; records 0; add foo NEW; get foo"},
    /* L6 Q-24 */
    {"a due key that the plug-in refuses is offered again later",
     "add a @1 SCHEDULED; add b @2 SCHEDULED; add c @3 SCHEDULED; refuse 2; "
     "pass 10; len 2; next 10000010; get c; get a; pass 10000010; get b"},
    /* L6 */
    {"a done that the plug-in refuses keeps loan and DIRTY",
     "add foo NEW; get foo; add foo DIRTY; refuse 1; done foo ENOMEM; loans 1; "
     "dirty 1; len 0; done foo; get foo"},
};

TEST(plug_in_decides_the_order_and_may_refuse)
{
    run_scenes(plug_ins, LEN(plug_ins), open_lifo);
}

TEST(plug_in_that_denies_its_keys_costs_no_loan)
{
    wq_item *item = NULL;

    add("foo", 0, WQ_ADDED_NEW);
    f.plug_in.len = 0; /* it lost the key */
    assert_int_equal(wq__core_get(&f.core, 0, &item), WQ_ESTATE);
    assert_null(item);
    assert_int_equal(f.core.loans.live, 0);
    f.plug_in.len = 1;
    get("foo");
}

TEST(plug_in_is_destroyed_before_its_keys)
{
    const wq_order order = plug_in_order(&f.plug_in);

    f.plug_in.letter = 'k';
    play("add key1 NEW; add key2 NEW");
    wq__core_fini(&f.core);
    assert_int_equal(f.plug_in.destroys, 1);
    assert_int_equal(f.plug_in.seen, 2);
    open_with(&order); /* for close_core() */
}

/* ---- keys --------------------------------------------------------------- */

TEST(item_shows_the_copied_bytes_until_done)
{
    char key[] = "foo";

    add(key, 0, WQ_ADDED_NEW);
    memset(key, 'x', 3); /* the caller's own from here on */
    const wq_item *item = get("foo");
    add("bar", 0, WQ_ADDED_NEW);
    assert_memory_equal(item->key.data, "foo", 3);
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
    assert_int_equal(wq__core_len(&f.core), 3);
}

/* At and around the length where the bytes move out of the record. */
TEST(keys_of_every_length_around_inline_live_alike)
{
    char key[WQ__KEY_INLINE + 10];

    memset(key, 'k', sizeof key);
    for (size_t len = WQ__KEY_INLINE - 3; len <= WQ__KEY_INLINE + 3; len++) {
        key[len] = '\0';
        add(key, 0, WQ_ADDED_NEW);
        add(key, 0, WQ_ADDED_MERGED);
        wq_item *item = get(key);
        add(key, 0, WQ_ADDED_DIRTY);
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
    add(a, 0, WQ_ADDED_NEW);
    add(b, 0, WQ_ADDED_NEW);
    assert_int_equal(wq__core_len(&f.core), 2);
    get(a);
    get(b);
}

/* bytes beside the record go back with it. */
TEST(long_key_gives_its_memory_back_at_done)
{
    char key[5000];

    memset(key, 'k', sizeof key - 1);
    key[sizeof key - 1] = '\0';
    add("short", 0, WQ_ADDED_NEW); /* keeps a block of records there */
    add(key, 0, WQ_ADDED_NEW);
    const size_t with = f.mem.bytes;
    get("short");
    done(get(key));
    assert_true(f.mem.bytes < with);
}

/* ---- items -------------------------------------------------------------- */

TEST(fence_grows_with_every_hand_out)
{
    uint64_t last = 0;

    for (int i = 0; i < 10; i++) {
        add(i % 2 ? "foo" : "bar", 0, WQ_ADDED_NEW);
        wq_item *item = get(i % 2 ? "foo" : "bar");
        assert_true(item->fence > last);
        last = item->fence;
        done(item);
    }
}

static void
expect_refused(const wq_item *item)
{
    assert_int_equal(wq__core_done(&f.core, item, 0, NULL), WQ_ESTATE);
}

TEST(prepared_get_shows_what_the_get_hands_out)
{
    wq_item next;
    int64_t waited;

    play("ages; add low NEW; add first +1 NEW; add second +1 NEW");
    for (int i = 0; i < 3; i++) {
        assert_int_equal(wq__core_prepare_get(&f.core, 7, &next, &waited),
                         WQ_OK);
        expect_sound();
        const char *const bytes = next.key.data;
        const wq_item    *item = get_at(7, bytes);
        assert_int_equal(item->priority, next.priority);
        assert_int_equal(item->fence, next.fence);
        assert_int_equal(wq__core_latency(item), waited);
    }
    assert_int_equal(wq__core_prepare_get(&f.core, 7, &next, &waited),
                     WQ_ENOTFOUND);
}

TEST(prepared_get_needs_no_memory)
{
    wq_item  next, *item;
    int64_t  waited;
    uint64_t calls;

    play("add foo NEW");
    counting_fail(&f.mem, 1, COUNTING_ONCE);
    assert_int_equal(wq__core_prepare_get(&f.core, 0, &next, &waited),
                     WQ_ENOMEM);
    assert_int_equal(wq__core_prepare_get(&f.core, 0, &next, &waited), WQ_OK);
    assert_int_equal(waited, -1);
    calls = f.mem.calls;
    assert_int_equal(wq__core_get(&f.core, 0, &item), WQ_OK);
    assert_int_equal(f.mem.calls, calls);
}

TEST(item_done_twice_is_refused)
{
    play("add foo NEW; add bar NEW; add baz NEW");
    get("foo"); /* stays, and with it the memory of the loans */
    wq_item *bar = get("bar"), *baz = get("baz");
    done(bar);
    expect_refused(bar);
    assert_int_equal(
        wq__core_done_key(&f.core, wq_str("baz"), hash_of("baz"), 0, NULL),
        WQ_OK);
    expect_refused(baz);
    assert_int_equal(f.core.loans.live, 1);
}

/* O-06 */
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
        expect_refused(items[i]);
}

TEST(copied_and_invented_items_are_refused)
{
    add("foo", 0, WQ_ADDED_NEW);
    wq_item *item = get("foo");
    wq_item  copy = *item;

    expect_refused(&copy);
    for (copy.loan = 0; copy.loan < 70000; copy.loan++)
        expect_refused(&copy);
    assert_int_equal(f.core.loans.live, 1);
    done(item);
}

WQ_TESTS(test(key_moves_along_the_arrows),
         core_test(new_core_allocates_nothing),
         core_test(core_without_an_allocator_has_the_default_one),
         test(shutdown_refuses_adds_and_keeps_ready_keys),
         core_test(refused_add_leaves_the_result_alone),
         core_test(accepted_key_is_admitted_after_shutdown),
         test(waiting_key_becomes_ready_at_its_deadline),
         test(plug_in_decides_the_order_and_may_refuse),
         lifo_test(plug_in_that_denies_its_keys_costs_no_loan),
         lifo_test(plug_in_is_destroyed_before_its_keys),
         core_test(item_shows_the_copied_bytes_until_done),
         core_test(keys_are_bytes_and_may_hold_any),
         core_test(keys_of_every_length_around_inline_live_alike),
         core_test(long_keys_that_differ_in_the_last_byte_are_two),
         core_test(long_key_gives_its_memory_back_at_done),
         core_test(fence_grows_with_every_hand_out),
         core_test(prepared_get_shows_what_the_get_hands_out),
         core_test(prepared_get_needs_no_memory),
         core_test(item_done_twice_is_refused),
         core_test(item_done_twice_is_refused_after_a_burst_of_loans),
         core_test(copied_and_invented_items_are_refused));
