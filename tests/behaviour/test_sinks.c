/* SPDX-License-Identifier: MIT */
/* test_sinks.c: how do sinks come to a queue, what may they do, and how do they
 * part?
 */
#include "metered.h"

#include <pthread.h>
#include <unistd.h>

#include <wq/limiter.h>

#include "support/counting.h"
#include "support/stage.h"

/* ---- beginning and end -------------------------------------------------- */

/* M-06 */
TEST(sink_is_opened_with_the_queue_and_closed_once)
{
    struct metered *m = metered_create(WQ_CONFIG(.order = NULL));

    assert_int_equal(m->r.calls[RECORDER_OPEN], 1);
    assert_ptr_equal(m->r.q, m->t.q);
    assert_string_equal(m->r.name, "test");
    add(m->t.q, "foo");
    add(m->t.q, "bar");
    step(&m->t, 3);
    (void)take(m->t.q);
    step(&m->t, 5);
    wq_destroy(m->t.q);
    m->t.q = NULL;
    assert_int_equal(m->r.calls[RECORDER_CLOSE], 1);
    assert_int_equal(m->r.last.adds, 2);
    assert_int_equal(m->r.last.gets, 1);
    assert_int_equal(m->r.last.ready, 1);
    assert_int_equal(m->r.last.held, 1);
    assert_int_equal(m->r.last.unfinished_ns, 5);
    assert_true(m->r.last.shutting_down);
    assert_sums(&m->r, &m->r.last);
    metered_destroy(m);
}

/* O-30: what waits is dropped by destroy as by a shutdown. */
TEST(what_destroy_drops_is_told_before_the_sink_is_closed)
{
    struct metered *m = metered_create(WQ_CONFIG(.order = NULL));

    add_after(&m->t, "foo", 1);
    add_after(&m->t, "bar", 1 * S);
    step(&m->t, 1); /* foo is due, and nobody has looked */
    wq_destroy(m->t.q);
    m->t.q = NULL;
    assert_int_equal(m->r.last.drops, 1);
    assert_int_equal(m->r.last.adds, 1);
    assert_sums(&m->r, &m->r.last);
    metered_destroy(m);
}

static const wq_metrics *
chain(struct recorder *all, size_t n)
{
    for (size_t i = 0; i < n; i++)
        recorder_init(&all[i]);
    for (size_t i = 0; i + 1 < n; i++)
        all[i].sink.next = &all[i + 1].sink;
    return &all[0].sink;
}

/* M-06 */
TEST(several_sinks_hear_the_same)
{
    struct recorder all[3];
    struct timed   *t =
        timed_create(WQ_CONFIG(.name = "test", .metrics = chain(all, 3),
                               .limiter = wq_limiter_exponential(5, 1000)));

    add(t->q, "foo");
    step(t, 7);
    wq_item *item = take(t->q);
    step(t, 9);
    finish(t->q, item);
    assert_err(wq_add_rate_limited(t->q, wq_str("foo")), WQ_OK);
    for (int i = 0; i < 3; i++) {
        const wq_stats now = stats(t->q);
        assert_told(all[i].latency, 7);
        assert_told(all[i].work, 9);
        assert_told(all[i].limited, 5);
        assert_sums(&all[i], &now);
        assert_int_equal(all[i].calls[RECORDER_OPEN], 1);
    }
    timed_destroy(t);
    for (int i = 0; i < 3; i++)
        assert_int_equal(all[i].calls[RECORDER_CLOSE], 1);
    assert_true(all[0].order > all[1].order && all[1].order > all[2].order);
}

/* M-06: the structs are copied. */
TEST(sinks_may_be_forgotten_once_the_queue_is_made)
{
    struct recorder r;
    wq_metrics      second, first;

    recorder_init(&r);
    second = r.sink;
    first = (wq_metrics){.size = sizeof first, .next = &second};
    struct timed *t =
        timed_create(WQ_CONFIG(.name = "test", .metrics = &first));
    memset(&first, 0xa5, sizeof first);
    memset(&second, 0xa5, sizeof second);
    add(t->q, "foo");
    work_on(t->q, "foo");
    assert_int_equal(r.work.n, 1);
    timed_destroy(t);
    assert_int_equal(r.calls[RECORDER_CLOSE], 1);
}

