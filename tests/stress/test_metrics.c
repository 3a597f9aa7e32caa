/* SPDX-License-Identifier: MIT */
/* test_metrics.c: do the numbers add up when many threads use a queue at once?
 *
 * Producers add a few keys in every way, workers get them in every way and call
 * done, or fail; meanwhile others observe. In the end
 *
 *   - the changes that were reported to a sink, added up, equal what
 *     wq_read_stats() returns;
 *   - one latency per get and one work per done was reported;
 *
 * and at every moment
 *
 *   - a snapshot of wq_read_stats() is consistent in itself;
 *   - a walk visits a key that stays exactly once.
 */
#include "stress/crowd.h"

#include <sched.h>

#include <wq/limiter.h>
#include <wq/metrics.h>

#include "support/recorder.h"

enum { KEYS = 40, STEADY = 2000, PRODUCERS = 2, WORKERS = 2 };

static wq_queue       *q;
static struct recorder all[2];
static wq_registry    *registry;

/* ---- threads that change the queue -------------------------------------- */

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
produce(void *unused)
{
    struct dice dice = own_dice();

    while (!atomic_load(&stop)) {
        const uint64_t key = dice_roll(&dice, KEYS);
        const wq_err   err = add_somehow(&dice, wq_u64(&key));
        expect(err == WQ_OK || err == WQ_EGIVENUP, "add", WQ_OK, err);
        atomic_fetch_add(&progress, 1);
    }
    return unused;
}

/* Work on all of them in some way, and end every loan. */
static void
finish(struct dice *dice, wq_item **items, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (dice_roll(dice, 4) == 0)
            expect_retried(wq_add_rate_limited(q, items[i]->key));
    if (dice_roll(dice, 2)) {
        expect_err("done_many", WQ_OK, wq_done_many(q, items, n));
        return;
    }
    for (size_t i = 0; i < n; i++)
        expect_err("done", WQ_OK, wq_done(q, items[i]));
}

static void *
consume(void *unused)
{
    struct dice dice = own_dice();
    wq_item    *items[5];

    for (;;) {
        size_t n = 1;
        wq_err err;

        if (dice_roll(&dice, 2)) {
            err = wq_get_many(q, items, 5, SECOND / 1000, &n);
        } else {
            items[0] = NULL;
            err = wq_next(q, SECOND / 1000, items);
            if (!err) /* the second next is the done of the first */
                err = wq_next(q, 0, items);
        }
        if (err == WQ_ESHUTDOWN)
            return unused;
        if (!err)
            finish(&dice, items, n);
    }
}

/* ---- threads that observe ----------------------------------------------- */

static void
check_counts(const wq_stats *c, wq_stats *before)
{
    expect(c->longest_ns >= 0, "longest", 0, (uint64_t)c->longest_ns);
    expect_at_most("longest", (uint64_t)c->unfinished_ns,
                   (uint64_t)c->longest_ns);
    expect(c->adds >= before->adds && c->gets >= before->gets &&
               c->dones >= before->dones && c->merged >= before->merged &&
               c->retries >= before->retries && c->drops >= before->drops,
           "a counter decreased", before->adds, c->adds);
    *before = *c;
}

