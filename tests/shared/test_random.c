/* SPDX-License-Identifier: MIT */
/* test_random.c: do handles keep their promises in any order of calls and
 * faults?
 *
 * Three handles add, get, finish, renew, leave and come back at random. Their
 * calls fail, their sessions end and the clock jumps at random. The test knows
 * what each call returned, and no more; a fourth handle, whose calls do not
 * fail, looks at every key after every step:
 *
 *   I1   a key that needs work is known: an add, a retry or a revival of it was
 *        acknowledged, or it was handed out and its finish was not called
 *   I2   no two loans of a key are certain at a time
 *   I3   the fences of a key grow
 *   I4   a finish that is WQ_ELOST changes nothing, and a loan that was lost
 *        stays so
 *   I5   no key is handed out more often than there were reasons to
 *   I7   a HELD key is on loan to a handle that knows it, or the handle has had
 *        no answer since
 *   I9   the invariants of the store
 *   I10  a DEAD key is listed, and handed out only after a revival
 *
 * and every loss is reported once. WQ_SEED sets the first seed.
 */
#include "shared/fixture.h"

#include "unit/dice.h"
#include "unit/roll_add.h"

enum { KEYS = 9, SEEDS = 40, STEPS = 2500, LOANS = 8 };

struct loan {
    wq_item *item;
    uint64_t fence;
    size_t   key;
    bool     tried;    /* a finish of it was not answered */
    unsigned reported; /* to on_lost */
};

struct player {
    wq_queue   *q;
    int         handle;
    struct loan loans[LOANS];
    size_t      n;
    bool        unclear;   /* the store may hold keys for it that it does not
                              know of: it had no answer since */
    bool        was_ended; /* the test has ended its session since the last
                              answer */
    uint64_t    losses;    /* reported */
};

struct known {
    wq_key_info info;
    uint64_t    fence;     /* of its last hand-out that is known */
    bool        owed;      /* it needs work */
    bool        open;      /* its last hand-out has not ended */
    uint64_t    gets, due; /* I5: hand-outs, and reasons for them */
};

static struct {
    struct dice   dice;
    wq_queue     *observer;
    struct player players[HANDLES];
    struct known  keys[KEYS];
    const char   *broken; /* found by a callback */
    bool          jumps;  /* the clock may have jumped in this step */
    unsigned      eio, eaway, elost, dead, got;
} m;

static size_t
roll(size_t sides)
{
    return dice_roll(&m.dice, sides);
}

static wq_key
name(size_t i)
{
    static const char names[] = "k0\0k1\0k2\0k3\0k4\0k5\0k6\0k7\0k8";

    return wq_str(names + 3 * i);
}

static size_t
number(wq_key key)
{
    return (size_t)(((const char *)key.data)[1] - '0');
}

#define CHECK(ok, ...)                                                         \
    do {                                                                       \
        if (!(ok)) {                                                           \
            fprintf(stderr, __VA_ARGS__);                                      \
            fail_msg("WQ_SEED=%llu", (unsigned long long)m.dice.seed);         \
        }                                                                      \
    } while (0)

/* ---- losses -------------------------------------------------------------- */

static void
hear_loss(void *ctx, wq_key key, uint64_t fence)
{
    struct player *p = ctx;

    p->losses++;
    p->unclear = true; /* until the store has answered */
    for (size_t i = 0; i < p->n; i++)
        if (p->loans[i].fence == fence && p->loans[i].key == number(key)) {
            if (p->loans[i].reported++)
                m.broken = "a loss was reported twice";
            return;
        }
    m.broken = "a loss was reported that is no loan";
}

/* ---- players ------------------------------------------------------------- */

static void
enter(struct player *p, int handle)
{
    const struct shared_queue_options options = {
        .lease_ns = LEASE, .manual_renew = true, .max_expiries = 3};
    wq_config config = {
        .size = sizeof config,
        .clock = f.clock,
        .limiter = wq_limiter_exponential(10, 1000),
        .max_retries = roll(2) ? 4 : 0,
        .retry = (unsigned)roll(4),
        .on_lost = hear_loss,
        .lost_ctx = p,
    };

    *p = (struct player){.handle = handle};
    assert_err(shared_queue_join(f.store, &options, &config, &f.engines[handle],
                                 &p->q),
               WQ_OK);
}