/* M-06 */
TEST(sink_without_functions_is_called_for_nothing)
{
    const wq_metrics nobody = {.size = sizeof nobody};
    struct timed    *t = timed_create(
           WQ_CONFIG(.name = "test", .metrics = &nobody, .max_retries = 1));

    add(t->q, "foo");
    work_on(t->q, "foo");
    assert_err(wq_add_rate_limited(t->q, wq_str("foo")), WQ_OK);
    assert_err(wq_add_rate_limited(t->q, wq_str("foo")), WQ_EGIVENUP);
    wq_shutdown(t->q);
    timed_destroy(t);
}

static void
ask_for_descriptor(struct recorder *r, enum recorder_call call)
{
    if (call == RECORDER_OPEN)
        (void)wq_fd(r->q);
}

/* M-06: what a sink asked of a queue that was then not made is gone; a clock
 * that moves on finds nothing of it. */
TEST(open_that_fails_leaves_no_descriptor)
{
    wq_clock       *clock = wq_clock_fake_create(0);
    struct recorder all[2];
    wq_queue       *q;
    int             before, after;

    before = dup(0);
    assert_true(before >= 0);
    assert_int_equal(close(before), 0);
    for (int i = 0; i < 3; i++) {
        const wq_metrics *first = chain(all, 2);
        all[0].hook = ask_for_descriptor;
        all[1].answer = WQ_EIO;
        assert_err(wq_create(WQ_CONFIG(.name = "test", .metrics = first,
                                       .clock = clock),
                             &q),
                   WQ_EIO);
    }
    wq_clock_fake_step(clock, 1);
    after = dup(0);
    assert_int_equal(after, before); /* the lowest that is free */
    assert_int_equal(close(after), 0);
    wq_clock_destroy(clock);
}

/* M-06 */
TEST(open_that_fails_makes_create_fail)
{
    struct recorder all[3];
    wq_queue *const untouched = (wq_queue *)(void *)all;
    wq_queue       *q = untouched;
    struct counting mem;

    for (int bad = 0; bad < 3; bad++) {
        counting_init(&mem);
        const wq_metrics *first = chain(all, 3);
        all[bad].answer = bad == 1 ? WQ_EIO : WQ_ENOTFOUND;
        assert_err(wq_create(WQ_CONFIG(.name = "test", .metrics = first,
                                       .limiter = wq_limiter_exponential(1, 10),
                                       .allocator = &mem.allocator),
                             &q),
                   all[bad].answer);
        assert_ptr_equal(q, untouched);
        assert_int_equal(mem.bytes, 0);
        for (int i = 0; i < 3; i++) {
            assert_int_equal(all[i].calls[RECORDER_OPEN], i <= bad);
            assert_int_equal(all[i].calls[RECORDER_CLOSE], i < bad);
        }
    }
}

/* M-06: without a limiter of the config's, the one that was made goes. */
TEST(open_that_fails_leaves_nothing_behind)
{
    struct recorder r;
    struct counting mem;
    wq_queue       *q = NULL;

    recorder_init(&r);
    counting_init(&mem);
    r.answer = WQ_ESTATE;
    assert_err(wq_create(WQ_CONFIG(.name = "test", .metrics = &r.sink,
                                   .allocator = &mem.allocator),
                         &q),
               WQ_ESTATE);
    assert_null(q);
    assert_int_equal(mem.bytes, 0);
}

/* ---- sizes -------------------------------------------------------------- */

