/* SPDX-License-Identifier: MIT */
/* test_waits.c: do wq_flush(), wq_wait_idle(), wq_flush_key() and
 * wq_remove_wait() notice an end of work that passes before they can look? And
 * what do they wait for in a pool? flush.scenario and remove_wait.scenario in
 * scenarios/ say what they wait for otherwise. */
#include "waits.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include <wq/metrics.h>
#include <wq/workers.h>

#include "support/checkpoint.h"

/* ---- a thread that cannot run -------------------------------------------- */

/* freeze() stops a blocked thread in a signal handler until thaw(): what happens
 * meanwhile happens before the thread can look. The thread sanitizer defers
 * signals until a thread leaves the library: there nothing is frozen, and the
 * test tests less. */
#if defined(__SANITIZE_THREAD__)
#define CAN_FREEZE 0
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define CAN_FREEZE 0
#endif
#endif
#ifndef CAN_FREEZE
#define CAN_FREEZE 1
#endif

static struct {
    int began[2],
        go_on[2]; /* pipes: the handler writes to one, reads another */
} ice;

static void
stay_frozen(int signal)
{
    const int saved = errno;
    char      byte = 'f';

    (void)signal;
    if (write(ice.began[1], &byte, 1) == 1)
        while (read(ice.go_on[0], &byte, 1) != 1)
            ;
    errno = saved;
}

/* One thread at a time, which must be blocked. */
static void
freeze(const struct wait *w)
{
    const struct sigaction action = {.sa_handler = stay_frozen};
    char                   byte;

    if (!CAN_FREEZE)
        return;
    assert_int_equal(pipe(ice.began), 0);
    assert_int_equal(pipe(ice.go_on), 0);
    assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
    assert_int_equal(pthread_kill(w->worker->thread, SIGUSR1), 0);
    assert_int_equal(read(ice.began[0], &byte, 1), 1);
}

/* Let the thread go on; its call must return WQ_OK. */
static void
thaw(struct wait *w)
{
    if (CAN_FREEZE)
        assert_int_equal(write(ice.go_on[1], "t", 1), 1);
    assert_ends(w, WQ_OK);
    for (int i = 0; CAN_FREEZE && i < 2; i++) {
        (void)close(ice.began[i]);
        (void)close(ice.go_on[i]);
    }
}

/* O-81 O-82 O-83 O-84: when the waiter can look, the key is HELD again. A removal
 * lets the later add stand. */
TEST(end_of_work_that_passes_is_not_missed)
{
    wq_queue *q = *state;

    for (enum wait_for what = FOR_FLUSH; what < WAIT_KINDS; what++)
        for (int is_held = what == FOR_REMOVAL; is_held < 2; is_held++) {
            struct wait w;
            wq_item    *item = NULL;

            add(q, "a");
            if (is_held)
                item = take(q);
            begin_wait(&w, what, q, "a");
            freeze(&w);
            finish(q, is_held ? item : take(q));
            add(q, "a");
            item = take_key(q, "a");
            thaw(&w);
            assert_states(q, "a", WQ_STATE_HELD);
            finish(q, item);
        }
}

/* O-84: the loan that the removal waits for has ended. */
TEST(removal_that_is_over_does_not_mark_a_later_loan)
{
    wq_queue   *q = *state;
    struct wait w;

    add(q, "a");
    wq_item *item = take(q);
    begin_wait(&w, FOR_REMOVAL, q, "a");
    freeze(&w);
    finish(q, item);
    add(q, "a");
    item = take(q);
    assert_err(elsewhere(FOR_REMOVAL, q, "a", 0), WQ_ETIMEDOUT);
    thaw(&w);
    add(q, "a");
    finish(q, item);
    work_on(q, "a");
}

/* A sink that does something to the queue once, when a change is reported. */
static struct {
    wq_queue   *q;
    wq_item    *item; /* what it took last */
    wq_err      err;
    atomic_bool armed;
} meddler;

/* "a" is worked on, and HELD again before anybody can look. */
static void
meddle(void *handle, const wq_change *change)
{
    wq_queue *q = meddler.q;

    (void)handle;
    (void)change;
    if (!atomic_exchange(&meddler.armed, false))
        return;
    meddler.err = wq_get_within(q, 0, &meddler.item);
    if (!meddler.err)
        meddler.err = wq_done(q, meddler.item);
    if (!meddler.err)
        meddler.err = wq_add_str(q, "a");
    if (!meddler.err)
        meddler.err = wq_get_within(q, 0, &meddler.item);
}

/* O-81 O-82 O-83: a waiter reports to the sinks before it sleeps, without the
 * lock. */
TEST(end_of_work_during_a_report_is_not_missed)
{
    const wq_metrics sink = {.size = sizeof sink, .changed = meddle};

    for (enum wait_for what = FOR_FLUSH; what <= FOR_KEY; what++) {
        struct timed *t =
            timed_create(WQ_CONFIG(.name = "test", .metrics = &sink));

        meddler.q = t->q;
        meddler.item = NULL;
        add_after(t, "a", S);
        step(t, S);
        assert_int_equal(wq_len(t->q), 1); /* reports nothing */
        atomic_store(&meddler.armed, true);
        assert_err(elsewhere(what, t->q, "a", WQ_FOREVER), WQ_OK);
        assert_false(atomic_load(&meddler.armed));
        assert_err(meddler.err, WQ_OK);
        assert_states(t->q, "a", WQ_STATE_HELD);
        finish(t->q, meddler.item);
        timed_destroy(t);
    }
}

/* ---- several flushes ----------------------------------------------------- */

/* O-81: flush i begins when keys 0 to i are READY. The first three end at the
 * done of their own last keys. A later one may wait for the keys of the others,
 * but not for keys that come when the first has ended. */
