/* SPDX-License-Identifier: MIT */
/* test_queue.c: do the laws hold when many threads use one queue at once?
 *
 * Producers and consumers run for a while and note what they saw; L1 and L3
 * (tracking.h) must hold, the fence of a key grows, nothing is left at the end,
 * and no memory is lost.
 */
#include "stress/tracking.h"

#include "port/relax.h"
#include "stress/ring.h"

enum {
    KEYS_MAX = 100000,
    LONG_KEY = 200, /* bytes: too long for the ring, so it takes the lock */
    PENDING_MAX = 50000, /* producers of endless keys wait beyond this */
};

struct plan {
    int    producers, consumers;
    size_t keys;       /* how many; 0: each key is added once */
    bool   timeouts;   /* gets time out after 0 to 50 us */
    bool   interrupts; /* a thread interrupts all the time */
    bool   observers;  /* a thread reads the length all the time */
    bool   by_key;     /* every other done names the key */
};

static struct plan      plan;
static struct counting  mem;
static wq_queue        *q;
static struct tracked   known[KEYS_MAX];
static _Atomic uint64_t added, delivered;
static _Atomic uint64_t added_sum, delivered_sum; /* of keys added once */

/* The number is the key's first eight bytes; every fourth key is long. */
static wq_key
key_of(unsigned char bytes[static LONG_KEY], uint64_t number)
{
    memset(bytes, 'k', LONG_KEY);
    memcpy(bytes, &number, sizeof number);
    return (wq_key){bytes, number % 4 == 3 ? LONG_KEY : sizeof number};
}

/* ---- producers ---------------------------------------------------------- */

/* Returns false if the queue is shut down. */
static bool
add(uint64_t number)
{
    unsigned char bytes[LONG_KEY];
    const wq_err  err = wq_add(q, key_of(bytes, number));

    if (err != WQ_OK && err != WQ_ESHUTDOWN)
        broken("add: %s", wq_err_name(err));
    return err == WQ_OK;
}

static bool
add_known(size_t k)
{
    const uint64_t version = want(&known[k]);

    if (!add(k))
        return false;
    accept(&known[k], version);
    return true;
}

static void *
produce_known(void *unused)
{
    struct dice dice = own_dice();
    uint64_t    mine = 0;

    while (!atomic_load(&stop) && add_known(dice_roll(&dice, plan.keys))) {
        mine++;
        if (dice_roll(&dice, 256) == 0)
            (void)sched_yield();
    }
    atomic_fetch_add(&added, mine);
    return unused;
}

static void *
produce_once(void *unused)
{
    const uint64_t id = atomic_fetch_add(&seeds, 1);

    for (uint64_t n = 0; !atomic_load(&stop); n++) {
        const uint64_t number = id << 40 | n;
        if (!add(number))
            break;
        atomic_fetch_add(&added, 1);
        atomic_fetch_add(&added_sum, number);
        while (n % 64 == 0 && wq_len(q) > PENDING_MAX && !atomic_load(&stop))
            nap_ns(50 * US);
    }
    return unused;
}

/* ---- consumers ---------------------------------------------------------- */

static void
end_by(wq_item *item, bool by_key)
{
    unsigned char bytes[LONG_KEY];
    const wq_err  err = by_key
                            ? wq_done_key(q, key_of(bytes, number_of(item->key)))
                            : wq_done(q, item);

    expect_err("done", WQ_OK, err);
}

static void
consume(wq_item *item, struct dice *dice)
{
    const uint64_t number = number_of(item->key);

    if (plan.keys) {
        begin_loan(&known[number], item);
        if (dice_roll(dice, 64) == 0)
            (void)sched_yield(); /* so that it is added meanwhile */
        end_loan(&known[number]);
    } else {
        atomic_fetch_add(&delivered_sum, number);
        atomic_fetch_add(&progress, 1);
    }
    end_by(item, plan.by_key && dice_roll(dice, 2));
    atomic_fetch_add(&delivered, 1);
}

/* May a get of this plan fail with `err`? */
static bool
is_allowed(wq_err err)
{
    return (err == WQ_ETIMEDOUT && plan.timeouts) ||
           (err == WQ_EINTERRUPTED && plan.interrupts);
}

