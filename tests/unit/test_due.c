/* SPDX-License-Identifier: MIT */
/* test_due.c: does a key that is debounced or throttled run when it should?
 *
 * Scenes with exact times, for the verbs of core_fixture.h; then the ages that
 * the core keeps.
 */
#include "unit/core_fixture.h"

/* ---- debounce ----------------------------------------------------------- */

static const struct scene debounces[] = {
    /* O-53 */
    {"a debounced key runs after the last of a series",
     "add foo debounce=10 SCHEDULED; 5: add foo debounce=10 LATER; "
     "add foo debounce=10 KEPT; 14: add foo debounce=10 LATER; "
     "add foo debounce=3 SOONER; add foo debounce=10 LATER; due foo 24; "
     "30: add foo debounce=10 MERGED; run foo; states foo -; paces 0"},
    /* O-53 */
    {"a debounced key runs no later than max_wait after the first",
     "add foo debounce=10 max=25 SCHEDULED; "
     "9: add foo debounce=10 max=25 LATER; "
     "18: add foo debounce=10 max=25 LATER; deadline foo 25; "
     "24: add foo debounce=10 max=25 KEPT; due foo 25; run foo; "
     "30: add foo debounce=10 max=25 SCHEDULED; due foo 40"},
    {"a max_wait shorter than the debounce counts at once",
     "add foo debounce=100 max=20 SCHEDULED; due foo 20"},
    {"a debounce without end waits for ever",
     "5: add foo debounce=never SCHEDULED; pass 9223372036854775806; "
     "states foo WAITING"},
    /* O-53: it has a deadline of its own beside the loan. */
    {"a HELD key that is debounced runs again",
     "add foo NEW; get foo; add foo debounce=10 SCHEDULED; pass 10; "
     "states foo HELD DIRTY; done foo; run foo"},
    /* L5: the earlier deadline stays, and covers both adds. */
    {"a debounce does not move the deadline of another add",
     "add foo @20 SCHEDULED; add foo debounce=30 KEPT; "
     "15: add foo debounce=30 KEPT; due foo 20"},
    {"a series moves its deadline up to a later one of another add",
     "add foo @50 SCHEDULED; add foo debounce=10 SOONER; "
     "5: add foo debounce=10 LATER; deadline foo 15; "
     "14: add foo debounce=100 LATER; due foo 50"},
    /* L5 */
    {"a series does not go beyond a deadline that it covers",
     "add foo debounce=10 SCHEDULED; add foo @12 KEPT; add foo @40 KEPT; "
     "9: add foo debounce=10 LATER; due foo 12"},
    /* O-16: its deadline was not set because it failed. */
    {"a debounce replaces a backoff",
     "add foo @50 backoff SCHEDULED; add foo debounce=10 SOONER; "
     "states foo WAITING; due foo 10"},
    /* O-16 O-53: while the key is HELD, too. */
    {"a debounce does not change a respected backoff",
     "respect; add foo @50 backoff SCHEDULED; add foo debounce=10 KEPT; "
     "states foo WAITING BACKOFF; due foo 50; get foo; "
     "add foo @90 backoff SCHEDULED; 60: add foo debounce=10 KEPT; done foo; "
     "states foo WAITING BACKOFF; due foo 90"},
    /* O-54: adds with the other option are not throttled. */
    {"a debounce ignores the cooldown",
     "add foo throttle=100 NEW; run foo; 5: add foo debounce=10 SCHEDULED; "
     "due foo 15; 20: run foo; 30: add foo throttle=100 SCHEDULED; "
     "due foo 100"},
    {"a debounce raises the priority of its deadline",
     "add foo debounce=10 SCHEDULED; add foo debounce=10 +3 RAISED; pass 10; "
     "get foo +3"},
};

TEST(debounced_key_runs_after_its_series)
{
    run_scenes(debounces, LEN(debounces), open_core);
}

/* ---- throttle ----------------------------------------------------------- */

