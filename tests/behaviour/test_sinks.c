/* SPDX-License-Identifier: MIT */
/* test_sinks.c: when does a queue open and close its sinks, which sinks does it
 * refuse, and what may they do? */
#include "metered.h"

#include <pthread.h>

#include <wq/limiter.h>

#include "descriptors.h"
#include "support/checkpoint.h"
#include "support/counting.h"

/* ---- open and close ------------------------------------------------------ */

static wq_queue *
open_named(const wq_metrics *metrics)
{
    return open_queue(WQ_CONFIG(.name = "test", .metrics = metrics));
}

/* M-06 */
TEST(sink_is_opened_with_the_queue_and_closed_once)
{
    struct metered *m = *state;

    assert_int_equal(m->r.calls[RECORDER_OPEN], 1);
    assert_ptr_equal(m->r.q, m->q);
    assert_string_equal(m->r.name, "test");
    add(m->q, "foo");
    add(m->q, "bar");
    step(m->t, 3);
    (void)take(m->q);
    step(m->t, 5);
    destroy_queue(m);
    assert_int_equal(m->r.calls[RECORDER_CLOSE], 1);
    assert_int_equal(m->r.last.adds, 2);
    assert_int_equal(m->r.last.gets, 1);
    assert_int_equal(m->r.last.ready, 1);
    assert_int_equal(m->r.last.held, 1);
    assert_int_equal(m->r.last.unfinished_ns, 5);
    assert_true(m->r.last.shutting_down);
    assert_sums(&m->r, &m->r.last);
}

/* O-30: destroy drops WAITING keys, as a shutdown does. */
TEST(destroy_reports_drops_before_it_closes_the_sink)
{
    struct metered *m = *state;

    add_after(m->t, "foo", 1);
    add_after(m->t, "bar", 1 * S);
    step(m->t, 1); /* foo is due, and no call has made it READY */
    destroy_queue(m);
    assert_int_equal(m->r.last.drops, 1);
    assert_int_equal(m->r.last.adds, 1);
    assert_sums(&m->r, &m->r.last);
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
TEST(queue_reports_the_same_to_all_its_sinks)
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
        const wq_stats now = counts_of(t->q);
        assert_reported(all[i].latency, 7);
        assert_reported(all[i].work, 9);
        assert_reported(all[i].limited, 5);
        assert_sums(&all[i], &now);
        assert_int_equal(all[i].calls[RECORDER_OPEN], 1);
    }
    timed_destroy(t);
    for (int i = 0; i < 3; i++)
        assert_int_equal(all[i].calls[RECORDER_CLOSE], 1);
    assert_true(all[0].order > all[1].order && all[1].order > all[2].order);
}

/* M-06 */
TEST(queue_copies_the_structs_of_its_sinks)
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
TEST(sink_may_have_no_functions)
{
    const wq_metrics empty = {.size = sizeof empty};
    struct timed    *t = timed_create(
           WQ_CONFIG(.name = "test", .metrics = &empty, .max_retries = 1));

    add(t->q, "foo");
    work_on(t->q, "foo");
    assert_err(wq_add_rate_limited(t->q, wq_str("foo")), WQ_OK);
    assert_err(wq_add_rate_limited(t->q, wq_str("foo")), WQ_EGIVENUP);
    wq_shutdown(t->q);
    timed_destroy(t);
}