/* The faults of the next call. */
static void
plan(struct player *p)
{
    for (size_t i = roll(4) ? 0 : 1 + roll(2); i > 0; i--) {
        const struct store_plan one = {
            .fault = (enum store_fault)roll(STORE_JUMP + 1),
            .nth = 1 + (unsigned)roll(2),
            .jump_ns = (int64_t)roll(LEASE),
            .engine = f.engines[p->handle],
        };
        memory_store_plan(f.store, one);
        p->was_ended |= one.fault == STORE_END_SESSION;
        m.jumps |= one.fault == STORE_JUMP;
    }
}

/* The call of a verb has returned. */
static void
settle(struct player *p, wq_err err, unsigned calls_before)
{
    const bool called = memory_store_calls(f.store) != calls_before;

    memory_store_heal(f.store);
    m.eio += err == WQ_EIO;
    m.eaway += err == WQ_EAWAY;
    m.elost += err == WQ_ELOST;
    if (err == WQ_EIO)
        p->unclear = true;
    else if (err != WQ_EAWAY && called)
        p->unclear = p->was_ended = false;
    else if (err == WQ_ELOST)
        p->unclear = true;
    if (m.broken)
        fail_msg("WQ_SEED=%llu: %s", (unsigned long long)m.dice.seed, m.broken);
}

/* Is it certain? The loan may be lost by the question. */
static bool
is_certain(struct player *p, const struct loan *loan)
{
    const bool certain = wq_hold_left(p->q, loan->item) > 0;

    if (!certain)
        p->unclear = true;
    CHECK(!certain || !loan->reported, "a lost loan is certain\n");
    return certain && !p->was_ended && !loan->tried;
}

/* I2 */
static void
check_holders(size_t key)
{
    size_t certain = 0;

    for (struct player *p = m.players; p < m.players + HANDLES; p++)
        for (size_t i = 0; i < p->n; i++)
            certain += p->loans[i].key == key && is_certain(p, &p->loans[i]);
    CHECK(certain <= 1, "I2: %zu certain holders of k%zu\n", certain, key);
}

static void
note_get(struct player *p, wq_item *item)
{
    const size_t  k = number(item->key);
    struct known *key = &m.keys[k];

    CHECK(item->fence > key->fence, "I3: the fence of k%zu went back\n", k);
    CHECK(!(key->info.states & WQ_STATE_DEAD), "I10: k%zu was DEAD\n", k);
    key->fence = item->fence;
    key->due += key->open; /* the hold before was lost */
    key->owed = false;
    key->open = true;
    key->gets++;
    CHECK(key->gets <= key->due, "I5: k%zu: %llu hand-outs, %llu reasons\n", k,
          (unsigned long long)key->gets, (unsigned long long)key->due);
    p->loans[p->n++] =
        (struct loan){.item = item, .fence = item->fence, .key = k};
    m.got++;
    check_holders(k);
}

/* ---- what can be seen ---------------------------------------------------- */

static bool
is_known_loan(size_t key, uint64_t fence)
{
    for (const struct player *p = m.players; p < m.players + HANDLES; p++) {
        if (p->unclear || p->was_ended)
            return true;
        for (size_t i = 0; i < p->n; i++)
            if (p->loans[i].key == key && p->loans[i].fence == fence)
                return true;
    }
    return false;
}

static bool
is_dead_key(void *ctx, wq_key key, const wq_key_info *info)
{
    size_t *n = ctx;

    CHECK(info->states == WQ_STATE_DEAD &&
              m.keys[number(key)].info.states == WQ_STATE_DEAD,
          "I10: a key that is not DEAD is listed\n");
    ++*n;
    return true;
}

static void
observe(void)
{
    size_t dead = 0, listed = 0;

    (void)wq_len(
        m.observer); /* sessions that have ended give their keys back */
    for (size_t k = 0; k < KEYS; k++) {
        struct known *key = &m.keys[k];
        const bool    was_dead = key->info.states == WQ_STATE_DEAD;

        key->info = (wq_key_info){.size = sizeof key->info};
        assert_err(wq_read_key(m.observer, name(k), &key->info), WQ_OK);
        CHECK(key->info.states || (!key->owed && !key->open),
              "I1: k%zu is lost\n", k);
        CHECK(!(key->info.states & WQ_STATE_HELD) ||
                  is_known_loan(k, key->info.fence),
              "I7: nobody knows the hold of k%zu\n", k);
        dead += key->info.states == WQ_STATE_DEAD;
        m.dead += !was_dead && key->info.states == WQ_STATE_DEAD;
    }
    expect_sound(); /* I9 */
    if (roll(50))
        return;
    assert_err(wq_each(m.observer, WQ_STATE_DEAD, is_dead_key, &listed), WQ_OK);
    CHECK(listed >= dead, "I10: a DEAD key is not listed\n");
}