static const struct scene throttles[] = {
    /* O-54: from the hand-out, not from the add. */
    {"the cooldown begins at the hand-out",
     "add foo throttle=100 NEW; 10: add foo throttle=100 MERGED; 50: run foo; "
     "states foo -; 60: add foo throttle=100 SCHEDULED; "
     "70: add foo throttle=100 KEPT; due foo 150; 170: run foo; "
     "269: add foo throttle=100 SCHEDULED; due foo 270; run foo; pass 370; "
     "records 0; paces 0; add foo throttle=100 NEW"},
    /* O-54 */
    {"a throttled add of a HELD key waits for the cooldown",
     "add foo throttle=100 NEW; get foo; 10: add foo throttle=100 SCHEDULED; "
     "states foo HELD WAITING; 20: done foo; due foo 100"},
    {"a key HELD for longer than the cooldown is DIRTY at once",
     "add foo throttle=100 NEW; get foo; pass 100; "
     "110: add foo throttle=100 DIRTY; 120: done foo; 130: run foo; "
     "140: add foo throttle=100 SCHEDULED; due foo 230"},
    /* O-54 */
    {"other adds are not throttled and do not prolong the cooldown",
     "add foo throttle=100 NEW; run foo; add foo NEW; 10: run foo; "
     "20: add foo throttle=100 SCHEDULED; due foo 100"},
    /* O-54: the hand-out comes after the cooldown. */
    {"a run of another add begins no cooldown",
     "add foo throttle=100 NEW; run foo; add foo NEW; next 100; pass 100; "
     "paces 0; 200: run foo; records 0; 210: add foo throttle=100 NEW"},
    {"a run of a DIRTY key begins no cooldown",
     "add foo throttle=100 NEW; get foo; add foo DIRTY; pass 150; "
     "160: done foo; 200: run foo; 210: add foo throttle=100 NEW"},
    /* O-54 */
    {"a run that covers a throttled add too begins a cooldown",
     "add foo throttle=100 NEW; run foo; add foo NEW; "
     "20: add foo throttle=100 MERGED; 50: run foo; "
     "60: add foo throttle=100 SCHEDULED; due foo 150"},
    /* O-54 D-11 */
    {"a throttled run keeps waiting during runs of other adds",
     "add foo throttle=100 NEW; run foo; 10: add foo throttle=100 SCHEDULED; "
     "add foo NEW; 20: run foo; due foo 100; run foo; "
     "110: add foo throttle=100 SCHEDULED; due foo 200"},
    /* O-54 O-58 */
    {"a cancelled throttled run begins no cooldown",
     "add foo throttle=100 NEW; run foo; 10: add foo throttle=100 SCHEDULED; "
     "add foo NEW; 20: cancel foo OK; 30: run foo; pass 100; "
     "add foo throttle=100 NEW"},
    /* O-54 */
    {"a run of a plain deadline begins no cooldown",
     "add foo @50 SCHEDULED; add foo throttle=30 NEW; run foo; "
     "10: add foo throttle=30 SOONER; due foo 30; run foo; "
     "add foo @50 SCHEDULED; due foo 50; run foo; pass 60; "
     "add foo throttle=30 NEW"},
    /* O-52 O-54 */
    {"a throttled run that is put off begins its cooldown then",
     "add foo throttle=100 NEW; add foo @50 replace LATER; due foo 50; "
     "60: run foo; 70: add foo throttle=100 SCHEDULED; due foo 160"},
    /* O-16 O-54 */
    {"a throttled run that backs off begins its cooldown then",
     "respect; add foo NEW; get foo; add foo throttle=100 DIRTY; "
     "add foo @50 backoff SCHEDULED; 10: done foo; due foo 50; 60: run foo; "
     "70: add foo throttle=100 SCHEDULED; due foo 160"},
    /* O-16 O-54 */
    {"a throttled add during a respected backoff runs when "
     "that ends",
     "respect; add foo @50 backoff SCHEDULED; add foo throttle=100 KEPT; "
     "pass 50; 60: run foo; 70: add foo throttle=100 SCHEDULED; due foo 160"},
    /* O-16 O-54 */
    {"a throttled add does not change a respected backoff",
     "respect; add foo throttle=20 NEW; get foo; "
     "add foo @50 backoff SCHEDULED; done foo; 5: add foo throttle=20 KEPT; "
     "states foo WAITING BACKOFF; due foo 50"},
    /* O-58: what was scheduled is cancelled; the cooldown goes on. */
    {"a cancelled throttled add leaves the cooldown",
     "add foo throttle=100 NEW; run foo; 10: add foo throttle=100 SCHEDULED; "
     "20: cancel foo OK; states foo -; cancel foo ENOTFOUND; "
     "remove foo ENOTFOUND; 30: add foo throttle=100 SCHEDULED; due foo 100"},
    /* O-57: the first one was never handed out. */
    {"a removed key is forgotten when its cooldown is over",
     "add foo throttle=100 NEW; 10: remove foo OK; records 0; "
     "20: add foo throttle=100 NEW; run foo; add foo NEW; 30: remove foo OK; "
     "40: add foo throttle=100 SCHEDULED; due foo 120"},
    {"an earlier deadline replaces a throttled one",
     "add foo throttle=100 NEW; run foo; 10: add foo throttle=100 SCHEDULED; "
     "add foo @50 SOONER; add foo @120 KEPT; due foo 50"},
    {"the last throttled add sets the length of the cooldown",
     "add foo throttle=100 NEW; add foo throttle=30 MERGED; run foo; "
     "10: add foo throttle=7 SCHEDULED; due foo 30; run foo; pass 37; "
     "records 0"},
};

