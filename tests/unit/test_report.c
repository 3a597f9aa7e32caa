/* SPDX-License-Identifier: MIT */
/* test_report.c: what do metrics and inspection cost the queue, and are sinks
 * told without its lock?
 *
 * Seen from inside: by a clock that counts who reads it, by trying the lock
 * from a sink, and by holding it so that producers use the inbox.
 */
#include "support/wq_test.h"

#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include <wq/limiter.h>

#include "clock/clock.h"
#include "memory/memory.h"
#include "support/recorder.h"
#include "support/stage.h"
#include "support/worker.h"
#include "unit/locks.h"

#define assert_err(actual, expected)                                           \
    assert_string_equal(wq_err_name((wq_err)(actual)), wq_err_name(expected))

/* ---- a clock that counts ------------------------------------------------ */

struct counting_clock {
    wq_clock base;          /* first: a clock is the beginning of it */
    int64_t  now_ns;        /* what it shows */
    unsigned nows, watches; /* how often it was read, and how */
};

static struct counting_clock *
counting(wq_clock *clock)
{
    return (struct counting_clock *)(void *)clock;
}

static int64_t
read_now(wq_clock *clock)
{
    counting(clock)->nows++;
    return counting(clock)->now_ns;
}

static int64_t
read_stopwatch(wq_clock *clock)
{
    counting(clock)->watches++;
    return counting(clock)->now_ns;
}

static bool
park(wq_clock *clock, struct wq__parker *p, int64_t deadline_ns)
{
    (void)clock;
    return wq__park(p, deadline_ns);
}

static struct counting_clock timepiece;
static struct recorder       rec;
static wq_queue             *q;

static void
create(const wq_config *config)
{
    wq_config mine = *config;

    timepiece = (struct counting_clock){
        .base = {.now = read_now, .stopwatch = read_stopwatch, .park = park}};
    recorder_init(&rec);
    mine.clock = &timepiece.base;
    assert_err(wq_create(&mine, &q), WQ_OK);
    timepiece.nows = timepiece.watches = 0;
}

static int
destroy(void **state)
{
    (void)state;
    wq_destroy(q);
    return 0;
}

static int
create_metered(void **state)
{
    (void)state;
    create(WQ_CONFIG(.name = "test", .metrics = &rec.sink));
    return 0;
}

static struct wq__memory *
inside(void)
{
    return (struct wq__memory *)(void *)q;
}

/* Since this was asked last, the clock was read so often for its time and so
 * often as a stopwatch. */
static void
assert_reads(unsigned nows, unsigned watches)
{
    assert_int_equal(timepiece.nows, nows);
    assert_int_equal(timepiece.watches, watches);
    timepiece.nows = timepiece.watches = 0;
}

static void
add(const char *key)
{
    assert_err(wq_add_str(q, key), WQ_OK);
}

static wq_item *
take(void)
{
    wq_item *item = NULL;

    assert_err(wq_get_within(q, 0, &item), WQ_OK);
    return item;
}

/* ---- what the clock is read for ----------------------------------------- */

/* Each verb reads the clock `cost` times; wq_next(), which is two, twice as
 * often. */
static void
assert_cost(unsigned cost)
{
    const wq_key three[] = {wq_str("a"), wq_str("b"), wq_str("c")};
    wq_item     *items[3] = {NULL};
    size_t       n;

    add("a");
    assert_reads(0, cost);
    add("a");
    assert_reads(0, cost);
    items[0] = take();
    assert_reads(0, cost);
    add("a");
    assert_reads(0, cost);
    assert_err(wq_done(q, items[0]), WQ_OK);
    assert_reads(0, cost);
    assert_err(wq_get(q, &items[0]), WQ_OK);
    assert_reads(0, cost);
    assert_err(wq_done_key(q, wq_str("a")), WQ_OK);
    assert_reads(0, cost);
    assert_err(wq_get_within(q, 0, &items[0]), WQ_ETIMEDOUT);
    assert_reads(0, 0); /* nothing was handed out */

    /* A batch is one step. */
    assert_err(wq_add_with(q, NULL, three, 3), WQ_OK);
    assert_reads(0, cost);
    assert_err(wq_get_many(q, items, 3, 0, &n), WQ_OK);
    assert_reads(0, cost);
    assert_err(wq_done_many(q, items, n), WQ_OK);
    assert_reads(0, cost);

    add("a");
    add("b");
    assert_reads(0, 2 * cost);
    items[0] = NULL;
    assert_err(wq_next(q, 0, items), WQ_OK);
    assert_reads(0, cost);
    assert_err(wq_next(q, 0, items), WQ_OK);
    assert_reads(0, 2 * cost);
    assert_err(wq_next(q, 0, items), WQ_ETIMEDOUT);
    assert_reads(0, cost); /* only the first half was done */
    (void)wq_len(q);
    assert_reads(0, 0);
}

