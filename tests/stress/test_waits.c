/* SPDX-License-Identifier: MIT */
/* test_waits.c: may a program free an object when wq_remove_wait() has
 * returned? Has all work been done when a flush has returned?
 *
 * In the first tests a key names an object on the heap. Eight workers use the
 * object while they hold the key, and add the key again in every way; another
 * thread removes the key, frees the object at once, and makes the next one. All
 * of that is plain memory: nothing but the queue orders the accesses. With
 * wq_remove() instead of wq_remove_wait(), or without the mark that drops the
 * workers' own adds, the address sanitizer reports a use after free or a double
 * free at once, and the thread sanitizer a race.
 *
 * In the last tests threads note the accepted adds of each key, flush, and
 * check that all of them were worked on, while producers go on.
 */
#include "stress/tracking.h"

#include <wq/limiter.h>
#include <wq/metrics.h>
#include <wq/workers.h>

static wq_queue *q;

/* ---- remove, and free ---------------------------------------------------- */

enum { KEYS = 2, LOOPS = 4, POOL = 4, ALIVE = 0x5eed, DEAD = 0xdead };

struct object {
    int      state; /* ALIVE until it is freed */
    unsigned runs;
    char    *text; /* allocated by one worker, replaced by the next */
};

/* Written by the thread that owns the key when no worker holds it; read by the
 * worker that does. */
static struct object *table[KEYS];

static _Atomic uint64_t handled; /* runs of workers */
static _Atomic uint64_t freed;   /* objects */

static void
touch(uint64_t n)
{
    struct object *o = table[n];

    if (!o)
        broken("a key without an object was handed out");
    if (o->state != ALIVE)
        broken("the object of a HELD key was freed");
    free(o->text);
    o->text = malloc(16);
    if (o->text)
        (void)snprintf(o->text, 16, "%u", ++o->runs);
    atomic_fetch_add(&handled, 1);
    atomic_fetch_add(&progress, 1);
}

/* A worker adds its own key: wq_remove_wait() drops that add. */
static void
add_again(struct dice *dice, wq_key key)
{
    switch (dice_roll(dice, 8)) {
    case 0:
        return;
    case 1:
        expect_err("add_after", WQ_OK,
                   wq_add_after(q, key, (int64_t)dice_roll(dice, 20) * US));
        return;
    case 2:
        expect_err("add_rate_limited", WQ_OK, wq_add_rate_limited(q, key));
        return;
    case 3:
        expect_err(
            "debounce", WQ_OK,
            wq_add_one(q, key,
                       WQ_ADD(.debounce_ns = 5 * US, .max_wait_ns = 20 * US)));
        return;
    case 4:
        expect_err("throttle", WQ_OK,
                   wq_add_one(q, key, WQ_ADD(.throttle_ns = 5 * US)));
        return;
    default:
        expect_err("add", WQ_OK, wq_add(q, key));
    }
}

/* A worker thread of the program. */
static void *
work_in_loop(void *unused)
{
    struct dice dice = own_dice();
    wq_item    *item = NULL;

    while (wq_next(q, WQ_FOREVER, &item) == WQ_OK) {
        touch(number_of(item->key));
        if (!atomic_load(&stop))
            add_again(&dice, item->key);
        if (dice_roll(&dice, 4) == 0) {
            expect_err("done", WQ_OK, wq_done(q, item));
            item = NULL;
        }
    }
    return unused;
}

/* A worker of a pool, whose result adds the key again. */
static wq_result
work_in_pool(void *ctx, const wq_item *item)
{
    static _Atomic uint64_t turn;

    (void)ctx;
    touch(number_of(item->key));
    if (atomic_load(&stop))
        return wq_result_done();
    switch (atomic_fetch_add(&turn, 1) % 3) {
    case 0:
        return wq_result_retry();
    case 1:
        return wq_result_after(10 * US);
    default:
        expect_err("add", WQ_OK, wq_add(q, item->key));
        return wq_result_done();
    }
}

static void
make_object(uint64_t n)
{
    struct object *o = calloc(1, sizeof *o);

    if (!o)
        broken("out of memory");
    o->state = ALIVE;
    table[n] = o;
}

static void
free_object(uint64_t n)
{
    struct object *o = table[n];

    table[n] = NULL;
    free(o->text);
    o->state = DEAD;
    free(o);
    atomic_fetch_add(&freed, 1);
    atomic_fetch_add(&progress, 1);
}

/* Until it is removed; at times with a timeout that is too short. */
static void
remove_key(struct dice *dice, wq_key key)
{
    wq_err err;

    do {
        const int64_t limit = (int64_t)dice_roll(dice, 50) * US;
        err = wq_remove_wait(q, key, dice_roll(dice, 2) ? WQ_FOREVER : limit);
    } while (err == WQ_ETIMEDOUT);
    expect_err("remove_wait", WQ_OK, err);
}

