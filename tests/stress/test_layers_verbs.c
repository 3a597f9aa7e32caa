/* SPDX-License-Identifier: MIT */
/* test_layers_verbs.c: is an add to a layered queue ever lost?
 *
 * O-18, L1, L3: threads add keys to both layers around an in-memory queue, with
 * every option that the layers support, while others remove keys, read the
 * stats and walk. Half of the keys are never removed: each add of one of these
 * is followed by a get, whichever policy and whatever deadline it had.
 */
#include "stress/tracking.h"

#include <wq/backend.h>
#include <wq/limiter.h>

enum { KEYS = 32, KEPT = KEYS / 2, PRODUCERS = 3, CONSUMERS = 3 };

static struct tracked   keys[KEYS];
static struct counting  mem;
static wq_queue        *q;
static _Atomic uint64_t delivered;
static size_t           max_len; /* of the inner queue; 0: any number */

static void
begin(const wq_item *item)
{
    begin_loan(&keys[number_of(item->key)], item);
    atomic_fetch_add(&delivered, 1);
}

static void
end(const wq_item *item)
{
    end_loan(&keys[number_of(item->key)]);
}

/* ---- the threads --------------------------------------------------------- */

static wq_add_options
choose_options(struct dice *dice)
{
    wq_add_options how = {.size = sizeof how,
                          .priority = (int)dice_roll(dice, 3)};

    switch (dice_roll(dice, 8)) {
    case 0:
        how.debounce_ns = 20 * US;
        how.max_wait_ns = 100 * US;
        return how;
    case 1:
        how.rate_limited = true;
        break;
    case 2:
    case 3:
        break;
    default:
        how.after_ns = (int64_t)dice_roll(dice, 100) * US;
    }
    how.waiting = (wq_if_waiting)dice_roll(dice, WQ_IF_WAITING_IGNORE + 1);
    return how;
}

static void *
produce(void *unused)
{
    struct dice dice = own_dice();

    while (!atomic_load(&stop)) {
        const wq_add_options how = choose_options(&dice);
        const uint64_t       k = dice_roll(&dice, KEYS);
        const uint64_t       version = want(&keys[k]);

        const wq_err err = wq_add_one(q, wq_u64(&k), &how);
        if (!err)
            accept(&keys[k], version);
        else
            expect_err("add", max_len ? WQ_EFULL : WQ_OK, err);
        if (dice_roll(&dice, 16) == 0)
            expect_err("forget", WQ_OK, wq_forget(q, wq_u64(&k)));
        if (dice_roll(&dice, 4) == 0)
            (void)sched_yield();
    }
    return unused;
}

/* Any error but these is wrong. */
static void
expect_one_of(const char *what, wq_err got, wq_err other)
{
    if (got != WQ_OK && got != WQ_ENOTFOUND && got != other)
        broken("%s: %s", what, wq_err_name(got));
}

static void *
withdraw(void *unused)
{
    struct dice dice = own_dice();

    while (!atomic_load(&stop)) {
        const uint64_t k = KEPT + dice_roll(&dice, KEYS - KEPT);

        switch (dice_roll(&dice, 3)) {
        case 0:
            expect_one_of("remove", wq_remove(q, wq_u64(&k)), WQ_ESTATE);
            break;
        case 1:
            expect_one_of("cancel", wq_cancel_after(q, wq_u64(&k)), WQ_OK);
            break;
        default:
            expect_one_of("remove_wait", wq_remove_wait(q, wq_u64(&k), 50 * US),
                          WQ_ETIMEDOUT);
        }
        (void)sched_yield();
    }
    return unused;
}

static bool
check_visit(void *unused, wq_key key, const wq_key_info *info)
{
    (void)unused;
    if (number_of(key) >= KEYS || !info->states)
        broken("a walk visits key %llu with states %u",
               (unsigned long long)number_of(key), info->states);
    return true;
}

static void *
inspect(void *unused)
{
    struct dice dice = own_dice();

    while (!atomic_load(&stop)) {
        wq_key_info    info = {.size = sizeof info};
        const uint64_t k = dice_roll(&dice, KEYS);

        (void)look(q);
        expect_err("key", WQ_OK, wq_read_key(q, wq_u64(&k), &info));
        expect_err("each", WQ_OK, wq_each(q, 0, check_visit, NULL));
        nap_ns(50 * US);
    }
    return unused;
}

/* ---- the test ------------------------------------------------------------ */

static void
create_layers(void)
{
    wq_queue *inner =
        create_tracked(keys, KEYS, &mem, WQ_CONFIG(.max_len = max_len));
    wq_queue *delaying = NULL;

    expect_err("delays", WQ_OK, wq_delaying_wrap(inner, NULL, &delaying));
    expect_err("limits", WQ_OK,
               wq_rate_limiting_wrap(
                   delaying,
                   WQ_CONFIG(.limiter = wq_limiter_exponential(US, 100 * US)),
                   &q));
}

/* Wait until the last deadline has passed and its key is done. */
static void
await_end_of_work(void)
{
    while (look(q).known > 0)
        nap_ns(100 * US);
}

static void
run_layers(size_t capacity)
{
    struct work  work = {.q = &q, .begin = begin, .end = end};
    struct crowd getting = {.n = 0}, stopping = {.n = 0}, dog;

    max_len = capacity;
    create_layers();
    start_watchdog(&dog);
    crowd_start(&getting, CONSUMERS, consume_all, &work);
    crowd_start(&stopping, PRODUCERS, produce, NULL);
    crowd_start(&stopping, 1, withdraw, NULL);
    crowd_start(&stopping, 1, inspect, NULL);
    crowd_stop_after_share(&stopping);
    await_end_of_work();
    expect_err("drain", WQ_OK, wq_shutdown_with_drain(q));
    crowd_join(&getting);
    stop_watchdog(&dog);

    expect_all_seen(keys, KEPT);
    expect_equal("drops", 0, look(q).drops);
    wq_destroy(q);
    expect_equal("bytes left", 0, mem.bytes);
    print_message("%llu keys were handed out\n",
                  (unsigned long long)atomic_load(&delivered));
}

/* O-18 O-30 O-52 O-53 O-84 */
TEST(add_to_a_layered_queue_is_never_lost)
{
    run_layers(0);
}

/* O-18 O-19: due keys are refused most of the time. */
TEST(due_key_is_never_lost_before_a_full_queue)
{
    run_layers(4);
}

WQ_TESTS(test(add_to_a_layered_queue_is_never_lost),
         test(due_key_is_never_lost_before_a_full_queue));