/* M-06: a program of another age made the sink. */
TEST(sink_of_a_wrong_size_is_refused_before_any_is_opened)
{
    struct recorder all[2];
    wq_queue       *q = NULL;
    const size_t    wrong[] = {0, 1, sizeof(wq_metrics) - 1,
                               sizeof(wq_metrics) + 1, 4096 + 8};

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        for (int bad = 0; bad < 2; bad++) {
            const wq_metrics *first = chain(all, 2);
            all[bad].sink.size = wrong[i];
            assert_err(
                wq_create(WQ_CONFIG(.name = "test", .metrics = first), &q),
                WQ_EINVAL);
            assert_int_equal(all[0].calls[RECORDER_OPEN], 0);
        }
}

/* M-06: what lies behind an older, shorter sink is not looked at. */
TEST(shorter_sink_has_no_next)
{
    struct recorder r;
    const size_t    size = offsetof(wq_metrics, limited);
    wq_metrics     *old = malloc(size); /* a sanitizer sees what lies behind */

    assert_non_null(old);
    recorder_init(&r);
    r.sink.size = size;
    memcpy(old, &r.sink, size);
    struct timed *t = timed_create(WQ_CONFIG(.name = "test", .metrics = old));
    free(old);
    assert_err(wq_add_rate_limited(t->q, wq_str("foo")), WQ_OK);
    assert_int_equal(r.sum.retries, 1);
    assert_int_equal(r.limited.n, 0); /* it has no such function */
    timed_destroy(t);
    assert_int_equal(r.calls[RECORDER_CLOSE], 1);
}

/* M-06 */
TEST(longer_sink_is_taken_if_what_we_do_not_know_is_zero)
{
    struct {
        wq_metrics known;
        void      *unknown;
    } later = {.unknown = NULL};
    struct recorder r;
    wq_queue       *q = NULL;

    recorder_init(&r);
    later.known = r.sink;
    later.known.size = sizeof later;
    assert_err(
        wq_create(WQ_CONFIG(.name = "test", .metrics = &later.known), &q),
        WQ_OK);
    wq_destroy(q);
    assert_int_equal(r.calls[RECORDER_CLOSE], 1);
    later.unknown = &later;
    assert_err(
        wq_create(WQ_CONFIG(.name = "test", .metrics = &later.known), &q),
        WQ_EINVAL);
}

/* ---- the default -------------------------------------------------------- */

static wq_queue *
make_named(const wq_metrics *metrics)
{
    wq_queue *q = NULL;

    assert_err(wq_create(WQ_CONFIG(.name = "test", .metrics = metrics), &q),
               WQ_OK);
    return q;
}

/* M-07 */
TEST(default_sink_is_for_later_queues_that_bring_none)
{
    struct recorder mine, first, second;
    wq_queue       *before = make_named(NULL);

    recorder_init(&mine);
    recorder_init(&first);
    recorder_init(&second);
    assert_err(wq_metrics_set_default(&first.sink), WQ_OK);
    assert_err(wq_metrics_set_default(&second.sink), WQ_ESTATE);
    wq_queue *plain = make_named(NULL);
    wq_queue *own = make_named(&mine.sink);
    wq_queue *nameless = NULL;
    assert_err(wq_create(NULL, &nameless), WQ_OK);
    assert_err(wq_metrics_set_default(NULL), WQ_OK);
    wq_queue *after = make_named(NULL);

    add(before, "foo");
    add(plain, "foo");
    add(plain, "bar");
    add(own, "foo");
    add(nameless, "foo");
    add(after, "foo");
    assert_int_equal(first.calls[RECORDER_OPEN], 1);
    assert_ptr_equal(first.q, plain);
    assert_int_equal(first.sum.adds, 2);
    assert_ptr_equal(mine.q, own);
    assert_int_equal(mine.sum.adds, 1);
    assert_int_equal(second.calls[RECORDER_OPEN], 0);
    assert_int_equal(stats(before).unfinished_ns, -1);
    assert_int_equal(stats(plain).unfinished_ns, 0);
    wq_destroy(before);
    wq_destroy(plain);
    wq_destroy(own);
    wq_destroy(nameless);
    wq_destroy(after);
    assert_int_equal(first.calls[RECORDER_CLOSE], 1);
}

/* ---- sinks that call the queue ------------------------------------------ */

