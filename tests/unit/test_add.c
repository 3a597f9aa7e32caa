/* SPDX-License-Identifier: MIT */
/* test_add.c: does an add with a purpose do what it was asked for?
 *
 * Priorities, the policies for keys that wait, bounds, batches, and taking
 * back; one scene each. What has to do with pace is in test_due.c.
 */
#include <limits.h>

#include "unit/core_fixture.h"
#include "unit/lifo.h"

/* ---- priorities --------------------------------------------------------- */

/* O-51 PQ-07 */
TEST(higher_priority_is_handed_out_first)
{
    add("low", -1, WQ_ADDED_NEW);
    add("plain", 0, WQ_ADDED_NEW);
    add("last", INT_MIN, WQ_ADDED_NEW);
    add("first", INT_MAX, WQ_ADDED_NEW);
    assert_int_equal(get("first")->priority, INT_MAX);
    assert_int_equal(get("plain")->priority, 0);
    assert_int_equal(get("low")->priority, -1);
    assert_int_equal(get("last")->priority, INT_MIN);
}

/* PQ-07 PQ-08: the highest counts. */
TEST(ready_key_is_raised_and_never_lowered)
{
    add("foo", 1, WQ_ADDED_NEW);
    add("foo", 2, WQ_ADDED_RAISED);
    add("foo", 1, WQ_ADDED_MERGED);
    assert_int_equal(counts_at(0).adds, 1);
    assert_int_equal(counts_at(0).merged, 2);
    assert_int_equal(get("foo")->priority, 2);
    expect_nothing_to_get();
}

/* PQ-16 */
TEST(raised_key_goes_to_the_end_of_its_new_level)
{
    add("foo", 0, WQ_ADDED_NEW);
    add("bar", 1, WQ_ADDED_NEW);
    add("baz", 1, WQ_ADDED_NEW);
    add("foo", 1, WQ_ADDED_RAISED);
    add("last", 1, WQ_ADDED_NEW);
    get("bar");
    get("baz");
    get("foo");
    get("last");
}

/* PQ-44 */
TEST(equal_priority_keeps_the_place)
{
    add("a", 3, WQ_ADDED_NEW);
    add("b", 3, WQ_ADDED_NEW);
    add("a", 3, WQ_ADDED_MERGED);
    get("a");
    get("b");
}

/* PQ-42 */
TEST(priority_is_not_inherited_by_an_add_while_held)
{
    add("foo", 5, WQ_ADDED_NEW);
    wq_item *item = get("foo");
    add("foo", 0, WQ_ADDED_DIRTY);
    done(item);
    assert_int_equal(get("foo")->priority, 0);
}

TEST(dirty_key_is_raised_and_comes_back_with_it)
{
    add("foo", 0, WQ_ADDED_NEW);
    wq_item *item = get("foo");
    add("foo", -3, WQ_ADDED_DIRTY);
    add("foo", 4, WQ_ADDED_RAISED);
    add("foo", 1, WQ_ADDED_MERGED);
    add("other", 3, WQ_ADDED_NEW);
    done(item);
    assert_int_equal(get("foo")->priority, 4);
}

TEST(deadline_has_a_priority_of_its_own)
{
    assert_int_equal(add_how(HOW(.kind = WQ__ADD_AT, .priority = 7), "foo", 50),
                     WQ_ADDED_SCHEDULED);
    add("foo", 1, WQ_ADDED_NEW);
    done(get("foo"));
    assert_int_equal(look_at("foo", 0).priority, 7);
    pass_to(50);
    assert_int_equal(get("foo")->priority, 7);
}

TEST(deadline_that_serves_a_higher_priority_has_it)
{
    add_at("foo", 50, WQ_ADDED_SCHEDULED);
    assert_int_equal(add_how(HOW(.kind = WQ__ADD_AT, .priority = 2), "foo", 60),
                     WQ_ADDED_RAISED);
    assert_int_equal(add_how(HOW(.kind = WQ__ADD_AT, .priority = 1), "foo", 60),
                     WQ_ADDED_KEPT);
    expect_deadline("foo", 50);
    assert_int_equal(
        add_how(HOW(.kind = WQ__ADD_AT, .priority = -1), "foo", 40),
        WQ_ADDED_SOONER);
    pass_to(40);
    assert_int_equal(get("foo")->priority, 2);
}

