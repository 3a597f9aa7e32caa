/* SPDX-License-Identifier: MIT */
/* test_waits.c: may an object be freed when wq_remove_wait() has returned? Has
 * all been worked on when a flush has?
 *
 * In the first tests a key names an object on the heap. Eight workers touch the
 * object while they hold the key, and add the key again in every way there is;
 * another thread removes the key, frees the object at once, and makes the next
 * one. All of that is plain memory: nothing but the queue orders the accesses.
 * With wq_remove() instead of wq_remove_wait(), or without the mark that takes
 * back the workers' own adds, the address sanitizer reports a use after free, or
 * a double one, at once, and the thread sanitizer a race.
 *
 * In the last one, threads note how often each key was asked for, flush, and
 * look whether all of it was worked on, while producers go on.
 *
 * WQ_STRESS_SECONDS says how long the whole program takes (about a second a test
 * unless set).
 */
#include "stress/crowd.h"

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

static uint64_t
number_of(const wq_item *item)
{
    uint64_t n;

    memcpy(&n, item->key.data, sizeof n);
    return n;
}

/* A worker asks for its own key: the remover takes it back. */
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

/* A worker of the program's own. */
static void *
work_in_loop(void *unused)
{
    struct dice dice = own_dice();
    wq_item    *item = NULL;

    while (wq_next(q, WQ_FOREVER, &item) == WQ_OK) {
        touch(number_of(item));
        if (!atomic_load(&stop))
            add_again(&dice, item->key);
        if (dice_roll(&dice, 4) == 0) {
            expect_err("done", WQ_OK, wq_done(q, item));
            item = NULL;
        }
    }
    return unused;
}