/* Asks all there is to ask, and adds a key; not from within itself, or there
 * would be no end. */
static void
call_back(struct recorder *r, enum recorder_call call)
{
    static _Thread_local bool inside;
    wq_stats                  counts = {.size = sizeof counts};
    wq_key_info               info = {.size = sizeof info};
    wq_depth                  depth;
    size_t                    n;

    (void)call;
    if (inside)
        return;
    inside = true;
    assert_err(wq_read_stats(r->q, &counts), WQ_OK);
    assert_err(wq_read_key(r->q, wq_str("foo"), &info), WQ_OK);
    assert_err(wq_read_depths(r->q, &depth, 1, &n), WQ_OK);
    (void)wq_len(r->q);
    (void)wq_num_requeues(r->q, wq_str("foo"));
    if (wq_add_str(r->q, "from the sink") == WQ_OK)
        (void)wq_remove(r->q, wq_str("from the sink"));
    inside = false;
}

/* */
TEST(sinks_may_call_the_queue)
{
    struct recorder   all[2];
    const wq_metrics *first = chain(all, 2);
    wq_item          *items[3] = {NULL};
    size_t            n = 0;

    all[0].hook = all[1].hook = call_back;
    struct timed *t =
        timed_create(WQ_CONFIG(.name = "test", .metrics = first,
                               .limiter = wq_limiter_exponential(5, 1000)));
    add(t->q, "foo");
    add(t->q, "foo");
    add(t->q, "bar");
    assert_err(wq_next(t->q, 0, items), WQ_OK);
    assert_err(wq_next(t->q, 0, items), WQ_OK);
    finish(t->q, items[0]);
    add_after(t, "foo", 1);
    add_after(t, "baz", 10000);
    assert_err(wq_add_rate_limited(t->q, wq_str("bar")), WQ_OK);
    step(t, 10);
    assert_err(wq_get_many(t->q, items, 3, 0, &n), WQ_OK);
    assert_int_equal(n, 2);
    add(t->q, "foo");
    assert_err(wq_done_many(t->q, items, n), WQ_OK);
    (void)take(t->q);
    assert_err(wq_done_key(t->q, wq_str("foo")), WQ_OK);
    assert_err(wq_shutdown_with_drain_within(t->q, 0), WQ_OK);
    for (int i = 0; i < 2; i++) {
        const wq_stats now = stats(t->q);
        assert_sums(&all[i], &now);
        assert_adds_up(&now);
    }
    timed_destroy(t);
    for (int i = 0; i < 2; i++) {
        for (int call = 0; call < RECORDER_CALLS; call++)
            assert_true(all[i].calls[call] > 0);
        assert_sums(&all[i], &all[i].last);
    }
}

static void
add_in_open(struct recorder *r, enum recorder_call call)
{
    if (call == RECORDER_OPEN)
        add(r->q, r->arg);
}

/* Q-25 M-06: before the others are open; all of them hear of it. */
TEST(sink_may_call_the_queue_from_open)
{
    struct recorder   all[3];
    const wq_metrics *first = chain(all, 3);
    char              foo[] = "foo";
    char              bar[] = "bar";
    struct counting   mem;

    counting_init(&mem);
    all[0].hook = all[2].hook = add_in_open;
    all[0].arg = foo;
    all[2].arg = bar;
    struct timed *t = timed_create(WQ_CONFIG(.name = "test", .metrics = first,
                                             .allocator = &mem.allocator));
    for (int i = 0; i < 3; i++)
        assert_int_equal(all[i].sum.adds, 2);
    work_on(t->q, "foo");
    work_on(t->q, "bar");
    timed_destroy(t);

    (void)chain(all, 3);
    all[0].hook = add_in_open;
    all[0].arg = foo;
    all[2].answer = WQ_EIO;
    wq_queue *q = NULL;
    assert_err(wq_create(WQ_CONFIG(.name = "test", .metrics = first,
                                   .allocator = &mem.allocator),
                         &q),
               WQ_EIO);
    assert_int_equal(mem.bytes, 0);
}