static bool
is_calm(struct player *p)
{
    bool calm = !p->unclear && !p->was_ended;

    for (size_t i = 0; i < p->n; i++)
        calm &= is_certain(p, &p->loans[i]);
    return calm && !p->unclear;
}

static void
expect_unchanged(size_t k)
{
    const wq_key_info before = m.keys[k].info;

    observe();
    CHECK(before.states == m.keys[k].info.states &&
              before.fence == m.keys[k].info.fence &&
              before.requeues == m.keys[k].info.requeues &&
              before.wait_ns == m.keys[k].info.wait_ns &&
              before.priority == m.keys[k].info.priority,
          "I4: k%zu: states %x, then %x\n", k, before.states,
          m.keys[k].info.states);
}

/* ---- steps --------------------------------------------------------------- */

static void
step_add(struct player *p)
{
    wq_add_options how = roll_add(&m.dice, 500);
    const size_t   k = roll(KEYS);
    const wq_key   key = name(k);
    const bool     calm = is_calm(p);

    observe();
    plan(p);
    how.size = sizeof how;
    m.keys[k].due++;
    const unsigned calls = memory_store_calls(f.store);
    const wq_err   err = wq_add_with(p->q, &how, &key, 1);
    settle(p, err, calls);
    CHECK(err == WQ_OK || err == WQ_EIO || err == WQ_EAWAY ||
              err == WQ_EGIVENUP,
          "add: %s\n", wq_err_name(err));
    m.keys[k].owed |= err == WQ_OK;
    if (err == WQ_EAWAY && calm && !p->was_ended && !m.jumps)
        expect_unchanged(k);
}

static void
step_get(struct player *p)
{
    wq_item     *items[2] = {NULL, NULL};
    size_t       n = 0;
    const size_t max = 1 + roll(2);

    if (p->n + max > LOANS)
        return;
    plan(p);
    const unsigned calls = memory_store_calls(f.store);
    wq_err         err = max == 1 && roll(2) ? wq_get_within(p->q, 0, &items[0])
                                             : wq_get_many(p->q, items, max, 0, &n);
    if (!err && !n)
        n = 1;
    for (size_t k = 0; err == WQ_EIO && k < KEYS; k++)
        m.keys[k].due++; /* it may be given back */
    for (size_t i = 0; i < n; i++)
        note_get(p, items[i]);
    settle(p, err, calls);
    CHECK(err == WQ_OK || err == WQ_EIO || err == WQ_EAWAY ||
              err == WQ_ETIMEDOUT,
          "get: %s\n", wq_err_name(err));
}

static wq_result
roll_result(void)
{
    return (wq_result){
        .outcome = (wq_outcome)roll(roll(9) ? 5 : 6),
        .after_ns = (int64_t)roll(300),
        .prioritized = roll(2),
        .priority = (int)roll(4),
    };
}

static bool
runs_again(wq_outcome outcome)
{
    return outcome == WQ_RESULT_RETRY || outcome == WQ_RESULT_AFTER ||
           outcome == WQ_RESULT_BACK;
}

/* A finish was called. True: the loan has ended. */
static bool
note_finish(struct player *p, struct loan *loan, wq_result result, wq_err err)
{
    struct known *key = &m.keys[loan->key];
    const bool    last = key->fence == loan->fence;

    key->due += runs_again(result.outcome);
    switch (err) {
    case WQ_EIO:
        loan->tried = true;
        key->due += last && key->open; /* it may be lost instead */
        key->open &= !last;
        return false;
    case WQ_EAWAY:
        return false;
    case WQ_ELOST:
        CHECK(loan->reported == 1, "a loss was reported %u times\n",
              loan->reported);
        return true;
    default:
        CHECK(err == WQ_OK || err == WQ_EGIVENUP, "finish: %s\n",
              wq_err_name(err));
        CHECK(!loan->reported, "I4: a lost loan was finished\n");
        CHECK(last || loan->tried, "I4: an old loan of k%zu was finished\n",
              loan->key);
    }
    if (last) {
        key->open = false;
        if (!loan->tried && !err && runs_again(result.outcome))
            key->owed = true;
    }
    (void)p;
    return true;
}