/* O-16: what is put off keeps the higher priority of the two. */
TEST(key_put_off_by_its_backoff_takes_its_priority_along)
{
    f.core.respect = true;
    add("foo", 0, WQ_ADDED_NEW);
    wq_item *item = get("foo");
    back_off("foo", 50);
    add("foo", 8, WQ_ADDED_DIRTY);
    done(item);
    expect_states("foo", WQ_STATE_WAITING | WQ_STATE_BACKOFF);
    assert_int_equal(counts_at(0).deferred, 1);
    assert_int_equal(counts_at(0).displaced, 0);
    pass_to(50);
    assert_int_equal(get("foo")->priority, 8);
}

/* ---- a key that waits --------------------------------------------------- */

static wq_added
add_if(wq_if_waiting waiting, int priority)
{
    return add_how(HOW(.waiting = waiting, .priority = priority), "foo", 0);
}

static wq_added
add_at_if(wq_if_waiting waiting, int64_t at)
{
    return add_how(HOW(.kind = WQ__ADD_AT, .waiting = waiting), "foo", at);
}

/* O-52 */
TEST(keep_runs_the_key_now_and_then)
{
    add_at("foo", 50, WQ_ADDED_SCHEDULED);
    assert_int_equal(add_if(WQ_IF_WAITING_KEEP, 0), WQ_ADDED_NEW);
    expect_states("foo", WQ_STATE_READY | WQ_STATE_WAITING);
    assert_int_equal(add_at_if(WQ_IF_WAITING_KEEP, 60), WQ_ADDED_KEPT);
    assert_int_equal(add_at_if(WQ_IF_WAITING_KEEP, 40), WQ_ADDED_SOONER);
    expect_deadline("foo", 40);
}

/* O-52 */
TEST(merge_makes_one_run_of_two_at_the_earlier_time)
{
    add_at("foo", 50, WQ_ADDED_SCHEDULED);
    assert_int_equal(add_at_if(WQ_IF_WAITING_MERGE, 60), WQ_ADDED_KEPT);
    assert_int_equal(add_at_if(WQ_IF_WAITING_MERGE, 40), WQ_ADDED_SOONER);
    assert_int_equal(add_if(WQ_IF_WAITING_MERGE, 0), WQ_ADDED_NEW);
    expect_states("foo", WQ_STATE_READY);
    assert_int_equal(add_at_if(WQ_IF_WAITING_MERGE, 30), WQ_ADDED_MERGED);
    expect_states("foo", WQ_STATE_READY);
    pass_to(100);
    done(get("foo"));
    expect_states("foo", 0);
}

TEST(merge_while_held_makes_dirty_and_ends_the_deadline)
{
    add("foo", 0, WQ_ADDED_NEW);
    get("foo");
    add_at("foo", 50, WQ_ADDED_SCHEDULED);
    assert_int_equal(add_if(WQ_IF_WAITING_MERGE, 0), WQ_ADDED_DIRTY);
    expect_states("foo", WQ_STATE_HELD | WQ_STATE_DIRTY);
    assert_int_equal(add_at_if(WQ_IF_WAITING_MERGE, 30), WQ_ADDED_MERGED);
}

/* O-51 O-52: of both priorities the higher. */
TEST(merged_run_has_the_higher_priority)
{
    (void)add_how(HOW(.kind = WQ__ADD_AT, .priority = 9), "foo", 50);
    assert_int_equal(add_if(WQ_IF_WAITING_MERGE, 1), WQ_ADDED_NEW);
    assert_int_equal(get("foo")->priority, 9);
}

