/* SPDX-License-Identifier: MIT */
/* test_rate_limiting.c: who owns the limiter of a queue, and what happens when a
 * retry fails or a callback calls the queue?
 *
 * What retries do is in scenarios/rate_limiting.scenario and
 * scenarios/retry_options.scenario; what limiters return is in test_limiter.c.
 */
#include "timed.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>

#include <wq/limiter.h>
#include <wq/metrics.h>

#include "asked.h"
#include "support/counting.h"
#include "support/probe.h"

/* ---- words --------------------------------------------------------------- */

static wq_limiter *
probe_limiter(struct probe *p)
{
    wq_limiter *limiter = wq_limiter_create(&probe_ops, p);

    assert_err(wq_limiter_error(limiter), WQ_OK);
    return limiter;
}

/* A queue whose limiter is `p`. */
static struct timed *
probed(struct probe *p, unsigned options)
{
    return timed_create(
        WQ_CONFIG(.limiter = probe_limiter(p), .retry = options));
}

/* A queue that backs off 1, 2, 4, ... ms. */
static struct timed *
doubling(unsigned options)
{
    return timed_create(
        WQ_CONFIG(.limiter = wq_limiter_exponential(MS, S), .retry = options));
}

static void
retry(struct timed *t, const char *key)
{
    assert_err(wq_add_rate_limited(t->q, wq_str(key)), WQ_OK);
}

static unsigned
requeues(struct timed *t, const char *key)
{
    return wq_num_requeues(t->q, wq_str(key));
}

/* Take `key` and report that it failed. It is still held. */
static wq_item *
take_and_fail(struct timed *t, const char *key)
{
    add(t->q, key);
    wq_item *item = take_key(t->q, key);
    retry(t, key);
    return item;
}

/* `key` is in a backoff that a worker asked for, and nothing else. */
static void
let_fail(struct timed *t, const char *key)
{
    finish(t->q, take_and_fail(t, key));
}

/* ---- as client-go -------------------------------------------------------- */

/* L-23 */
TEST(limiter_gets_the_clock_of_the_queue)
{
    struct probe  p = {.delay_ns = MS};
    struct timed *t = probed(&p, 0);

    assert_ptr_equal(p.clock, t->clock);
    timed_destroy(t);
}

/* R-02 O-14 */
TEST(bad_arguments_do_not_reach_the_limiter)
{
    struct probe  p = {.delay_ns = MS};
    struct timed *t = probed(&p, 0);
    char         *bytes = calloc(1, WQ_KEY_MAX + 1);
    const wq_key  bad[] = {{NULL, 3}, {"", 0}, {bytes, WQ_KEY_MAX + 1}};

    assert_non_null(bytes);
    assert_err(wq_add_rate_limited(NULL, wq_str("foo")), WQ_EINVAL);
    assert_err(wq_forget(NULL, wq_str("foo")), WQ_EINVAL);
    assert_int_equal(wq_num_requeues(NULL, wq_str("foo")), 0);
    for (int i = 0; i < 3; i++) {
        const wq_err err = i < 2 ? WQ_EINVAL : WQ_ETOOLONG;
        assert_err(wq_add_rate_limited(t->q, bad[i]), err);
        assert_err(wq_forget(t->q, bad[i]), err);
        assert_int_equal(wq_num_requeues(t->q, bad[i]), 0);
    }

    assert_int_equal(p.whens + p.forgets + p.undos, 0);
    timed_destroy(t);
    free(bytes);
}

/* ---- when the add fails -------------------------------------------------- */

/* Retry a new key with each allocation refused in turn; the answer of the
 * limiter is `p`'s. */
static void
check_undo(struct probe *p)
{
    for (uint64_t nth = 1;; nth++) {
        struct counting mem;
        counting_init(&mem);
        wq_limiter   *limiter = probe_limiter(p);
        struct timed *t = timed_create(
            WQ_CONFIG(.limiter = limiter, .allocator = &mem.allocator));

        p->whens = p->undos = 0;
        counting_fail(&mem, nth, COUNTING_ONCE);
        const wq_err err = wq_add_rate_limited(t->q, wq_str("foo"));
        counting_heal(&mem);
        assert_err(err, err ? WQ_ENOMEM : WQ_OK);
        assert_int_equal(p->whens, 1);
        assert_int_equal(p->undos, err ? 1 : 0);
        timed_destroy(t);
        if (!err) {
            assert_true(nth > 1);
            return;
        }
    }
}

