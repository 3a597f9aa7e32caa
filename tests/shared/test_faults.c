/* SPDX-License-Identifier: MIT */
/* test_faults.c: what if a call does not reach the store, or its answer is lost?
 *
 * Each verb is called by handle a with one fault at its 1st, 2nd, ... call of
 * the engine, until there is no such call any more; then once more with a lost
 * answer at the first call and a second fault at each call that follows. The
 * verb is repeated until the store has answered. It must have had the effect of
 * one call without a fault, of which handle c keeps the record.
 */
#include "shared/fixture.h"

#include "shared/shared.h"

/* ---- verbs --------------------------------------------------------------- */

enum { KEYS = 3 };
static const char *const names[KEYS] = {"j", "k", "l"};

static wq_item *items[2]; /* on loan to the caller of a */

static void
nothing(void)
{
}

static void
add_k(void)
{
    add(f.a, "k");
}

static void
add_two(void)
{
    add(f.a, "k");
    add(f.a, "l");
}

static void
delay_k(void)
{
    assert_err(wq_add_after_str(f.a, "k", 1000), WQ_OK);
}

static void
hold_k(void)
{
    items[0] = hold(f.a, "k");
}

static void
hold_two(void)
{
    hold_k();
    items[1] = hold(f.a, "l");
}

static void
hold_dirty_k(void)
{
    hold_k();
    add(f.a, "k");
}

static void
hold_k_and_add_j(void)
{
    hold_k();
    add(f.a, "j");
}

static void
bury_k(void)
{
    hold_k();
    assert_err(wq_finish(f.a, items[0], wq_result_bury()), WQ_OK);
}

static void
fail_k(void)
{
    hold_k();
    assert_err(wq_finish(f.a, items[0], wq_result_retry()), WQ_OK);
}

static wq_err
do_add_after(void)
{
    return wq_add_after_str(f.a, "k", 500);
}

static wq_err
do_add_many(void)
{
    const wq_key   keys[] = {wq_str("j"), wq_str("k"), wq_str("l")};
    const wq_added untouched = (wq_added)77;
    wq_added       added[3] = {untouched, untouched, untouched};
    const wq_err   err =
        wq_add_with(f.a, WQ_ADD(.priority = 3, .results = added), keys, 3);

    for (int i = 0; i < 3; i++)
        assert_int_equal(added[i] != untouched, !err);
    return err;
}

static wq_err
do_get(void)
{
    wq_item     *item = NULL;
    const wq_err err = wq_get_within(f.a, 0, &item);

    assert_int_equal(item != NULL, !err);
    return err;
}

static wq_err
do_get_many(void)
{
    wq_item     *got[2] = {NULL, NULL};
    size_t       n = 0;
    const wq_err err = wq_get_many(f.a, got, 2, 0, &n);

    assert_int_equal(n, err ? 0 : 2);
    return err;
}

static wq_err
do_done(void)
{
    return wq_done(f.a, items[0]);
}

static wq_err
do_done_many(void)
{
    const wq_err err = wq_done_many(f.a, items, 2);

    assert_int_equal(items[0] == NULL, !err);
    assert_int_equal(items[1] == NULL, !err);
    return err;
}

static wq_err
do_finish_many(void)
{
    const wq_result results[] = {wq_result_retry(), wq_result_bury()};
    wq_err          errs[2] = {WQ_OK, WQ_OK};
    const wq_err    err = wq_finish_many(f.a, items, results, errs, 2);

    for (int i = 0; i < 2; i++) {
        assert_err(errs[i], err);
        assert_int_equal(items[i] == NULL, !err);
    }
    return err;
}

static void
expect_next(wq_err err, const wq_item *before)
{
    if (err && items[0])
        assert_ptr_equal(items[0], before); /* still on loan */
    else if (!err)
        assert_memory_equal(items[0]->key.data, "j", 2);
}

static wq_err
do_next(void)
{
    const wq_item *before = items[0];
    const wq_err   err = wq_next(f.a, 0, &items[0]);

    expect_next(err, before);
    return err;
}

static wq_err
do_next_with(void)
{
    const wq_item *before = items[0];
    const wq_err   err = wq_next_with(f.a, wq_result_retry(), 0, &items[0]);

    expect_next(err, before);
    return err;
}