static void *
consume_until_shutdown(void *unused)
{
    struct dice dice = own_dice();

    for (;;) {
        wq_item      *item = NULL;
        const int64_t timeout_ns =
            plan.timeouts ? (int64_t)dice_roll(&dice, 50) * US : WQ_FOREVER;
        const wq_err err = wq_get_within(q, timeout_ns, &item);
        if (err == WQ_OK)
            consume(item, &dice);
        else if (err == WQ_ESHUTDOWN)
            return unused;
        else if (!is_allowed(err))
            broken("get: %s", wq_err_name(err));
    }
}

/* ---- other threads ------------------------------------------------------- */

static void *
interrupt_all(void *unused)
{
    struct dice dice = own_dice();

    while (!atomic_load(&stop)) {
        wq_interrupt(q);
        nap_ns((int64_t)dice_roll(&dice, 20) * US);
    }
    return unused;
}

static void *
observe(void *unused)
{
    while (!atomic_load(&stop)) {
        const size_t len = wq_len(q);
        if (plan.keys)
            expect_at_most("length", plan.keys + WQ__INBOX_CELLS, len);
        (void)wq_shutting_down(q);
        (void)sched_yield();
    }
    return unused;
}

/* ---- a run --------------------------------------------------------------- */

static void
open_run(const struct plan *wanted)
{
    plan = *wanted;
    added = delivered = added_sum = delivered_sum = 0;
    q = create_tracked(known, KEYS_MAX, &mem, WQ_CONFIG(.name = NULL));
}

static struct role
producers(void)
{
    return (struct role){plan.producers,
                         plan.keys ? produce_known : produce_once, NULL};
}

static struct role
consumers(void)
{
    return (struct role){plan.consumers, consume_until_shutdown, NULL};
}

static void
close_run(void)
{
    const struct wq__memory *m = wq__memory_of(q);

    expect_equal("length at the end", 0, wq_len(q));
    expect_equal("HELD at the end", 0, m->core.loans.live);
    expect_equal("woken getters at the end", 0, m->woken_getters);
    expect_laws(q);
    expect_all_seen(known, plan.keys);
    if (plan.keys) {
        expect_at_most("delivered", added, delivered);
    } else {
        expect_equal("delivered", added, delivered);
        expect_equal("sum of the delivered keys", added_sum, delivered_sum);
    }
    wq_destroy(q);
    expect_equal("bytes left", 0, mem.bytes);
}

/* Producers stop, then consumers drain the queue. */
static void
play(const struct plan *wanted)
{
    open_run(wanted);
    run_roles(q, consumers(),
              (struct role[]){producers(),
                              {plan.interrupts, interrupt_all, NULL},
                              {plan.observers, observe, NULL},
                              {0}});
    printf("%llu added, %llu delivered\n", (unsigned long long)added,
           (unsigned long long)delivered);
    close_run();
}

PLAY(one_producer_and_one_consumer_over_few_keys, .producers = 1,
     .consumers = 1, .keys = 4)

PLAY(four_producers_and_four_consumers_over_few_keys, .producers = 4,
     .consumers = 4, .keys = 8, .by_key = true)

PLAY(many_producers_and_two_consumers_over_few_keys, .producers = 8,
     .consumers = 2, .keys = 3)

PLAY(two_producers_and_many_consumers_over_few_keys, .producers = 2,
     .consumers = 8, .keys = 5)

PLAY(four_producers_and_four_consumers_over_many_keys, .producers = 4,
     .consumers = 4, .keys = KEYS_MAX, .observers = true)

/* added = delivered: no two adds can merge. */
PLAY(every_key_added_once_is_delivered_once, .producers = 4, .consumers = 4)

PLAY(gets_that_time_out_lose_nothing, .producers = 2, .consumers = 4, .keys = 6,
     .timeouts = true)

PLAY(storm_of_interrupts_loses_nothing, .producers = 2, .consumers = 4,
     .keys = 6, .interrupts = true, .by_key = true)

PLAY(everything_at_once_loses_nothing, .producers = 3, .consumers = 5,
     .keys = 20, .timeouts = true, .interrupts = true, .observers = true,
     .by_key = true)

/* ---- shutdown at random moments ----------------------------------------- */

static void *
drain_until_done(void *unused)
{
    wq_err err;

    do
        err = wq_shutdown_with_drain_within(q, 200 * US);
    while (err == WQ_ETIMEDOUT);
    if (err != WQ_OK && err != WQ_EINTERRUPTED)
        broken("drain: %s", wq_err_name(err));
    return unused;
}