/* M-06 */
TEST(queue_without_metrics_reads_no_clock)
{
    create(WQ_CONFIG(.order = NULL));
    assert_cost(0);
    wq_destroy(q);
    create(WQ_CONFIG(.name = "test"));
    assert_cost(0);
    wq_destroy(q);
    create(WQ_CONFIG(.metrics = &rec.sink));
    assert_cost(0);
    wq_destroy(q);
    create(WQ_CONFIG(.name = "", .metrics = &rec.sink));
    assert_cost(0);
    wq_destroy(q);
    create(WQ_CONFIG(.group = wq_group_before_slash, .group_max_held = 9,
                     .max_bytes = 100)); /* O-80 O-87 */
    assert_cost(0);
}

/* O-89: as one that keeps ages. */
TEST(ageing_queue_reads_the_stopwatch_once_a_step)
{
    create(WQ_CONFIG(.max_ready_ns = 1000));
    assert_cost(1);
}

/* M-06: cheaply, and once a step, however many sinks there are. */
TEST(queue_with_metrics_reads_the_stopwatch_once_a_step)
{
    static struct recorder second;

    recorder_init(&second);
    create(WQ_CONFIG(.name = "test", .metrics = &second.sink));
    assert_cost(1);
    wq_destroy(q);
    recorder_init(&rec);
    second.sink.next = &rec.sink;
    create(WQ_CONFIG(.name = "test", .metrics = &second.sink));
    assert_cost(1);
    assert_true(rec.latency.n > 0);
}

/* M-06 */
TEST(ages_alone_cost_the_same)
{
    create(WQ_CONFIG(.ages = true));
    assert_cost(1);
    assert_false(inside()->tells);
}

/* M-06: records of a queue that keeps no ages have no room for them. */
TEST(ages_take_memory_only_where_they_are_kept)
{
    create(WQ_CONFIG(.name = "test"));
    assert_false(inside()->core.ages);
    assert_int_equal(inside()->sinks_len, 0);
    wq_destroy(q);
    create(WQ_CONFIG(.name = "test", .metrics = &rec.sink));
    assert_true(inside()->core.ages);
}

/* ---- the inbox ---------------------------------------------------------- */

/* wq_add() while another thread has the lock; the sink, which wants to hear of
 * it, hears nothing, since that would need the lock. */
static void
hand_over(const char *key)
{
    struct wq__memory *m = inside();

    wq__lock_take(&m->lock);
    wq__inbox_open(&m->inbox);
    atomic_store(&m->rouse_from, WQ__ROUSE_NOBODY);
    add(key);
    assert_true(wq__inbox_holds(&m->inbox));
    wq__lock_release(&m->lock);
}

/* M-04 */
TEST(latency_of_a_key_in_the_inbox_runs_from_its_add)
{
    timepiece.now_ns = 100;
    hand_over("foo");
    assert_reads(0, 1);
    timepiece.now_ns = 103;
    hand_over("foo"); /* merged */
    timepiece.now_ns = 110;
    assert_int_equal(wq_len(q), 1); /* taken in now */
    timepiece.now_ns = 120;
    wq_item *item = take();
    assert_int_equal(rec.latency.n, 1);
    assert_int_equal(rec.latency.ns[0], 20);

    timepiece.now_ns = 125;
    hand_over("foo"); /* held: DIRTY since then */
    timepiece.now_ns = 130;
    assert_err(wq_done(q, item), WQ_OK);
    timepiece.now_ns = 140;
    (void)take();
    assert_int_equal(rec.latency.ns[1], 15);
    assert_int_equal(rec.work.ns[0], 10);
    assert_int_equal(rec.sum.adds, 2);
    assert_int_equal(rec.sum.merged, 1);
}

static int
add_foo(struct worker *self)
{
    (void)self;
    return (int)wq_add(q, wq_str("foo"));
}

/* when all calls have returned, the sums are right. */
TEST(sink_hears_of_a_key_in_the_inbox_before_the_add_returns)
{
    struct wq__memory *m = inside();

    wq__lock_take(&m->lock);
    wq__inbox_open(&m->inbox);
    struct worker *w = worker_start(add_foo, NULL);
    worker_await_blocked(w);
    assert_true(wq__inbox_holds(&m->inbox));
    wq__lock_release(&m->lock);
    assert_err(worker_join(w), WQ_OK);
    assert_int_equal(rec.sum.adds, 1);
    assert_int_equal(rec.sum.depth, 1);
}