static wq_err
do_stats(void)
{
    wq_stats     out = {.size = sizeof out, .ready = 77};
    const wq_err err = wq_read_stats(f.a, &out);

    assert_int_equal(out.ready, err ? 77 : 2);
    return err;
}

static wq_err
do_depths(void)
{
    wq_depth     out[4];
    size_t       n = 77;
    const wq_err err = wq_read_depths(f.a, out, 4, &n);

    assert_int_equal(n, err ? 77 : 1);
    return err;
}

static wq_err
do_read_key(void)
{
    wq_key_info  out = {.size = sizeof out, .states = 77};
    const wq_err err = wq_read_key(f.a, wq_str("k"), &out);

    assert_int_equal(out.states, err ? 77 : WQ_STATE_READY);
    return err;
}

static wq_err
do_each(void)
{
    return each_or_none(f.a, 2);
}

static wq_err
do_wait_idle(void)
{
    return wq_wait_idle(f.a, 0);
}

static wq_err
do_drain(void)
{
    return wq_shutdown_with_drain_within(f.a, 0);
}

struct verb {
    const char *name;
    void (*arrange)(void);
    /* One of three: a call; a call about "k"; the finish of items[0]. */
    wq_err (*act)(void);
    wq_err (*of_k)(wq_queue *q, const char *k);
    wq_result (*result)(void);
    wq_err again;  /* also right, if it is repeated */
    bool   counts; /* how often it is made is counted: a failure for each */
};

static wq_result
result_after(void)
{
    return wq_result_after(700);
}

static wq_err
act(const struct verb *v)
{
    if (v->result)
        return wq_finish(f.a, items[0], v->result());
    return v->of_k ? v->of_k(f.a, "k") : v->act();
}

static const struct verb verbs[] = {
    {"add", nothing, .of_k = wq_add_str},
    {"add of a HELD key", hold_k, .of_k = wq_add_str},
    {"add of a DEAD key", bury_k, .of_k = wq_add_str},
    {"add_after", nothing, .act = do_add_after},
    {"add_rate_limited", hold_k, .of_k = wq_add_rate_limited_str,
     .counts = true},
    {"add_with", add_k, .act = do_add_many},
    {"remove", add_k, .of_k = wq_remove_str, .again = WQ_ENOTFOUND},
    {"remove of a HELD key", hold_dirty_k, .of_k = wq_remove_str,
     .again = WQ_ESTATE},
    {"remove of a DEAD key", bury_k, .of_k = wq_remove_str,
     .again = WQ_ENOTFOUND},
    {"cancel_after", delay_k, .of_k = wq_cancel_after_str,
     .again = WQ_ENOTFOUND},
    {"forget", fail_k, .of_k = wq_forget_str},
    {"revive", bury_k, .of_k = wq_revive_str, .again = WQ_ENOTFOUND},
    {"get", add_k, .act = do_get},
    {"get_many", add_two, .act = do_get_many},
    {"done", hold_k, .act = do_done},
    {"done of a DIRTY key", hold_dirty_k, .act = do_done},
    {"done_key", hold_k, .of_k = wq_done_key_str},
    {"done_many", hold_two, .act = do_done_many},
    {"finish_many", hold_two, .act = do_finish_many},
    {"finish, done", hold_k, .result = wq_result_done},
    {"finish, retry", hold_k, .result = wq_result_retry},
    {"finish, after", hold_k, .result = result_after},
    {"finish, drop", hold_k, .result = wq_result_drop},
    {"finish, back", hold_k, .result = wq_result_back},
    {"finish, bury", hold_k, .result = wq_result_bury},
    {"finish of a DIRTY key, back", hold_dirty_k, .result = wq_result_back},
    {"finish of a DIRTY key, bury", hold_dirty_k, .result = wq_result_bury},
    {"next", hold_k_and_add_j, .act = do_next},
    {"next_with", hold_k_and_add_j, .act = do_next_with},
    {"stats", add_two, .act = do_stats},
    {"depths", add_two, .act = do_depths},
    {"read_key", add_two, .act = do_read_key},
    {"each", add_two, .act = do_each},
    {"wait_idle", nothing, .act = do_wait_idle},
    {"drain", nothing, .act = do_drain},
};

/* ---- what must hold ------------------------------------------------------ */

struct picture {
    wq_key_info keys[KEYS];
    wq_stats    stats;
    size_t      lent; /* loans of a */
};

