/* SPDX-License-Identifier: MIT */
/* test_add.c: does an add do what its options say?
 *
 * Priorities, the policies for WAITING keys, bounds, batches, and what takes an
 * add back. Debounced and throttled adds are in test_due.c; the verbs of the
 * scripts are in core_fixture.h.
 */
#include "unit/core_fixture.h"

/* ---- priorities --------------------------------------------------------- */

static const struct scene priorities[] = {
    /* O-51 PQ-07 */
    {"a higher priority is handed out first",
     "add low -1 NEW; add plain +0 NEW; add last -2147483648 NEW; "
     "add first +2147483647 NEW; get first +2147483647; get plain +0; "
     "get low -1; get last -2147483648"},
    /* PQ-07 PQ-08: the highest counts. */
    {"a READY key is raised and never lowered",
     "add foo +1 NEW; add foo +2 RAISED; add foo +1 MERGED; adds 1; merged 2; "
     "get foo +2; get -"},
    /* PQ-16 */
    {"a raised key goes to the end of its new level",
     "add foo +0 NEW; add bar +1 NEW; add baz +1 NEW; add foo +1 RAISED; "
     "add last +1 NEW; get bar; get baz; get foo; get last"},
    /* PQ-44 */
    {"an equal priority keeps the place",
     "add a +3 NEW; add b +3 NEW; add a +3 MERGED; get a; get b"},
    /* PQ-42 */
    {"an add while HELD does not inherit the priority",
     "add foo +5 NEW; get foo; add foo +0 DIRTY; done foo; get foo +0"},
    {"a DIRTY key is raised and keeps that until READY",
     "add foo NEW; get foo; add foo -3 DIRTY; add foo +4 RAISED; "
     "add foo +1 MERGED; add other +3 NEW; done foo; get foo +4"},
    {"a deadline has a priority of its own",
     "add foo @50 +7 SCHEDULED; add foo +1 NEW; run foo; priority foo 7; "
     "pass 50; get foo +7"},
    {"a deadline that covers a higher priority takes it",
     "add foo @50 SCHEDULED; add foo @60 +2 RAISED; add foo @60 +1 KEPT; "
     "deadline foo 50; add foo @40 -1 SOONER; pass 40; get foo +2"},
    /* O-16: what is put off keeps the higher priority of the two. */
    {"a key put off by its backoff keeps its priority",
     "respect; add foo NEW; get foo; add foo @50 backoff SCHEDULED; "
     "add foo +8 DIRTY; done foo; states foo WAITING BACKOFF; deferred 1; "
     "displaced 0; pass 50; get foo +8"},
};

TEST(keys_leave_by_priority)
{
    run_scenes(priorities, LEN(priorities), open_core);
}

/* ---- a WAITING key ------------------------------------------------------ */