static _Atomic uint64_t owners; /* each takes a key */

/* The owner of a key makes and frees its objects. */
static void *
own_objects(void *unused)
{
    struct dice    dice = own_dice();
    const uint64_t n = atomic_fetch_add(&owners, 1);
    const wq_key   key = wq_u64(&n);

    while (!atomic_load(&stop)) {
        make_object(n);
        expect_err("add", WQ_OK, wq_add(q, key));
        if (dice_roll(&dice, 2))
            nap_ns((int64_t)dice_roll(&dice, 30) * US);
        remove_key(&dice, key);
        free_object(n);
    }
    return unused;
}

/* Another remover, which times out again and again. */
static void *
remove_and_time_out(void *unused)
{
    struct dice dice = own_dice();

    while (!atomic_load(&stop)) {
        const int64_t  limit = (int64_t)dice_roll(&dice, 20) * US;
        const uint64_t n = dice_roll(&dice, KEYS);
        const wq_err   err = wq_remove_wait(q, wq_u64(&n), limit);
        if (err != WQ_OK && err != WQ_ETIMEDOUT)
            broken("remove_wait: %s", wq_err_name(err));
        nap_ns(20 * US);
    }
    return unused;
}

static void
stop_after(int64_t ns)
{
    nap_ns(ns);
    atomic_store(&stop, true);
}

static void
begin(const wq_config *config)
{
    atomic_store(&stop, false);
    atomic_store(&handled, 0);
    atomic_store(&freed, 0);
    atomic_store(&owners, 0);
    expect_err("create", WQ_OK, wq_create(config, &q));
}

/* Nothing is left, and workers did every run. */
static void
end(uint64_t runs)
{
    const wq_stats c = look(q);

    expect_equal("keys left", 0, c.ready + c.held + c.dirty + c.waiting);
    expect_equal("runs", c.gets, runs);
    wq_destroy(q);
}

static void
play(const wq_config *config)
{
    struct crowd loops = {.n = 0}, removers = {.n = 0}, dog;
    wq_workers  *pool;

    begin(config);
    start_watchdog(&dog);
    expect_err(
        "pool", WQ_OK,
        wq_workers_start(
            q, WQ_WORKERS(.threads = POOL, .handler = work_in_pool), &pool));
    crowd_start(&loops, LOOPS, work_in_loop, NULL);
    crowd_start(&removers, KEYS, own_objects, NULL);
    crowd_start(&removers, 1, remove_and_time_out, NULL);
    stop_after(share_ns());
    crowd_join(&removers);
    expect_err("drain", WQ_OK, wq_workers_drain(pool, WQ_FOREVER));
    crowd_join(&loops);
    expect_err("destroy", WQ_OK, wq_workers_destroy(pool));
    stop_watchdog(&dog);
    print_message("%llu objects, %llu runs\n",
                  (unsigned long long)atomic_load(&freed),
                  (unsigned long long)atomic_load(&handled));
    end(atomic_load(&handled));
}

/* O-84 */
TEST(object_of_a_removed_key_can_be_freed)
{
    play(WQ_CONFIG(.limiter = wq_limiter_exponential(US, 20 * US)));
}

static void
ignore_change(void *handle, const wq_change *change)
{
    (void)handle;
    (void)change;
}

/* O-84: removers, too, report to a sink without the lock. */
TEST(object_of_a_removed_key_can_be_freed_with_metrics)
{
    const wq_metrics sink = {.size = sizeof sink, .changed = ignore_change};

    play(WQ_CONFIG(.limiter = wq_limiter_exponential(US, 20 * US),
                   .name = "test", .metrics = &sink));
}

/* O-84 O-74 */
TEST(object_can_be_freed_in_real_time)
{
    play(WQ_CONFIG(.limiter = wq_limiter_exponential(US, 20 * US),
                   .real_time = true));
}

/* ---- flushes ------------------------------------------------------------- */

enum { NAMES = 32, PRODUCERS = 4, CONSUMERS = 4, FLUSHERS = 6 };

static struct tracked   known[NAMES];
static _Atomic uint64_t flushes;

/* The number in key `n`. */
static uint64_t
name_of(size_t n)
{
    return (uint64_t)n | (uint64_t)(n % 4) << 8;
}

static void *
produce(void *unused)
{
    struct dice dice = own_dice();

    while (!atomic_load(&stop)) {
        const size_t   n = dice_roll(&dice, NAMES);
        const uint64_t name = name_of(n);
        const uint64_t version = want(&known[n]);

        expect_err("add", WQ_OK, wq_add(q, wq_u64(&name)));
        accept(&known[n], version);
        if (dice_roll(&dice, 16) == 0)
            nap_ns((int64_t)dice_roll(&dice, 50) * US);
    }
    return unused;
}