/* O-30: what is in the inbox is looked at before the answer. */
TEST(stats_take_the_inbox_in)
{
    wq_stats    counts = {.size = sizeof counts};
    wq_key_info info = {.size = sizeof info};
    wq_depth    depth;
    size_t      n;

    hand_over("foo");
    assert_int_equal(rec.sum.adds, 0); /* nobody has seen it yet */
    assert_err(wq_read_stats(q, &counts), WQ_OK);
    assert_int_equal(counts.ready, 1);
    assert_int_equal(counts.adds, 1);
    assert_int_equal(rec.sum.adds, 0); /* a question tells nobody */
    hand_over("bar");
    assert_err(wq_read_key(q, wq_str("bar"), &info), WQ_OK);
    assert_int_equal(info.states, WQ_STATE_READY);
    hand_over("baz");
    assert_err(wq_read_depths(q, &depth, 1, &n), WQ_OK);
    assert_int_equal(depth.keys, 3);
}

/* ---- the lock ----------------------------------------------------------- */

static unsigned lock_was_taken; /* how often a sink found it so */

/* Another thread may have it, but not for long. */
static void
look_at_lock(struct recorder *r, enum recorder_call call)
{
    const time_t       limit = time(NULL) + 10;
    struct wq__memory *m = (struct wq__memory *)(void *)r->q;

    (void)call;
    while (lock_is_taken(&m->lock))
        if (time(NULL) > limit) {
            lock_was_taken++;
            return;
        }
}

static int
get_one(struct worker *self)
{
    wq_item *item = NULL;
    wq_err   err = wq_get(q, &item);

    (void)self;
    if (!err)
        err = wq_done(q, item);
    return (int)err;
}

static wq_metrics *
hooked(void)
{
    recorder_init(&rec);
    rec.hook = look_at_lock;
    return &rec.sink;
}

/* */
TEST(sinks_are_told_without_the_lock)
{
    wq_item *items[3] = {NULL};
    size_t   n;

    lock_was_taken = 0;
    assert_err(wq_create(WQ_CONFIG(.name = "test", .metrics = hooked(),
                                   .max_retries = 2,
                                   .limiter = wq_limiter_exponential(1, 1)),
                         &q),
               WQ_OK);
    add("a");
    add("a");
    assert_err(wq_next(q, 0, items), WQ_OK);
    assert_err(wq_add_after(q, wq_str("a"), INT64_C(3600000000000)), WQ_OK);
    add("b");
    assert_err(wq_next(q, 0, items), WQ_OK);
    assert_err(wq_done(q, items[0]), WQ_OK);
    assert_err(wq_add_rate_limited(q, wq_str("c")), WQ_OK);
    assert_err(wq_get(q, items), WQ_OK);
    assert_err(wq_done_key(q, wq_str("c")), WQ_OK);
    assert_err(wq_add_rate_limited(q, wq_str("c")), WQ_OK);
    assert_err(wq_add_rate_limited(q, wq_str("c")), WQ_EGIVENUP);
    assert_err(wq_get_many(q, items, 1, WQ_FOREVER, &n), WQ_OK);
    assert_err(wq_done_many(q, items, 1), WQ_OK);
    struct worker *w = worker_start(get_one, NULL);
    worker_await_blocked(w);
    add("d");
    assert_err(worker_join(w), WQ_OK);
    hand_over("e");
    assert_err(wq_remove(q, wq_str("e")), WQ_OK);
    wq_shutdown(q);
    wq_destroy(q);
    q = NULL;
    for (int i = 0; i < RECORDER_CALLS; i++)
        assert_true(rec.calls[i] > 0);
    assert_int_equal(lock_was_taken, 0);
}

/* ---- a sink that takes its time ----------------------------------------- */

static struct stage sink_stage = STAGE_INIT;
static atomic_bool  sink_is_slow;

/* The next change that is reported takes until the test allows it to end. */
static void
take_time(struct recorder *r, enum recorder_call call)
{
    (void)r;
    if (call == RECORDER_CHANGED && atomic_exchange(&sink_is_slow, false))
        stage_pass(&sink_stage);
}

/* a getter that reports before it sleeps is not on the list of those that
 * can be woken, and does not count as one that spins. */
TEST(slow_sink_of_one_getter_does_not_delay_another)
{
    wq_item *items[2] = {NULL};

    recorder_init(&rec);
    rec.hook = take_time;
    assert_err(wq_create(WQ_CONFIG(.name = "test", .metrics = &rec.sink), &q),
               WQ_OK);
    add("held");
    wq_item       *held = take();
    struct worker *idle = worker_get(q, &items[0]);
    worker_await_blocked(idle);
    hand_over("held"); /* DIRTY: a change to report, and no key to take */
    atomic_store(&sink_is_slow, true);
    struct worker *slow = worker_get(q, &items[1]);
    tally_await(&sink_stage.begun, 1);

    add("next");
    assert_err(worker_join(idle), WQ_OK);
    assert_memory_equal(items[0]->key.data, "next", 4);

    tally_add(&sink_stage.allowed, STAGE_OPEN);
    assert_err(wq_done(q, held), WQ_OK);
    assert_err(worker_join(slow), WQ_OK);
}