static struct picture
draw(void)
{
    struct picture p;

    for (size_t i = 0; i < KEYS; i++)
        p.keys[i] = info_of(f.c, names[i]);
    p.stats = stats_of(f.c);
    p.lent = wq__shared_of(f.a)->holds.lent;
    return p;
}

/* `repeated`: fences and counts of failures may differ. */
static void
compare(const struct verb *v, const struct picture *x, const struct picture *y,
        bool repeated)
{
    for (size_t i = 0; i < KEYS; i++) {
        const wq_key_info *a = &x->keys[i], *b = &y->keys[i];
        if (a->states != b->states || a->priority != b->priority)
            fail_msg("%s: key %s: states %x, priority %d; not %x, %d", v->name,
                     names[i], a->states, a->priority, b->states, b->priority);
        if (!v->counts || !repeated) {
            assert_int_equal(a->requeues, b->requeues);
            assert_int_equal(a->wait_ns, b->wait_ns);
        }
        if (!repeated)
            expect_same(a, b);
    }
    assert_int_equal(x->stats.ready, y->stats.ready);
    assert_int_equal(x->stats.held, y->stats.held);
    assert_int_equal(x->stats.known, y->stats.known);
    assert_int_equal(x->lent, y->lent);
}

/* What one call without a fault does. */
static struct picture
draw_reference(const struct verb *v, const struct shared_queue_options *options)
{
    (void)open_with(*options, WQ_CONFIG(.ages = true));
    v->arrange();
    assert_err(act(v), WQ_OK);
    const struct picture p = draw();
    (void)close_all(NULL);
    return p;
}

static wq_err
error_of(enum store_fault fault)
{
    return fault == STORE_AWAY ? WQ_EAWAY : WQ_EIO;
}

/* Repeat the verb until the store has answered. */
static void
repeat(const struct verb *v, wq_err err)
{
    for (int i = 0; err == WQ_EIO || err == WQ_EAWAY; i++) {
        assert_in_range(i, 0, 8);
        err = act(v);
        expect_sound();
    }
    if (err != WQ_OK && err != v->again)
        fail_msg("%s: repeated: %s", v->name, wq_err_name(err));
}

/* One fault. False: the verb has made fewer than `nth` calls. */
static bool
try_fault(const struct verb *v, const struct shared_queue_options *options,
          enum store_fault fault, unsigned nth)
{
    const struct picture wanted = draw_reference(v, options);

    (void)open_with(*options, WQ_CONFIG(.ages = true));
    v->arrange();
    const struct picture before = draw();
    const unsigned       calls = memory_store_calls(f.store);
    plan_at(0, fault, nth, 0);
    const wq_err err = act(v);
    const bool   happened = memory_store_calls(f.store) - calls >= nth;
    expect_sound();
    if (happened && nth == 1)
        assert_err(err, error_of(fault));
    if (err == WQ_EAWAY) {
        const struct picture after = draw();
        compare(v, &after, &before, false);
    }
    memory_store_heal(f.store);
    repeat(v, err);
    const struct picture after = draw();
    compare(v, &after, &wanted, err != WQ_OK);
    assert_int_equal(count_lost(), 0);
    (void)close_all(NULL);
    return happened;
}

/* A lost answer at the first call, and a fault at a call after it. */
static bool
try_two_faults(const struct verb *v, const struct shared_queue_options *options,
               enum store_fault first, enum store_fault second, unsigned nth)
{
    const struct picture wanted = draw_reference(v, options);

    (void)open_with(*options, WQ_CONFIG(.ages = true));
    v->arrange();
    const unsigned calls = memory_store_calls(f.store);
    plan_at(0, first, 1, 0);
    plan_at(0, second, nth, 0);
    repeat(v, act(v));
    const bool happened = memory_store_calls(f.store) - calls >= nth;
    memory_store_heal(f.store);
    (void)wq_len(f.a); /* ends what is in doubt */
    const struct picture after = draw();
    compare(v, &after, &wanted, true);
    assert_int_equal(count_lost(), 0);
    (void)close_all(NULL);
    return happened;
}

static const enum store_fault faults[] = {STORE_AWAY, STORE_EIO_BEFORE,
                                          STORE_EIO_AFTER};

