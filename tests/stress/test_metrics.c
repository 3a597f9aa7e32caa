/* SPDX-License-Identifier: MIT */
/* test_metrics.c: do the numbers add up when many threads use a queue at once?
 *
 * Producers add a few keys in every way there is, workers get them in every way
 * and say done, or fail; meanwhile others look. In the end
 *
 *   - what a sink was told of changes, added up, is what wq_read_stats() says;
 *   - it was told one latency a get and one work a done: nothing twice, nothing
 *     not at all;
 *
 * and at every moment
 *
 *   - a snapshot of wq_read_stats() is consistent in itself;
 *   - a walk visits a key that is there all the while exactly once.
 *
 * WQ_STRESS_SECONDS says how long the whole program takes (about a second a
 * test unless set); WQ_SEED makes other random choices. What does not add up
 * ends the program with a message.
 */
#include "support/wq_test.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <wq/limiter.h>
#include <wq/metrics.h>

#include "port/time.h"
#include "support/recorder.h"
#include "unit/dice.h"

#define SECOND INT64_C(1000000000)

enum { KEYS = 40, STEADY = 2000, PRODUCERS = 2, WORKERS = 2 };

static wq_queue       *q;
static struct recorder all[2];
static wq_registry    *registry;
static atomic_bool     stop; /* for all but the workers */

static void
expect(bool ok, const char *what, uint64_t expected, uint64_t got)
{
    if (ok)
        return;
    fprintf(stderr, "stress: WQ_SEED=%llu: %s: expected %llu, got %llu\n",
            (unsigned long long)dice_env_seed(1), what,
            (unsigned long long)expected, (unsigned long long)got);
    abort();
}

static void
expect_equal(const char *what, uint64_t expected, uint64_t got)
{
    expect(expected == got, what, expected, got);
}

static pthread_t
start(void *(*run)(void *), uintptr_t number)
{
    pthread_t thread;

    expect_equal("pthread_create", 0,
                 (uint64_t)pthread_create(&thread, NULL, run, (void *)number));
    return thread;
}

static void
join(pthread_t thread)
{
    expect_equal("pthread_join", 0, (uint64_t)pthread_join(thread, NULL));
}

static struct dice
dice_for(void *number)
{
    return dice_from(dice_env_seed(1) * 1000 + (uintptr_t)number);
}

/* How long one test may take. */
static int64_t
share_ns(void)
{
    const char  *text = getenv("WQ_STRESS_SECONDS");
    const double seconds = text ? strtod(text, NULL) : 0;
    if (seconds <= 0)
        return SECOND * 7 / 10;
    return (int64_t)(seconds * (double)SECOND / (double)wq_tests_len);
}

static void
stop_in_time(void)
{
    const int64_t end = wq__time_now() + share_ns();

    while (wq__time_now() < end)
        sched_yield();
    atomic_store(&stop, true);
}

/* ---- who changes something ---------------------------------------------- */

static wq_err
add_somehow(struct dice *dice, wq_key key)
{
    switch (dice_roll(dice, 8)) {
    case 0:
        return wq_add_after(q, key, (int64_t)dice_roll(dice, 20000));
    case 1:
        return wq_add_rate_limited(q, key);
    case 2:
        return wq_add_with(q, WQ_ADD(.priority = (int)dice_roll(dice, 4)), &key,
                           1);
    case 3:
        return wq_add_with(q, WQ_ADD(.throttle_ns = 5000), &key, 1);
    case 4:
        (void)wq_remove(q, key);
        return WQ_OK;
    case 5:
        (void)wq_cancel_after(q, key);
        return WQ_OK;
    default:
        return wq_add(q, key);
    }
}

static void
expect_retried(wq_err err)
{
    expect(err == WQ_OK || err == WQ_EGIVENUP || err == WQ_ESHUTDOWN, "retry",
           WQ_OK, err);
}

static void *
produce(void *number)
{
    struct dice dice = dice_for(number);

    while (!atomic_load(&stop)) {
        const uint64_t key = dice_roll(&dice, KEYS);
        const wq_err   err = add_somehow(&dice, wq_u64(&key));
        expect(err == WQ_OK || err == WQ_EGIVENUP, "add", WQ_OK, err);
    }
    return NULL;
}

