/* SPDX-License-Identifier: MIT */
/* test_rate_limiting.c: when does a queue ask its limiter, and what does it do
 * with the answer?
 *
 * What limiters themselves say is in test_limiter.c. Here most of them are a
 * probe, which counts what it is asked.
 */
#include "timed.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>

#include <wq/limiter.h>
#include <wq/metrics.h>

#include "asked.h"
#include "support/counting.h"

/* ---- a limiter that counts what it is asked ------------------------------ */

struct probe {
    int64_t    delay_ns; /* what it answers */
    atomic_int whens, forgets, undos, destroys;
    wq_clock  *clock; /* what it was told */
    wq_queue  *q;     /* to be called from when(); NULL: no call */
};

static int64_t
probe_when(void *self, wq_key key)
{
    struct probe *p = self;
    wq_queue     *q = p->q;

    (void)key;
    atomic_fetch_add(&p->whens, 1);
    if (q) {
        p->q = NULL; /* once */
        (void)wq_len(q);
        (void)!wq_add_rate_limited(q, key);
    }
    return p->delay_ns;
}

static void
probe_forget(void *self, wq_key key)
{
    (void)key;
    atomic_fetch_add(&((struct probe *)self)->forgets, 1);
}

/* As those do that count: of one key, here. */
static unsigned
probe_num_requeues(void *self, wq_key key)
{
    struct probe *p = self;

    (void)key;
    return (unsigned)(atomic_load(&p->whens) - atomic_load(&p->undos));
}

static void
probe_destroy(void *self)
{
    atomic_fetch_add(&((struct probe *)self)->destroys, 1);
}

static void
probe_undo(void *self, wq_key key)
{
    (void)key;
    atomic_fetch_add(&((struct probe *)self)->undos, 1);
}

static void
probe_set_clock(void *self, wq_clock *clock)
{
    ((struct probe *)self)->clock = clock;
}

static const wq_limiter_ops probe_ops = {
    .size = sizeof probe_ops,
    .when = probe_when,
    .forget = probe_forget,
    .num_requeues = probe_num_requeues,
    .destroy = probe_destroy,
    .undo = probe_undo,
    .set_clock = probe_set_clock,
};

static wq_limiter *
probe_limiter(struct probe *p)
{
    wq_limiter *limiter = wq_limiter_create(&probe_ops, p);

    assert_err(wq_limiter_error(limiter), WQ_OK);
    return limiter;
}

/* ---- words --------------------------------------------------------------- */

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

/* */
TEST(retry_waits_as_long_as_the_limiter_says)
{
    struct timed *t = doubling(0);

    retry(t, "one");
    assert_due_in(t, "one", MS);
    retry(t, "one");
    assert_due_in(t, "one", 2 * MS);
    assert_int_equal(requeues(t, "one"), 2);
    retry(t, "two");
    assert_due_in(t, "two", MS);
    retry(t, "two");
    assert_due_in(t, "two", 2 * MS);
    assert_int_equal(requeues(t, "two"), 2);
    timed_destroy(t);
}

/* */
TEST(forgotten_key_begins_anew)
{
    struct timed *t = doubling(0);

    retry(t, "one");
    retry(t, "one");
    assert_due_in(t, "one", MS);
    assert_err(wq_forget(t->q, wq_str("one")), WQ_OK);
    assert_int_equal(requeues(t, "one"), 0);
    retry(t, "one");

    assert_due_in(t, "one", MS);
    timed_destroy(t);
}

/* R-01 L-12 */
TEST(queue_without_a_limiter_of_its_own_has_the_default_one)
{
    struct timed *t = *state;

    retry(t, "foo");
    assert_due_in(t, "foo", 5 * MS);
    retry(t, "foo");
    assert_due_in(t, "foo", 10 * MS);
    assert_int_equal(requeues(t, "foo"), 2);
}

/* L-12 L-23: a hundred at once, then ten a second on this clock. */
TEST(default_limiter_lives_by_the_queues_clock)
{
    struct timed *t = *state;

    for (uint64_t i = 0; i < 101; i++)
        assert_err(wq_add_rate_limited(t->q, wq_u64(&i)), WQ_OK);
    step(t, 100 * MS - 1);
    assert_int_equal(wq_len(t->q), 100);
    step(t, 1);

    assert_int_equal(wq_len(t->q), 101);
}

/* L-23 */
TEST(limiter_lives_by_the_queues_clock)
{
    struct timed *t =
        timed_create(WQ_CONFIG(.limiter = wq_limiter_bucket(1, 1)));

    retry(t, "first");
    work_on(t->q, "first");
    retry(t, "second");
    assert_due_in(t, "second", S);
    step(t, S);
    retry(t, "third");
    work_on(t->q, "third");
    timed_destroy(t);
}

/* L-23 */
TEST(limiter_is_told_the_queues_clock)
{
    struct probe  p = {.delay_ns = MS};
    struct timed *t = probed(&p, 0);

    assert_ptr_equal(p.clock, t->clock);
    timed_destroy(t);
}