/* NULL: there is none. */
static struct loan *
roll_loan(struct player *p)
{
    return p->n ? &p->loans[roll(p->n)] : NULL;
}

static void
forget_loan(struct player *p, struct loan *loan)
{
    *loan = p->loans[--p->n];
}

static void
step_finish(struct player *p)
{
    struct loan *loan = roll_loan(p);

    if (!loan)
        return;
    const size_t    k = loan->key;
    const bool      was_lost = loan->reported;
    const bool      other = m.keys[k].fence != loan->fence;
    const wq_result result = roll_result();

    observe();
    plan(p);
    const unsigned calls = memory_store_calls(f.store);
    const wq_err   err = wq_finish(p->q, loan->item, result);
    CHECK(!was_lost || err == WQ_ELOST, "a lost loan: %s\n", wq_err_name(err));
    const bool ended = note_finish(p, loan, result, err);
    if (ended)
        forget_loan(p, loan);
    settle(p, err, calls);
    if (err == WQ_ELOST && other && !m.jumps &&
        memory_store_calls(f.store) == calls)
        expect_unchanged(k); /* no call: nothing at all */
}

static void
step_finish_many(struct player *p)
{
    wq_item  *items[3];
    wq_result results[3];
    wq_err    errs[3];
    size_t    n = p->n < 3 ? p->n : 3;
    bool      unanswered = false;

    if (!n)
        return;
    for (size_t i = 0; i < n; i++) {
        items[i] = p->loans[i].item;
        results[i] = roll_result();
    }
    plan(p);
    const unsigned calls = memory_store_calls(f.store);
    const wq_err   err = wq_finish_many(p->q, items, results, errs, n);
    for (size_t i = n; i-- > 0;) {
        const bool ended = note_finish(p, &p->loans[i], results[i], errs[i]);
        CHECK(ended == !items[i], "finish_many: %s\n", wq_err_name(errs[i]));
        if (ended)
            forget_loan(p, &p->loans[i]);
        unanswered |= errs[i] == WQ_EIO || errs[i] == WQ_EAWAY;
    }
    const bool unclear = p->unclear, was_ended = p->was_ended;
    settle(p, err, calls);
    if (unanswered) { /* `err` is that of another item */
        p->unclear |= unclear || err != WQ_EAWAY;
        p->was_ended |= was_ended;
    }
}

static void
step_next(struct player *p)
{
    struct loan *loan = roll_loan(p);

    if (!loan)
        return;
    const wq_result result = roll_result();
    wq_item        *item = loan->item;

    plan(p);
    const unsigned calls = memory_store_calls(f.store);
    wq_err         err = wq_next_with(p->q, result, 0, &item);
    const bool     kept = item == loan->item && err;
    wq_err         finished = kept ? err : WQ_OK;
    if (!kept && loan->reported)
        finished = WQ_ELOST;
    else if (err == WQ_EGIVENUP)
        finished = err;
    if (kept && err != WQ_EIO && err != WQ_EAWAY)
        CHECK(false, "next: %s, and the item is on loan\n", wq_err_name(err));
    if (err == WQ_EIO)
        for (size_t k = 0; k < KEYS; k++)
            m.keys[k].due++;
    if (note_finish(p, loan, result, finished))
        forget_loan(p, loan);
    if (!err)
        note_get(p, item);
    settle(p, err, calls);
}

static void
step_one(struct player *p)
{
    const size_t k = roll(KEYS), what = roll(12);
    const wq_key key = name(k);

    plan(p);
    const unsigned calls = memory_store_calls(f.store);
    const wq_err   err = what == 0   ? wq_remove(p->q, key)
                         : what == 1 ? wq_cancel_after(p->q, key)
                         : what == 2 ? wq_forget(p->q, key)
                                     : wq_revive(p->q, key);
    settle(p, err, calls);
    if (what < 2 && (err == WQ_OK || err == WQ_EIO)) {
        wq_key_info now = {.size = sizeof now};
        assert_err(wq_read_key(m.observer, key, &now), WQ_OK);
        m.keys[k].owed = false;
        if (now.fence != m.keys[k].fence) /* it was lost, and READY again */
            m.keys[k].open = false;
    }
    if (what > 2 && (err == WQ_OK || err == WQ_EIO)) {
        m.keys[k].due++;
        m.keys[k].owed |= err == WQ_OK;
    }
}

