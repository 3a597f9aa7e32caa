/* SPDX-License-Identifier: MIT */
/* test_cancel.c: what if threads are cancelled inside the library?
 *
 * Threads call verbs, blocking or not, and are cancelled at random moments
 * (O-73; tests/behaviour/test_cancellation.c covers every verb). A thread that
 * ended inside a verb, with the lock taken or on a list, would block the queue:
 * then the watchdog ends the program, or wq_destroy() never returns. In
 * between, the main thread checks that the queue still works.
 *
 * A thread of the test acts on a cancellation only between two verbs, by
 * pthread_testcancel(): a verb may find a cancellation pending, and must ignore
 * it.
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
query(struct dice *dice)
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
        (void)poll(&event, 1, 0); /* a cancellation point of the user */
    }
}

static void
note_end(void *unused)
{
    (void)unused;
    atomic_fetch_add(&ended, 1);
}

/* Not inlined into the function with the cleanup handler, which uses
 * setjmp(). */
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
            query(&dice);
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

/* ---- the queue still works ----------------------------------------------- */

/* Without waiting for capacity. */
static void
add_at_once(uint64_t n)
{
    const wq_add_options at_once = {.size = sizeof at_once, .nowait = true};
    const wq_key         key = wq_u64(&n);

    ignore(wq_add_with(q, &at_once, &key, 1));
}

/* A key is handed out, to whichever thread. */
static void
expect_alive(uint64_t gets_before)
{
    for (int i = 0; look(q).gets <= gets_before; i++) {
        if (i == 10000)
            broken("no key is handed out any more");
        add_at_once(KEYS);
        take_one(MS);
    }
}

/* A key, capacity or an interrupt ends a call that blocks forever; a
 * cancellation does not. */
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

    while (wq__time_now() < until_ns) {
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
    cancel_threads(wq__time_now() + share_ns());
    wq_destroy(q); /* waits for every thread that is inside */
    stop_watchdog(&dog);
}

/* O-73 */
TEST(queue_survives_cancelled_threads)
{
    play(WQ_CONFIG(.limiter = wq_limiter_exponential(US, 20 * US)));
}

/* O-73 */
TEST(full_queue_survives_cancelled_threads)
{
    play(WQ_CONFIG(.limiter = wq_limiter_exponential(US, 20 * US),
                   .max_len = KEYS / 2, .overflow = WQ_OVERFLOW_BLOCK));
}

/* O-73 O-74 */
TEST(real_time_queue_survives_cancelled_threads)
{
    play(WQ_CONFIG(.limiter = wq_limiter_exponential(US, 20 * US),
                   .real_time = true));
}

WQ_TESTS(test(queue_survives_cancelled_threads),
         test(full_queue_survives_cancelled_threads),
         test(real_time_queue_survives_cancelled_threads));