/* A worker of a pool, whose result asks for the key again. */
static wq_result
work_in_pool(void *ctx, const wq_item *item)
{
    static _Atomic uint64_t turn;

    (void)ctx;
    touch(number_of(item));
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
        broken("no memory");
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

/* Until it is gone; now and then with a time limit that is too short. */
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

/* The owner of a key: objects come and go. */
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

/* Another remover, which gives up again and again. */
static void *
remove_in_vain(void *unused)
{
    struct dice dice = own_dice();

    while (!atomic_load(&stop)) {
        const uint64_t n = dice_roll(&dice, KEYS);
        const wq_err   err =
            wq_remove_wait(q, wq_u64(&n), (int64_t)dice_roll(&dice, 20) * US);
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

/* Nothing is left, and every run was one of a worker. */
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
    crowd_start(&removers, 1, remove_in_vain, NULL);
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

/* O-84: a sink is told without the lock, by removers, too. */
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

static _Atomic uint64_t wanted[NAMES]; /* raised before an add */
static _Atomic uint64_t asked[NAMES];  /* as `wanted`, once the add returned */
static _Atomic uint64_t seen[NAMES];   /* as `wanted`, when a run began */
static _Atomic uint64_t flushes;

/* The number in key `n`. */
static uint64_t
name_of(size_t n)
{
    return (uint64_t)n | (uint64_t)(n % 4) << 8;
}

static void
raise_to(_Atomic uint64_t *at, uint64_t value)
{
    uint64_t old = atomic_load(at);

    while (old < value && !atomic_compare_exchange_weak(at, &old, value))
        ;
}

static void *
produce(void *unused)
{
    struct dice dice = own_dice();

    while (!atomic_load(&stop)) {
        const size_t   n = dice_roll(&dice, NAMES);
        const uint64_t name = name_of(n);
        const uint64_t now = atomic_fetch_add(&wanted[n], 1) + 1;

        expect_err("add", WQ_OK, wq_add(q, wq_u64(&name)));
        raise_to(&asked[n], now);
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
        const size_t   n = number_of(item) % 256;
        const uint64_t now = atomic_load(&wanted[n]);

        if (dice_roll(&dice, 32) == 0)
            nap_ns((int64_t)dice_roll(&dice, 20) * US);
        raise_to(&seen[n], now);
        atomic_fetch_add(&handled, 1);
        atomic_fetch_add(&progress, 1);
    }
    return unused;
}

static void
flush_all(struct dice *dice)
{
    const int64_t limit = (int64_t)dice_roll(dice, 200) * US;
    uint64_t      before[NAMES];

    for (size_t n = 0; n < NAMES; n++)
        before[n] = atomic_load(&asked[n]);
    const wq_err err = wq_flush(q, dice_roll(dice, 4) ? WQ_FOREVER : limit);
    if (err == WQ_ETIMEDOUT)
        return;
    expect_err("flush", WQ_OK, err);
    for (size_t n = 0; n < NAMES; n++)
        if (atomic_load(&seen[n]) < before[n])
            broken("a flush did not wait for a key");
    atomic_fetch_add(&flushes, 1);
}

static void
flush_one(struct dice *dice)
{
    const size_t   n = dice_roll(dice, NAMES);
    const uint64_t name = name_of(n);
    const uint64_t before = atomic_load(&asked[n]);

    expect_err("flush_key", WQ_OK, wq_flush_key(q, wq_u64(&name), WQ_FOREVER));
    if (atomic_load(&seen[n]) < before)
        broken("a flush of one key did not wait for it");
    atomic_fetch_add(&flushes, 1);
}

/* There may be no such moment. If there is, all was worked on. */
static void
await_idle(struct dice *dice)
{
    const int64_t limit = (int64_t)dice_roll(dice, 1000) * US;
    uint64_t      before[NAMES];

    for (size_t n = 0; n < NAMES; n++)
        before[n] = atomic_load(&asked[n]);
    const wq_err err = wq_wait_idle(q, limit);
    if (err == WQ_ETIMEDOUT)
        return;
    expect_err("wait_idle", WQ_OK, err);
    for (size_t n = 0; n < NAMES; n++)
        if (atomic_load(&seen[n]) < before[n])
            broken("a key was not worked on, and the queue was idle");
    atomic_fetch_add(&flushes, 1);
}

static void *
flush(void *unused)
{
    struct dice dice = own_dice();

    while (!atomic_load(&stop)) {
        switch (dice_roll(&dice, 4)) {
        case 0:
            flush_one(&dice);
            break;
        case 1:
            await_idle(&dice);
            break;
        default:
            flush_all(&dice);
        }
        atomic_fetch_add(&progress, 1);
    }
    return unused;
}

/* Nothing is lost by pauses. */
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
    struct crowd consumers = {.n = 0}, others = {.n = 0}, dog;

    begin(config);
    atomic_store(&flushes, 0);
    for (size_t n = 0; n < NAMES; n++) {
        atomic_store(&wanted[n], 0);
        atomic_store(&asked[n], 0);
        atomic_store(&seen[n], 0);
    }
    start_watchdog(&dog);
    crowd_start(&consumers, CONSUMERS, consume, NULL);
    crowd_start(&others, PRODUCERS, produce, NULL);
    crowd_start(&others, FLUSHERS, flush, NULL);
    crowd_start(&others, 1, pause_at_times, NULL);
    stop_after(share_ns());
    crowd_join(&others);
    expect_err("drain", WQ_OK, wq_shutdown_with_drain(q));
    crowd_join(&consumers);
    stop_watchdog(&dog);
    for (size_t n = 0; n < NAMES; n++)
        expect_equal("versions", atomic_load(&wanted[n]),
                     atomic_load(&seen[n]));
    print_message("%llu flushes, %llu runs\n",
                  (unsigned long long)atomic_load(&flushes),
                  (unsigned long long)atomic_load(&handled));
    end(atomic_load(&handled));
}

/* O-81 O-82 O-83 O-85 */
TEST(flush_waits_for_all_that_was_asked_before)
{
    play_flushes(NULL);
}

/* Four groups of eight keys: the second byte of a key says which. (One, where
 * the high byte comes first.) */
static wq_key
group_of(void *ctx, wq_key key)
{
    (void)ctx;
    return (wq_key){(const char *)key.data + 1, 1};
}

/* O-81 O-82 O-83 O-85: keys do not leave in the order they come in. */
TEST(flush_waits_for_all_groups)
{
    play_flushes(WQ_CONFIG(.group = group_of, .group_max_held = 1));
}

WQ_TESTS(test(object_of_a_removed_key_can_be_freed),
         test(object_of_a_removed_key_can_be_freed_with_metrics),
         test(object_can_be_freed_in_real_time),
         test(flush_waits_for_all_that_was_asked_before),
         test(flush_waits_for_all_groups));