static const struct scene policies[] = {
    /* O-52 */
    {"keep: the key runs now and at its deadline",
     "add foo @50 SCHEDULED; add foo keep NEW; states foo READY WAITING; "
     "add foo @60 keep KEPT; add foo @40 keep SOONER; deadline foo 40"},
    /* O-52 */
    {"merge: one run, at the earlier time",
     "add foo @50 SCHEDULED; add foo @60 merge KEPT; add foo @40 merge SOONER; "
     "add foo merge NEW; states foo READY; add foo @30 merge MERGED; "
     "states foo READY; pass 100; run foo; states foo -"},
    {"merge while HELD makes the key DIRTY and ends the deadline",
     "add foo NEW; get foo; add foo @50 SCHEDULED; add foo merge DIRTY; "
     "states foo HELD DIRTY; add foo @30 merge MERGED"},
    /* O-51 O-52 */
    {"merge: the run has the higher priority of both",
     "add foo @50 +9 SCHEDULED; add foo +1 merge NEW; get foo +9"},
    /* O-52 */
    {"replace: the last time counts, earlier or later",
     "add foo @50 SCHEDULED; add foo @80 replace LATER; deadline foo 80; "
     "add foo @20 replace SOONER; deadline foo 20; add foo @20 replace KEPT; "
     "add foo replace NEW; states foo READY"},
    /* O-52 */
    {"replace puts off a READY key",
     "add foo +7 NEW; add foo @80 replace LATER; states foo WAITING; "
     "deferred 1; displaced 0; pass 79; len 0; pass 80; run foo +7; "
     "states foo -"},
    /* O-52 */
    {"replace puts off a DIRTY key",
     "add foo NEW; get foo; add foo +3 DIRTY; add foo @50 SCHEDULED; "
     "add foo @50 replace LATER; states foo HELD WAITING; done foo; "
     "states foo WAITING; pass 50; run foo +3"},
    /* O-52 O-56: it was READY, so its run is later than it was. */
    {"a READY key that is put off is LATER whatever its deadline was",
     "add foo @50 SCHEDULED; add foo NEW; add foo @20 replace LATER; "
     "states foo WAITING; deadline foo 20; cancel foo OK; "
     "add foo @50 SCHEDULED; add foo NEW; add foo @50 replace LATER; "
     "states foo WAITING; deadline foo 50; cancel foo OK; "
     "add foo @50 SCHEDULED; add foo NEW; add foo @80 replace LATER; "
     "states foo WAITING; deadline foo 80; cancel foo OK"},
    /* O-52 O-56 D-12 */
    {"replace by the same deadline keeps the place",
     "add foo @50 SCHEDULED; add bar @50 SCHEDULED; add foo @50 replace KEPT; "
     "add bar @50 +3 replace RAISED; add foo @50 +3 replace RAISED; pass 50; "
     "run foo; run bar"},
    /* O-52 */
    {"ignore changes nothing of a WAITING key",
     "add foo @50 SCHEDULED; add foo +5 ignore KEPT; add foo @20 ignore KEPT; "
     "states foo WAITING; deadline foo 50; priority foo 0; merged 2"},
    /* O-16: a deadline that takes the place of a backoff is none. */
    {"a deadline is a backoff if its last add was one",
     "add foo @50 backoff SCHEDULED; states foo WAITING BACKOFF; "
     "add foo @60 keep KEPT; states foo WAITING BACKOFF; "
     "add foo @50 replace KEPT; states foo WAITING; "
     "add foo @40 backoff SOONER; states foo WAITING BACKOFF"},
    {"policies do nothing to a key that is not WAITING",
     "add foo keep NEW; add foo keep MERGED; run foo; "
     "add foo @10 keep SCHEDULED; cancel foo OK; add foo merge NEW; "
     "add foo merge MERGED; run foo; add foo @10 merge SCHEDULED; "
     "cancel foo OK; add foo replace NEW; add foo replace MERGED; run foo; "
     "add foo @10 replace SCHEDULED; cancel foo OK; add foo ignore NEW; "
     "add foo ignore MERGED; run foo; add foo @10 ignore SCHEDULED; "
     "cancel foo OK"},
};

TEST(policy_decides_what_an_add_does_to_a_waiting_key)
{
    run_scenes(policies, LEN(policies), open_core);
}

/* ---- bounds ------------------------------------------------------------- */

static const struct scene bounds[] = {
    /* O-55 */
    {"a full queue refuses new keys and no others",
     "bound 3; add a NEW; add b NEW; add c @50 SCHEDULED; get a; "
     "add d +9 EFULL; add d EFULL; add d @5 backoff EFULL; levels 1; "
     "add a DIRTY; add b MERGED; add c NEW; done a; capacity 0; run b; "
     "capacity 1; add d NEW"},
    /* O-55 */
    {"no key is displaced for one of lower priority",
     "bound 2; add a +1 NEW; add b +2 NEW; add new displace EFULL; "
     "add new +1 displace NEW; states a -; add more +1 displace NEW; "
     "states new -; get b; get more"},
    {"keys that are HELD or only WAITING are not displaced",
     "bound 2; add held NEW; get held; add held DIRTY; add w @50 SCHEDULED; "
     "add new +9 displace EFULL"},
    /* O-55: its deadline and its pace go with it. */
    {"a displaced key leaves nothing behind",
     "bound 1; add old throttle=9 NEW; add old @50 SCHEDULED; "
     "add new displace NEW; entries 0; paces 0; records 1; pass 1000; get new"},
};