TEST(each_of_several_flushes_waits_for_its_own_keys)
{
    enum { MANY = 6, APART = 3 };
    static const char *const names[MANY] = {"k0", "k1", "k2", "k3", "k4", "k5"};

    for (int n = 1; n <= MANY; n++) {
        wq_queue   *q = open_queue(NULL);
        struct wait all[MANY];

        for (int i = 0; i < n; i++) {
            add(q, names[i]);
            begin_wait(&all[i], FOR_FLUSH, q, NULL);
        }
        add(q, "before");
        work_on(q, names[0]);
        assert_ends(&all[0], WQ_OK);
        add(q, "after");
        for (int i = 1; i < n; i++) {
            wq_item *item = take_key(q, names[i]);
            for (int k = i; k < n; k++)
                assert_waits(&all[k]);
            finish(q, item);
            if (i < APART)
                assert_ends(&all[i], WQ_OK);
        }
        work_on(q, "before");
        for (int i = APART; i < n; i++)
            assert_ends(&all[i], WQ_OK);
        work_on(q, "after");
        wq_destroy(q);
    }
}

/* ---- who may wait, and for what ------------------------------------------ */

/* O-81 O-82 O-83 */
TEST(thread_that_holds_a_key_of_another_queue_may_wait)
{
    wq_queue *other = open_queue(NULL);

    add(other, "a");
    wq_item *item = take(other);
    for (enum wait_for what = FOR_FLUSH; what < WAIT_KINDS; what++)
        assert_err(call_wait(what, *state, "a", WQ_FOREVER), WQ_OK);
    finish(other, item);
    wq_destroy(other);
}

/* O-81 O-82 O-83 O-84 */
TEST(bad_arguments_are_refused)
{
    static char too_long[WQ_KEY_MAX + 2];

    memset(too_long, 'k', sizeof too_long - 1);
    add(*state, "a");
    for (enum wait_for what = FOR_FLUSH; what < WAIT_KINDS; what++)
        assert_err(call_wait(what, NULL, "a", 0), WQ_EINVAL);
    for (enum wait_for what = FOR_KEY; what < WAIT_KINDS; what++) {
        assert_err(call_wait(what, *state, "", 0), WQ_EINVAL);
        assert_err(call_wait(what, *state, NULL, 0), WQ_EINVAL);
        assert_err(call_wait(what, *state, too_long, 0), WQ_ETOOLONG);
    }
    work_on(*state, "a");
}

/* ---- a pool -------------------------------------------------------------- */

static wq_workers *
start_pool(wq_queue *q, wq_result (*handler)(void *, const wq_item *),
           void     *ctx)
{
    wq_workers *pool = NULL;

    assert_err(
        wq_workers_start(
            q, WQ_WORKERS(.threads = 2, .handler = handler, .ctx = ctx), &pool),
        WQ_OK);
    return pool;
}

struct retries {
    struct checkpoint checkpoint;
    wq_result         result;
};

static wq_result
handle(void *ctx, const wq_item *item)
{
    struct retries *r = ctx;

    (void)item;
    checkpoint_pass(&r->checkpoint);
    return r->result;
}

/* O-84 PQ-47 */
TEST(removal_takes_back_the_retry_of_a_pool)
{
    const wq_result results[] = {wq_result_retry(), wq_result_after(MS)};

    for (size_t i = 0; i < 2; i++) {
        struct timed  *t = timed_create(WQ_CONFIG(.order = NULL));
        struct retries r = {.checkpoint = CHECKPOINT_INIT,
                            .result = results[i]};
        wq_workers    *pool = start_pool(t->q, handle, &r);
        struct wait    w;

        add(t->q, "a");
        tally_await(&r.checkpoint.begun, 1);
        begin_wait(&w, FOR_REMOVAL, t->q, "a");
        tally_add(&r.checkpoint.allowed, CHECKPOINT_OPEN);
        assert_ends(&w, WQ_OK);
        assert_states(t->q, "a", 0);
        step(t, HOUR);
        assert_err(wq_workers_drain(pool, WQ_FOREVER), WQ_OK);
        assert_int_equal(tally_read(&r.checkpoint.begun), 1);
        assert_err(wq_workers_destroy(pool), WQ_OK);
        timed_destroy(t);
    }
}

struct self_removal {
    wq_queue *q;
    wq_err    err;
};

static wq_result
remove_itself(void *ctx, const wq_item *item)
{
    struct self_removal *s = ctx;

    s->err = wq_remove_wait(s->q, item->key, WQ_FOREVER);
    return wq_result_done();
}

/* O-84 */
TEST(handler_cannot_wait_for_the_removal_of_its_key)
{
    struct self_removal s = {.q = *state, .err = WQ_OK};
    wq_workers         *pool = start_pool(s.q, remove_itself, &s);

    add(s.q, "a");
    assert_err(wq_workers_drain(pool, WQ_FOREVER), WQ_OK);
    assert_err(s.err, WQ_ESTATE);
    assert_err(wq_workers_destroy(pool), WQ_OK);
}

#define with_queue(name) test_with(name, make_queue, drop_queue)

WQ_TESTS(with_queue(end_of_work_that_passes_is_not_missed),
         with_queue(removal_that_is_over_does_not_mark_a_later_loan),
         test(end_of_work_during_a_report_is_not_missed),
         test(each_of_several_flushes_waits_for_its_own_keys),
         with_queue(thread_that_holds_a_key_of_another_queue_may_wait),
         with_queue(bad_arguments_are_refused),
         test(removal_takes_back_the_retry_of_a_pool),
         with_queue(handler_cannot_wait_for_the_removal_of_its_key));
