/* SPDX-License-Identifier: MIT */
/* test_cancel.c: what if threads are cancelled inside the library?
 *
 * Threads call verbs, blocking or not, and are cancelled at random moments
 * (O-73; tests/behaviour/test_cancellation.c asks every verb). A thread that ended inside, with a lock taken or on a list, would
 * leave the queue dead: then nothing moves any more, and the watchdog says so;
 * or wq_destroy() waits for ever. In between, the main thread checks that the
 * queue still works.
 *
 * A thread of the test is cancelled only where it asks for it, between two
 * verbs: each verb finds a cancellation pending now and then, and must ignore
 * it. WQ_STRESS_SECONDS says how long the whole program takes (about 2).
 */
#include "stress/crowd.h"

#include <poll.h>

#include <wq/limiter.h>
#include <wq/metrics.h>

enum { VICTIMS = 4, KEYS = 8 };

static wq_queue     *q;
static atomic_size_t ended; /* threads that were cancelled and have ended */

/* ---- one verb at a time -------------------------------------------------- */

static wq_key
any_key(struct dice *dice, uint64_t *n)
{
    *n = dice_roll(dice, KEYS);
    return wq_u64(n);
}

/* An error, of a full queue for example, does not matter here. */
static void
ignore(wq_err err)
{
    (void)err;
}

static void
take_one(int64_t timeout_ns)
{
    wq_item *item;

    if (wq_get_within(q, timeout_ns, &item) == WQ_OK)
        expect_err("done", WQ_OK, wq_done(q, item));
}

static void
add_one(struct dice *dice)
{
    const wq_add_options soon = {
        .size = sizeof soon, .after_ns = 10 * US, .max_block_ns = MS};
    uint64_t     n;
    const wq_key key = any_key(dice, &n);

    switch (dice_roll(dice, 4)) {
    case 0:
        ignore(wq_add(q, key));
        break;
    case 1:
        ignore(wq_add_after(q, key, (int64_t)dice_roll(dice, 50) * US));
        break;
    case 2:
        ignore(wq_add_rate_limited(q, key));
        break;
    default:
        ignore(wq_add_with(q, &soon, &key, 1));
    }
}

static void
take_several(void)
{
    wq_item *items[3];
    size_t   n;

    if (wq_get_many(q, items, 3, MS, &n) == WQ_OK)
        expect_err("done_many", WQ_OK, wq_done_many(q, items, n));
}

static void
get_one(struct dice *dice)
{
    switch (dice_roll(dice, 4)) {
    case 0:
        take_one(0);
        break;
    case 1:
        take_one((int64_t)dice_roll(dice, 300) * US);
        break;
    case 2:
        take_one(WQ_FOREVER);
        break;
    default:
        take_several();
    }
}

static bool
count(void *ctx, wq_key key, const wq_key_info *info)
{
    (void)key;
    (void)info;
    ++*(size_t *)ctx;
    return true;
}

static void
ask(struct dice *dice)
{
    wq_stats      counts = {.size = sizeof counts};
    struct pollfd event = {.fd = wq_fd(q), .events = POLLIN};
    size_t        seen = 0;
    uint64_t      n;

    switch (dice_roll(dice, 5)) {
    case 0:
        (void)wq_len(q);
        break;
    case 1:
        (void)wq_read_stats(q, &counts);
        break;
    case 2:
        (void)wq_each(q, 0, count, &seen);
        break;
    case 3:
        (void)wq_remove(q, any_key(dice, &n));
        break;
    default:
        (void)poll(&event, 1, 0); /* a cancellation point, and the user's */
    }
}

static void
note_end(void *unused)
{
    (void)unused;
    atomic_fetch_add(&ended, 1);
}

/* Apart from the cleanup handler, which is made with setjmp(). */
__attribute__((noinline)) static void
call_verbs_for_ever(void)
{
    struct dice dice = own_dice();

    while (!atomic_load(&stop)) {
        switch (dice_roll(&dice, 3)) {
        case 0:
            add_one(&dice);
            break;
        case 1:
            get_one(&dice);
            break;
        default:
            ask(&dice);
        }
        pthread_testcancel();
    }
}

static void *
call_verbs(void *unused)
{
    pthread_cleanup_push(note_end, NULL);
    call_verbs_for_ever();
    pthread_cleanup_pop(0);
    return unused;
}

/* ---- the queue works on -------------------------------------------------- */

/* Without waiting for room. */
static void
add_at_once(uint64_t n)
{
    const wq_add_options at_once = {.size = sizeof at_once, .nowait = true};
    const wq_key         key = wq_u64(&n);

    ignore(wq_add_with(q, &at_once, &key, 1));
}

/* A key goes through, whichever thread takes it out. */
static void
expect_alive(uint64_t gets_before)
{
    for (int i = 0; look(q).gets <= gets_before; i++) {
        if (i == 10000)
            broken("no key goes through any more");
        add_at_once(KEYS);
        take_one(MS);
    }
}

static int64_t
now_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * SECOND + t.tv_nsec;
}

/* A call that blocks without a limit ends with a key, with room or with an
 * interrupt, not with a cancel. */
static void
await_ends(const struct crowd *victims)
{
    while (atomic_load(&ended) < victims->n) {
        wq_interrupt(q);
        take_one(50 * US);
    }
    atomic_fetch_add(&progress, 1);
}

static void
cancel_threads(int64_t until_ns)
{
    struct dice dice = own_dice();
    uint64_t    cancelled = 0;

    while (now_ns() < until_ns) {
        struct crowd victims = {.n = 0};

        atomic_store(&ended, 0);
        crowd_start(&victims, VICTIMS, call_verbs, NULL);
        for (size_t i = 0; i < victims.n; i++) {
            nap_ns((int64_t)dice_roll(&dice, 500) * US);
            expect_equal("pthread_cancel", 0,
                         (uint64_t)pthread_cancel(victims.all[i]));
            cancelled++;
            expect_alive(look(q).gets);
            atomic_fetch_add(&progress, 1);
        }
        await_ends(&victims);
        crowd_join(&victims);
    }
    print_message("%llu threads cancelled\n", (unsigned long long)cancelled);
}

static void
play(const wq_config *config)
{
    struct crowd dog;

    start_watchdog(&dog);
    expect_err("create", WQ_OK, wq_create(config, &q));
    (void)wq_fd(q);
    cancel_threads(now_ns() + share_ns());
    wq_destroy(q); /* waits for every thread that is inside */
    stop_watchdog(&dog);
}

/* O-73 */
TEST(cancelled_threads_leave_the_queue_alive)
{
    play(WQ_CONFIG(.limiter = wq_limiter_exponential(US, 20 * US)));
}

/* O-73 */
TEST(cancelled_threads_leave_a_full_queue_alive)
{
    play(WQ_CONFIG(.limiter = wq_limiter_exponential(US, 20 * US),
                   .max_len = KEYS / 2, .overflow = WQ_OVERFLOW_BLOCK));
}

/* O-73 O-74 */
TEST(cancelled_threads_leave_a_real_time_queue_alive)
{
    play(WQ_CONFIG(.limiter = wq_limiter_exponential(US, 20 * US),
                   .real_time = true));
}

WQ_TESTS(test(cancelled_threads_leave_the_queue_alive),
         test(cancelled_threads_leave_a_full_queue_alive),
         test(cancelled_threads_leave_a_real_time_queue_alive));