TEST(full_queue_refuses_or_displaces)
{
    run_scenes(bounds, LEN(bounds), open_core);
}

/* ---- batches ------------------------------------------------------------ */

enum { BATCH = 8 };

/* The last batch, and what came of it. */
static struct wq__prepared picks[BATCH];
static struct wq__capacity needs;
static wq__ref             victims;

/* batch [OPTION...] : [skip=]KEY... : ERROR; a key with a deadline is due
 * at 100, and with now=KEY at once. */
static void
verb_batch(const char *const *word)
{
    struct wq__how how = {.now = script.now};
    wq_key         keys[BATCH];
    size_t         n = 0;
    int64_t        at = 100;

    memset(picks, 0, sizeof picks);
    memset(&needs, 0, sizeof needs);
    while (!is(*++word, ":"))
        (void)read_add_option(*word, &how, &at);
    while (!is(*++word, ":")) {
        const char *const mark = strchr(*word, '=');
        const char *const name = mark ? mark + 1 : *word;

        keys[n] = wq_str(name);
        picks[n] = (struct wq__prepared){.hash = hash_of(name),
                                         .at = at,
                                         .skip = mark && **word == 's',
                                         .at_once = mark && **word == 'n'};
        n++;
    }
    expect_err(
        wq__core_add_with(&f.core, &how, keys, picks, n, &needs, &victims),
        word[1]);
}

/* The verbs of the core, and: added RESULT...: of the last batch; needs N: how
 * many keys it lacks; victims KEY...: what it displaced, in order; all KEY...:
 * gets hand out these, and no more. */
static bool
act(const char *const *word)
{
    const char *const nothing[] = {"get", "-", "", ""};

    if (is(word[0], "batch")) {
        verb_batch(word);
    } else if (is(word[0], "added")) {
        for (size_t i = 0; *word[i + 1]; i++)
            expect_word(added_names[picks[i].added], word[i + 1]);
    } else if (is(word[0], "needs")) {
        expect_number((int64_t)needs.keys, word[1]);
    } else if (is(word[0], "victims")) {
        for (; victims; victims = wq__core_free_victim(&f.core, victims))
            expect_word(wq__core_victim_key(&f.core, victims).data, *++word);
        expect_word("", word[1]);
    } else if (is(word[0], "all")) {
        while (*word[1])
            (void)get(*++word);
        verb_get(nothing);
    } else {
        return act_on_core(word);
    }
    return true;
}

/* The core cannot be checked while displaced keys are not buried. */
static void
check(void)
{
    if (!victims)
        expect_sound();
}

static const struct scene batches[] = {
    /* O-55 */
    {"the lowest level is displaced, and there the first in line",
     "bound 4; add high +5 NEW; add low1 -2 NEW; add plain NEW; "
     "add low2 -2 NEW; batch displace : new : OK; states low1 -; victims low1; "
     "displaced 1; dropped 1; deferred 0; all high plain new low2"},
    /* O-50 O-55 */
    {"a batch does not displace its own keys",
     "bound 4; add old1 NEW; add old2 NEW; add old3 NEW; add old4 NEW; "
     "batch displace : new1 old1 new2 new1 : OK; added NEW MERGED NEW MERGED; "
     "victims old2 old3; all old1 old4 new1 new2"},
    /* It is one of the batch: its deadline is to serve. */
    {"a batch does not displace a key that it skips",
     "bound 2; add old1 NEW; add old1 @50 backoff SCHEDULED; add old2 NEW; "
     "batch displace : new skip=old1 : OK; added NEW KEPT; victims old2; "
     "states old1 READY WAITING BACKOFF; states old2 -"},
    /* O-55: it never fits; and how much it needs is reported. */
    {"a batch that does not fit adds nothing",
     "bound 2; add known NEW; batch +4 : a b known b : EFULL; needs 2; "
     "batch +4 displace : a b known b c : EFULL; needs 3; records 1; levels 1; "
     "all known"},
    /* O-50 O-56 */
    {"a batch becomes READY in order and reports each key",
     "add c NEW; batch +1 : a b a c : OK; added NEW NEW MERGED RAISED; "
     "all a b c"},
    /* What is removed in the middle must not cost what was reserved for the
     * rest. */
    {"reserved entries stay when the batch ends a deadline",
     "add a @50 SCHEDULED; batch @100 backoff merge : now=a b c d e f g : OK; "
     "added NEW; waiting 6; reserved 0"},
    {"reserved entries stay when the batch displaces a deadline",
     "bound 7; batch : 1 2 3 4 5 6 7 : OK; add 1 @50 SCHEDULED; "
     "batch @100 displace : a b c d e f g : OK; victims 1 2 3 4 5 6 7; "
     "waiting 7"},
};