/* O-52 */
TEST(replace_takes_the_last_time_be_it_earlier_or_later)
{
    add_at("foo", 50, WQ_ADDED_SCHEDULED);
    assert_int_equal(add_at_if(WQ_IF_WAITING_REPLACE, 80), WQ_ADDED_LATER);
    expect_deadline("foo", 80);
    assert_int_equal(add_at_if(WQ_IF_WAITING_REPLACE, 20), WQ_ADDED_SOONER);
    expect_deadline("foo", 20);
    assert_int_equal(add_at_if(WQ_IF_WAITING_REPLACE, 20), WQ_ADDED_KEPT);
    assert_int_equal(add_if(WQ_IF_WAITING_REPLACE, 0), WQ_ADDED_NEW);
    expect_states("foo", WQ_STATE_READY);
}

/* O-52: one run, when the last add says. */
TEST(replace_puts_off_a_key_that_is_ready)
{
    add("foo", 7, WQ_ADDED_NEW);
    assert_int_equal(add_at_if(WQ_IF_WAITING_REPLACE, 80), WQ_ADDED_LATER);
    expect_states("foo", WQ_STATE_WAITING);
    assert_int_equal(counts_at(0).deferred, 1);
    assert_int_equal(counts_at(0).displaced, 0);
    pass_to(79);
    assert_int_equal(wq__core_len(&f.core), 0);
    pass_to(80);
    wq_item *item = get("foo");
    assert_int_equal(item->priority, 7);
    done(item);
    expect_states("foo", 0);
}

/* O-52 */
TEST(replace_puts_off_a_key_that_is_dirty)
{
    add("foo", 0, WQ_ADDED_NEW);
    wq_item *item = get("foo");
    add("foo", 3, WQ_ADDED_DIRTY);
    add_at("foo", 50, WQ_ADDED_SCHEDULED);
    assert_int_equal(add_at_if(WQ_IF_WAITING_REPLACE, 50), WQ_ADDED_LATER);
    expect_states("foo", WQ_STATE_HELD | WQ_STATE_WAITING);
    done(item);
    expect_states("foo", WQ_STATE_WAITING);
    pass_to(50);
    item = get("foo");
    assert_int_equal(item->priority, 3);
    done(item);
}

/* O-52 O-56: it was READY, so its run is later than it was. */
TEST(key_that_is_put_off_is_later_whatever_its_deadline_was)
{
    static const int64_t deadlines[] = {20, 50, 80};

    for (size_t i = 0; i < 3; i++) {
        add_at("foo", 50, WQ_ADDED_SCHEDULED);
        add("foo", 0, WQ_ADDED_NEW);
        assert_int_equal(add_at_if(WQ_IF_WAITING_REPLACE, deadlines[i]),
                         WQ_ADDED_LATER);
        expect_states("foo", WQ_STATE_WAITING);
        expect_deadline("foo", deadlines[i]);
        assert_int_equal(cancel("foo", 0), WQ_OK);
    }
}

/* O-52 O-56 D-12 */
TEST(replace_by_the_same_deadline_keeps_the_place)
{
    add_at("foo", 50, WQ_ADDED_SCHEDULED);
    add_at("bar", 50, WQ_ADDED_SCHEDULED);
    assert_int_equal(add_at_if(WQ_IF_WAITING_REPLACE, 50), WQ_ADDED_KEPT);
    assert_int_equal(add_how(HOW(.kind = WQ__ADD_AT, .priority = 3,
                                 .waiting = WQ_IF_WAITING_REPLACE),
                             "bar", 50),
                     WQ_ADDED_RAISED);
    assert_int_equal(add_how(HOW(.kind = WQ__ADD_AT, .priority = 3,
                                 .waiting = WQ_IF_WAITING_REPLACE),
                             "foo", 50),
                     WQ_ADDED_RAISED);
    pass_to(50);
    done(get("foo"));
    done(get("bar"));
}