/* R-03 L-30 */
TEST(retry_without_memory_is_undone)
{
    struct probe p = {.delay_ns = MS};

    check_undo(&p);
    p.delay_ns = 0;
    check_undo(&p);
}

/* ---- a limiter of one's own ---------------------------------------------- */

static int64_t
just_a_second(void *self, wq_key key)
{
    (void)self;
    (void)key;
    return S;
}

/* L-26 */
TEST(limiter_needs_no_function_but_when)
{
    const wq_limiter_ops ops = {.size = sizeof ops, .when = just_a_second};
    struct timed        *t =
        timed_create(WQ_CONFIG(.limiter = wq_limiter_create(&ops, NULL)));

    retry(t, "foo");
    assert_int_equal(requeues(t, "foo"), 0);
    assert_err(wq_forget(t->q, wq_str("foo")), WQ_OK);
    assert_due_in(t, "foo", S);
    wq_shutdown(t->q);
    assert_err(wq_add_rate_limited(t->q, wq_str("foo")), WQ_ESHUTDOWN);
    timed_destroy(t);
}

/* L-26: it would never return if the lock were held. */
TEST(limiter_may_call_the_queue)
{
    for (unsigned options = 0; options < 8; options++) {
        struct probe  p = {.delay_ns = MS};
        struct timed *t = probed(&p, options);

        add(t->q, "foo");
        wq_item *item = take_key(t->q, "foo");
        p.calls = t->q;
        retry(t, "foo");
        assert_null(p.calls);
        finish(t->q, item);
        assert_due_in(t, "foo", MS);
        timed_destroy(t);
    }
}

/* L-24 */
TEST(queue_destroys_its_limiter_once)
{
    struct probe  p = {.delay_ns = MS};
    struct timed *t = probed(&p, 0);

    retry(t, "foo");
    assert_int_equal(p.destroys, 0);
    timed_destroy(t);

    assert_int_equal(p.destroys, 1);
}

/* ---- whose limiter ------------------------------------------------------- */

/* L-24 */
TEST(limiter_of_a_queue_is_refused_by_another)
{
    struct probe          p = {.delay_ns = MS};
    wq_limiter           *limiter = probe_limiter(&p);
    struct timed         *t = timed_create(WQ_CONFIG(.limiter = limiter));
    const wq_clock *const clock = p.clock;
    wq_queue             *second = NULL;

    assert_err(wq_create(WQ_CONFIG(.limiter = limiter), &second), WQ_EINVAL);
    assert_null(second);
    assert_ptr_equal(p.clock, clock);
    wq_limiter_destroy(limiter); /* the queue's: left alone */
    assert_int_equal(p.destroys, 0);
    retry(t, "foo");
    assert_due_in(t, "foo", MS);
    timed_destroy(t);
    assert_int_equal(p.destroys, 1);
}

/* L-24 */
TEST(limiter_that_is_part_of_another_is_refused)
{
    struct probe p = {.delay_ns = MS};
    wq_limiter  *part = probe_limiter(&p);
    wq_limiter  *whole = wq_limiter_with_max_wait(part, S);
    wq_queue    *q = NULL;

    assert_non_null(whole);
    assert_err(wq_create(WQ_CONFIG(.limiter = part), &q), WQ_EINVAL);
    assert_null(q);
    assert_int_equal(p.destroys, 0);
    wq_limiter_destroy(whole);
    assert_int_equal(p.destroys, 1);
}