/* */
TEST(forget_leaves_a_key_that_waits_alone)
{
    struct timed *t = doubling(0);

    retry(t, "foo");
    assert_err(wq_forget(t->q, wq_str("foo")), WQ_OK);

    assert_due_in(t, "foo", MS);
    timed_destroy(t);
}

/* */
TEST(forget_does_not_replace_done)
{
    struct timed *t = doubling(0);

    add(t->q, "foo");
    wq_item *item = take_key(t->q, "foo");
    assert_err(wq_forget(t->q, wq_str("foo")), WQ_OK);
    add(t->q, "foo");
    assert_none_due(t);
    finish(t->q, item);

    work_on(t->q, "foo");
    timed_destroy(t);
}

/* */
TEST(forget_of_a_key_nobody_knows_is_harmless)
{
    struct timed *t = *state;

    assert_err(wq_forget(t->q, wq_str("foo")), WQ_OK);
    assert_int_equal(requeues(t, "foo"), 0);
    assert_none_due(t);
}

/* */
TEST(forget_and_count_ask_nothing_of_the_limiter_but_that)
{
    struct probe  p = {.delay_ns = MS};
    struct timed *t = probed(&p, 0);

    assert_err(wq_forget(t->q, wq_str("foo")), WQ_OK);
    (void)requeues(t, "foo");

    assert_int_equal(p.forgets, 1);
    assert_int_equal(p.whens + p.undos, 0);
    timed_destroy(t);
}

/* done, get and add say nothing to the limiter. */
TEST(done_does_not_forget)
{
    struct timed *t = doubling(0);

    retry(t, "foo");
    assert_due_in(t, "foo", MS);
    add(t->q, "foo");
    work_on(t->q, "foo");

    assert_int_equal(requeues(t, "foo"), 1);
    timed_destroy(t);
}

/* */
TEST(limiter_counts_although_the_earlier_deadline_stays)
{
    struct timed *t = doubling(0);

    retry(t, "foo");
    retry(t, "foo");
    retry(t, "foo");

    assert_int_equal(requeues(t, "foo"), 3);
    assert_due_in(t, "foo", MS);
    step(t, HOUR);
    assert_none_due(t);
    timed_destroy(t);
}

/* R-03 D-11: as of every delay. */
TEST(ready_key_that_is_retried_runs_now_and_again_then)
{
    struct timed *t = doubling(0);

    add(t->q, "foo");
    retry(t, "foo");
    assert_int_equal(requeues(t, "foo"), 1);
    work_on(t->q, "foo");

    assert_due_in(t, "foo", MS);
    timed_destroy(t);
}

/* R-02 D-11 */
TEST(add_cuts_a_backoff_short_and_does_not_end_it)
{
    struct timed *t = doubling(0);

    let_fail(t, "foo");
    add(t->q, "foo");
    work_on(t->q, "foo");

    assert_due_in(t, "foo", MS);
    timed_destroy(t);
}

/* R-02 D-10 */
TEST(held_key_that_is_retried_comes_after_done_when_its_time_has_come)
{
    struct timed *t = doubling(0);

    wq_item *item = take_and_fail(t, "foo");
    step(t, MS);
    assert_none_due(t);
    finish(t->q, item);

    work_on(t->q, "foo");
    assert_none_due(t);
    timed_destroy(t);
}