/* O-52 */
TEST(drop_leaves_a_key_that_waits_alone)
{
    add_at("foo", 50, WQ_ADDED_SCHEDULED);
    assert_int_equal(add_if(WQ_IF_WAITING_IGNORE, 5), WQ_ADDED_KEPT);
    assert_int_equal(add_at_if(WQ_IF_WAITING_IGNORE, 20), WQ_ADDED_KEPT);
    expect_states("foo", WQ_STATE_WAITING);
    expect_deadline("foo", 50);
    assert_int_equal(look_at("foo", 0).priority, 0);
    assert_int_equal(counts_at(0).merged, 2);
}

TEST(policies_do_nothing_to_a_key_that_does_not_wait)
{
    static const wq_if_waiting all[] = {WQ_IF_WAITING_KEEP, WQ_IF_WAITING_MERGE,
                                        WQ_IF_WAITING_REPLACE,
                                        WQ_IF_WAITING_IGNORE};

    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(add_if(all[i], 0), WQ_ADDED_NEW);
        assert_int_equal(add_if(all[i], 0), WQ_ADDED_MERGED);
        done(get("foo"));
        assert_int_equal(add_at_if(all[i], 10), WQ_ADDED_SCHEDULED);
        assert_int_equal(cancel("foo", 0), WQ_OK);
    }
}

/* O-16: a deadline that takes the place of a backoff is none. */
TEST(backoff_is_what_the_deadline_was_set_by_last)
{
    back_off("foo", 50);
    expect_states("foo", WQ_STATE_WAITING | WQ_STATE_BACKOFF);
    assert_int_equal(add_at_if(WQ_IF_WAITING_KEEP, 60), WQ_ADDED_KEPT);
    expect_states("foo", WQ_STATE_WAITING | WQ_STATE_BACKOFF);
    assert_int_equal(add_at_if(WQ_IF_WAITING_REPLACE, 50), WQ_ADDED_KEPT);
    expect_states("foo", WQ_STATE_WAITING);
    back_off("foo", 40);
    expect_states("foo", WQ_STATE_WAITING | WQ_STATE_BACKOFF);
}

/* ---- room --------------------------------------------------------------- */

enum { BATCH = 8 };

static wq__ref victims; /* of the last add_all() */

static wq_err
add_all(const struct wq__how *how, const char *const *names, size_t n,
        struct wq__pick *picks, struct wq__space *needs)
{
    wq_key keys[BATCH];

    for (size_t i = 0; i < n; i++) {
        keys[i] = wq_str(names[i]);
        picks[i].hash = hash_of(names[i]);
        if (how->kind == WQ__ADD_AT && !picks[i].at)
            picks[i].at = 100;
    }
    return wq__core_add_with(&f.core, how, keys, picks, n, needs, &victims);
}

/* The next key that made room for the last add_all(). */
static void
bury(const char *name)
{
    assert_int_not_equal(victims, 0);
    const wq_key key = wq__core_victim_key(&f.core, victims);

    assert_int_equal(key.len, strlen(name));
    assert_string_equal(key.data, name);
    victims = wq__core_bury(&f.core, victims);
}

static wq_err
add_one(const struct wq__how *how, const char *name)
{
    struct wq__pick pick = {0};
    const wq_err    err = add_all(how, &name, 1, &pick, NULL);

    bury_all(victims);
    return err;
}

/* O-55 */
TEST(full_queue_refuses_new_keys_and_no_others)
{
    wq_added what;

    f.core.max_len = 3;
    add("a", 0, WQ_ADDED_NEW);
    add("b", 0, WQ_ADDED_NEW);
    add_at("c", 50, WQ_ADDED_SCHEDULED);
    wq_item *item = get("a");
    assert_int_equal(add_one(HOW(.priority = 9), "d"), WQ_EFULL);
    assert_int_equal(wq__core_add(&f.core, wq_str("d"), hash_of("d"), 0, &what),
                     WQ_EFULL);
    assert_int_equal(wq__core_add_after(&f.core, wq_str("d"), hash_of("d"), 0,
                                        5, true, &what),
                     WQ_EFULL);
    assert_int_equal(f.core.ready.levels.used, 1);
    add("a", 0, WQ_ADDED_DIRTY);
    add("b", 0, WQ_ADDED_MERGED);
    add("c", 0, WQ_ADDED_NEW);
    done(item);
    assert_int_equal(wq__core_room(&f.core).keys, 0);
    done(get("b"));
    assert_int_equal(wq__core_room(&f.core).keys, 1);
    add("d", 0, WQ_ADDED_NEW);
}