static void *
consume(void *unused)
{
    struct dice dice = own_dice();
    wq_item    *item = NULL;

    while (wq_next(q, WQ_FOREVER, &item) == WQ_OK) {
        const size_t   n = number_of(item->key) % 256;
        const uint64_t now = atomic_load(&known[n].wanted);

        if (dice_roll(&dice, 32) == 0)
            nap_ns((int64_t)dice_roll(&dice, 20) * US);
        raise_to(&known[n].seen, now); /* at the end of the run */
        atomic_fetch_add(&handled, 1);
        atomic_fetch_add(&progress, 1);
    }
    return unused;
}

/* All adds that were accepted before `wait` began have been worked on when it
 * has returned, unless it times out. */
static void
wait_for_all(wq_err (*wait)(wq_queue *, int64_t), int64_t timeout_ns,
             const char *what)
{
    uint64_t before[NAMES];

    for (size_t n = 0; n < NAMES; n++)
        before[n] = atomic_load(&known[n].accepted);
    const wq_err err = wait(q, timeout_ns);
    if (err == WQ_ETIMEDOUT)
        return;
    expect_err(what, WQ_OK, err);
    for (size_t n = 0; n < NAMES; n++)
        if (atomic_load(&known[n].seen) < before[n])
            broken("%s returned before a key was worked on", what);
    atomic_fetch_add(&flushes, 1);
}

static void
flush_one(struct dice *dice)
{
    const size_t   n = dice_roll(dice, NAMES);
    const uint64_t name = name_of(n);
    const uint64_t before = atomic_load(&known[n].accepted);

    expect_err("flush_key", WQ_OK, wq_flush_key(q, wq_u64(&name), WQ_FOREVER));
    if (atomic_load(&known[n].seen) < before)
        broken("flush_key returned before the key was worked on");
    atomic_fetch_add(&flushes, 1);
}

static void *
flush(void *unused)
{
    struct dice dice = own_dice();

    while (!atomic_load(&stop)) {
        const int64_t limit = (int64_t)dice_roll(&dice, 200) * US;
        const size_t  how = dice_roll(&dice, 4);

        if (how == 0)
            flush_one(&dice);
        else if (how == 1) /* the queue may never be idle */
            wait_for_all(wq_wait_idle, 5 * limit, "wait_idle");
        else
            wait_for_all(wq_flush, dice_roll(&dice, 4) ? WQ_FOREVER : limit,
                         "flush");
        atomic_fetch_add(&progress, 1);
    }
    return unused;
}

/* Pauses lose nothing. */
static void *
pause_at_times(void *unused)
{
    struct dice dice = own_dice();

    while (!atomic_load(&stop)) {
        nap_ns((int64_t)dice_roll(&dice, 2000) * US);
        expect_err("pause", WQ_OK, wq_pause(q));
        nap_ns((int64_t)dice_roll(&dice, 200) * US);
        expect_err("resume", WQ_OK, wq_resume(q));
    }
    return unused;
}

static void
play_flushes(const wq_config *config)
{
    begin(config);
    atomic_store(&flushes, 0);
    memset(known, 0, sizeof known);
    run_roles(q, (struct role){CONSUMERS, consume, NULL},
              (struct role[]){{PRODUCERS, produce, NULL},
                              {FLUSHERS, flush, NULL},
                              {1, pause_at_times, NULL},
                              {0}});
    for (size_t n = 0; n < NAMES; n++)
        expect_equal("versions", known[n].wanted, known[n].seen);
    print_message("%llu flushes, %llu runs\n",
                  (unsigned long long)atomic_load(&flushes),
                  (unsigned long long)atomic_load(&handled));
    end(atomic_load(&handled));
}

/* O-81 O-82 O-83 O-85 */
TEST(flush_waits_for_all_earlier_adds)
{
    play_flushes(NULL);
}

/* Four groups of eight keys: the second byte of a key is its group. (One, where
 * the high byte comes first.) */
static wq_key
group_of(void *ctx, wq_key key)
{
    (void)ctx;
    return (wq_key){(const char *)key.data + 1, 1};
}

/* O-81 O-82 O-83 O-85: keys do not leave in the order of their adds. */
TEST(flush_waits_for_all_groups)
{
    play_flushes(WQ_CONFIG(.group = group_of, .group_max_held = 1));
}

WQ_TESTS(test(object_of_a_removed_key_can_be_freed),
         test(object_of_a_removed_key_can_be_freed_with_metrics),
         test(object_can_be_freed_in_real_time),
         test(flush_waits_for_all_earlier_adds),
         test(flush_waits_for_all_groups));
