/* SPDX-License-Identifier: MIT */
/* test_queue.c: do the laws hold when many threads use one queue at once?
 *
 * Producers and consumers run for a while and note what they saw; afterwards it
 * must add up:
 *
 *   L1  A key is in one pair of hands: each key has a flag that its holder
 *       raises.
 *   L3  An add that was accepted is followed by a get: each key has a version,
 *       raised before every add and read after every get. In the end the last
 *       version that was accepted has been read.
 *
 * The fence of a key grows; nothing is left; no memory is lost.
 *
 * WQ_STRESS_SECONDS says how long the whole program takes (about a second a
 * test unless set); WQ_SEED makes other random choices. A law that breaks, or
 * 30 seconds in which nothing moves, ends the program with a message.
 */
#include "support/wq_test.h"

#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "memory/memory.h"
#include "port/relax.h"
#include "port/time.h"
#include "support/counting.h"
#include "unit/dice.h"

#define US INT64_C(1000)
#define SECOND INT64_C(1000000000)

enum {
    KEYS_MAX = 100000,
    LONG_KEY = 200, /* bytes: too long for the ring, so it takes the lock */
    THREADS_MAX = 20,
    PENDING_MAX = 50000, /* producers of endless keys wait beyond this */
    SILENCE_S = 30, /* nothing moved for so long: somebody sleeps in vain */
};

/* ---- the end of the program --------------------------------------------- */

static _Atomic uint64_t progress; /* raised by whoever gets something done */

__attribute__((format(printf, 1, 2))) static _Noreturn void
broken(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fprintf(stderr,
            "stress: WQ_SEED=%llu: ", (unsigned long long)dice_env_seed(1));
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    abort();
}

static void
expect(bool ok, const char *what, uint64_t expected, uint64_t got)
{
    if (!ok)
        broken("%s: expected %llu, got %llu", what,
               (unsigned long long)expected, (unsigned long long)got);
}

static void
expect_equal(const char *what, uint64_t expected, uint64_t got)
{
    expect(expected == got, what, expected, got);
}

static void
nap_ns(int64_t ns)
{
    const struct timespec nap = {
        .tv_sec = (time_t)(ns / SECOND),
        .tv_nsec = (long)(ns % SECOND),
    };
    (void)nanosleep(&nap, NULL);
}

static atomic_bool watched; /* the watchdog has something to watch */

static void *
watch(void *unused)
{
    uint64_t last = 0;
    int      silent = 0;

    (void)unused;
    for (; atomic_load(&watched); nap_ns(SECOND / 10)) {
        const uint64_t now = atomic_load(&progress);
        silent = now == last ? silent + 1 : 0;
        last = now;
        if (silent > SILENCE_S * 10)
            broken("nothing has moved for %d seconds: a wake-up was lost",
                   SILENCE_S);
    }
    return NULL;
}

static pthread_t
start(void *(*run)(void *), void *arg)
{
    pthread_t thread;
    expect_equal("pthread_create", 0,
                 (uint64_t)pthread_create(&thread, NULL, run, arg));
    return thread;
}

static void
join(pthread_t thread)
{
    expect_equal("pthread_join", 0, (uint64_t)pthread_join(thread, NULL));
}

static pthread_t
start_watchdog(void)
{
    atomic_store(&watched, true);
    return start(watch, NULL);
}