/* L-24: each of them is refused for a reason that is not the limiter. */
TEST(create_that_fails_destroys_the_limiter)
{
    const wq_order     no_push = {.size = sizeof no_push};
    const wq_allocator no_free = {.size = sizeof no_free};
    const wq_metrics   no_size = {.size = 0};
    struct probe       p = {.delay_ns = MS};
    const wq_config    good = {.size = sizeof good};
    wq_config          bad[] = {good, good, good, good, good, good, good, good};
    int                n = 0;
    wq_queue          *q = NULL;

    bad[0].size = sizeof good - 1; /* wrong, and has a limiter */
    bad[1].order = &no_push;
    bad[2].allocator = &no_free;
    bad[3].waiting = (wq_waiting)9;
    bad[4].retry = 8;
    bad[5].overflow = (wq_overflow)9;
    bad[6].overflow = WQ_OVERFLOW_BLOCK;
    bad[7].metrics = &no_size;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        bad[i].limiter = probe_limiter(&p);
        assert_err(wq_create(&bad[i], &q), WQ_EINVAL);
        assert_int_equal(p.destroys, ++n);
    }
    assert_err(wq_create(WQ_CONFIG(.limiter = probe_limiter(&p)), NULL),
               WQ_EINVAL);
    assert_int_equal(p.destroys, ++n);
    assert_null(q);
}

/* L-24: the field is beyond the end of the config. */
TEST(config_too_short_for_a_limiter_has_none)
{
    struct probe p = {.delay_ns = MS};
    wq_limiter  *mine = probe_limiter(&p);
    wq_config config = {.size = offsetof(wq_config, limiter), .limiter = mine};
    wq_queue *q = NULL;

    assert_err(wq_create(&config, &q), WQ_OK);
    wq_destroy(q);
    config.waiting = (wq_waiting)9;
    assert_err(wq_create(&config, &q), WQ_EINVAL);
    config.size = 0;
    assert_err(wq_create(&config, &q), WQ_EINVAL);
    config.size = SIZE_MAX; /* memory that nobody filled in */
    assert_err(wq_create(&config, &q), WQ_EINVAL);
    assert_int_equal(p.destroys, 0);
    wq_limiter_destroy(mine);
    assert_int_equal(p.destroys, 1);
}

/* L-24: the first allocation of the queue's, the second, and so on. */
TEST(create_without_memory_destroys_the_limiter)
{
    struct counting mem;
    struct probe    p = {.delay_ns = MS};
    wq_queue       *q = NULL;
    wq_err          err = WQ_ENOMEM;
    int             n = 0;

    counting_init(&mem);
    while (err) {
        counting_fail(&mem, (size_t)n + 1, COUNTING_FROM_NOW);
        err = wq_create(WQ_CONFIG(.name = "test", .limiter = probe_limiter(&p),
                                  .allocator = &mem.allocator),
                        &q);
        if (!err)
            break;
        assert_err(err, WQ_ENOMEM);
        assert_null(q);
        assert_int_equal(p.destroys, ++n);
        assert_int_equal(mem.bytes, 0);
    }
    assert_true(n >= 2); /* the queue and its name */
    counting_heal(&mem);
    wq_destroy(q);
    assert_int_equal(p.destroys, n + 1);
    assert_int_equal(mem.bytes, 0);
}

/* L-31: it does not become the default one. */
TEST(create_with_a_failed_limiter_returns_its_error)
{
    struct counting mem;
    struct probe    p = {.delay_ns = MS};
    wq_queue       *q = NULL;

    assert_err(
        wq_create(WQ_CONFIG(.limiter = wq_limiter_exponential(-1, 1)), &q),
        WQ_EINVAL);
    counting_init(&mem);
    counting_fail(&mem, 1, COUNTING_ONCE);
    assert_err(
        wq_create(WQ_CONFIG(.limiter = wq_limiter_exponential_with(
                                WQ_EXPONENTIAL(.allocator = &mem.allocator))),
                  &q),
        WQ_ENOMEM);
    assert_err(
        wq_create(
            WQ_CONFIG(.limiter = wq_limiter_max_of(
                          2, (wq_limiter *[]){probe_limiter(&p),
                                              wq_limiter_bucket(NAN, 1)})),
            &q),
        WQ_EINVAL);
    assert_int_equal(p.destroys, 1);
    assert_null(q);
}

/* ---- WQ_RETRY_ONCE ------------------------------------------------------- */

/* O-16 L-30: what another thread did between our look and our add, this one
 * does from when(). */
TEST(ONCE_undoes_a_retry_that_lost_a_race)
{
    struct probe  p = {.delay_ns = MS};
    struct timed *t = probed(&p, WQ_RETRY_ONCE);

    p.calls = t->q;
    retry(t, "foo");

    assert_int_equal(p.whens, 2);
    assert_int_equal(p.undos, 1);
    assert_due_in(t, "foo", MS);
    assert_none_due(t);
    timed_destroy(t);
}