/* Work on all of them, somehow; none is left on loan. */
static void
finish(struct dice *dice, wq_item **items, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (dice_roll(dice, 4) == 0)
            expect_retried(wq_add_rate_limited(q, items[i]->key));
    if (dice_roll(dice, 2)) {
        expect_equal("done_many", WQ_OK, wq_done_many(q, items, n));
        return;
    }
    for (size_t i = 0; i < n; i++)
        expect_equal("done", WQ_OK, wq_done(q, items[i]));
}

static void *
consume(void *number)
{
    struct dice dice = dice_for(number);
    wq_item    *items[5];

    for (;;) {
        size_t n = 1;
        wq_err err;

        if (dice_roll(&dice, 2)) {
            err = wq_get_many(q, items, 5, SECOND / 1000, &n);
        } else {
            items[0] = NULL;
            err = wq_next(q, SECOND / 1000, items);
            if (!err) /* and once more: the first is done by it */
                err = wq_next(q, 0, items);
        }
        if (err == WQ_ESHUTDOWN)
            return NULL;
        if (!err)
            finish(&dice, items, n);
    }
}

/* ---- who looks ---------------------------------------------------------- */

static void
check_counts(const wq_stats *c, wq_stats *before)
{
    expect_equal("adds of a snapshot",
                 c->gets + c->removed + c->displaced + c->deferred + c->ready +
                     c->dirty,
                 c->adds);
    expect_equal("held in a snapshot", c->gets - c->dones, c->held);
    expect(c->dirty <= c->held, "dirty ones are held", c->held, c->dirty);
    expect(c->longest_ns >= 0, "longest", 0, (uint64_t)c->longest_ns);
    expect(c->unfinished_ns >= c->longest_ns, "sum of ages",
           (uint64_t)c->longest_ns, (uint64_t)c->unfinished_ns);
    expect(c->adds >= before->adds && c->gets >= before->gets &&
               c->dones >= before->dones && c->merged >= before->merged &&
               c->retries >= before->retries && c->drops >= before->drops,
           "counts never go down", before->adds, c->adds);
    *before = *c;
}

static void *
look_on(void *unused)
{
    wq_stats before = {0};

    while (!atomic_load(&stop)) {
        wq_stats c = {.size = sizeof c};
        expect_equal("stats", WQ_OK, wq_read_stats(q, &c));
        check_counts(&c, &before);
    }
    return unused;
}

static void *
scrape(void *unused)
{
    while (!atomic_load(&stop)) {
        char  *text = NULL;
        size_t len = 0;
        expect_equal(
            "text", WQ_OK,
            wq_registry_text(registry, WQ_TEXT_PROMETHEUS, &text, &len));
        free(text);
    }
    return unused;
}

/* ---- do the sums agree? ------------------------------------------------- */

static wq_queue *
create(void)
{
    wq_queue *made = NULL;

    recorder_init(&all[0]);
    recorder_init(&all[1]);
    wq_metrics chain = *wq_registry_sink(registry); /* copied by the queue */
    chain.next = &all[0].sink;
    all[0].sink.next = &all[1].sink;
    expect_equal(
        "create", WQ_OK,
        wq_create(
            WQ_CONFIG(.name = "stress", .metrics = &chain, .max_retries = 3,
                      .limiter = wq_limiter_exponential(1000, SECOND / 1000)),
            &made));
    return made;
}

static void
check_sums(const struct recorder *r)
{
    const wq_stats *last = &r->last;

    expect_equal("depth", last->ready + last->dirty, (uint64_t)r->sum.depth);
    expect_equal("adds", last->adds, r->sum.adds);
    expect_equal("merged", last->merged, r->sum.merged);
    expect_equal("retries", last->retries, r->sum.retries);
    expect_equal("drops", last->drops, r->sum.drops);
    expect_equal("changes that are none", 0, r->empty);
    expect_equal("latencies", last->gets, r->latency.n);
    expect_equal("works", last->dones, r->work.n);
    expect_equal("dones", last->gets, last->dones);
    expect(r->latency.least >= 0 && r->work.least >= 0, "durations", 0, 1);
    expect(last->gets > 0 && last->drops > 0 && last->retries > 0,
           "something happened", 1, 0);
    expect_equal("opened", 1, r->calls[RECORDER_OPEN]);
    expect_equal("closed", 1, r->calls[RECORDER_CLOSE]);
}

