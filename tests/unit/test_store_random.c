/* SPDX-License-Identifier: MIT */
/* test_store_random.c: does the memory store keep its promises in any order of
 * calls and faults?
 *
 * Three engines add, get, finish, renew, die and come back at random, and their
 * calls fail at random. They follow the rules of shared/engine.h: after WQ_EIO
 * they reconcile before anything else. A fourth engine, whose calls do not
 * fail, looks at the key before and after each step:
 *
 *   I1  a key that the store knows is lost only by a finish or a remove
 *   I2  no engine gets a key while the hold of another one is certain
 *   I3  the fences of a key grow
 *   I4  a finish that is WQ_ELOST changes nothing
 *
 * The invariants of the store are checked after every step (store_fixture.h).
 */
#include "unit/store_fixture.h"

#include "unit/dice.h"
#include "unit/roll_add.h"

enum { ENGINES = 3, KEYS = 9, STEPS = 6000, HOLDS = 32 };

/* An engine, and what a shell would know. */
struct player {
    struct wq__engine *e;
    struct got         held[HOLDS];
    size_t             n;
    int64_t            certain_ns;  /* its holds are certain until then */
    int64_t            possible_ns; /* its session may live until then */
    bool               unclear;     /* a reply was lost: reconcile */
    bool               was_ended;   /* the test has ended its session */
};

static struct {
    struct dice   dice;
    struct player players[ENGINES];
    uint64_t      fences[KEYS]; /* the last of each key */
    unsigned      faults, losses, dead;
} m;

static size_t
roll(size_t sides)
{
    return dice_roll(&m.dice, sides);
}

static const char *
key_name(size_t i)
{
    static const char *const names[KEYS] = {"k0", "k1", "k2", "k3", "k4",
                                            "k5", "k6", "k7", "k8"};
    return names[i];
}

static size_t
key_number(const char *key)
{
    return (size_t)(key[1] - '0');
}

static int64_t
now(void)
{
    return wq_clock_now(f.clock);
}

/* ---- players ------------------------------------------------------------- */

static void
enter(struct player *p)
{
    *p = (struct player){.certain_ns = now() + LEASE,
                         .possible_ns = now() + LEASE};
    f.terms.max_expiries = roll(2) ? 3 : 0;
    f.terms.max_retries = roll(2) ? 4 : 0;
    f.terms.retry = (unsigned)roll(4);
    p->e = open_engine(LEASE);
}

static void
lose_all(struct player *p, int64_t since)
{
    m.losses += p->n > 0;
    p->n = 0;
    p->was_ended = false;
    p->certain_ns = p->possible_ns = since + LEASE;
}

/* Faults of the next call of a player. */
static void
plan_fault(struct player *p)
{
    const struct store_plan plan = {
        .fault = (enum store_fault)roll(STORE_JUMP + 1),
        .nth = 1,
        .jump_ns = (int64_t)roll(LEASE),
        .engine = p->e,
    };

    if (roll(5))
        return;
    memory_store_plan(f.store, plan);
    m.faults++;
    p->was_ended |= plan.fault == STORE_END_SESSION;
}

/* Reconcile until it works. */
static void
reconcile_player(struct player *p)
{
    struct wq__known known[HOLDS];
    bool             lost = false;
    int64_t          since;

    for (size_t i = 0; i < p->n; i++)
        known[i] = (struct wq__known){wq_str(p->held[i].key), p->held[i].fence};
    do {
        plan_fault(p);
        since = now();
    } while (p->e->ops->reconcile(p->e, known, p->n, &lost));
    expect_sound();
    if (lost)
        lose_all(p, since);
    p->unclear = false;
}

/* Run one operation. False: there was no answer. */
static bool
play(struct player *p, struct wq__op *op)
{
    const int64_t since = now();

    assert_false(p->unclear);
    plan_fault(p);
    const wq_err err = run(p->e, op);
    p->unclear = err == WQ_EIO;
    if (err) {
        assert_true(err == WQ_EIO || err == WQ_EAWAY);
        return false;
    }
    if (f.pulse.session_lost)
        lose_all(p, since);
    return true;
}

static bool
is_certain(const struct player *p)
{
    return !p->was_ended && now() < p->certain_ns;
}

/* ---- what can be seen ---------------------------------------------------- */

static wq_key_info
observe(size_t key)
{
    const wq_key_info info = look(f.a, key_name(key));

    if (info.fence) {
        assert_in_range(info.fence, m.fences[key], UINT64_MAX); /* I3 */
        m.fences[key] = info.fence;
    }
    m.dead += info.states == WQ_STATE_DEAD;
    return info;
}