/* O-55 */
TEST(lowest_level_makes_room_and_there_the_first_in_line)
{
    const char     *name = "new";
    struct wq__pick pick = {0};

    f.core.max_len = 4;
    add("high", 5, WQ_ADDED_NEW);
    add("low1", -2, WQ_ADDED_NEW);
    add("plain", 0, WQ_ADDED_NEW);
    add("low2", -2, WQ_ADDED_NEW);
    assert_int_equal(add_all(HOW(.displace = true), &name, 1, &pick, NULL),
                     WQ_OK);
    expect_states("low1", 0);
    bury("low1");
    assert_int_equal(victims, 0);
    assert_int_equal(counts_at(0).displaced, 1);
    assert_int_equal(counts_at(0).drops, 1);
    assert_int_equal(counts_at(0).deferred, 0);
    get("high");
    get("plain");
    get("new");
    get("low2");
}

/* O-55 */
TEST(no_key_makes_room_for_one_of_lower_priority)
{
    f.core.max_len = 2;
    add("a", 1, WQ_ADDED_NEW);
    add("b", 2, WQ_ADDED_NEW);
    assert_int_equal(add_one(HOW(.displace = true), "new"), WQ_EFULL);
    assert_int_equal(add_one(HOW(.displace = true, .priority = 1), "new"),
                     WQ_OK);
    expect_states("a", 0);
    assert_int_equal(add_one(HOW(.displace = true, .priority = 1), "more"),
                     WQ_OK);
    expect_states("new", 0);
    get("b");
    get("more");
}

TEST(keys_that_are_held_or_only_wait_make_no_room)
{
    f.core.max_len = 2;
    add("held", 0, WQ_ADDED_NEW);
    get("held");
    add("held", 0, WQ_ADDED_DIRTY);
    add_at("waits", 50, WQ_ADDED_SCHEDULED);
    assert_int_equal(add_one(HOW(.displace = true, .priority = 9), "new"),
                     WQ_EFULL);
}

/* O-55: its deadline and its pace go with it. */
TEST(displaced_key_leaves_nothing_behind)
{
    f.core.max_len = 1;
    (void)add_how(HOW(.kind = WQ__ADD_THROTTLE, .span = 9), "old", 0);
    add_at("old", 50, WQ_ADDED_SCHEDULED);
    assert_int_equal(add_one(HOW(.displace = true), "new"), WQ_OK);
    assert_int_equal(f.core.waiting.len, 0);
    assert_int_equal(f.core.paces.live, 0);
    assert_int_equal(f.core.recs.live, 1);
    pass_to(1000);
    get("new");
}

/* O-50 O-55 */
TEST(keys_that_a_batch_names_are_not_displaced_by_it)
{
    const char *const names[] = {"new1", "old1", "new2", "new1"};
    struct wq__pick   picks[BATCH] = {{0}};

    f.core.max_len = 4;
    add("old1", 0, WQ_ADDED_NEW);
    add("old2", 0, WQ_ADDED_NEW);
    add("old3", 0, WQ_ADDED_NEW);
    add("old4", 0, WQ_ADDED_NEW);
    assert_int_equal(add_all(HOW(.displace = true), names, 4, picks, NULL),
                     WQ_OK);
    assert_int_equal(picks[3].added, WQ_ADDED_MERGED);
    bury("old2");
    bury("old3");
    assert_int_equal(victims, 0);
    get("old1");
    get("old4");
    get("new1");
    get("new2");
}