/* M-02 M-04 O-30 */
TEST(what_sinks_were_told_adds_up_to_what_the_queue_says)
{
    pthread_t threads[PRODUCERS + WORKERS + 2];
    size_t    n = 0;

    assert_int_equal(wq_registry_create(&registry), WQ_OK);
    atomic_store(&stop, false);
    q = create();
    for (uintptr_t i = 0; i < PRODUCERS; i++)
        threads[n++] = start(produce, 1 + i);
    threads[n++] = start(look_on, 0);
    threads[n++] = start(scrape, 0);
    for (uintptr_t i = 0; i < WORKERS; i++)
        threads[n++] = start(consume, 100 + i);
    stop_in_time();
    for (size_t i = 0; i < n - WORKERS; i++)
        join(threads[i]);
    expect_equal("drain", WQ_OK, wq_shutdown_with_drain(q));
    for (size_t i = n - WORKERS; i < n; i++)
        join(threads[i]);
    wq_destroy(q);
    check_sums(&all[0]);
    check_sums(&all[1]);
    expect_equal("both heard the same", (uint64_t)all[0].latency.sum,
                 (uint64_t)all[1].latency.sum);
    print_message("%llu gets, %llu changes\n",
                  (unsigned long long)all[0].last.gets,
                  (unsigned long long)all[0].calls[RECORDER_CHANGED]);
    wq_registry_destroy(registry);
}

/* ---- queues that come and go while somebody asks ------------------------ */

/* M-06 M-07: a sink that is open asks while the next one is being opened. */
TEST(queues_come_and_go_while_a_registry_is_asked)
{
    const int64_t end = wq__time_now() + share_ns();

    assert_int_equal(wq_registry_create(&registry), WQ_OK);
    atomic_store(&stop, false);
    const pthread_t thread = start(scrape, 0);
    while (wq__time_now() < end) {
        const wq_key key = wq_str("foo");
        q = create();
        expect_equal("add", WQ_OK, wq_add(q, key));
        expect_equal("add", WQ_OK, wq_add_after(q, key, 1));
        wq_destroy(q);
        expect_equal("adds", all[1].last.adds, all[1].sum.adds);
        expect_equal("depth", all[1].last.ready, (uint64_t)all[1].sum.depth);
        expect_equal("drops", all[1].last.drops, all[1].sum.drops);
    }
    atomic_store(&stop, true);
    join(thread);
    wq_registry_destroy(registry);
}

/* ---- one key and many producers ------------------------------------------ */

static void *
add_the_same(void *unused)
{
    while (!atomic_load(&stop))
        expect_equal("add", WQ_OK, wq_add_str(q, "the same"));
    return unused;
}

/* Q-03 O-30: however many are on their way to be merged. */
TEST(key_that_many_add_is_counted_once)
{
    const int64_t end = wq__time_now() + share_ns();
    pthread_t     threads[3];

    atomic_store(&stop, false);
    expect_equal("create", WQ_OK, wq_create(NULL, &q));
    expect_equal("add", WQ_OK, wq_add_str(q, "the same"));
    for (uintptr_t i = 0; i < 3; i++)
        threads[i] = start(add_the_same, i);
    while (wq__time_now() < end) {
        wq_stats c = {.size = sizeof c};
        expect_equal("len", 1, wq_len(q));
        expect_equal("stats", WQ_OK, wq_read_stats(q, &c));
        expect_equal("ready", 1, c.ready);
        expect_equal("adds", 1, c.adds);
    }
    atomic_store(&stop, true);
    for (int i = 0; i < 3; i++)
        join(threads[i]);
    wq_destroy(q);
}

/* ---- walks -------------------------------------------------------------- */

/* A key that is there all the while; others have shorter names. */
static void
name_steady(char *name, size_t size, unsigned number)
{
    (void)snprintf(name, size, "steady key number %u", number);
}