static void
stop_watchdog(pthread_t watchdog)
{
    atomic_store(&watched, false);
    join(watchdog);
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

/* ---- what is played ----------------------------------------------------- */

struct plan {
    int    producers, consumers;
    size_t keys;       /* how many; 0: every add has a key of its own */
    bool   timeouts;   /* gets give up after 0 to 50 us */
    bool   interrupts; /* a thread interrupts all the time */
    bool   lookers;    /* a thread asks for the length all the time */
    bool   by_key;     /* every other done names the key */
};

struct key {
    _Atomic uint64_t version;  /* raised before an add */
    _Atomic uint64_t accepted; /* the highest one whose add said yes */
    _Atomic uint64_t seen;     /* the highest one read after a get */
    atomic_bool      owned;    /* L1 */
    uint64_t         fence;    /* the owner's: not atomic on purpose */
};

struct game {
    struct plan      plan;
    struct counting  mem;
    wq_queue        *q;
    atomic_bool      stop; /* producers shall go home */
    _Atomic uint64_t added, delivered;
    _Atomic uint64_t added_sum, delivered_sum; /* of keys of their own */
    _Atomic uint64_t seeds;                    /* every thread takes one */
    struct key       keys[KEYS_MAX];
};

static struct game game; /* too large for a stack */

static struct dice
own_dice(void)
{
    const uint64_t n = atomic_fetch_add(&game.seeds, 1);
    return dice_from(dice_env_seed(1) * 1000 + n);
}

static void
raise_to(_Atomic uint64_t *place, uint64_t value)
{
    uint64_t now = atomic_load(place);
    while (now < value && !atomic_compare_exchange_weak(place, &now, value))
        ;
}

/* The number is the key's first eight bytes; every fourth key is long. */
static wq_key
key_of(unsigned char bytes[static LONG_KEY], uint64_t number)
{
    memset(bytes, 'k', LONG_KEY);
    memcpy(bytes, &number, sizeof number);
    return (wq_key){bytes, number % 4 == 3 ? LONG_KEY : sizeof number};
}

static uint64_t
number_of(const wq_item *item)
{
    uint64_t number;
    memcpy(&number, item->key.data, sizeof number);
    return number;
}

/* ---- producers ---------------------------------------------------------- */

/* False: the queue is shut down. */
static bool
add(uint64_t number)
{
    unsigned char bytes[LONG_KEY];
    const wq_err  err = wq_add(game.q, key_of(bytes, number));

    if (err != WQ_OK && err != WQ_ESHUTDOWN)
        broken("add says %s", wq_err_name(err));
    return err == WQ_OK;
}

static bool
add_known(size_t k)
{
    struct key    *key = &game.keys[k];
    const uint64_t version =
        atomic_fetch_add_explicit(&key->version, 1, memory_order_relaxed) + 1;

    if (!add(k))
        return false;
    raise_to(&key->accepted, version);
    return true;
}

static void *
produce_known(void *unused)
{
    struct dice dice = own_dice();
    uint64_t    added = 0;

    (void)unused;
    while (!atomic_load(&game.stop) &&
           add_known(dice_roll(&dice, game.plan.keys))) {
        added++;
        if (dice_roll(&dice, 256) == 0)
            (void)sched_yield();
    }
    atomic_fetch_add(&game.added, added);
    return NULL;
}

static void *
produce_own(void *unused)
{
    const uint64_t id = atomic_fetch_add(&game.seeds, 1);

    (void)unused;
    for (uint64_t n = 0; !atomic_load(&game.stop); n++) {
        const uint64_t number = id << 40 | n;
        if (!add(number))
            break;
        atomic_fetch_add(&game.added, 1);
        atomic_fetch_add(&game.added_sum, number);
        while (n % 64 == 0 && wq_len(game.q) > PENDING_MAX &&
               !atomic_load(&game.stop))
            nap_ns(50 * US);
    }
    return NULL;
}

/* ---- consumers ---------------------------------------------------------- */

static void
take_in_hand(const wq_item *item, struct key *key)
{
    if (atomic_exchange_explicit(&key->owned, true, memory_order_relaxed))
        broken("L1: key %llu is in two hands",
               (unsigned long long)number_of(item));
    expect(item->fence > key->fence, "fence must grow beyond", key->fence,
           item->fence);
    key->fence = item->fence;
    raise_to(&key->seen,
             atomic_load_explicit(&key->version, memory_order_relaxed));
}

static void
put_down(wq_item *item, bool by_key)
{
    unsigned char bytes[LONG_KEY];
    const wq_err  err = by_key
                            ? wq_done_key(game.q, key_of(bytes, number_of(item)))
                            : wq_done(game.q, item);
    if (err)
        broken("done says %s", wq_err_name(err));
}

static void
consume(wq_item *item, struct dice *dice)
{
    const uint64_t number = number_of(item);

    if (game.plan.keys) {
        struct key *key = &game.keys[number];
        take_in_hand(item, key);
        if (dice_roll(dice, 64) == 0)
            (void)sched_yield(); /* so that it is added meanwhile */
        atomic_store_explicit(&key->owned, false, memory_order_relaxed);
    } else {
        atomic_fetch_add(&game.delivered_sum, number);
    }
    put_down(item, game.plan.by_key && dice_roll(dice, 2));
    atomic_fetch_add(&game.delivered, 1);
    atomic_fetch_add(&progress, 1);
}

/* An answer without a key that this game allows. */
static bool
is_allowed(wq_err err)
{
    return (err == WQ_ETIMEDOUT && game.plan.timeouts) ||
           (err == WQ_EINTERRUPTED && game.plan.interrupts);
}

static void *
consume_all(void *unused)
{
    struct dice dice = own_dice();

    (void)unused;
    for (;;) {
        wq_item      *item = NULL;
        const int64_t timeout_ns = game.plan.timeouts
                                       ? (int64_t)dice_roll(&dice, 50) * US
                                       : WQ_FOREVER;
        const wq_err  err = wq_get_within(game.q, timeout_ns, &item);
        if (err == WQ_OK)
            consume(item, &dice);
        else if (err == WQ_ESHUTDOWN)
            return NULL;
        else if (!is_allowed(err))
            broken("get says %s", wq_err_name(err));
    }
}

/* ---- those who disturb -------------------------------------------------- */

static void *
interrupt_all(void *unused)
{
    struct dice dice = own_dice();

    (void)unused;
    while (!atomic_load(&game.stop)) {
        wq_interrupt(game.q);
        nap_ns((int64_t)dice_roll(&dice, 20) * US);
    }
    return NULL;
}

static void *
look_all(void *unused)
{
    (void)unused;
    while (!atomic_load(&game.stop)) {
        const size_t len = wq_len(game.q);
        if (game.plan.keys)
            expect(len <= game.plan.keys + WQ__INBOX_CELLS, "length at most",
                   game.plan.keys + WQ__INBOX_CELLS, len);
        (void)wq_shutting_down(game.q);
        (void)sched_yield();
    }
    return NULL;
}

/* ---- a game from beginning to end --------------------------------------- */

struct threads {
    pthread_t all[THREADS_MAX];
    size_t    n;
};

static void
add_thread(struct threads *threads, void *(*run)(void *))
{
    threads->all[threads->n++] = start(run, NULL);
}

static void
join_all(struct threads *threads)
{
    for (size_t i = 0; i < threads->n; i++)
        join(threads->all[i]);
    threads->n = 0;
}

static void
open_game(const struct plan *plan)
{
    const uint64_t seeds = game.seeds;

    memset(&game, 0, sizeof game);
    game.plan = *plan;
    game.seeds = seeds;
    counting_init(&game.mem);
    expect_equal(
        "create", WQ_OK,
        wq_create(WQ_CONFIG(.allocator = &game.mem.allocator), &game.q));
}

static void
start_producers(struct threads *threads)
{
    for (int i = 0; i < game.plan.producers; i++)
        add_thread(threads, game.plan.keys ? produce_known : produce_own);
    if (game.plan.interrupts)
        add_thread(threads, interrupt_all);
    if (game.plan.lookers)
        add_thread(threads, look_all);
}

static void
start_consumers(struct threads *threads)
{
    for (int i = 0; i < game.plan.consumers; i++)
        add_thread(threads, consume_all);
}

/* L3, key by key. */
static void
expect_all_seen(void)
{
    for (size_t k = 0; k < game.plan.keys; k++) {
        const uint64_t accepted = game.keys[k].accepted;
        const uint64_t seen = game.keys[k].seen;
        expect(seen >= accepted, "L3: the last version accepted was not seen",
               accepted, seen);
    }
}

static void
close_game(void)
{
    const struct wq__memory *m = (const struct wq__memory *)(void *)game.q;

    expect_equal("length at the end", 0, wq_len(game.q));
    expect_equal("held at the end", 0, m->core.loans.live);
    expect_equal("on their way at the end", 0, m->coming);
    const char *law = wq__core_check(&m->core);
    if (law)
        broken("%s", law);
    expect_all_seen();
    if (game.plan.keys) {
        expect(game.delivered <= game.added, "delivered at most", game.added,
               game.delivered);
    } else {
        expect_equal("delivered", game.added, game.delivered);
        expect_equal("sum of the keys delivered", game.added_sum,
                     game.delivered_sum);
    }
    wq_destroy(game.q);
    expect_equal("bytes that stay", 0, game.mem.bytes);
}

/* Producers stop, then everything is drained. */
static void
play(struct plan plan)
{
    struct threads  producers = {.n = 0}, consumers = {.n = 0};
    const pthread_t watchdog = start_watchdog();

    open_game(&plan);
    start_consumers(&consumers);
    start_producers(&producers);
    nap_ns(share_ns());
    atomic_store(&game.stop, true);
    join_all(&producers);
    expect_equal("drain", WQ_OK, wq_shutdown_with_drain(game.q));
    join_all(&consumers);
    stop_watchdog(watchdog);
    printf("%llu added, %llu delivered\n", (unsigned long long)game.added,
           (unsigned long long)game.delivered);
    close_game();
}

TEST(one_producer_and_one_consumer_over_few_keys)
{
    play((struct plan){.producers = 1, .consumers = 1, .keys = 4});
}

TEST(four_producers_and_four_consumers_over_few_keys)
{
    play((struct plan){
        .producers = 4, .consumers = 4, .keys = 8, .by_key = true});
}

TEST(many_producers_and_two_consumers_over_few_keys)
{
    play((struct plan){.producers = 8, .consumers = 2, .keys = 3});
}

TEST(two_producers_and_many_consumers_over_few_keys)
{
    play((struct plan){.producers = 2, .consumers = 8, .keys = 5});
}

TEST(four_producers_and_four_consumers_over_many_keys)
{
    play((struct plan){
        .producers = 4, .consumers = 4, .keys = KEYS_MAX, .lookers = true});
}

/* added = delivered: no two adds can merge. */
TEST(every_key_added_once_is_delivered_once)
{
    play((struct plan){.producers = 4, .consumers = 4});
}

TEST(gets_that_give_up_lose_nothing)
{
    play((struct plan){
        .producers = 2, .consumers = 4, .keys = 6, .timeouts = true});
}

TEST(storm_of_interrupts_loses_nothing)
{
    play((struct plan){.producers = 2,
                       .consumers = 4,
                       .keys = 6,
                       .interrupts = true,
                       .by_key = true});
}

TEST(everything_at_once_loses_nothing)
{
    play((struct plan){.producers = 3,
                       .consumers = 5,
                       .keys = 20,
                       .timeouts = true,
                       .interrupts = true,
                       .lookers = true,
                       .by_key = true});
}

/* ---- shutdown at random moments ----------------------------------------- */

static void *
drain_until_done(void *unused)
{
    wq_err err;

    (void)unused;
    do
        err = wq_shutdown_with_drain_within(game.q, 200 * US);
    while (err == WQ_ETIMEDOUT);
    if (err != WQ_OK && err != WQ_EINTERRUPTED)
        broken("drain says %s", wq_err_name(err));
    return NULL;
}

/* Producers are in the middle of it. What they were told yes for is delivered;
 * what they were refused is not counted. */
static void
play_until_shut_down(struct dice *dice)
{
    struct threads threads = {.n = 0};

    start_consumers(&threads);
    start_producers(&threads);
    nap_ns((int64_t)dice_roll(dice, 1000) * US);
    if (dice_roll(dice, 2)) {
        add_thread(&threads, drain_until_done);
        add_thread(&threads, drain_until_done);
    }
    if (dice_roll(dice, 2))
        wq_shutdown(game.q);
    else
        (void)drain_until_done(NULL);
    atomic_store(&game.stop, true); /* those who disturb */
    join_all(&threads);
    close_game();
}

TEST(shutdown_at_any_moment_loses_nothing_that_was_accepted)
{
    const int64_t   until = wq__time_now() + share_ns();
    const pthread_t watchdog = start_watchdog();
    struct dice     dice = dice_from(dice_env_seed(1));
    int             rounds = 0;

    for (; wq__time_now() < until; rounds++) {
        open_game(&(struct plan){
            .producers = 2,
            .consumers = 3,
            .keys = dice_roll(&dice, 4) ? 1 + dice_roll(&dice, 30) : 0,
            .timeouts = dice_roll(&dice, 2),
            .interrupts = dice_roll(&dice, 2),
        });
        play_until_shut_down(&dice);
    }
    stop_watchdog(watchdog);
    printf("%d rounds\n", rounds);
}

/* ---- destroy with sleepers inside --------------------------------------- */

static void *
get_once(void *unused)
{
    wq_item     *item;
    const wq_err err = wq_get(game.q, &item);

    (void)unused;
    if (err != WQ_OK && err != WQ_ESHUTDOWN)
        broken("get says %s", wq_err_name(err));
    atomic_fetch_add(&progress, 1);
    return NULL;
}

static _Atomic size_t gave_up;

static void *
get_once_within(void *unused)
{
    wq_item     *item;
    const wq_err err = wq_get_within(game.q, 500 * US, &item);

    (void)unused;
    if (err != WQ_OK && err != WQ_ESHUTDOWN && err != WQ_ETIMEDOUT)
        broken("get says %s", wq_err_name(err));
    atomic_fetch_add(&gave_up, 1);
    return NULL;
}

/* Wait until `n` calls that may sleep have begun; destroy allows no later. */
static void
await_begun(size_t n)
{
    struct wq__memory *m = (struct wq__memory *)(void *)game.q;
    size_t             begun = 0;

    while (begun < n) {
        (void)sched_yield();
        wq__lock_take(&m->lock);
        begun = m->blocked + atomic_load(&gave_up);
        wq__lock_release(&m->lock);
    }
}

/* The sleepers are inside; some have just been woken for a key, some give up
 * just now. None may touch the queue after destroy has returned: the memory is
 * scribbled over then. */
static void
destroy_with_sleepers(struct dice *dice)
{
    enum { SLEEPERS = 4 };
    struct threads threads = {.n = 0};

    for (int i = 0; i < SLEEPERS; i++) {
        add_thread(&threads, get_once);
        await_begun(threads.n);
    }
    const size_t keys = dice_roll(dice, SLEEPERS + 2);
    for (size_t k = 0; k < keys; k++)
        (void)add(k);
    if (dice_roll(dice, 2))
        nap_ns((int64_t)dice_roll(dice, 60) * US);
    wq_destroy(game.q);
    expect_equal("bytes that stay", 0, game.mem.bytes);
    join_all(&threads);
}

/* The same with one that gives up at about that time. */
static void
destroy_with_one_that_gives_up(struct dice *dice)
{
    struct threads threads = {.n = 0};

    add_thread(&threads, get_once_within);
    await_begun(1);
    nap_ns((int64_t)(300 + dice_roll(dice, 200)) * US);
    wq_destroy(game.q);
    expect_equal("bytes that stay", 0, game.mem.bytes);
    join_all(&threads);
}

/* O-03 */
TEST(destroy_waits_until_the_last_sleeper_has_left)
{
    const int64_t   until = wq__time_now() + share_ns();
    const pthread_t watchdog = start_watchdog();
    struct dice     dice = dice_from(dice_env_seed(1));
    int             rounds = 0;

    for (; wq__time_now() < until; rounds++) {
        open_game(&(struct plan){.keys = 10});
        atomic_store(&gave_up, 0);
        if (dice_roll(&dice, 4))
            destroy_with_sleepers(&dice);
        else
            destroy_with_one_that_gives_up(&dice);
        atomic_fetch_add(&progress, 1);
    }
    stop_watchdog(watchdog);
    printf("%d rounds\n", rounds);
}

/* ---- falling asleep ----------------------------------------------------- */

/* One key there and back: the consumer answers and goes to sleep; the producer
 * adds just when that happens. It aims: found asleep, it comes a little earlier
 * the next time, found awake, a little later. Nobody else uses the queue, so
 * that a wake-up that is lost is lost for good, and the watchdog says so
 * (I4). */
static struct {
    _Atomic uint64_t sent, answered;
} ball;

static void *
answer(void *unused)
{
    wq_item *item;

    (void)unused;
    while (wq_get(game.q, &item) == WQ_OK) {
        if (wq_done(game.q, item) != WQ_OK)
            broken("done of the ball failed");
        atomic_fetch_add(&progress, 1);
        atomic_store(&ball.answered, atomic_load(&ball.sent));
    }
    return NULL;
}

static void
spin_for(size_t rounds)
{
    for (size_t i = 0; i < rounds; i++)
        wq__pause(); /* some 10 to 50 ns */
}

static void
open_ring(void)
{
    struct wq__memory *m = (struct wq__memory *)(void *)game.q;

    wq__lock_take(&m->lock);
    wq__inbox_open(&m->inbox);
    wq__lock_release(&m->lock);
}

static void
await_answer(uint64_t n)
{
    for (unsigned round = 0; atomic_load(&ball.answered) != n; round++)
        if (round % 4096 < 4000)
            wq__pause(); /* answers come within microseconds */
        else
            (void)sched_yield();
}

/* `aim` is the moment to wait after the answer, in pauses, and the throw
 * scatters around it. Every other throw is blind: on a busy machine there is
 * nothing to aim at. */
static void
serve(uint64_t n, struct dice *dice, size_t *aim)
{
    enum { SCATTER = 16, FAR = 1024 };
    const struct wq__memory *m = (const struct wq__memory *)(void *)game.q;
    const bool               blind = n % 2;

    await_answer(n);
    spin_for(blind ? dice_roll(dice, FAR) : *aim + dice_roll(dice, SCATTER));
    atomic_store(&ball.sent, n + 1);
    const bool late = atomic_load(&m->rouse_from) == 0;
    if (!add(0))
        broken("the ball was refused");
    if (!blind && late && *aim > 0)
        --*aim;
    else if (!blind && !late && *aim < FAR)
        ++*aim;
}

static void
ping_pong(int consumers)
{
    struct threads  threads = {.n = 0};
    const pthread_t watchdog = start_watchdog();
    const int64_t   until = wq__time_now() + share_ns();
    struct dice     dice = dice_from(dice_env_seed(1));
    uint64_t        n = 0;
    size_t          aim = 0;

    open_game(&(struct plan){.keys = 1, .consumers = consumers});
    open_ring();
    ball.sent = ball.answered = 0;
    for (int i = 0; i < consumers; i++)
        add_thread(&threads, answer);
    for (; n % 64 || wq__time_now() < until; n++)
        serve(n, &dice, &aim);
    await_answer(n);
    wq_shutdown(game.q);
    join_all(&threads);
    stop_watchdog(watchdog);
    const struct wq__memory *m = (const struct wq__memory *)(void *)game.q;
    printf("%llu times there and back, %llu through the ring\n",
           (unsigned long long)n, (unsigned long long)m->inbox.head);
    close_game();
}

/* O-12 I4 */
TEST(no_wake_up_is_lost_when_a_consumer_falls_asleep)
{
    ping_pong(1);
}

TEST(no_wake_up_is_lost_when_two_consumers_fall_asleep)
{
    ping_pong(2);
}

WQ_TESTS(test(one_producer_and_one_consumer_over_few_keys),
         test(four_producers_and_four_consumers_over_few_keys),
         test(many_producers_and_two_consumers_over_few_keys),
         test(two_producers_and_many_consumers_over_few_keys),
         test(four_producers_and_four_consumers_over_many_keys),
         test(every_key_added_once_is_delivered_once),
         test(gets_that_give_up_lose_nothing),
         test(storm_of_interrupts_loses_nothing),
         test(everything_at_once_loses_nothing),
         test(shutdown_at_any_moment_loses_nothing_that_was_accepted),
         test(destroy_waits_until_the_last_sleeper_has_left),
         test(no_wake_up_is_lost_when_a_consumer_falls_asleep),
         test(no_wake_up_is_lost_when_two_consumers_fall_asleep));