static void
step_renew(struct player *p)
{
    plan(p);
    const wq_err err = wq_renew(p->q);
    memory_store_heal(f.store);
    CHECK(err == WQ_OK || err == WQ_EIO || err == WQ_EAWAY || err == WQ_ELOST,
          "renew: %s\n", wq_err_name(err));
    if (err == WQ_ELOST) {
        p->unclear = true;
        for (size_t i = 0; i < p->n; i++)
            CHECK(p->loans[i].reported == 1 &&
                      wq_hold_left(p->q, p->loans[i].item) == 0,
                  "renew: a hold is not lost\n");
    }
    if (m.broken)
        fail_msg("WQ_SEED=%llu: %s", (unsigned long long)m.dice.seed, m.broken);
}

/* Its keys are given back. */
static void
step_leave(struct player *p)
{
    wq_stats s = {.size = sizeof s};

    if (wq_read_stats(p->q, &s) == WQ_OK)
        CHECK(s.lost >= p->losses, "more losses than are counted\n");
    wq_destroy(p->q);
    enter(p, p->handle);
}

/* Of 100 steps; the time passes in the rest of them. */
static const struct {
    size_t below;
    void (*take)(struct player *p);
} steps[] = {
    {25, step_add},  {48, step_get}, {62, step_finish}, {67, step_finish_many},
    {75, step_next}, {84, step_one}, {93, step_renew},  {94, step_leave},
};

static void
step(void)
{
    struct player *p = &m.players[roll(HANDLES)];
    const size_t   what = roll(100);

    m.jumps = false;
    size_t i = 0;
    while (i < sizeof steps / sizeof *steps && what >= steps[i].below)
        i++;
    if (i < sizeof steps / sizeof *steps)
        steps[i].take(p);
    else
        pass((int64_t)roll(400));
    observe();
    if (roll(4) == 0)
        check_holders(roll(KEYS));
}

/* All players leave: every key can be got, and nothing is left but DEAD keys. */
static void
drain(void)
{
    memory_store_heal(f.store);
    for (size_t i = 0; i < HANDLES; i++)
        wq_destroy(m.players[i].q);
    for (int rounds = 0; rounds < 100; rounds++) {
        wq_item *item = NULL;

        pass(WQ_SECONDS(1));
        while (wq_get_within(m.observer, 0, &item) == WQ_OK)
            assert_err(wq_finish(m.observer, item, wq_result_done()), WQ_OK);
    }
    const wq_stats s = stats_of(m.observer);
    assert_int_equal(s.held, 0);
    assert_int_equal(s.known, s.dead);
}

static void
play(uint64_t seed)
{
    begin();
    m.dice = dice_from(seed);
    memset(m.keys, 0, sizeof m.keys);
    wq_config config = {.size = sizeof config,
                        .clock = f.clock,
                        .limiter = wq_limiter_exponential(10, 1000),
                        .retry = seed % 2 ? WQ_RETRY_RESPECT : 0};
    assert_err(shared_queue_join(
                   f.store, &(struct shared_queue_options){.max_expiries = 3},
                   &config, NULL, &m.observer),
               WQ_OK);
    for (int i = 0; i < HANDLES; i++)
        enter(&m.players[i], i);
    for (int i = 0; i < STEPS; i++)
        step();
    drain();
    expect_sound();
    wq_destroy(m.observer);
    memory_store_destroy(f.store);
    wq_clock_destroy(f.clock);
}

/* S-01 S-02 S-03 S-04 S-07 S-13 S-14 */
TEST(random_calls_and_faults_break_no_promise)
{
    const uint64_t first = dice_env_seed(1);

    memset(&m, 0, sizeof m);
    for (uint64_t seed = first; seed < first + SEEDS; seed++)
        play(seed);
    printf("%d steps, %u gets, %u EIO, %u EAWAY, %u ELOST, %u deaths\n",
           SEEDS * STEPS, m.got, m.eio, m.eaway, m.elost, m.dead);
    assert_in_range(m.got, SEEDS * STEPS / 50, SEEDS * STEPS);
    assert_in_range(m.eio, SEEDS * STEPS / 100, SEEDS * STEPS);
    assert_in_range(m.eaway, SEEDS * STEPS / 200, SEEDS * STEPS);
    assert_in_range(m.elost, SEEDS * STEPS / 200, SEEDS * STEPS);
    assert_in_range(m.dead, SEEDS * STEPS / 1000, SEEDS * STEPS);
}

WQ_TESTS(test(random_calls_and_faults_break_no_promise));