static void *
churn(void *number)
{
    struct dice dice = dice_for(number);
    char        name[40];

    while (!atomic_load(&stop)) {
        const uint64_t key = dice_roll(&dice, 5000);
        wq_item       *item = NULL;

        if (dice_roll(&dice, 2))
            expect_equal("add", WQ_OK, wq_add(q, wq_u64(&key)));
        /* Steady ones go from state to state and never away. */
        name_steady(name, sizeof name, (unsigned)dice_roll(&dice, STEADY));
        expect_equal("add", WQ_OK, wq_add_str(q, name));
        if (wq_get_within(q, 0, &item) != WQ_OK)
            continue;
        if (item->key.len > sizeof key)
            expect_equal("add", WQ_OK, wq_add(q, item->key));
        expect_equal("done", WQ_OK, wq_done(q, item));
    }
    return NULL;
}

struct census {
    unsigned char times[STEADY];
};

static bool
count(void *ctx, wq_key key, const wq_key_info *info)
{
    struct census *census = ctx;
    char           text[40] = {0};
    unsigned       number;

    expect(info->states != 0, "a visited key has states", 1, 0);
    if (key.len <= sizeof(uint64_t))
        return true;
    memcpy(text, key.data, key.len);
    expect_equal("a name", 1,
                 (uint64_t)sscanf(text, "steady key number %u", &number));
    census->times[number]++;
    return true;
}

/* O-33 */
TEST(walk_meets_a_key_that_stays_exactly_once)
{
    const int64_t end = wq__time_now() + share_ns();
    pthread_t     threads[2];
    char          name[40];
    unsigned      walks = 0;

    atomic_store(&stop, false);
    expect_equal("create", WQ_OK, wq_create(NULL, &q));
    for (unsigned i = 0; i < STEADY; i++) {
        name_steady(name, sizeof name, i);
        expect_equal("add", WQ_OK, wq_add_str(q, name));
    }
    for (uintptr_t i = 0; i < 2; i++)
        threads[i] = start(churn, i);
    do {
        struct census census = {{0}};
        expect_equal("each", WQ_OK, wq_each(q, 0, count, &census));
        for (unsigned i = 0; i < STEADY; i++)
            expect_equal("visits of a key that stays", 1, census.times[i]);
        walks++;
    } while (wq__time_now() < end);
    atomic_store(&stop, true);
    for (int i = 0; i < 2; i++)
        join(threads[i]);
    print_message("%u walks\n", walks);
    wq_destroy(q);
}

static atomic_bool walked; /* the walk has visited its first key */

static void *
use_the_queue(void *uses)
{
    while (!atomic_load(&walked))
        sched_yield();
    for (int i = 0; i < 100; i++) {
        expect_equal("add", WQ_OK, wq_add_str(q, "mine"));
        (void)wq_len(q);
        atomic_fetch_add((atomic_uint *)uses, 1);
    }
    return NULL;
}

static bool
wait_for_others(void *uses, wq_key key, const wq_key_info *info)
{
    (void)key;
    (void)info;
    atomic_store(&walked, true);
    while (atomic_load((atomic_uint *)uses) < 100)
        sched_yield();
    return true;
}

/* O-33: the walk waits in its first visit until another thread has used the
 * queue a hundred times. */
TEST(queue_goes_on_while_it_is_walked_over)
{
    static atomic_uint uses;

    expect_equal("create", WQ_OK, wq_create(NULL, &q));
    for (uint64_t i = 0; i < 100000; i++)
        expect_equal("add", WQ_OK, wq_add(q, wq_u64(&i)));
    const pthread_t thread = start(use_the_queue, (uintptr_t)&uses);
    expect_equal("each", WQ_OK, wq_each(q, 0, wait_for_others, &uses));
    join(thread);
    wq_destroy(q);
}

WQ_TESTS(test(what_sinks_were_told_adds_up_to_what_the_queue_says),
         test(queues_come_and_go_while_a_registry_is_asked),
         test(key_that_many_add_is_counted_once),
         test(walk_meets_a_key_that_stays_exactly_once),
         test(queue_goes_on_while_it_is_walked_over));
