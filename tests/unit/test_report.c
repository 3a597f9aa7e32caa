/* SPDX-License-Identifier: MIT */
/* test_report.c: what do metrics and inspection cost the queue, and does it
 * report to sinks without its lock?
 *
 * Seen from inside: by a clock that counts its readings, by trying the lock from
 * a sink, and by holding it so that producers use the inbox.
 */
#include "unit/queue_fixture.h"

#include <stdatomic.h>
#include <time.h>

#include <wq/limiter.h>

#include "clock/clock.h"
#include "support/checkpoint.h"
#include "support/recorder.h"

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

/* Since it was called last, the clock was read so often as a stopwatch, and
 * never for its time. */
static void
expect_reads(unsigned watches)
{
    assert_int_equal(timepiece.nows, 0);
    assert_int_equal(timepiece.watches, watches);
    timepiece.watches = 0;
}

/* A queue that lives by that clock. */
static void
create_timed(const wq_config *config)
{
    wq_config mine = *config;

    timepiece = (struct counting_clock){
        .base = {.now = read_now, .stopwatch = read_stopwatch, .park = park}};
    mine.clock = &timepiece.base;
    create(&mine);
    timepiece.nows = timepiece.watches = 0;
}

static int
create_metered(void **state)
{
    (void)state;
    recorder_init(&rec);
    create_timed(WQ_CONFIG(.name = "test", .metrics = &rec.sink));
    return 0;
}

/* ---- what the clock is read for ----------------------------------------- */

/* The stopwatch is read `reads` times during `step`. */
#define COSTS(reads, step)                                                     \
    do {                                                                       \
        step;                                                                  \
        expect_reads(reads);                                                   \
    } while (0)

/* Each verb reads the clock `cost` times; wq_next(), which is two, twice as
 * often. */
static void
expect_cost(unsigned cost)
{
    const wq_key three[] = {wq_str("a"), wq_str("b"), wq_str("c")};
    wq_item     *items[3] = {NULL};
    size_t       n;

    COSTS(cost, add("a"));
    COSTS(cost, add("a"));
    COSTS(cost, items[0] = take("a"));
    COSTS(cost, add("a"));
    COSTS(cost, assert_err(wq_done(q, items[0]), WQ_OK));
    COSTS(cost, assert_err(wq_get(q, &items[0]), WQ_OK));
    COSTS(cost, assert_err(wq_done_key(q, wq_str("a")), WQ_OK));
    COSTS(0, expect_get(WQ_ETIMEDOUT)); /* nothing was handed out */

    /* A batch is one step. */
    COSTS(cost, assert_err(wq_add_with(q, NULL, three, 3), WQ_OK));
    COSTS(cost, assert_err(wq_get_many(q, items, 3, 0, &n), WQ_OK));
    COSTS(cost, assert_err(wq_done_many(q, items, n), WQ_OK));

    COSTS(cost, add("a"));
    COSTS(cost, add("b"));
    items[0] = NULL;
    COSTS(cost, assert_err(wq_next(q, 0, items), WQ_OK));
    COSTS(2 * cost, assert_err(wq_next(q, 0, items), WQ_OK));
    COSTS(cost, assert_err(wq_next(q, 0, items), WQ_ETIMEDOUT)); /* the done */
    COSTS(0, (void)wq_len(q));
}

/* M-06: the stopwatch, and once a step, however many sinks there are; records
 * of a queue that keeps no ages have no place for them. */
TEST(only_queues_that_keep_ages_read_the_stopwatch)
{
    static struct recorder first;
    const struct {
        const char      *name;
        const wq_config *config;
        bool             ages, reports;
    } rows[] = {
        {"plain", WQ_CONFIG(.order = NULL), false, false},
        {"a name alone", WQ_CONFIG(.name = "test"), false, false},
        {"a sink without a name", WQ_CONFIG(.metrics = &rec.sink), false,
         false},
        {"a sink with an empty name",
         WQ_CONFIG(.name = "", .metrics = &rec.sink), false, false},
        /* O-80 O-87 */
        {"groups and a bound of bytes",
         WQ_CONFIG(.group = wq_group_before_slash, .group_max_held = 9,
                   .max_bytes = 100),
         false, false},
        /* O-89 */
        {"ageing", WQ_CONFIG(.max_ready_ns = 1000), true, false},
        {"ages", WQ_CONFIG(.ages = true), true, false},
        {"one sink", WQ_CONFIG(.name = "test", .metrics = &rec.sink), true,
         true},
        {"two sinks", WQ_CONFIG(.name = "test", .metrics = &first.sink), true,
         true},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        print_message("%s\n", rows[i].name);
        recorder_init(&rec);
        recorder_init(&first);
        first.sink.next = &rec.sink;
        create_timed(rows[i].config);
        assert_int_equal(m->core.ages, rows[i].ages);
        assert_int_equal(m->reports_changes, rows[i].reports);
        expect_cost(rows[i].ages);
        assert_int_equal(rec.latency.n > 0, rows[i].reports);
        (void)close_queue(NULL);
    }
}

/* ---- the inbox ---------------------------------------------------------- */

/* wq_add() while another thread has the lock: to report it to the sink would
 * need the lock. */
static void
hand_over(const char *key)
{
    wq__lock_take(&m->lock);
    wq__inbox_open(&m->inbox);
    atomic_store(&m->wake_from, WQ__WAKE_NOBODY);
    add(key);
    assert_true(wq__inbox_holds(&m->inbox));
    wq__lock_release(&m->lock);
}