/* A key that is left alone is named, too: its deadline is to serve. */
TEST(key_that_a_batch_leaves_alone_is_not_displaced_by_it)
{
    const char *const names[] = {"new", "old1"};
    struct wq__pick   picks[BATCH] = {{0}, {.skip = true}};

    f.core.max_len = 2;
    add("old1", 0, WQ_ADDED_NEW);
    back_off("old1", 50);
    add("old2", 0, WQ_ADDED_NEW);
    assert_int_equal(add_all(HOW(.displace = true), names, 2, picks, NULL),
                     WQ_OK);
    assert_int_equal(picks[1].added, WQ_ADDED_KEPT);
    bury("old2");
    expect_states("old1", WQ_STATE_READY | WQ_STATE_WAITING | WQ_STATE_BACKOFF);
    expect_states("old2", 0);
}

/* O-55: they never fit; and what is too much is told. */
TEST(batch_that_does_not_fit_adds_nothing)
{
    const char *const names[] = {"a", "b", "known", "b", "c"};
    struct wq__pick   picks[BATCH] = {{0}};
    struct wq__space  needs = {0};

    f.core.max_len = 2;
    add("known", 0, WQ_ADDED_NEW);
    assert_int_equal(add_all(HOW(.priority = 4), names, 4, picks, &needs),
                     WQ_EFULL);
    assert_int_equal(needs.keys, 2);
    assert_int_equal(
        add_all(HOW(.displace = true, .priority = 4), names, 5, picks, &needs),
        WQ_EFULL);
    assert_int_equal(needs.keys, 3);
    assert_int_equal(f.core.recs.live, 1);
    assert_int_equal(f.core.ready.levels.used, 1);
    get("known");
    expect_nothing_to_get();
}

/* ---- batches ------------------------------------------------------------ */

/* O-50 O-56 */
TEST(batch_becomes_ready_in_order_and_says_what_it_did)
{
    const char *const names[] = {"a", "b", "a", "c"};
    struct wq__pick   picks[BATCH] = {{0}};

    add("c", 0, WQ_ADDED_NEW);
    assert_int_equal(add_all(HOW(.priority = 1), names, 4, picks, NULL), WQ_OK);
    assert_int_equal(picks[0].added, WQ_ADDED_NEW);
    assert_int_equal(picks[1].added, WQ_ADDED_NEW);
    assert_int_equal(picks[2].added, WQ_ADDED_MERGED);
    assert_int_equal(picks[3].added, WQ_ADDED_RAISED);
    get("a");
    get("b");
    get("c");
    expect_nothing_to_get();
}

/* O-50: a wq_order that refuses a key ends the batch there. */
TEST(keys_before_the_one_the_plug_in_refuses_stay_added)
{
    const char *const names[] = {"a", "b", "c", "d"};
    struct wq__pick   picks[BATCH] = {{0}};
    struct lifo       lifo = {.refuse = 3};
    const wq_order    order = lifo_order(&lifo);

    wq__core_fini(&f.core);
    open_with(&order);
    assert_int_equal(add_all(HOW(.priority = 2), names, 4, picks, NULL),
                     WQ_ENOMEM);
    assert_int_equal(f.core.recs.live, 2);
    expect_sound();
    get("b");
    get("a");
    wq__core_fini(&f.core);
    open_with(NULL);
}

/* What is removed in the middle must not cost the room that was reserved for
 * the rest. */
TEST(room_reserved_for_a_batch_stays_when_a_deadline_ends_in_it)
{
    const char *const names[] = {"a", "b", "c", "d", "e", "f", "g"};
    struct wq__pick   picks[BATCH] = {{.at_once = true}};

    add_at("a", 50, WQ_ADDED_SCHEDULED);
    assert_int_equal(add_all(HOW(.kind = WQ__ADD_AT, .backoff = true,
                                 .waiting = WQ_IF_WAITING_MERGE),
                             names, 7, picks, NULL),
                     WQ_OK);
    assert_int_equal(picks[0].added, WQ_ADDED_NEW);
    assert_int_equal(wq__core_waiting(&f.core), 6);
    assert_int_equal(f.core.waiting.reserved, 0);
}