/* ---- sinks that take their time ----------------------------------------- */

/* A sink that waits, when the adder tells it of a change, until somebody else
 * has got a key. */
struct patience {
    wq_queue    *q;
    struct tally got; /* keys */
    pthread_t    adder;
    bool         paid; /* a key was got while it waited */
};

static void
wait_for_get(struct recorder *r, enum recorder_call call)
{
    struct patience *p = r->arg;

    if (call == RECORDER_CHANGED && pthread_equal(pthread_self(), p->adder))
        p->paid = tally_reaches(&p->got, 1);
}

static int
run_get(struct worker *self)
{
    struct patience *p = self->arg;
    wq_item         *item = NULL;
    const wq_err     err = wq_get(p->q, &item);

    tally_add(&p->got, 1);
    return (int)err;
}

/* Q-25 Q-26: who is to be woken does not wait for a sink. */
TEST(slow_sink_does_not_hold_up_who_sleeps)
{
    struct metered *m = metered_create(WQ_CONFIG(.order = NULL));
    struct patience patience = {
        .q = m->t.q, .got = TALLY_INIT, .adder = pthread_self()};
    struct worker *getter = worker_start(run_get, &patience);

    worker_await_blocked(getter);
    m->r.arg = &patience;
    m->r.hook = wait_for_get;
    add(m->t.q, "foo");
    assert_true(patience.paid);
    assert_err(worker_join(getter), WQ_OK);
    metered_destroy(m);
}

static int
run_destroy(struct worker *self)
{
    wq_destroy(self->arg);
    return 0;
}

static void
pass_stage(struct recorder *r, enum recorder_call call)
{
    if (call == RECORDER_CHANGED)
        stage_pass(r->arg);
}

/* O-03 Q-25: a get that has slept may have something to tell when it returns
 * empty-handed. Until it has done so, it counts as blocked. */
TEST(destroy_waits_for_a_get_that_is_telling_a_sink)
{
    struct recorder   all[2];
    const wq_metrics *first = chain(all, 2);
    struct stage      stage = STAGE_INIT;
    struct timed *t = timed_create(WQ_CONFIG(.name = "test", .metrics = first));

    add(t->q, "foo");
    (void)take(t->q);
    add_after(t, "foo", 1 * S); /* then it is DIRTY, and nothing is READY */
    struct worker *getter = get_in_time(t, 1 * S);
    await_sleepers(t, 1);
    all[0].arg = &stage;
    all[0].hook = pass_stage;
    step(t, 1 * S);
    tally_await(&stage.begun, 1); /* the get is in the first sink */
    struct worker *destroyer = worker_start(run_destroy, t->q);
    worker_await_blocked(destroyer);
    tally_add(&stage.allowed, STAGE_OPEN);
    assert_err(worker_join(getter), WQ_ETIMEDOUT);
    assert_int_equal(worker_join(destroyer), 0);
    t->q = NULL;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(all[i].sum.adds, 2);
        assert_sums(&all[i], &all[i].last);
    }
    timed_destroy(t);
}

WQ_TESTS(test(sink_is_opened_with_the_queue_and_closed_once),
         test(what_destroy_drops_is_told_before_the_sink_is_closed),
         test(several_sinks_hear_the_same),
         test(sinks_may_be_forgotten_once_the_queue_is_made),
         test(sink_without_functions_is_called_for_nothing),
         test(open_that_fails_makes_create_fail),
         test(open_that_fails_leaves_nothing_behind),
         test(open_that_fails_leaves_no_descriptor),
         test(sink_of_a_wrong_size_is_refused_before_any_is_opened),
         test(shorter_sink_has_no_next),
         test(longer_sink_is_taken_if_what_we_do_not_know_is_zero),
         test(default_sink_is_for_later_queues_that_bring_none),
         test(sinks_may_call_the_queue),
         test(sink_may_call_the_queue_from_open),
         test(slow_sink_does_not_hold_up_who_sleeps),
         test(destroy_waits_for_a_get_that_is_telling_a_sink));