TEST(batch_adds_all_keys_or_none)
{
    script_run_all(batches, LEN(batches), open_core, act, check, close_core);
}

static const struct scene refused_batches[] = {
    /* O-50 */
    {"keys before the one that the plug-in refuses stay added",
     "refuse 3; batch +2 : a b c d : ENOMEM; records 2; all b a"},
};

TEST(batch_ends_where_the_plug_in_refuses_a_key)
{
    script_run_all(refused_batches, LEN(refused_batches), open_lifo, act, check,
                   close_core);
}

/* ---- taking back -------------------------------------------------------- */

static const struct scene removals[] = {
    /* O-57 */
    {"a removed key is not handed out",
     "add a +2 NEW; add b +2 NEW; add c +2 NEW; add b @50 SCHEDULED; "
     "remove b OK; remove b ENOTFOUND; entries 0; removed 1; get a; get c; "
     "pass 100; get -"},
    {"the first and the last of a line can be removed",
     "add a NEW; add b NEW; add c NEW; get a; remove b OK; remove c OK; "
     "add d NEW; get d"},
    /* O-57 */
    {"a HELD key loses the adds that came meanwhile and no more",
     "add foo NEW; get foo; remove foo ESTATE; add foo +3 DIRTY; "
     "add foo @50 SCHEDULED; remove foo OK; states foo HELD; "
     "remove foo ESTATE; done foo; states foo -"},
    /* O-57 */
    {"the removal of a key that is only WAITING is not counted",
     "add foo @50 SCHEDULED; remove foo OK; removed 0; states foo -"},
    /* O-58 */
    {"cancel ends the deadline and nothing else",
     "cancel foo ENOTFOUND; add foo NEW; cancel foo ENOTFOUND; "
     "add foo @50 backoff SCHEDULED; cancel foo OK; states foo READY; run foo; "
     "add foo @50 SCHEDULED; cancel foo OK; records 0"},
};

TEST(remove_and_cancel_take_back_what_was_added)
{
    run_scenes(removals, LEN(removals), open_core);
}

static const struct scene stubborn[] = {
    /* O-57 */
    {"a plug-in without remove() keeps its READY keys",
     "add foo NEW; add foo @50 SCHEDULED; remove foo ENOTSUP; "
     "states foo READY WAITING; get foo; add foo DIRTY; remove foo OK"},
};

TEST(plug_in_without_remove_keeps_ready_keys)
{
    run_scenes(stubborn, LEN(stubborn), open_lifo);
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

WQ_TESTS(test(keys_leave_by_priority),
         test(policy_decides_what_an_add_does_to_a_waiting_key),
         test(full_queue_refuses_or_displaces),
         test(batch_adds_all_keys_or_none),
         test(batch_ends_where_the_plug_in_refuses_a_key),
         test(remove_and_cancel_take_back_what_was_added),
         test(plug_in_without_remove_keeps_ready_keys),
         core_test(items_are_lent_if_each_is_and_is_named_once));