TEST(room_reserved_for_a_batch_stays_when_keys_with_deadlines_are_displaced)
{
    const char *const        names[] = {"a", "b", "c", "d", "e", "f", "g"};
    static const char *const old[] = {"1", "2", "3", "4", "5", "6", "7"};
    struct wq__pick          picks[BATCH] = {{0}};

    f.core.max_len = 7;
    for (size_t i = 0; i < 7; i++)
        add(old[i], 0, WQ_ADDED_NEW);
    add_at("1", 50, WQ_ADDED_SCHEDULED);
    assert_int_equal(add_all(HOW(.kind = WQ__ADD_AT, .displace = true), names,
                             7, picks, NULL),
                     WQ_OK);
    for (size_t i = 0; i < 7; i++)
        bury(old[i]);
    assert_int_equal(wq__core_waiting(&f.core), 7);
}

/* ---- taking back -------------------------------------------------------- */

/* O-57 */
TEST(removed_key_is_not_handed_out)
{
    add("a", 2, WQ_ADDED_NEW);
    add("b", 2, WQ_ADDED_NEW);
    add("c", 2, WQ_ADDED_NEW);
    add_at("b", 50, WQ_ADDED_SCHEDULED);
    assert_int_equal(take_back("b", 0), WQ_OK);
    assert_int_equal(take_back("b", 0), WQ_ENOTFOUND);
    assert_int_equal(f.core.waiting.len, 0);
    assert_int_equal(counts_at(0).removed, 1);
    expect_sound();
    get("a");
    get("c");
    pass_to(100);
    expect_nothing_to_get();
}

TEST(first_and_last_of_a_line_can_be_removed)
{
    add("a", 0, WQ_ADDED_NEW);
    add("b", 0, WQ_ADDED_NEW);
    add("c", 0, WQ_ADDED_NEW);
    get("a");
    assert_int_equal(take_back("b", 0), WQ_OK);
    expect_sound();
    assert_int_equal(take_back("c", 0), WQ_OK);
    expect_sound();
    add("d", 0, WQ_ADDED_NEW);
    get("d");
}

/* O-57 */
TEST(held_key_loses_what_was_asked_for_meanwhile_and_no_more)
{
    add("foo", 0, WQ_ADDED_NEW);
    wq_item *item = get("foo");
    assert_int_equal(take_back("foo", 0), WQ_ESTATE);
    add("foo", 3, WQ_ADDED_DIRTY);
    add_at("foo", 50, WQ_ADDED_SCHEDULED);
    assert_int_equal(take_back("foo", 0), WQ_OK);
    expect_states("foo", WQ_STATE_HELD);
    assert_int_equal(take_back("foo", 0), WQ_ESTATE);
    done(item);
    expect_states("foo", 0);
}

/* O-57: a deadline alone is taken back, and is not counted. */
TEST(removal_of_a_key_that_only_waits_is_not_counted)
{
    add_at("foo", 50, WQ_ADDED_SCHEDULED);
    assert_int_equal(take_back("foo", 0), WQ_OK);
    assert_int_equal(counts_at(0).removed, 0);
    expect_states("foo", 0);
}

/* O-57 */
TEST(plug_in_that_gives_nothing_back_is_not_asked)
{
    struct lifo    lifo = {0};
    const wq_order order = lifo_order(&lifo);

    wq__core_fini(&f.core);
    open_with(&order);
    add("foo", 0, WQ_ADDED_NEW);
    add_at("foo", 50, WQ_ADDED_SCHEDULED);
    assert_int_equal(take_back("foo", 0), WQ_ENOTSUP);
    expect_states("foo", WQ_STATE_READY | WQ_STATE_WAITING);
    get("foo");
    add("foo", 0, WQ_ADDED_DIRTY);
    assert_int_equal(take_back("foo", 0), WQ_OK);
    wq__core_fini(&f.core);
    open_with(NULL);
}

/* O-58 */
TEST(cancel_ends_the_deadline_and_nothing_else)
{
    assert_int_equal(cancel("foo", 0), WQ_ENOTFOUND);
    add("foo", 0, WQ_ADDED_NEW);
    assert_int_equal(cancel("foo", 0), WQ_ENOTFOUND);
    back_off("foo", 50);
    assert_int_equal(cancel("foo", 0), WQ_OK);
    expect_states("foo", WQ_STATE_READY);
    done(get("foo"));
    add_at("foo", 50, WQ_ADDED_SCHEDULED);
    assert_int_equal(cancel("foo", 0), WQ_OK);
    assert_int_equal(f.core.recs.live, 0);
}