static void *
observe(void *unused)
{
    wq_stats before = {0};

    while (!atomic_load(&stop)) {
        const wq_stats c = look(q);
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
        expect_err("text", WQ_OK,
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
    expect_err(
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
    expect_equal("empty changes", 0, r->empty);
    expect_equal("latencies", last->gets, r->latency.n);
    expect_equal("works", last->dones, r->work.n);
    expect_equal("dones", last->gets, last->dones);
    expect(r->latency.least >= 0 && r->work.least >= 0, "durations", 0, 1);
    expect(last->gets > 0 && last->drops > 0 && last->retries > 0,
           "gets, drops and retries", 1, 0);
    expect_equal("opened", 1, r->calls[RECORDER_OPEN]);
    expect_equal("closed", 1, r->calls[RECORDER_CLOSE]);
}

/* M-02 M-04 O-30 */
TEST(reports_to_sinks_add_up_to_the_stats)
{
    expect_err("registry", WQ_OK, wq_registry_create(&registry));
    atomic_store(&stop, false);
    q = create();
    run_roles(q, (struct role){WORKERS, consume, NULL},
              (struct role[]){{PRODUCERS, produce, NULL},
                              {1, observe, NULL},
                              {1, scrape, NULL},
                              {0}});
    wq_destroy(q);
    check_sums(&all[0]);
    check_sums(&all[1]);
    expect_equal("latencies of both sinks", (uint64_t)all[0].latency.sum,
                 (uint64_t)all[1].latency.sum);
    print_message("%llu gets, %llu changes\n",
                  (unsigned long long)all[0].last.gets,
                  (unsigned long long)all[0].calls[RECORDER_CHANGED]);
    wq_registry_destroy(registry);
}

/* ---- queues that come and go while a thread scrapes --------------------- */

static void
create_and_destroy(struct dice *unused)
{
    const wq_key key = wq_str("foo");

    (void)unused;
    q = create();
    expect_err("add", WQ_OK, wq_add(q, key));
    expect_err("add", WQ_OK, wq_add_after(q, key, 1));
    wq_destroy(q);
    expect_equal("adds", all[1].last.adds, all[1].sum.adds);
    expect_equal("depth", all[1].last.ready, (uint64_t)all[1].sum.depth);
    expect_equal("drops", all[1].last.drops, all[1].sum.drops);
}

/* M-06 M-07: an open sink queries the queue while the next one is opened. */
TEST(queues_come_and_go_while_a_registry_is_scraped)
{
    struct crowd crowd = {.n = 0};

    expect_err("registry", WQ_OK, wq_registry_create(&registry));
    atomic_store(&stop, false);
    crowd_start(&crowd, 1, scrape, NULL);
    (void)repeat(create_and_destroy);
    atomic_store(&stop, true);
    crowd_join(&crowd);
    wq_registry_destroy(registry);
}

/* ---- one key and many producers ------------------------------------------ */

static void *
add_the_same(void *unused)
{
    while (!atomic_load(&stop))
        expect_err("add", WQ_OK, wq_add_str(q, "the same"));
    return unused;
}

static void
count_the_same(struct dice *unused)
{
    (void)unused;
    expect_equal("len", 1, wq_len(q));
    const wq_stats c = look(q);
    expect_equal("ready", 1, c.ready);
    expect_equal("adds", 1, c.adds);
}

/* Q-03 O-30: however many adds are waiting to be merged. */
TEST(key_that_many_add_is_counted_once)
{
    struct crowd crowd = {.n = 0};

    atomic_store(&stop, false);
    expect_err("create", WQ_OK, wq_create(NULL, &q));
    expect_err("add", WQ_OK, wq_add_str(q, "the same"));
    crowd_start(&crowd, 3, add_the_same, NULL);
    (void)repeat(count_the_same);
    atomic_store(&stop, true);
    crowd_join(&crowd);
    wq_destroy(q);
}

/* ---- walks -------------------------------------------------------------- */

/* A key that stays in the queue; others have shorter names. */
static void
name_steady(char *name, size_t size, unsigned number)
{
    (void)snprintf(name, size, "steady key number %u", number);
}

static void *
churn(void *unused)
{
    struct dice dice = own_dice();
    char        name[40];

    while (!atomic_load(&stop)) {
        const uint64_t key = dice_roll(&dice, 5000);
        wq_item       *item = NULL;

        if (dice_roll(&dice, 2))
            expect_err("add", WQ_OK, wq_add(q, wq_u64(&key)));
        /* Steady keys change their state and never leave. */
        name_steady(name, sizeof name, (unsigned)dice_roll(&dice, STEADY));
        expect_err("add", WQ_OK, wq_add_str(q, name));
        if (wq_get_within(q, 0, &item) != WQ_OK)
            continue;
        if (item->key.len > sizeof key)
            expect_err("add", WQ_OK, wq_add(q, item->key));
        expect_err("done", WQ_OK, wq_done(q, item));
    }
    return unused;
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

static void
walk(struct dice *unused)
{
    struct census census = {{0}};

    (void)unused;
    expect_err("each", WQ_OK, wq_each(q, 0, count, &census));
    for (unsigned i = 0; i < STEADY; i++)
        expect_equal("visits of a key that stays", 1, census.times[i]);
}

/* O-33 */
TEST(walk_meets_a_key_that_stays_exactly_once)
{
    struct crowd crowd = {.n = 0};
    char         name[40];

    atomic_store(&stop, false);
    expect_err("create", WQ_OK, wq_create(NULL, &q));
    for (unsigned i = 0; i < STEADY; i++) {
        name_steady(name, sizeof name, i);
        expect_err("add", WQ_OK, wq_add_str(q, name));
    }
    crowd_start(&crowd, 2, churn, NULL);
    print_message("%u walks\n", repeat(walk));
    atomic_store(&stop, true);
    crowd_join(&crowd);
    wq_destroy(q);
}

static atomic_bool walked; /* the walk has visited its first key */

static void *
use_the_queue(void *uses)
{
    while (!atomic_load(&walked))
        sched_yield();
    for (int i = 0; i < 100; i++) {
        expect_err("add", WQ_OK, wq_add_str(q, "mine"));
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
TEST(queue_can_be_used_while_it_is_walked)
{
    static atomic_uint uses;
    struct crowd       crowd = {.n = 0};

    expect_err("create", WQ_OK, wq_create(NULL, &q));
    for (uint64_t i = 0; i < 100000; i++)
        expect_err("add", WQ_OK, wq_add(q, wq_u64(&i)));
    crowd_start(&crowd, 1, use_the_queue, &uses);
    expect_err("each", WQ_OK, wq_each(q, 0, wait_for_others, &uses));
    crowd_join(&crowd);
    wq_destroy(q);
}

WQ_TESTS(test(reports_to_sinks_add_up_to_the_stats),
         test(queues_come_and_go_while_a_registry_is_scraped),
         test(key_that_many_add_is_counted_once),
         test(walk_meets_a_key_that_stays_exactly_once),
         test(queue_can_be_used_while_it_is_walked));