/* a worker as in the manual. */
TEST(get_sleeps_until_a_backoff_ends)
{
    struct timed *t = doubling(0);

    let_fail(t, "foo");
    struct worker *w = get_in_time(t, WQ_FOREVER);
    await_sleepers(t, 1);
    step(t, MS);

    assert_err(worker_join(w), WQ_OK);
    assert_key(t->item, "foo");
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

/* a limiter of one's own need not know undo. */
TEST(limiter_is_not_asked_after_shutdown)
{
    struct probe  p = {.delay_ns = MS};
    struct timed *t = probed(&p, 0);

    wq_shutdown(t->q);

    assert_err(wq_add_rate_limited(t->q, wq_str("foo")), WQ_ESHUTDOWN);
    assert_int_equal(p.whens, 0);
    timed_destroy(t);
}

/* */
TEST(retry_after_shutdown_does_not_count)
{
    struct timed *t = doubling(0);

    wq_item *item = take_and_fail(t, "foo");
    wq_shutdown(t->q);
    assert_err(wq_add_rate_limited(t->q, item->key), WQ_ESHUTDOWN);

    assert_int_equal(requeues(t, "foo"), 1);
    finish(t->q, item);
    assert_none_ready(t->q, WQ_ESHUTDOWN);
    timed_destroy(t);
}

/* nor with any of the options, nor while keys are kept. */
TEST(retry_after_shutdown_is_refused_whatever_the_options)
{
    for (unsigned options = 0; options < 8; options++) {
        struct timed *t = timed_create(
            WQ_CONFIG(.limiter = wq_limiter_exponential(MS, S),
                      .retry = options, .waiting = WQ_WAITING_KEEP));

        let_fail(t, "waits");
        add(t->q, "held");
        wq_item *held = take_key(t->q, "held");
        wq_shutdown(t->q);

        assert_err(wq_add_rate_limited(t->q, wq_str("waits")), WQ_ESHUTDOWN);
        assert_err(wq_add_rate_limited(t->q, wq_str("held")), WQ_ESHUTDOWN);
        assert_err(wq_add_rate_limited(t->q, wq_str("new")), WQ_ESHUTDOWN);
        assert_int_equal(requeues(t, "waits"), 1);
        assert_int_equal(requeues(t, "held"), 0);
        assert_int_equal(requeues(t, "new"), 0);
        finish(t->q, held);
        assert_due_in(t, "waits", MS);
        assert_none_ready(t->q, WQ_ESHUTDOWN);
        timed_destroy(t);
    }
}

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
TEST(retry_that_finds_no_memory_is_taken_back)
{
    struct probe p = {.delay_ns = MS};

    check_undo(&p);
    p.delay_ns = 0;
    check_undo(&p);
}

/* ---- a limiter of one's own ---------------------------------------------- */

/* L-26 D-07 */
TEST(answer_of_nothing_or_less_adds_at_once)
{
    const int64_t answers[] = {0, -1, INT64_MIN};

    for (int i = 0; i < 3; i++) {
        struct probe  p = {.delay_ns = answers[i]};
        struct timed *t = probed(&p, 0);

        retry(t, "foo");
        work_on(t->q, "foo");
        assert_int_equal(p.whens, 1);
        assert_int_equal(p.undos, 0);
        timed_destroy(t);
    }
}

/* L-26 O-15 */
TEST(answer_without_end_waits_for_ever)
{
    struct probe  p = {.delay_ns = WQ_FOREVER};
    struct timed *t = probed(&p, 0);

    step(t, S);
    retry(t, "foo");
    wq_clock_fake_set(t->clock, WQ_FOREVER - 1);

    assert_none_due(t);
    timed_destroy(t);
}

static int64_t
just_a_second(void *self, wq_key key)
{
    (void)self;
    (void)key;
    return S;
}

/* L-26 */
TEST(limiter_may_know_nothing_but_when)
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
        p.q = t->q;
        retry(t, "foo");
        assert_null(p.q);
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
TEST(limiter_that_has_a_queue_is_refused_to_a_second)
{
    struct probe    p = {.delay_ns = MS};
    wq_limiter     *limiter = probe_limiter(&p);
    struct timed   *t = timed_create(WQ_CONFIG(.limiter = limiter));
    wq_clock *const clock = p.clock;
    wq_queue       *second = NULL;

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

/* O-16 */
TEST(once_leaves_a_key_in_backoff_alone)
{
    struct timed *t = doubling(WQ_RETRY_ONCE);

    let_fail(t, "foo");
    for (int i = 0; i < 10; i++)
        retry(t, "foo");

    assert_int_equal(requeues(t, "foo"), 1);
    assert_due_in(t, "foo", MS);
    assert_none_due(t);
    timed_destroy(t);
}

/* O-16 */
TEST(once_does_not_even_ask)
{
    struct probe  p = {.delay_ns = MS};
    struct timed *t = probed(&p, WQ_RETRY_ONCE);

    retry(t, "foo");
    retry(t, "foo");

    assert_int_equal(p.whens, 1);
    assert_int_equal(p.undos, 0);
    timed_destroy(t);
}

/* O-16: nor for its holder. */
TEST(once_does_not_even_ask_for_a_held_key)
{
    struct probe  p = {.delay_ns = MS};
    struct timed *t = probed(&p, WQ_RETRY_ONCE);

    wq_item *item = take_and_fail(t, "foo");
    retry(t, "foo");
    assert_int_equal(p.whens, 1);
    finish(t->q, item);

    assert_due_in(t, "foo", MS);
    timed_destroy(t);
}

/* O-16 */
TEST(once_counts_again_when_the_backoff_has_ended)
{
    struct timed *t = doubling(WQ_RETRY_ONCE);

    let_fail(t, "foo");
    step(t, MS);
    wq_item *item = take_key(t->q, "foo");
    retry(t, "foo");
    retry(t, "foo");
    finish(t->q, item);

    assert_int_equal(requeues(t, "foo"), 2);
    assert_due_in(t, "foo", 2 * MS);
    timed_destroy(t);
}

/* O-16: although nobody has looked since. */
TEST(once_knows_that_a_backoff_has_ended)
{
    struct timed *t = doubling(WQ_RETRY_ONCE);

    retry(t, "foo");
    step(t, MS);
    retry(t, "foo");

    assert_int_equal(requeues(t, "foo"), 2);
    timed_destroy(t);
}

/* O-16: in its holder's hands, READY besides, or neither. */
TEST(once_looks_at_the_backoff_and_at_nothing_else)
{
    struct timed *t = doubling(WQ_RETRY_ONCE);

    wq_item *held = take_and_fail(t, "held");
    retry(t, "held");
    assert_int_equal(requeues(t, "held"), 1);
    add(t->q, "ready");
    retry(t, "ready");
    retry(t, "ready");
    assert_int_equal(requeues(t, "ready"), 1);
    add(t->q, "held");
    retry(t, "held");
    assert_int_equal(requeues(t, "held"), 1);
    finish(t->q, held);
    timed_destroy(t);
}

/* O-16 R-03: a deadline of the caller's own is no backoff, and one failure is
 * one failure. */
TEST(once_counts_a_failure_of_a_key_that_waits_for_another_reason)
{
    struct timed *t = doubling(WQ_RETRY_ONCE);

    add_after(t, "later", HOUR);
    retry(t, "later");
    assert_int_equal(requeues(t, "later"), 1);
    retry(t, "later");
    assert_int_equal(requeues(t, "later"), 1);
    assert_due_in(t, "later", MS);

    add_after(t, "sooner", US);
    retry(t, "sooner");
    assert_int_equal(requeues(t, "sooner"), 1);
    assert_due_in(t, "sooner", US);
    timed_destroy(t);
}

/* O-16 L-30: what another thread did between our look and our add, this one
 * does from when(). */
TEST(once_takes_back_what_another_thread_was_faster_with)
{
    struct probe  p = {.delay_ns = MS};
    struct timed *t = probed(&p, WQ_RETRY_ONCE);

    p.q = t->q;
    retry(t, "foo");

    assert_int_equal(p.whens, 2);
    assert_int_equal(p.undos, 1);
    assert_due_in(t, "foo", MS);
    assert_none_due(t);
    timed_destroy(t);
}

/* O-16: keys are judged each by itself. */
TEST(once_counts_each_key_by_itself)
{
    struct timed *t = doubling(WQ_RETRY_ONCE);

    retry(t, "one");
    retry(t, "two");
    retry(t, "one");

    assert_int_equal(requeues(t, "one"), 1);
    assert_int_equal(requeues(t, "two"), 1);
    timed_destroy(t);
}

/* O-16 R-02: forget says nothing to the queue. */
TEST(once_leaves_a_key_alone_that_was_forgotten_and_waits_still)
{
    struct timed *t = doubling(WQ_RETRY_ONCE);

    retry(t, "foo");
    assert_err(wq_forget(t->q, wq_str("foo")), WQ_OK);
    retry(t, "foo");

    assert_int_equal(requeues(t, "foo"), 0);
    assert_due_in(t, "foo", MS);
    timed_destroy(t);
}

/* O-16 D-11 */
TEST(once_alone_lets_an_add_cut_a_backoff_short)
{
    struct timed *t = doubling(WQ_RETRY_ONCE);

    let_fail(t, "foo");
    add(t->q, "foo");

    work_on(t->q, "foo");
    assert_due_in(t, "foo", MS);
    timed_destroy(t);
}

/* ---- WQ_RETRY_FAILURES_ONLY ---------------------------------------------- */

/* O-16 */
TEST(trigger_of_an_absent_key_is_an_add)
{
    struct probe  p = {.delay_ns = MS};
    struct timed *t = probed(&p, WQ_RETRY_FAILURES_ONLY);

    retry(t, "foo");

    assert_int_equal(p.whens, 0);
    work_on(t->q, "foo");
    step(t, HOUR);
    assert_none_due(t);
    timed_destroy(t);
}

/* O-16 */
TEST(trigger_of_a_ready_key_changes_nothing)
{
    struct timed *t = doubling(WQ_RETRY_FAILURES_ONLY);

    add(t->q, "foo");
    retry(t, "foo");

    assert_int_equal(wq_len(t->q), 1);
    assert_int_equal(requeues(t, "foo"), 0);
    work_on(t->q, "foo");
    step(t, HOUR);
    assert_none_due(t);
    timed_destroy(t);
}

/* O-16 */
TEST(trigger_of_a_key_in_backoff_changes_nothing)
{
    struct timed *t = doubling(WQ_RETRY_FAILURES_ONLY);

    let_fail(t, "foo");
    retry(t, "foo");
    assert_none_due(t);

    assert_int_equal(requeues(t, "foo"), 1);
    assert_due_in(t, "foo", MS);
    assert_none_due(t);
    timed_destroy(t);
}

/* O-16 D-11: a deadline of the caller's own is not respected by an add. */
TEST(trigger_of_a_key_that_waits_for_another_reason_is_an_add)
{
    struct timed *t = doubling(WQ_RETRY_FAILURES_ONLY);

    add_after(t, "foo", S);
    retry(t, "foo");

    work_on(t->q, "foo");
    assert_int_equal(requeues(t, "foo"), 0);
    assert_due_in(t, "foo", S);
    timed_destroy(t);
}

/* O-16 */
TEST(failure_of_a_held_key_counts)
{
    struct timed *t = doubling(WQ_RETRY_FAILURES_ONLY);

    let_fail(t, "foo");
    assert_int_equal(requeues(t, "foo"), 1);
    step(t, MS);
    wq_item *item = take_key(t->q, "foo");
    retry(t, "foo");
    assert_int_equal(requeues(t, "foo"), 2);
    finish(t->q, item);

    assert_due_in(t, "foo", 2 * MS);
    timed_destroy(t);
}

/* O-16: without WQ_RETRY_RESPECT only the trigger respects the backoff. */
TEST(plain_add_is_no_trigger)
{
    struct timed *t = doubling(WQ_RETRY_FAILURES_ONLY);

    let_fail(t, "foo");
    add(t->q, "foo");

    work_on(t->q, "foo");
    assert_due_in(t, "foo", MS);
    timed_destroy(t);
}

/* O-16 */
TEST(trigger_of_a_key_whose_backoff_has_ended_is_an_add)
{
    struct timed *t = doubling(WQ_RETRY_FAILURES_ONLY);

    let_fail(t, "foo");
    step(t, MS);
    retry(t, "foo");

    assert_int_equal(wq_len(t->q), 1);
    assert_int_equal(requeues(t, "foo"), 1);
    work_on(t->q, "foo");
    step(t, HOUR);
    assert_none_due(t);
    timed_destroy(t);
}

/* O-16 R-03: without ONCE each report of the holder counts. */
TEST(holder_that_reports_twice_has_failed_twice)
{
    struct timed *t = doubling(WQ_RETRY_FAILURES_ONLY);

    wq_item *item = take_and_fail(t, "foo");
    retry(t, "foo");
    finish(t->q, item);

    assert_int_equal(requeues(t, "foo"), 2);
    assert_due_in(t, "foo", MS);
    timed_destroy(t);
}

/* ---- WQ_RETRY_RESPECT ---------------------------------------------------- */

/* O-16 */
TEST(respected_backoff_serves_the_adds_made_meanwhile)
{
    struct timed *t = doubling(WQ_RETRY_RESPECT);

    let_fail(t, "foo");
    add(t->q, "foo");
    add(t->q, "foo");
    add_after(t, "foo", 0);
    assert_none_due(t);

    assert_due_in(t, "foo", MS);
    step(t, HOUR);
    assert_none_due(t);
    timed_destroy(t);
}

/* O-16: added before the failure was reported, or after. */
TEST(respected_backoff_serves_the_adds_made_while_held)
{
    struct timed *t = doubling(WQ_RETRY_RESPECT);

    add(t->q, "foo");
    wq_item *item = take_key(t->q, "foo");
    add(t->q, "foo");
    retry(t, "foo");
    add(t->q, "foo");
    finish(t->q, item);
    assert_none_due(t);

    assert_due_in(t, "foo", MS);
    step(t, HOUR);
    assert_none_due(t);
    timed_destroy(t);
}

/* O-16: the same with done by key. */
TEST(done_by_key_respects_a_backoff)
{
    struct timed *t = doubling(WQ_RETRY_RESPECT);

    (void)take_and_fail(t, "foo");
    add(t->q, "foo");
    assert_err(wq_done_key(t->q, wq_str("foo")), WQ_OK);

    assert_due_in(t, "foo", MS);
    assert_none_due(t);
    timed_destroy(t);
}

/* O-16 D-10 */
TEST(backoff_that_ends_while_held_is_no_longer_respected)
{
    struct timed *t = doubling(WQ_RETRY_RESPECT);

    wq_item *item = take_and_fail(t, "foo");
    add(t->q, "foo");
    step(t, MS);
    finish(t->q, item);

    work_on(t->q, "foo");
    step(t, HOUR);
    assert_none_due(t);
    timed_destroy(t);
}

/* O-16 */
TEST(ready_key_stays_ready_whatever_backoff_it_has)
{
    struct timed *t = doubling(WQ_RETRY_RESPECT);

    add(t->q, "foo");
    retry(t, "foo");
    add(t->q, "foo");
    assert_int_equal(wq_len(t->q), 1);
    work_on(t->q, "foo");
    add(t->q, "foo");
    assert_none_due(t);

    assert_due_in(t, "foo", MS);
    timed_destroy(t);
}

/* O-16 D-11 */
TEST(deadline_that_is_no_backoff_is_not_respected)
{
    struct timed *t = doubling(WQ_RETRY_RESPECT);

    add_after(t, "foo", MS);
    add(t->q, "foo");
    wq_item *item = take_key(t->q, "foo");
    add(t->q, "foo");
    finish(t->q, item);
    work_on(t->q, "foo");

    assert_due_in(t, "foo", MS);
    timed_destroy(t);
}

/* O-16: nor one that has ended. */
TEST(add_after_the_backoff_has_ended_runs_at_once)
{
    struct timed *t = doubling(WQ_RETRY_RESPECT);

    let_fail(t, "foo");
    assert_due_in(t, "foo", MS);
    add(t->q, "foo");
    work_on(t->q, "foo");

    let_fail(t, "bar");
    step(t, MS);
    add(t->q, "bar");
    work_on(t->q, "bar");
    assert_none_due(t);
    timed_destroy(t);
}

/* O-16 D-02: of a backoff and a later deadline the backoff stays one. */
TEST(later_deadline_does_not_end_a_backoff)
{
    struct timed *t = doubling(WQ_RETRY_RESPECT);

    let_fail(t, "foo");
    add_after(t, "foo", S);
    add(t->q, "foo");
    assert_none_due(t);

    assert_due_in(t, "foo", MS);
    step(t, HOUR);
    assert_none_due(t);
    timed_destroy(t);
}

/* O-16 D-03: and of an earlier deadline and a backoff the former stays, which
 * is no backoff. */
TEST(earlier_deadline_takes_the_place_of_a_backoff)
{
    struct timed *t = doubling(WQ_RETRY_RESPECT);

    let_fail(t, "foo");
    add_after(t, "foo", US);
    assert_due_in(t, "foo", US);
    step(t, HOUR);
    assert_none_due(t);

    let_fail(t, "bar");
    add_after(t, "bar", US);
    add(t->q, "bar");
    work_on(t->q, "bar");

    add_after(t, "baz", US);
    retry(t, "baz");
    add(t->q, "baz");
    work_on(t->q, "baz");
    timed_destroy(t);
}

/* O-16 R-03 */
TEST(respect_alone_counts_as_client_go_does)
{
    struct timed *t = doubling(WQ_RETRY_RESPECT);

    let_fail(t, "foo");
    retry(t, "foo");
    retry(t, "foo");

    assert_int_equal(requeues(t, "foo"), 3);
    assert_due_in(t, "foo", MS);
    timed_destroy(t);
}

/* O-16 R-02 */
TEST(forget_does_not_end_a_backoff_that_is_respected)
{
    struct timed *t = doubling(WQ_RETRY_RESPECT);

    let_fail(t, "foo");
    assert_err(wq_forget(t->q, wq_str("foo")), WQ_OK);
    add(t->q, "foo");
    assert_none_due(t);

    assert_due_in(t, "foo", MS);
    timed_destroy(t);
}

/* O-16 Q-14: a backoff that is dropped serves nobody. */
TEST(add_made_while_held_outlives_a_backoff_that_a_shutdown_drops)
{
    struct timed *t = doubling(WQ_RETRY_RESPECT);

    wq_item *item = take_and_fail(t, "foo");
    add(t->q, "foo");
    wq_shutdown(t->q);
    finish(t->q, item);

    work_on(t->q, "foo");
    assert_none_ready(t->q, WQ_ESHUTDOWN);
    timed_destroy(t);
}

/* O-16 O-15 */
TEST(backoff_that_is_kept_at_shutdown_is_respected)
{
    struct timed *t = timed_create(
        WQ_CONFIG(.limiter = wq_limiter_exponential(MS, S),
                  .retry = WQ_RETRY_RESPECT, .waiting = WQ_WAITING_KEEP));

    wq_item *item = take_and_fail(t, "foo");
    add(t->q, "foo");
    wq_shutdown(t->q);
    finish(t->q, item);
    assert_none_due(t);

    assert_due_in(t, "foo", MS);
    assert_none_ready(t->q, WQ_ESHUTDOWN);
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
TEST(options_act_each_for_itself_in_any_company)
{
    for (unsigned options = 0; options < 8; options++)
        check_options(options);
}

/* O-16: what the guide promises. */
TEST(with_all_options_a_storm_of_events_changes_nothing)
{
    struct timed *t =
        doubling(WQ_RETRY_ONCE | WQ_RETRY_FAILURES_ONLY | WQ_RETRY_RESPECT);

    wq_item *item = take_and_fail(t, "foo");
    for (int i = 0; i < 100; i++) {
        add(t->q, "foo");
        retry(t, "foo");
    }
    finish(t->q, item);
    for (int i = 0; i < 100; i++) {
        add(t->q, "foo");
        retry(t, "foo");
    }

    assert_int_equal(requeues(t, "foo"), 1);
    assert_due_in(t, "foo", MS);
    step(t, HOUR);
    assert_none_due(t);
    timed_destroy(t);
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

/* O-17 */
TEST(key_retried_as_often_as_allowed_is_given_up)
{
    struct given_up g;
    struct timed   *t = giving_up(&g, 0);

    retry(t, "foo");
    assert_due_in(t, "foo", MS);
    retry(t, "foo");
    assert_due_in(t, "foo", 2 * MS);
    assert_int_equal(g.calls, 0);
    assert_given_up(t, "foo");

    assert_int_equal(g.calls, 1);
    assert_string_equal(g.key, "foo");
    assert_int_equal(g.retries, 2);
    step(t, HOUR);
    assert_none_due(t);
    timed_destroy(t);
}

/* O-17 */
TEST(key_that_was_given_up_begins_anew)
{
    struct given_up g;
    struct timed   *t = giving_up(&g, 0);

    retry(t, "foo");
    assert_due_in(t, "foo", MS);
    retry(t, "foo");
    assert_due_in(t, "foo", 2 * MS);
    assert_given_up(t, "foo");
    assert_int_equal(requeues(t, "foo"), 0);
    retry(t, "foo");

    assert_due_in(t, "foo", MS);
    timed_destroy(t);
}

/* O-17 */
TEST(forgotten_key_is_not_given_up)
{
    struct given_up g;
    struct timed   *t = giving_up(&g, 0);

    for (int i = 0; i < 5; i++) {
        retry(t, "foo");
        retry(t, "foo");
        assert_err(wq_forget(t->q, wq_str("foo")), WQ_OK);
    }

    assert_int_equal(g.calls, 0);
    timed_destroy(t);
}

/* O-17 */
TEST(keys_are_given_up_each_by_itself)
{
    struct given_up g;
    struct timed   *t = giving_up(&g, 0);

    retry(t, "one");
    retry(t, "two");
    retry(t, "one");
    assert_given_up(t, "one");
    retry(t, "two");
    assert_given_up(t, "two");

    assert_string_equal(g.key, "two");
    assert_int_equal(g.calls, 2);
    timed_destroy(t);
}

/* O-17: as forget does. */
TEST(giving_up_leaves_a_key_that_waits_alone)
{
    struct given_up g;
    struct timed   *t = giving_up(&g, 0);

    retry(t, "foo");
    retry(t, "foo");
    assert_given_up(t, "foo");

    assert_due_in(t, "foo", MS);
    timed_destroy(t);
}

/* O-17 */
TEST(holder_of_a_key_that_is_given_up_still_says_done)
{
    struct given_up g;
    struct timed   *t = giving_up(&g, 0);

    let_fail(t, "foo");
    assert_due_in(t, "foo", MS);
    let_fail(t, "foo");
    assert_due_in(t, "foo", 2 * MS);
    add(t->q, "foo");
    wq_item *item = take_key(t->q, "foo");
    assert_given_up(t, "foo");
    finish(t->q, item);

    step(t, HOUR);
    assert_none_due(t);
    timed_destroy(t);
}

/* O-17 */
TEST(nobody_need_be_told_of_giving_up)
{
    struct timed *t = timed_create(
        WQ_CONFIG(.limiter = wq_limiter_exponential(MS, S), .max_retries = 1));

    retry(t, "foo");
    assert_given_up(t, "foo");
    timed_destroy(t);
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

/* O-17 */
TEST(nul_follows_a_key_that_was_given_up)
{
    struct counting mem;
    unsigned        calls = 0;

    counting_init(&mem);
    struct timed *t =
        timed_create(WQ_CONFIG(.limiter = wq_limiter_exponential(MS, S),
                               .allocator = &mem.allocator, .max_retries = 1,
                               .on_drop = note_terminated, .drop_ctx = &calls));

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
TEST(key_is_not_given_up_without_memory_to_show_it)
{
    struct counting mem;
    unsigned        calls = 0;

    counting_init(&mem);
    struct timed *t =
        timed_create(WQ_CONFIG(.limiter = wq_limiter_exponential(MS, S),
                               .allocator = &mem.allocator, .max_retries = 1,
                               .on_drop = note_terminated, .drop_ctx = &calls));
    const wq_key keys[] = {wq_str("foo"), letters_of(WQ_KEY_MAX)};

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
TEST(no_maximum_means_never_to_give_up)
{
    struct given_up g = {.calls = 0};
    struct timed   *t =
        timed_create(WQ_CONFIG(.limiter = wq_limiter_exponential(MS, S),
                               .on_drop = note_given_up, .drop_ctx = &g));

    for (int i = 0; i < 1000; i++)
        retry(t, "foo");
    assert_int_equal(g.calls, 0);
    timed_destroy(t);
}

/* O-17 L-10 */
TEST(limiter_that_does_not_count_never_gives_up)
{
    struct timed *t = timed_create(
        WQ_CONFIG(.limiter = wq_limiter_bucket(1, 1), .max_retries = 1));

    for (int i = 0; i < 10; i++)
        retry(t, "foo");
    timed_destroy(t);
}

/* O-17 */
TEST(whoever_is_told_of_giving_up_may_call_the_queue)
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

/* O-17 O-16: left alone is left alone. */
TEST(key_in_backoff_is_not_given_up_with_once)
{
    struct given_up g;
    struct timed   *t = giving_up(&g, WQ_RETRY_ONCE);

    retry(t, "foo");
    assert_due_in(t, "foo", MS);
    retry(t, "foo");
    for (int i = 0; i < 10; i++)
        retry(t, "foo");
    assert_int_equal(g.calls, 0);
    assert_due_in(t, "foo", 2 * MS);
    assert_given_up(t, "foo");
    timed_destroy(t);
}

/* O-17 O-16 */
TEST(trigger_is_no_reason_to_give_up)
{
    struct given_up g;
    struct timed   *t = giving_up(&g, WQ_RETRY_FAILURES_ONLY);

    let_fail(t, "foo");
    assert_due_in(t, "foo", MS);
    let_fail(t, "foo");
    assert_due_in(t, "foo", 2 * MS);
    retry(t, "foo");
    assert_int_equal(g.calls, 0);
    wq_item *item = take_key(t->q, "foo");
    assert_given_up(t, "foo");
    finish(t->q, item);
    timed_destroy(t);
}

/* O-17 R-03: the limiter is not asked then, and nobody is told anything. */
TEST(key_is_not_given_up_after_shutdown)
{
    struct given_up g;
    struct timed   *t = giving_up(&g, 0);

    retry(t, "foo");
    retry(t, "foo");
    wq_shutdown(t->q);

    assert_err(wq_add_rate_limited(t->q, wq_str("foo")), WQ_ESHUTDOWN);
    assert_int_equal(g.calls, 0);
    assert_int_equal(requeues(t, "foo"), 2);
    timed_destroy(t);
}

WQ_TESTS(test(retry_waits_as_long_as_the_limiter_says),
         test(forgotten_key_begins_anew),
         with_time(queue_without_a_limiter_of_its_own_has_the_default_one),
         with_time(default_limiter_lives_by_the_queues_clock),
         test(limiter_lives_by_the_queues_clock),
         test(limiter_is_told_the_queues_clock),
         test(forget_leaves_a_key_that_waits_alone),
         test(forget_does_not_replace_done),
         with_time(forget_of_a_key_nobody_knows_is_harmless),
         test(forget_and_count_ask_nothing_of_the_limiter_but_that),
         test(done_does_not_forget),
         test(limiter_counts_although_the_earlier_deadline_stays),
         test(ready_key_that_is_retried_runs_now_and_again_then),
         test(add_cuts_a_backoff_short_and_does_not_end_it),
         test(held_key_that_is_retried_comes_after_done_when_its_time_has_come),
         test(get_sleeps_until_a_backoff_ends),
         test(bad_arguments_do_not_reach_the_limiter),
         test(limiter_is_not_asked_after_shutdown),
         test(retry_after_shutdown_does_not_count),
         test(retry_after_shutdown_is_refused_whatever_the_options),
         test(retry_that_finds_no_memory_is_taken_back),
         test(answer_of_nothing_or_less_adds_at_once),
         test(answer_without_end_waits_for_ever),
         test(limiter_may_know_nothing_but_when),
         test(limiter_may_call_the_queue),
         test(queue_destroys_its_limiter_once),
         test(limiter_that_has_a_queue_is_refused_to_a_second),
         test(limiter_that_is_part_of_another_is_refused),
         test(create_that_fails_destroys_the_limiter),
         test(config_too_short_for_a_limiter_has_none),
         test(create_without_memory_destroys_the_limiter),
         test(create_with_a_failed_limiter_returns_its_error),
         test(once_leaves_a_key_in_backoff_alone), test(once_does_not_even_ask),
         test(once_does_not_even_ask_for_a_held_key),
         test(once_counts_again_when_the_backoff_has_ended),
         test(once_knows_that_a_backoff_has_ended),
         test(once_looks_at_the_backoff_and_at_nothing_else),
         test(once_counts_a_failure_of_a_key_that_waits_for_another_reason),
         test(once_takes_back_what_another_thread_was_faster_with),
         test(once_counts_each_key_by_itself),
         test(once_leaves_a_key_alone_that_was_forgotten_and_waits_still),
         test(once_alone_lets_an_add_cut_a_backoff_short),
         test(trigger_of_an_absent_key_is_an_add),
         test(trigger_of_a_ready_key_changes_nothing),
         test(trigger_of_a_key_in_backoff_changes_nothing),
         test(trigger_of_a_key_that_waits_for_another_reason_is_an_add),
         test(failure_of_a_held_key_counts), test(plain_add_is_no_trigger),
         test(trigger_of_a_key_whose_backoff_has_ended_is_an_add),
         test(holder_that_reports_twice_has_failed_twice),
         test(respected_backoff_serves_the_adds_made_meanwhile),
         test(respected_backoff_serves_the_adds_made_while_held),
         test(done_by_key_respects_a_backoff),
         test(backoff_that_ends_while_held_is_no_longer_respected),
         test(ready_key_stays_ready_whatever_backoff_it_has),
         test(deadline_that_is_no_backoff_is_not_respected),
         test(add_after_the_backoff_has_ended_runs_at_once),
         test(later_deadline_does_not_end_a_backoff),
         test(earlier_deadline_takes_the_place_of_a_backoff),
         test(respect_alone_counts_as_client_go_does),
         test(forget_does_not_end_a_backoff_that_is_respected),
         test(add_made_while_held_outlives_a_backoff_that_a_shutdown_drops),
         test(backoff_that_is_kept_at_shutdown_is_respected),
         test(options_act_each_for_itself_in_any_company),
         test(with_all_options_a_storm_of_events_changes_nothing),
         test(unknown_options_are_refused),
         test(key_retried_as_often_as_allowed_is_given_up),
         test(key_that_was_given_up_begins_anew),
         test(forgotten_key_is_not_given_up),
         test(keys_are_given_up_each_by_itself),
         test(giving_up_leaves_a_key_that_waits_alone),
         test(holder_of_a_key_that_is_given_up_still_says_done),
         test(nobody_need_be_told_of_giving_up),
         test(nul_follows_a_key_that_was_given_up),
         test(key_is_not_given_up_without_memory_to_show_it),
         test(no_maximum_means_never_to_give_up),
         test(limiter_that_does_not_count_never_gives_up),
         test(whoever_is_told_of_giving_up_may_call_the_queue),
         test(key_in_backoff_is_not_given_up_with_once),
         test(trigger_is_no_reason_to_give_up),
         test(key_is_not_given_up_after_shutdown));