static void
sweep(const struct shared_queue_options *options)
{
    unsigned runs = 0;

    for (size_t v = 0; v < sizeof verbs / sizeof *verbs; v++)
        for (size_t i = 0; i < 3; i++) {
            for (unsigned nth = 1;
                 runs++, try_fault(&verbs[v], options, faults[i], nth); nth++)
                assert_in_range(nth, 1, 20);
            for (size_t k = 1; k < 3; k++)
                for (unsigned nth = 2;
                     runs++, try_two_faults(&verbs[v], options, faults[k],
                                            faults[i], nth);
                     nth++)
                    assert_in_range(nth, 1, 20);
        }
    printf("%u runs\n", runs);
}

/* S-02 S-04 */
TEST(every_verb_survives_every_fault)
{
    sweep(&(struct shared_queue_options){.lease_ns = 0});
}

/* S-02 S-04 */
TEST(every_verb_survives_every_fault_with_a_lease)
{
    sweep(&(struct shared_queue_options){.lease_ns = LEASE,
                                         .manual_renew = true});
}

/* ---- renewals ------------------------------------------------------------ */

/* S-02 S-03 */
TEST(renewal_survives_every_fault)
{
    for (size_t i = 0; i < 3; i++) {
        (void)open_leases(NULL);
        hold_k();
        pass(LEASE / 2);
        plan_at(0, faults[i], 1, 0);
        assert_err(wq_renew(f.a), error_of(faults[i]));
        assert_int_equal(wq_hold_left(f.a, items[0]), LEASE / 2);
        assert_err(wq_renew(f.a), WQ_OK);
        assert_int_equal(wq_hold_left(f.a, items[0]), LEASE);
        assert_err(wq_done(f.a, items[0]), WQ_OK);
        (void)close_all(NULL);
    }
}

/* ---- what nobody knows --------------------------------------------------- */

/* S-02: the key that was handed out without an answer is READY for others. */
TEST(key_of_a_lost_get_is_given_back)
{
    add(f.a, "k");
    plan_at(0, STORE_EIO_AFTER, 1, 0);
    assert_err(do_get(), WQ_EIO);
    work_on(f.b, "k");
}

/* S-02: at the latest by the next call that reaches the store. */
TEST(key_of_a_lost_get_is_given_back_by_the_next_call)
{
    add(f.a, "k");
    plan_at(0, STORE_EIO_AFTER, 1, 0);
    plan_at(0, STORE_AWAY, 2, 0);
    assert_err(do_get(), WQ_EIO);
    assert_int_equal(states(f.b, "k"), WQ_STATE_HELD);
    add(f.a, "other");
    assert_int_equal(states(f.b, "k"), WQ_STATE_READY);
    assert_int_equal(stats_of(f.b).held, 0);
}

/* S-02: ... and the holds that the handle knows of stay. */
TEST(lost_answer_gives_back_only_what_nobody_has)
{
    hold_k();
    add(f.a, "l");
    plan_at(0, STORE_EIO_AFTER, 1, 0);
    assert_err(do_get(), WQ_EIO);
    assert_int_equal(states(f.b, "k"), WQ_STATE_HELD);
    assert_int_equal(states(f.b, "l"), WQ_STATE_READY);
    assert_err(wq_done(f.a, items[0]), WQ_OK);
    assert_int_equal(stats_of(f.b).held, 0);
}

/* S-02: the next key of a chain, too. */
TEST(next_whose_answer_is_lost_gives_its_key_back)
{
    hold_k_and_add_j();
    plan_at(0, STORE_EIO_AFTER, 1, 0);
    assert_err(do_next(), WQ_EIO);
    assert_int_equal(states(f.b, "k"), 0); /* done */
    assert_int_equal(states(f.b, "j"), WQ_STATE_HELD);
    assert_int_equal(wq_len(f.a), 1);
    work_on(f.b, "j");
    assert_err(wq_done(f.a, items[0]), WQ_OK);
}

/* S-02 S-04: the old key was lost before, so that only the get is in doubt.
 * WQ_EAWAY would say that nothing was changed. */