static int
add_and_wait_for_room(struct worker *self)
{
    (void)self;
    return (int)wq_add_one(q, wq_str("new"),
                           WQ_ADD(.max_block_ns = WQ_FOREVER));
}

/* an add that finds a deadline passed, and no room, reports that before it
 * waits. */
TEST(add_that_waits_for_room_has_reported_what_it_found)
{
    wq_clock *clock = wq_clock_fake_create(0);

    recorder_init(&rec);
    assert_non_null(clock);
    assert_err(wq_create(WQ_CONFIG(.name = "test", .metrics = &rec.sink,
                                   .clock = clock, .max_len = 1,
                                   .overflow = WQ_OVERFLOW_BLOCK),
                         &q),
               WQ_OK);
    assert_err(wq_add_after(q, wq_str("due"), 10), WQ_OK);
    wq_clock_fake_step(clock, 10);
    struct worker *w = worker_start(add_and_wait_for_room, NULL);
    worker_await_blocked(w);
    (void)pthread_mutex_lock(&rec.mutex);
    const wq_change sum = rec.sum;
    (void)pthread_mutex_unlock(&rec.mutex);
    assert_int_equal(sum.adds, 1);
    assert_int_equal(sum.depth, 1);

    wq_shutdown(q);
    assert_err(worker_join(w), WQ_ESHUTDOWN);
    wq_destroy(q);
    q = NULL;
    wq_clock_destroy(clock);
}

/* ---- walks -------------------------------------------------------------- */

enum { MANY = 100000, AT_A_TIME = 64, LOOKED_AT = 512 };

struct walk {
    size_t   visits;
    unsigned last_read; /* what the clock said had happened at the last visit */
    size_t   since;     /* visits since it was read */
    size_t   most;      /* ... at most */
};

/* A walk reads the clock once each time it has the lock. */
static bool
count(void *ctx, wq_key key, const wq_key_info *info)
{
    struct walk *walk = ctx;

    (void)key;
    (void)info;
    assert_false(lock_is_taken(&inside()->lock));
    walk->visits++;
    if (walk->last_read != timepiece.watches)
        walk->since = 0;
    walk->last_read = timepiece.watches;
    if (++walk->since > walk->most)
        walk->most = walk->since;
    return true;
}

/* O-33 */
TEST(walk_holds_the_lock_for_a_bounded_number_of_keys)
{
    struct walk walk = {0};

    for (uint64_t i = 0; i < MANY; i++)
        assert_err(wq_add(q, wq_u64(&i)), WQ_OK);
    timepiece.nows = timepiece.watches = 0;
    assert_err(wq_each(q, 0, count, &walk), WQ_OK);
    assert_int_equal(walk.visits, MANY);
    assert_true(walk.most <= AT_A_TIME);
    assert_true(timepiece.watches >= MANY / AT_A_TIME);

    /* Keys that are looked at in vain count, too. */
    timepiece.nows = timepiece.watches = 0;
    walk = (struct walk){0};
    assert_err(wq_each(q, WQ_STATE_HELD, count, &walk), WQ_OK);
    assert_int_equal(walk.visits, 0);
    assert_true(timepiece.watches >= MANY / LOOKED_AT);
}

WQ_TESTS(test_with(queue_without_metrics_reads_no_clock, NULL, destroy),
         test_with(ageing_queue_reads_the_stopwatch_once_a_step, NULL, destroy),
         test_with(queue_with_metrics_reads_the_stopwatch_once_a_step, NULL,
                   destroy),
         test_with(ages_alone_cost_the_same, NULL, destroy),
         test_with(ages_take_memory_only_where_they_are_kept, NULL, destroy),
         test_with(latency_of_a_key_in_the_inbox_runs_from_its_add,
                   create_metered, destroy),
         test_with(stats_take_the_inbox_in, create_metered, destroy),
         test_with(sink_hears_of_a_key_in_the_inbox_before_the_add_returns,
                   create_metered, destroy),
         test(sinks_are_told_without_the_lock),
         test_with(slow_sink_of_one_getter_does_not_delay_another, NULL,
                   destroy),
         test(add_that_waits_for_room_has_reported_what_it_found),
         test_with(walk_holds_the_lock_for_a_bounded_number_of_keys,
                   create_metered, destroy));