/* O-60 */
TEST(items_are_lent_if_each_is_and_is_named_once)
{
    add("a", 0, WQ_ADDED_NEW);
    add("b", 0, WQ_ADDED_NEW);
    wq_item *a = get("a"), *b = get("b"), copy = *a;

    assert_true(wq__core_are_lent(&f.core, (wq_item *[]){a, b}, 2));
    assert_true(wq__core_are_lent(&f.core, NULL, 0));
    assert_false(wq__core_are_lent(&f.core, (wq_item *[]){a, b, a}, 3));
    assert_false(wq__core_are_lent(&f.core, (wq_item *[]){b, &copy}, 2));
    expect_sound();
    done(b);
    assert_false(wq__core_are_lent(&f.core, (wq_item *[]){a, b}, 2));
    assert_true(wq__core_are_lent(&f.core, (wq_item *[]){a}, 1));
}

WQ_TESTS(
    core_test(higher_priority_is_handed_out_first),
    core_test(ready_key_is_raised_and_never_lowered),
    core_test(raised_key_goes_to_the_end_of_its_new_level),
    core_test(equal_priority_keeps_the_place),
    core_test(priority_is_not_inherited_by_an_add_while_held),
    core_test(dirty_key_is_raised_and_comes_back_with_it),
    core_test(deadline_has_a_priority_of_its_own),
    core_test(deadline_that_serves_a_higher_priority_has_it),
    core_test(key_put_off_by_its_backoff_takes_its_priority_along),
    core_test(keep_runs_the_key_now_and_then),
    core_test(merge_makes_one_run_of_two_at_the_earlier_time),
    core_test(merge_while_held_makes_dirty_and_ends_the_deadline),
    core_test(merged_run_has_the_higher_priority),
    core_test(replace_takes_the_last_time_be_it_earlier_or_later),
    core_test(replace_puts_off_a_key_that_is_ready),
    core_test(replace_puts_off_a_key_that_is_dirty),
    core_test(key_that_is_put_off_is_later_whatever_its_deadline_was),
    core_test(replace_by_the_same_deadline_keeps_the_place),
    core_test(drop_leaves_a_key_that_waits_alone),
    core_test(policies_do_nothing_to_a_key_that_does_not_wait),
    core_test(backoff_is_what_the_deadline_was_set_by_last),
    core_test(full_queue_refuses_new_keys_and_no_others),
    core_test(lowest_level_makes_room_and_there_the_first_in_line),
    core_test(no_key_makes_room_for_one_of_lower_priority),
    core_test(keys_that_are_held_or_only_wait_make_no_room),
    core_test(displaced_key_leaves_nothing_behind),
    core_test(keys_that_a_batch_names_are_not_displaced_by_it),
    core_test(key_that_a_batch_leaves_alone_is_not_displaced_by_it),
    core_test(batch_that_does_not_fit_adds_nothing),
    core_test(batch_becomes_ready_in_order_and_says_what_it_did),
    core_test(keys_before_the_one_the_plug_in_refuses_stay_added),
    core_test(room_reserved_for_a_batch_stays_when_a_deadline_ends_in_it),
    core_test(
        room_reserved_for_a_batch_stays_when_keys_with_deadlines_are_displaced),
    core_test(removed_key_is_not_handed_out),
    core_test(first_and_last_of_a_line_can_be_removed),
    core_test(held_key_loses_what_was_asked_for_meanwhile_and_no_more),
    core_test(removal_of_a_key_that_only_waits_is_not_counted),
    core_test(plug_in_that_gives_nothing_back_is_not_asked),
    core_test(cancel_ends_the_deadline_and_nothing_else),
    core_test(items_are_lent_if_each_is_and_is_named_once));