TEST(throttled_key_runs_after_its_cooldown)
{
    run_scenes(throttles, LEN(throttles), open_core);
}

/* there will be no add to throttle. */
TEST(shutdown_forgets_cooldowns)
{
    for (char name[2] = "a"; name[0] < 'q'; name[0]++) {
        const int64_t span = 100 - name[0] % 7;

        (void)add_how(HOW(.kind = WQ__ADD_THROTTLE, .span = span), name, 0);
        if (name[0] % 3)
            done(get(name));
        else
            assert_int_equal(take_back(name, 0), WQ_OK);
        if (name[0] % 4 == 0)
            (void)add_how(HOW(.kind = WQ__ADD_AT), name, 50 + name[0] % 5);
    }
    const size_t waiting = wq__core_waiting(&f.core);
    assert_int_not_equal(f.core.cooldowns, 0);
    wq__core_shut_down(&f.core);
    expect_sound();
    assert_int_equal(f.core.cooldowns, 0);
    assert_int_equal(wq__core_waiting(&f.core), waiting);
    wq__core_drop_waiting(&f.core);
    assert_int_equal(counts_at(0).drops, waiting);
    assert_int_equal(f.core.recs.live, 0);
}

/* ---- ages and events ---------------------------------------------------- */

static const struct scene ages[] = {
    /* O-30 O-32: b is READY since it was due. */
    {"ages are exact",
     "ages; ages; 10: add a NEW; 15: add a MERGED; 30: ready-for a 20; "
     "held-for a -1; 40: get a; latency a 30; add b @50 SCHEDULED; pass 70; "
     "ready-for b 20; 80: get b; latency b 30; 90: add a DIRTY; "
     "100: ready-for a 10; held-for a 60; unfinished 80; longest 60; "
     "110: done a; work 70; longest 30; 120: get a; latency a 30; done b; "
     "130: unfinished 10"},
    {"ages that are not kept are unknown",
     "add a NEW; get a; add b NEW; 9: held-for a -1; ready-for b -1; "
     "unfinished -1; longest -1"},
    /* O-30: a key in its cooldown has no deadline. */
    {"the end of a cooldown is an event but no deadline",
     "add a throttle=10 NEW; run a; add b throttle=11 NEW; run b; "
     "add c throttle=12 NEW; run c; add d throttle=13 NEW; run d; "
     "add e throttle=14 NEW; run e; add g throttle=15 NEW; run g; next 10; "
     "next-in never; waiting 0; empty 1; add y @300 SCHEDULED; "
     "add z @200 SCHEDULED; empty 0; next-in 200; 60: next-in 140; next 10"},
};

TEST(ages_and_deadlines_are_exact)
{
    run_scenes(ages, LEN(ages), open_core);
}

/* Refuses memory. */
static void
replace_deadline(const char *s, int64_t at, bool backoff)
{
    counting_fail(&f.mem, 1, COUNTING_FROM_NOW);
    wq__core_replace_deadline(&f.core, wq_str(s), hash_of(s), at, backoff);
    counting_heal(&f.mem);
    expect_sound();
}

static int64_t
deadline_of(const char *s)
{
    return wq__core_deadline(&f.core, wq_str(s), hash_of(s));
}

/* O-52: WQ_IF_WAITING_REPLACE of a layer. */
TEST(deadline_is_replaced_without_memory)
{
    wq_added what;

    replace_deadline("foo", 10, true);
    assert_int_equal(deadline_of("foo"), WQ_FOREVER);
    assert_int_equal(wq__core_add_after(&f.core, wq_str("foo"), hash_of("foo"),
                                        0, 50, false, &what),
                     WQ_OK);

    replace_deadline("foo", 70, true);
    assert_int_equal(deadline_of("foo"), 70);
    assert_int_equal(wq__core_states(&f.core, wq_str("foo"), hash_of("foo")),
                     WQ__WAITING | WQ__BACKOFF);
    replace_deadline("foo", 20, false);
    assert_int_equal(deadline_of("foo"), 20);
    assert_int_equal(wq__core_states(&f.core, wq_str("foo"), hash_of("foo")),
                     WQ__WAITING);
    wq__core_promote(&f.core, 20);
    assert_int_equal(deadline_of("foo"), WQ_FOREVER);
}

WQ_TESTS(test(debounced_key_runs_after_its_series),
         core_test(deadline_is_replaced_without_memory),
         test(throttled_key_runs_after_its_cooldown),
         core_test(shutdown_forgets_cooldowns),
         test(ages_and_deadlines_are_exact));