/* ---- steps --------------------------------------------------------------- */

static void
step_add(struct player *p)
{
    wq_add_options how = roll_add(&m.dice, 50);
    const size_t   i = roll(KEYS);
    const wq_key   key = wq_str(key_name(i));
    wq_added       added = WQ_ADDED_NEW;
    struct wq__op  op = {
         .kind = WQ__OP_ADD,
         .as.add = {.how = &how, .keys = &key, .n = 1, .added = &added}};

    how.size = sizeof how;
    const unsigned before = observe(i).states;
    const bool     answered = play(p, &op);
    const unsigned after = observe(i).states;
    if (before)
        assert_int_not_equal(after, 0); /* I1 */
    if (!answered)
        return;
    if (op.err) {
        assert_int_equal(op.err, WQ_EGIVENUP);
        return;
    }
    assert_int_not_equal(after, 0); /* I1 */
    if (added == WQ_ADDED_DEAD)
        assert_int_equal(after, WQ_STATE_DEAD);
}

/* I2 I3 */
static void
check_got(const struct player *p, const struct got *got)
{
    const size_t key = key_number(got->key);

    assert_in_range(got->fence, m.fences[key] + 1, UINT64_MAX);
    m.fences[key] = got->fence;
    for (const struct player *o = m.players; o < m.players + ENGINES; o++)
        for (size_t i = 0; o != p && i < o->n; i++)
            if (!strcmp(o->held[i].key, got->key) && is_certain(o) &&
                !o->held[i].tried)
                fail_msg("WQ_SEED=%llu: two engines hold %s",
                         (unsigned long long)m.dice.seed, got->key);
}

static void
step_get(struct player *p)
{
    struct wq__op *op = GET(1 + roll(2));

    if (p->n + 2 > HOLDS)
        return;
    f.n_got = 0;
    f.refuse = roll(10) ? 0 : 1;
    const int64_t before_ns = now();
    const bool    answered = play(p, op);
    f.refuse = 0;
    if (!answered) {
        assert_int_equal(f.n_got, 0);
        return;
    }
    assert_int_equal(op->as.get.n, f.n_got);
    const int64_t jumped = now() - before_ns;
    wq_clock_fake_step(f.clock, -jumped); /* when the store handed them out */
    for (size_t i = 0; i < f.n_got; i++) {
        check_got(p, &f.got[i]);
        p->held[p->n++] = f.got[i];
    }
    wq_clock_fake_step(f.clock, jumped);
}

static bool
leaves_key_alone(wq_outcome outcome)
{
    return outcome == WQ_RESULT_DONE || outcome == WQ_RESULT_DROP;
}

/* What a finish that was answered must leave of the key. The clock may have
 * jumped, so that a deadline has passed since. */
static void
check_finish(const struct wq__op *op, const wq_key_info *before,
             const wq_key_info *after)
{
    const wq_outcome outcome = op->as.finish.result.outcome;
    const unsigned   wanted = WQ_STATE_DIRTY | WQ_STATE_WAITING;

    if (op->err == WQ_EGIVENUP || outcome == WQ_RESULT_BURY)
        assert_int_equal(after->states, WQ_STATE_DEAD);
    else if (!leaves_key_alone(outcome) || before->states & wanted)
        assert_int_not_equal(after->states, 0); /* I1 */
    else
        assert_int_equal(after->states, 0);
    assert_int_equal(after->states & WQ_STATE_HELD, 0);
}

static void
step_finish(struct player *p)
{
    if (!p->n)
        return;
    const size_t     which = roll(p->n);
    const struct got got = p->held[which];
    const size_t     key = key_number(got.key);
    const wq_result  result = {
         .outcome = (wq_outcome)roll(roll(5) ? 5 : 6),
         .after_ns = (int64_t)roll(30),
         .prioritized = roll(2),
         .priority = (int)roll(4),
    };
    struct wq__op op = finish_op(&got, result);
    do /* so that only the finish happens between the looks */
        look_around(f.a);
    while (f.pulse.next_ns <= now());
    const wq_key_info before = observe(key);
    const int64_t     before_ns = now();
    const bool        answered = play(p, &op);
    const bool        lost = answered && f.pulse.session_lost;
    const bool        jumped = now() != before_ns;
    const wq_key_info after = observe(key);

    if (!answered) {
        p->held[which].tried = true;
        return;
    }
    if (op.err == WQ_ELOST) {
        if (!jumped && !lost)
            expect_same(&before, &after); /* I4 */
        if (before.states)
            assert_int_not_equal(after.states, 0);
        assert_false(is_certain(p) && p->n > which &&
                     p->held[which].fence == got.fence && !got.tried);
    } else {
        assert_true(op.err == WQ_OK || op.err == WQ_EGIVENUP);
        assert_int_equal(got.fence, before.fence);
        check_finish(&op, &before, &after);
    }
    if (which < p->n && p->held[which].fence == got.fence)
        p->held[which] = p->held[--p->n];
}