/* M-04 */
TEST(latency_in_the_inbox_runs_from_the_add)
{
    timepiece.now_ns = 100;
    hand_over("foo");
    expect_reads(1);
    timepiece.now_ns = 103;
    hand_over("foo"); /* merged */
    timepiece.now_ns = 110;
    assert_int_equal(wq_len(q), 1); /* taken in now */
    timepiece.now_ns = 120;
    wq_item *item = take("foo");
    assert_int_equal(rec.latency.n, 1);
    assert_int_equal(rec.latency.ns[0], 20);

    timepiece.now_ns = 125;
    hand_over("foo"); /* held: DIRTY since then */
    timepiece.now_ns = 130;
    assert_err(wq_done(q, item), WQ_OK);
    timepiece.now_ns = 140;
    (void)take("foo");
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
TEST(add_to_the_inbox_is_reported_before_it_returns)
{
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
    assert_int_equal(rec.sum.adds, 0); /* not seen yet */
    assert_err(wq_read_stats(q, &counts), WQ_OK);
    assert_int_equal(counts.ready, 1);
    assert_int_equal(counts.adds, 1);
    assert_int_equal(rec.sum.adds, 0); /* a query reports nothing */
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
    const time_t limit = time(NULL) + 10;

    (void)call;
    while (lock_is_taken(&wq__memory_of(r->q)->lock))
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

/* */
TEST(queue_reports_to_sinks_without_the_lock)
{
    wq_item *items[3] = {NULL};
    size_t   n;

    lock_was_taken = 0;
    recorder_init(&rec);
    rec.hook = look_at_lock;
    create(WQ_CONFIG(.name = "test", .metrics = &rec.sink, .max_retries = 2,
                     .limiter = wq_limiter_exponential(1, 1)));
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
    (void)close_queue(NULL);
    for (int i = 0; i < RECORDER_CALLS; i++)
        assert_true(rec.calls[i] > 0);
    assert_int_equal(lock_was_taken, 0);
}

/* ---- a sink that takes its time ----------------------------------------- */

static struct checkpoint sink_checkpoint = CHECKPOINT_INIT;
static atomic_bool       sink_is_slow;

/* The next report of a change lasts until the test lets it end. */
static void
take_time(struct recorder *r, enum recorder_call call)
{
    (void)r;
    if (call == RECORDER_CHANGED && atomic_exchange(&sink_is_slow, false))
        checkpoint_pass(&sink_checkpoint);
}

/* a getter that reports before it sleeps is not on the list of those that
 * can be woken, and does not count as one that spins. */
TEST(slow_sink_of_one_getter_does_not_delay_another)
{
    wq_item *items[2] = {NULL};

    recorder_init(&rec);
    rec.hook = take_time;
    create(WQ_CONFIG(.name = "test", .metrics = &rec.sink));
    add("held");
    wq_item       *held = take("held");
    struct worker *idle = worker_get(q, &items[0]);
    worker_await_blocked(idle);
    hand_over("held"); /* DIRTY: a change to report, and no key to take */
    atomic_store(&sink_is_slow, true);
    struct worker *slow = worker_get(q, &items[1]);
    tally_await(&sink_checkpoint.begun, 1);

    add("next");
    assert_err(worker_join(idle), WQ_OK);
    assert_memory_equal(items[0]->key.data, "next", 4);

    tally_add(&sink_checkpoint.allowed, CHECKPOINT_OPEN);
    assert_err(wq_done(q, held), WQ_OK);
    assert_err(worker_join(slow), WQ_OK);
}

static int
add_and_wait(struct worker *self)
{
    (void)self;
    return (int)wq_add_one(q, wq_str("new"),
                           WQ_ADD(.max_block_ns = WQ_FOREVER));
}

/* an add that finds a deadline passed and the queue full reports that
 * before it waits. */
TEST(add_that_waits_for_capacity_has_reported_before)
{
    wq_clock *clock = wq_clock_fake_create(0);

    recorder_init(&rec);
    assert_non_null(clock);
    create(WQ_CONFIG(.name = "test", .metrics = &rec.sink, .clock = clock,
                     .max_len = 1, .overflow = WQ_OVERFLOW_BLOCK));
    assert_err(wq_add_after(q, wq_str("due"), 10), WQ_OK);
    wq_clock_fake_step(clock, 10);
    struct worker *w = worker_start(add_and_wait, NULL);
    worker_await_blocked(w);
    (void)pthread_mutex_lock(&rec.mutex);
    const wq_change sum = rec.sum;
    (void)pthread_mutex_unlock(&rec.mutex);
    assert_int_equal(sum.adds, 1);
    assert_int_equal(sum.depth, 1);

    wq_shutdown(q);
    assert_err(worker_join(w), WQ_ESHUTDOWN);
    (void)close_queue(NULL);
    wq_clock_destroy(clock);
}

/* ---- walks -------------------------------------------------------------- */

enum { MANY = 100000, AT_A_TIME = 64, LOOKED_AT = 512 };

struct walk {
    size_t   visits;
    unsigned last_read; /* readings of the clock at the last visit */
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
    assert_false(lock_is_taken(&m->lock));
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

#define metered_test(name) test_with(name, create_metered, close_queue)

WQ_TESTS(test(only_queues_that_keep_ages_read_the_stopwatch),
         metered_test(latency_in_the_inbox_runs_from_the_add),
         metered_test(stats_take_the_inbox_in),
         metered_test(add_to_the_inbox_is_reported_before_it_returns),
         test(queue_reports_to_sinks_without_the_lock),
         test_with(slow_sink_of_one_getter_does_not_delay_another, NULL,
                   close_queue),
         test(add_that_waits_for_capacity_has_reported_before),
         metered_test(walk_holds_the_lock_for_a_bounded_number_of_keys));