/* Shut down while producers add: accepted adds are delivered, refused ones are
 * not counted. */
static void
shut_down_at_random(struct dice *dice)
{
    struct crowd      crowd = {.n = 0};
    const struct role all[] = {
        consumers(), producers(), {plan.interrupts, interrupt_all, NULL}};

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        crowd_start(&crowd, all[i].n, all[i].run, NULL);
    nap_ns((int64_t)dice_roll(dice, 1000) * US);
    if (dice_roll(dice, 2))
        crowd_start(&crowd, 2, drain_until_done, NULL);
    if (dice_roll(dice, 2))
        wq_shutdown(q);
    else
        (void)drain_until_done(NULL);
    atomic_store(&stop, true);
    crowd_join(&crowd);
    close_run();
}

static void
play_shutdown(struct dice *dice)
{
    open_run(&(struct plan){
        .producers = 2,
        .consumers = 3,
        .keys = dice_roll(dice, 4) ? 1 + dice_roll(dice, 30) : 0,
        .timeouts = dice_roll(dice, 2),
        .interrupts = dice_roll(dice, 2),
    });
    shut_down_at_random(dice);
}

REPEAT(shutdown_at_any_moment_loses_no_accepted_add, play_shutdown)

/* ---- falling asleep ----------------------------------------------------- */

/* One key goes there and back: the consumer answers and falls asleep; the
 * producer adds just when that happens. The producer aims: if it found the
 * consumer asleep, it adds a little earlier the next time, else a little later.
 * No other thread uses the queue, so that a lost wake-up stays lost, and the
 * watchdog reports it (I4). */
static _Atomic uint64_t sent, answered;

static void *
answer(void *unused)
{
    wq_item *item;

    while (wq_get(q, &item) == WQ_OK) {
        expect_err("done", WQ_OK, wq_done(q, item));
        atomic_fetch_add(&progress, 1);
        atomic_store(&answered, atomic_load(&sent));
    }
    return unused;
}

static void
spin_for(size_t rounds)
{
    for (size_t i = 0; i < rounds; i++)
        wq__pause(); /* some 10 to 50 ns */
}

static void
await_answer(uint64_t n)
{
    for (unsigned round = 0; atomic_load(&answered) != n; round++)
        if (round % 4096 < 4000)
            wq__pause(); /* answers come within microseconds */
        else
            (void)sched_yield();
}

/* `aim` is how many pauses to wait after the answer; the wait scatters around
 * it. Every other wait is random: on a busy machine there is nothing to aim
 * at. */
static void
send(uint64_t n, struct dice *dice, size_t *aim)
{
    enum { SCATTER = 16, FAR = 1024 };
    const struct wq__memory *m = wq__memory_of(q);
    const bool               blind = n % 2;

    await_answer(n);
    spin_for(blind ? dice_roll(dice, FAR) : *aim + dice_roll(dice, SCATTER));
    atomic_store(&sent, n + 1);
    const bool late = atomic_load(&m->wake_from) == 0;
    if (!add(0))
        broken("add: the queue is shut down");
    if (!blind && late && *aim > 0)
        --*aim;
    else if (!blind && !late && *aim < FAR)
        ++*aim;
}

static void
ping_pong(int n_consumers)
{
    struct crowd  crowd = {.n = 0}, dog;
    const int64_t until = wq__time_now() + share_ns();
    struct dice   dice = own_dice();
    uint64_t      n = 0;
    size_t        aim = 0;

    start_watchdog(&dog);
    open_run(&(struct plan){.keys = 1});
    const struct wq__memory *m = open_ring(q);
    sent = answered = 0;
    crowd_start(&crowd, n_consumers, answer, NULL);
    for (; n % 64 || wq__time_now() < until; n++)
        send(n, &dice, &aim);
    await_answer(n);
    wq_shutdown(q);
    crowd_join(&crowd);
    stop_watchdog(&dog);
    printf("%llu times there and back, %llu through the ring\n",
           (unsigned long long)n, (unsigned long long)m->inbox.head);
    close_run();
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
         test(gets_that_time_out_lose_nothing),
         test(storm_of_interrupts_loses_nothing),
         test(everything_at_once_loses_nothing),
         test(shutdown_at_any_moment_loses_no_accepted_add),
         test(no_wake_up_is_lost_when_a_consumer_falls_asleep),
         test(no_wake_up_is_lost_when_two_consumers_fall_asleep));