TEST(next_after_a_loss_whose_answer_is_lost_is_in_doubt)
{
    hold_k();
    memory_store_end_session(f.engines[0]);
    assert_int_equal(wq_len(f.a), 1);
    assert_int_equal(count_lost(), 1);
    plan_at(0, STORE_EIO_AFTER, 1, 0);
    plan_at(0, STORE_AWAY, 2, 0);
    assert_err(wq_next(f.a, 0, &items[0]), WQ_EIO);
    assert_null(items[0]);
    assert_int_equal(states(f.b, "k"), WQ_STATE_HELD);
    assert_err(wq_next(f.a, 0, &items[0]), WQ_OK);
    assert_err(wq_done(f.a, items[0]), WQ_OK);
}

/* S-02: a sleeping get of the same handle looks for it. */
TEST(key_of_a_lost_get_goes_to_a_sleeping_get)
{
    wq_item       *item = NULL;
    struct worker *w = worker_get(f.a, &item);

    worker_await_blocked(w);
    plan_at(0, STORE_EIO_BEFORE, 1, STORE_RUN);
    assert_err(wq_forget_str(f.a, "k"), WQ_EIO);
    worker_await_blocked(w); /* it has looked, and sleeps again */
    add(f.a, "k");
    assert_err(worker_join(w), WQ_OK);
    assert_err(wq_done(f.a, item), WQ_OK);
}

/* ---- finishes in doubt --------------------------------------------------- */

/* S-02 S-04: the key was done, and another handle has it: no loss. */
TEST(finish_without_an_answer_is_not_repeated)
{
    hold_dirty_k();
    plan_at(0, STORE_EIO_AFTER, 1, 0);
    assert_err(do_done(), WQ_EIO);
    wq_item          *theirs = take_key(f.b, "k");
    const wq_key_info before = info_of(f.c, "k");
    assert_err(do_done(), WQ_OK);
    const wq_key_info after = info_of(f.c, "k");
    expect_same(&before, &after);
    assert_int_equal(count_lost(), 0);
    assert_err(wq_done(f.b, theirs), WQ_OK);
}

/* S-02: the session ended after the lost answer: nobody knows. */
TEST(finish_in_doubt_is_lost_with_its_session)
{
    const enum store_fault both[] = {STORE_EIO_BEFORE, STORE_EIO_AFTER};

    for (size_t i = 0; i < 2; i++) {
        hold_dirty_k();
        const uint64_t fence = items[0]->fence;
        plan_at(0, both[i], 1, 0);
        assert_err(do_done(), WQ_EIO);
        memory_store_end_session(f.engines[0]);
        assert_err(do_done(), WQ_ELOST);
        assert_int_equal(count_lost_of("k", fence), 1);
        work_on(f.b, "k");
    }
}

/* S-02: the worker that calls again must not end the hold of the worker that
 * has the key now. */
TEST(done_key_without_an_answer_ends_its_own_hold)
{
    hold_dirty_k();
    plan_at(0, STORE_EIO_AFTER, 1, 0);
    assert_err(wq_done_key_str(f.a, "k"), WQ_EIO);
    wq_item *second = take_key(f.a, "k");
    assert_err(wq_done_key_str(f.a, "k"), WQ_OK); /* of the first worker */
    assert_int_equal(states(f.c, "k"), WQ_STATE_HELD);
    assert_int_equal(wq_hold_left(f.a, second) == WQ_FOREVER, 1);
    assert_err(wq_done_key_str(f.a, "k"), WQ_OK); /* of the second one */
    assert_int_equal(states(f.c, "k"), 0);
    assert_err(wq_done_key_str(f.a, "k"), WQ_ESTATE);
}

static int
take_k_and_done_key(struct worker *self)
{
    wq_item *item;
    wq_err   err = wq_get(f.a, &item);

    (void)self;
    if (!err)
        err = wq_done_key_str(f.a, "k");
    return (int)err;
}

/* S-04: a thread that has lost the key does not end the hold of another one. */
TEST(done_key_ends_the_hold_of_its_thread)
{
    hold_k();
    memory_store_end_session(f.engines[0]);
    assert_int_equal(wq_len(f.a), 1);
    assert_err(worker_join(worker_start(take_k_and_done_key, NULL)), WQ_OK);
    assert_int_equal(states(f.c, "k"), 0);
    assert_err(wq_done_key_str(f.a, "k"), WQ_ELOST);
}