/* M-06: the default limiter is destroyed, too. */
TEST(open_that_fails_makes_create_fail_without_a_leak)
{
    struct recorder all[3];
    wq_queue *const untouched = (wq_queue *)(void *)all;
    wq_queue       *q = untouched;
    struct counting mem;

    for (int run = 0; run < 6; run++) {
        const int         bad = run / 2;
        const wq_metrics *first = chain(all, 3);

        counting_init(&mem);
        all[bad].answer = bad == 1 ? WQ_EIO : WQ_ENOTFOUND;
        assert_err(
            wq_create(WQ_CONFIG(.name = "test", .metrics = first,
                                .limiter = run % 2
                                               ? wq_limiter_exponential(1, 10)
                                               : NULL,
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

static void
make_descriptor(struct recorder *r, enum recorder_call call)
{
    if (call == RECORDER_OPEN)
        (void)wq_fd(r->q);
}

/* M-06: the first sink calls wq_fd(), the second one fails. */
TEST(open_that_fails_leaves_no_descriptor)
{
    const uint64_t  before = open_descriptors();
    wq_clock       *clock = wq_clock_fake_create(0);
    struct recorder all[2];
    wq_queue       *q;

    for (int i = 0; i < 3; i++) {
        const wq_metrics *first = chain(all, 2);
        all[0].hook = make_descriptor;
        all[1].answer = WQ_EIO;
        assert_err(wq_create(WQ_CONFIG(.name = "test", .metrics = first,
                                       .clock = clock),
                             &q),
                   WQ_EIO);
    }
    wq_clock_fake_step(clock, 1); /* the clock does not know the queues */
    assert_int_equal(open_descriptors(), before);
    wq_clock_destroy(clock);
}

/* ---- sizes -------------------------------------------------------------- */

/* M-06 */
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

/* M-06: the queue does not read behind a sink of an older release. */
TEST(shorter_sink_has_no_next)
{
    struct recorder r;
    const size_t    size = offsetof(wq_metrics, limited);
    wq_metrics     *old = malloc(size); /* a sanitizer sees reads behind it */

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
TEST(longer_sink_is_accepted_if_its_unknown_fields_are_zero)
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
    wq_destroy(open_named(&later.known));
    assert_int_equal(r.calls[RECORDER_CLOSE], 1);
    later.unknown = &later;
    assert_err(
        wq_create(WQ_CONFIG(.name = "test", .metrics = &later.known), &q),
        WQ_EINVAL);
}

/* ---- the default -------------------------------------------------------- */

/* M-07 */
TEST(default_sink_is_for_later_queues_without_a_sink)
{
    struct recorder mine, first, second;
    wq_queue       *before = open_named(NULL);

    recorder_init(&mine);
    recorder_init(&first);
    recorder_init(&second);
    assert_err(wq_metrics_set_default(&first.sink), WQ_OK);
    assert_err(wq_metrics_set_default(&second.sink), WQ_ESTATE);
    wq_queue *plain = open_named(NULL);
    wq_queue *own = open_named(&mine.sink);
    wq_queue *nameless = open_queue(NULL);
    assert_err(wq_metrics_set_default(NULL), WQ_OK);
    wq_queue *after = open_named(NULL);

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
    assert_int_equal(counts_of(before).unfinished_ns, -1);
    assert_int_equal(counts_of(plain).unfinished_ns, 0);
    wq_destroy(before);
    wq_destroy(plain);
    wq_destroy(own);
    wq_destroy(nameless);
    wq_destroy(after);
    assert_int_equal(first.calls[RECORDER_CLOSE], 1);
}

/* ---- sinks that call the queue ------------------------------------------ */

/* Calls functions of the queue, and adds a key; not from within itself, which
 * would not end. */
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
        const wq_stats now = counts_of(t->q);
        assert_sums(&all[i], &now);
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

/* Q-25 M-06: the change is reported to all sinks, also to those that were not
 * open yet. */
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

/* ---- slow sinks -------------------------------------------------------- */

/* A sink that waits, when the producer reports a change, until another thread
 * has got a key. */
struct slow {
    wq_queue    *q;
    struct tally got; /* keys */
    pthread_t    producer;
    bool         has_got; /* a key, while it waited */
};

static void
wait_for_get(struct recorder *r, enum recorder_call call)
{
    struct slow *slow = r->arg;

    if (call == RECORDER_CHANGED &&
        pthread_equal(pthread_self(), slow->producer))
        slow->has_got = tally_reaches(&slow->got, 1);
}

static int
run_get(struct worker *self)
{
    struct slow *slow = self->arg;
    wq_item     *item = NULL;
    const wq_err err = wq_get(slow->q, &item);

    tally_add(&slow->got, 1);
    return (int)err;
}

/* Q-25 Q-26 */
TEST(slow_sink_does_not_delay_a_wakeup)
{
    struct metered *m = *state;
    struct slow     slow = {
            .q = m->q, .got = TALLY_INIT, .producer = pthread_self()};
    struct worker *getter = worker_start(run_get, &slow);

    worker_await_blocked(getter);
    m->r.arg = &slow;
    m->r.hook = wait_for_get;
    add(m->q, "foo");
    assert_true(slow.has_got);
    assert_err(worker_join(getter), WQ_OK);
}

static void
pass_stage(struct recorder *r, enum recorder_call call)
{
    if (call == RECORDER_CHANGED)
        checkpoint_pass(r->arg);
}

/* O-03 Q-25: a get that times out may report changes. Until it has done so, it
 * counts as blocked. */
TEST(destroy_waits_for_a_get_that_reports_to_a_sink)
{
    struct recorder   all[2];
    const wq_metrics *first = chain(all, 2);
    struct checkpoint checkpoint = CHECKPOINT_INIT;
    struct timed *t = timed_create(WQ_CONFIG(.name = "test", .metrics = first));

    add(t->q, "foo");
    (void)take(t->q);
    add_after(t, "foo", 1 * S); /* then it is DIRTY, and nothing is READY */
    struct worker *getter = get_in_time(t, 1 * S);
    await_sleepers(t, 1);
    all[0].arg = &checkpoint;
    all[0].hook = pass_stage;
    step(t, 1 * S);
    tally_await(&checkpoint.begun, 1); /* the get is in the first sink */
    struct worker *destroyer = worker_destroy(t->q);
    worker_await_blocked(destroyer);
    tally_add(&checkpoint.allowed, CHECKPOINT_OPEN);
    assert_err(worker_join(getter), WQ_ETIMEDOUT);
    assert_int_equal(worker_join(destroyer), 0);
    t->q = NULL;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(all[i].sum.adds, 2);
        assert_sums(&all[i], &all[i].last);
    }
    timed_destroy(t);
}

WQ_TESTS(with_sink(sink_is_opened_with_the_queue_and_closed_once),
         with_sink(destroy_reports_drops_before_it_closes_the_sink),
         test(queue_reports_the_same_to_all_its_sinks),
         test(queue_copies_the_structs_of_its_sinks),
         test(sink_may_have_no_functions),
         test(open_that_fails_makes_create_fail_without_a_leak),
         test(open_that_fails_leaves_no_descriptor),
         test(sink_of_a_wrong_size_is_refused_before_any_is_opened),
         test(shorter_sink_has_no_next),
         test(longer_sink_is_accepted_if_its_unknown_fields_are_zero),
         test(default_sink_is_for_later_queues_without_a_sink),
         test(sinks_may_call_the_queue),
         test(sink_may_call_the_queue_from_open),
         with_sink(slow_sink_does_not_delay_a_wakeup),
         test(destroy_waits_for_a_get_that_reports_to_a_sink));