/* ---- several options ----------------------------------------------------- */

/* What happens to keys in each state when events come in as adds and as
 * retries: an example of each kind, for all eight sets of options. */
static void
check_options(unsigned options)
{
    const bool    once = options & WQ_RETRY_ONCE;
    const bool    only = options & WQ_RETRY_FAILURES_ONLY;
    const bool    respect = options & WQ_RETRY_RESPECT;
    struct timed *t = doubling(options);

    /* Of a key in backoff, an event as a retry. */
    let_fail(t, "retried");
    retry(t, "retried");
    assert_int_equal(requeues(t, "retried"), once || only ? 1 : 2);
    assert_int_equal(wq_len(t->q), 0);
    assert_due_in(t, "retried", MS);

    /* Of a key in backoff, an event as an add. */
    let_fail(t, "added");
    add(t->q, "added");
    assert_int_equal(wq_len(t->q), respect ? 0 : 1);
    assert_int_equal(requeues(t, "added"), 1);
    if (!respect)
        work_on(t->q, "added");
    assert_due_in(t, "added", MS);

    /* Of a key that nobody knows, an event as a retry. */
    retry(t, "new");
    assert_int_equal(requeues(t, "new"), only ? 0 : 1);
    assert_int_equal(wq_len(t->q), only ? 1 : 0);
    step(t, MS);
    work_on(t->q, "new");

    /* Of a held key that has failed, an event of each kind. */
    wq_item *held = take_and_fail(t, "held");
    retry(t, "held");
    assert_int_equal(requeues(t, "held"), once ? 1 : 2);
    add(t->q, "held");
    finish(t->q, held);
    assert_int_equal(wq_len(t->q), respect ? 0 : 1);
    if (!respect)
        work_on(t->q, "held");
    assert_due_in(t, "held", MS);

    step(t, HOUR);
    assert_none_due(t);
    timed_destroy(t);
}

/* O-16 */
TEST(each_option_acts_the_same_beside_others)
{
    for (unsigned options = 0; options < 8; options++)
        check_options(options);
}

/* O-16 O-02 */
TEST(unknown_options_are_refused)
{
    wq_queue *q = NULL;

    assert_err(wq_create(WQ_CONFIG(.retry = 8), &q), WQ_EINVAL);
    assert_err(wq_create(WQ_CONFIG(.retry = ~0U), &q), WQ_EINVAL);
    assert_null(q);
}

/* ---- giving up ----------------------------------------------------------- */

struct given_up {
    struct timed *t; /* to be called; NULL: no call */
    int           calls;
    unsigned      retries;
    char          key[16];
};

static void
note_given_up(void *ctx, wq_key key, unsigned retries, wq_err why)
{
    struct given_up *g = ctx;

    assert_err(why, WQ_EGIVENUP);

    g->calls++;
    g->retries = retries;
    (void)snprintf(g->key, sizeof g->key, "%.*s", (int)key.len,
                   (const char *)key.data);
    if (g->t) { /* it would never return if the lock were held */
        assert_int_equal(requeues(g->t, g->key), 0);
        assert_int_equal(wq_len(g->t->q), 0);
        retry(g->t, g->key);
        add(g->t->q, "somebody look at this");
    }
}

/* A queue that gives up after two retries, 1 and 2 ms. */
static struct timed *
giving_up(struct given_up *g, unsigned options)
{
    memset(g, 0, sizeof *g);
    return timed_create(WQ_CONFIG(.limiter = wq_limiter_exponential(MS, S),
                                  .retry = options, .max_retries = 2,
                                  .on_drop = note_given_up, .drop_ctx = g));
}

static void
assert_given_up(struct timed *t, const char *key)
{
    assert_err(wq_add_rate_limited(t->q, wq_str(key)), WQ_EGIVENUP);
}

/* Keys whose bytes a NUL does not follow: short ones, the first that needs
 * memory, the longest. */
static const size_t lengths[] = {1, 255, 256, WQ_KEY_MAX};
static char         letters[WQ_KEY_MAX + 1];