/* S-14: each item has its own error. */
TEST(finish_many_keeps_errors_apart)
{
    const wq_result results[] = {wq_result_done(), wq_result_done()};
    wq_err          errs[2];

    hold_two();
    wq_item *both[] = {items[0], items[1]};
    assert_err(wq_done(f.a, items[0]), WQ_OK);
    plan_at(0, STORE_EIO_BEFORE, 1, 0);
    assert_err(wq_finish_many(f.a, both, results, errs, 2), WQ_ESTATE);
    assert_err(errs[0], WQ_ESTATE);
    assert_err(errs[1], WQ_EIO);
    assert_null(both[0]);
    assert_ptr_equal(both[1], items[1]);
    assert_err(wq_done(f.a, both[1]), WQ_OK);
}

/* S-04 */
TEST(finish_many_keeps_losses_apart)
{
    wq_result results[12];
    wq_err    errs[12];
    wq_item  *many[12];
    size_t    n;

    for (int i = 0; i < 12; i++) {
        char key[] = {(char)('a' + i), '\0'};
        add(f.a, key);
        results[i] = wq_result_done();
    }
    assert_err(wq_get_many(f.a, many, 6, 0, &n), WQ_OK);
    memory_store_end_session(f.engines[0]);
    assert_int_equal(wq_len(f.a), 12);
    assert_err(wq_get_many(f.a, many + 6, 6, 0, &n), WQ_OK);
    assert_int_equal(n, 6);
    assert_err(wq_finish_many(f.a, many, results, errs, 12), WQ_ELOST);
    for (int i = 0; i < 12; i++) {
        assert_err(errs[i], i < 6 ? WQ_ELOST : WQ_OK);
        assert_null(many[i]);
    }
    assert_int_equal(count_lost(), 6);
    assert_int_equal(stats_of(f.b).ready, 6);
}

/* ---- away ---------------------------------------------------------------- */

/* S-02 S-04 */
TEST(store_that_is_away_changes_nothing)
{
    hold_k();
    memory_store_fail_always(f.store, STORE_AWAY);
    for (int i = 0; i < 3; i++) {
        assert_err(wq_add_str(f.a, "k"), WQ_EAWAY);
        assert_err(do_get(), WQ_EAWAY);
        assert_err(do_done(), WQ_EAWAY);
        assert_err(wq_finish(f.a, items[0], wq_result_retry()), WQ_EAWAY);
        assert_err(do_next(), WQ_EAWAY);
        assert_err(do_wait_idle(), WQ_ESTATE);
        assert_int_equal(wq_len(f.a), 0);
        assert_int_equal(wq_num_requeues_str(f.a, "k"), 0);
    }
    memory_store_heal(f.store);
    assert_int_equal(states(f.c, "k"), WQ_STATE_HELD);
    assert_err(do_done(), WQ_OK);
}

/* S-02: a reconcile whose answer is lost means that nothing of the call has
 * happened. */
TEST(call_after_a_failed_reconcile_has_not_happened)
{
    plan_at(0, STORE_EIO_BEFORE, 1, 0);
    assert_err(wq_forget_str(f.a, "k"), WQ_EIO);
    plan_at(0, STORE_EIO_AFTER, 1, STORE_RECONCILE);
    assert_err(wq_add_str(f.a, "k"), WQ_EAWAY);
    assert_int_equal(states(f.c, "k"), 0);
    assert_err(wq_add_str(f.a, "k"), WQ_OK);
}

WQ_TESTS(test(every_verb_survives_every_fault),
         test(every_verb_survives_every_fault_with_a_lease),
         test(renewal_survives_every_fault),
         with_handles(key_of_a_lost_get_is_given_back),
         with_handles(key_of_a_lost_get_is_given_back_by_the_next_call),
         with_handles(lost_answer_gives_back_only_what_nobody_has),
         with_handles(next_whose_answer_is_lost_gives_its_key_back),
         with_leases(next_after_a_loss_whose_answer_is_lost_is_in_doubt),
         with_handles(key_of_a_lost_get_goes_to_a_sleeping_get),
         with_handles(finish_without_an_answer_is_not_repeated),
         with_leases(finish_in_doubt_is_lost_with_its_session),
         with_handles(done_key_without_an_answer_ends_its_own_hold),
         with_leases(done_key_ends_the_hold_of_its_thread),
         with_handles(finish_many_keeps_errors_apart),
         with_leases(finish_many_keeps_losses_apart),
         with_handles(store_that_is_away_changes_nothing),
         with_handles(call_after_a_failed_reconcile_has_not_happened));