static void
step_one(struct player *p)
{
    const enum wq__op_kind kinds[] = {WQ__OP_REMOVE, WQ__OP_CANCEL,
                                      WQ__OP_FORGET, WQ__OP_REVIVE,
                                      WQ__OP_REVIVE, WQ__OP_REVIVE};
    const size_t           key = roll(KEYS);
    struct wq__op          op = {.kind = kinds[roll(6)],
                                 .as.one.key = wq_str(key_name(key))};

    const unsigned before = observe(key).states;
    (void)play(p, &op);
    const unsigned after = observe(key).states;
    if (before && op.kind != WQ__OP_REMOVE && op.kind != WQ__OP_CANCEL)
        assert_int_not_equal(after, 0);
}

static void
step_renew(struct player *p)
{
    const int64_t since = now();

    plan_fault(p);
    const wq_err err = renew(p->e);
    if (err == WQ_OK) { /* never revived */
        assert_in_range(since, 0, p->possible_ns - 1);
        assert_false(p->was_ended);
        p->certain_ns = since + LEASE;
    }
    if (err == WQ_OK || err == WQ_EIO)
        p->possible_ns = since + LEASE;
}

static void
step_leave(struct player *p)
{
    p->e->ops->close(p->e, false);
    p->e = NULL;
    p->n = 0;
    expect_sound();
    enter(p);
}

static void
step(void)
{
    struct player *p = &m.players[roll(ENGINES)];
    const size_t   what = roll(100);

    if (p->unclear && (what < 78 || roll(2)))
        reconcile_player(p);
    if (what < 25)
        step_add(p);
    else if (what < 50)
        step_get(p);
    else if (what < 72)
        step_finish(p);
    else if (what < 78)
        step_one(p);
    else if (what < 90)
        step_renew(p);
    else if (what < 91)
        step_leave(p);
    else
        pass((int64_t)roll(40));
    expect_sound();
}

/* All players leave: every key can be got, and nothing is left but DEAD keys. */
static void
drain(void)
{
    memory_store_heal(f.store);
    for (size_t i = 0; i < ENGINES; i++)
        close_engine(&m.players[i].e);
    for (int rounds = 0; rounds < 100; rounds++) {
        struct wq__op *op = GET(KEYS);

        pass(WQ_SECONDS(1));
        f.n_got = 0;
        assert_int_equal(run_one(f.a, op), WQ_OK);
        for (size_t i = 0; i < f.n_got; i++)
            assert_int_equal(finish(f.a, f.got[i], wq_result_done()), WQ_OK);
    }
    const wq_stats s = stats(f.a);
    assert_int_equal(s.held, 0);
    assert_int_equal(s.known, s.dead);
}

static int
open_observer(void **state)
{
    make_store(state);
    f.terms.retry = WQ_RETRY_RESPECT & (dice_env_seed(1) % 2 ? ~0U : 0U);
    f.terms.max_expiries = 3;
    f.a = open_engine(0);
    return 0;
}

TEST(random_calls_and_faults_break_no_promise)
{
    memset(&m, 0, sizeof m);
    m.dice = dice_seeded("calls of three engines");
    for (size_t i = 0; i < ENGINES; i++)
        enter(&m.players[i]);
    for (int i = 0; i < STEPS; i++) {
        if (i % 1000 == 0)
            memory_store_give_back_at_most(f.store, roll(3));
        step();
    }
    printf("%u faults, %u losses, %u times DEAD\n", m.faults, m.losses, m.dead);
    assert_in_range(m.faults, 100, STEPS);
    assert_in_range(m.losses, 10, STEPS);
    assert_in_range(m.dead, 10, STEPS);
    drain();
}

WQ_TESTS(test_with(random_calls_and_faults_break_no_promise, open_observer,
                   close_all));