static wq_key
letters_of(size_t len)
{
    memset(letters, 'k', sizeof letters);
    return (wq_key){letters, len};
}

static void
note_terminated(void *ctx, wq_key key, unsigned retries, wq_err why)
{
    unsigned *calls = ctx;

    assert_int_equal(retries, 1);
    assert_err(why, WQ_EGIVENUP);
    assert_int_equal(strlen(key.data), key.len);
    (*calls)++;
}

/* A queue that gives up after one retry. */
static struct timed *
giving_up_at_once(struct counting *mem, unsigned *calls)
{
    counting_init(mem);
    return timed_create(WQ_CONFIG(.limiter = wq_limiter_exponential(MS, S),
                                  .allocator = &mem->allocator,
                                  .max_retries = 1, .on_drop = note_terminated,
                                  .drop_ctx = calls));
}

/* O-17 */
TEST(nul_follows_a_key_that_was_given_up)
{
    struct counting mem;
    unsigned        calls = 0;
    struct timed   *t = giving_up_at_once(&mem, &calls);

    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        const wq_key key = letters_of(lengths[i]);
        assert_err(wq_add_rate_limited(t->q, key), WQ_OK);
        assert_err(wq_add_rate_limited(t->q, key), WQ_EGIVENUP);
        assert_int_equal(calls, i + 1);
    }
    timed_destroy(t);
    assert_int_equal(mem.bytes, 0);
}

/* O-17 O-50: and the limiter has counted none. */
TEST(key_is_not_given_up_without_memory_for_the_callback)
{
    struct counting mem;
    unsigned        calls = 0;
    struct timed   *t = giving_up_at_once(&mem, &calls);
    const wq_key    keys[] = {wq_str("foo"), letters_of(WQ_KEY_MAX)};

    assert_err(wq_add_rate_limited(t->q, keys[1]), WQ_OK);
    counting_fail(&mem, 1, COUNTING_FROM_NOW);
    assert_err(wq_add_with(t->q, WQ_ADD(.rate_limited = true), keys, 2),
               WQ_ENOMEM);
    counting_heal(&mem);
    assert_int_equal(calls, 0);
    assert_int_equal(wq_num_requeues(t->q, keys[0]), 0);
    assert_int_equal(wq_num_requeues(t->q, keys[1]), 1);
    assert_int_equal(counts_of(t->q).drops, 0);

    assert_err(wq_add_rate_limited(t->q, keys[1]), WQ_EGIVENUP);
    assert_int_equal(calls, 1);
    assert_int_equal(counts_of(t->q).drops, 1);
    timed_destroy(t);
}

/* O-17 */
TEST(callback_of_a_given_up_key_may_call_the_queue)
{
    for (unsigned options = 0; options < 8; options += 4) {
        struct given_up g;
        struct timed   *t = giving_up(&g, options);

        retry(t, "foo");
        assert_due_in(t, "foo", MS);
        retry(t, "foo");
        assert_due_in(t, "foo", 2 * MS);
        g.t = t;
        assert_given_up(t, "foo");
        g.t = NULL;

        work_on(t->q, "somebody look at this");
        assert_due_in(t, "foo", MS);
        timed_destroy(t);
    }
}

WQ_TESTS(test(limiter_gets_the_clock_of_the_queue),
         test(bad_arguments_do_not_reach_the_limiter),
         test(retry_without_memory_is_undone),
         test(limiter_needs_no_function_but_when),
         test(limiter_may_call_the_queue),
         test(queue_destroys_its_limiter_once),
         test(limiter_of_a_queue_is_refused_by_another),
         test(limiter_that_is_part_of_another_is_refused),
         test(create_that_fails_destroys_the_limiter),
         test(config_too_short_for_a_limiter_has_none),
         test(create_without_memory_destroys_the_limiter),
         test(create_with_a_failed_limiter_returns_its_error),
         test(ONCE_undoes_a_retry_that_lost_a_race),
         test(each_option_acts_the_same_beside_others),
         test(unknown_options_are_refused),
         test(nul_follows_a_key_that_was_given_up),
         test(key_is_not_given_up_without_memory_for_the_callback),
         test(callback_of_a_given_up_key_may_call_the_queue));
