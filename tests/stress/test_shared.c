/* SPDX-License-Identifier: MIT */
/* test_shared.c: do several handles of one store, with several threads each,
 * lose a key when the store fails at random?
 *
 * Producers raise the version of a key before an add, and note it as accepted
 * after WQ_OK. Consumers read the version after a get. At rest, every accepted
 * version was read (I1). Two consumers that are certain of their hold never have
 * the same key (I2). Fences grow (I3). Every loss is reported once.
 */
#include "stress/crowd.h"

#include <wq/limiter.h>

#include "support/memory_store.h"
#include "support/shared_queue.h"

enum { HANDLES = 3, NAMES = 24, PRODUCERS = 1, CONSUMERS = 3 };

struct plan {
    int64_t lease_ns;
    bool    faults; /* calls fail */
    bool    ends;   /* sessions end */
};

struct name {
    _Atomic uint64_t wanted, accepted, seen;
    _Atomic uint64_t fence;   /* the highest handed out */
    _Atomic int64_t  certain; /* until when a consumer is sure of it, at least;
                                 0: not */
};

static struct {
    const struct plan   *plan;
    struct memory_store *store;
    struct wq__engine   *engines[HANDLES];
    wq_queue            *q[HANDLES];
    struct name          names[NAMES];
    _Atomic uint64_t     gets, faults, losses;
} m;

static void
hear_loss(void *ctx, wq_key key, uint64_t fence)
{
    (void)ctx, (void)fence;
    if (key.len != 8 || ((const char *)key.data)[8] != '\0')
        broken("on_lost: not a key");
    atomic_fetch_add(&m.losses, 1);
}

static void
raise_to(_Atomic uint64_t *place, uint64_t value)
{
    uint64_t now = atomic_load(place);
    while (now < value && !atomic_compare_exchange_weak(place, &now, value))
        ;
}

/* ---- roles --------------------------------------------------------------- */

static bool
is_trouble(wq_err err)
{
    return err == WQ_EIO || err == WQ_EAWAY;
}

static wq_queue *
handle_of(void *arg)
{
    return *(wq_queue **)arg;
}

static void *
produce(void *arg)
{
    wq_queue   *q = handle_of(arg);
    struct dice dice = own_dice();

    while (!atomic_load(&stop)) {
        const uint64_t n = dice_roll(&dice, NAMES);
        struct name   *name = &m.names[n];
        const uint64_t version = atomic_fetch_add(&name->wanted, 1) + 1;
        const int64_t  delay = dice_roll(&dice, 4) ? 0 : 50 * US;
        const wq_err   err = wq_add_after(q, wq_u64(&n), delay);

        if (err == WQ_OK)
            raise_to(&name->accepted, version);
        else if (!is_trouble(err))
            broken("add: %s", wq_err_name(err));
        if (dice_roll(&dice, 8) == 0)
            nap_ns((int64_t)dice_roll(&dice, 100) * US);
    }
    return NULL;
}

static struct name *
name_of(const wq_item *item)
{
    uint64_t n;

    memcpy(&n, item->key.data, sizeof n);
    if (n >= NAMES)
        broken("get: not a key");
    return &m.names[n];
}

/* I2 I3, unless the test has ended a session, which its handle cannot know. */
static void
check_hold(wq_queue *q, const wq_item *item, struct name *name)
{
    const int64_t now = wq__time_now();
    const int64_t left = wq_hold_left(q, item);

    if (m.plan->ends || left == 0)
        return;
    const uint64_t before = atomic_load(&name->fence);
    const int64_t  until = left == WQ_FOREVER ? WQ_FOREVER : now + left;
    const int64_t  other = atomic_exchange(&name->certain, until);
    if (wq__time_now() < other)
        broken("I2: two workers hold a key");
    if (item->fence <= before && wq_hold_left(q, item) > 0)
        broken("I3: the fence of a certain hold went back");
}

static void
work(wq_queue *q, const wq_item *item, struct dice *dice)
{
    struct name *name = name_of(item);

    atomic_fetch_add(&m.gets, 1);
    atomic_fetch_add(&progress, 1);
    check_hold(q, item, name);
    raise_to(&name->fence, item->fence);
    raise_to(&name->seen, atomic_load(&name->wanted));
    if (dice_roll(dice, 8) == 0)
        nap_ns((int64_t)dice_roll(dice, 50) * US);
    atomic_store(&name->certain, 0);
}

static wq_result
roll_result(struct dice *dice)
{
    switch (dice_roll(dice, 8)) {
    case 0:
        return wq_result_retry();
    case 1:
        return wq_result_back();
    case 2:
        return wq_result_after((int64_t)dice_roll(dice, 100) * US);
    default:
        return wq_result_done();
    }
}

/* Finish until there is an answer. */
static void
finish(wq_queue *q, wq_item *item, wq_result result)
{
    wq_err err;

    while (is_trouble(err = wq_finish(q, item, result)))
        nap_ns(20 * US);
    if (err && err != WQ_ELOST)
        broken("finish: %s", wq_err_name(err));
}

static bool
goes_on(wq_err err)
{
    if (is_trouble(err))
        nap_ns(20 * US);
    else if (err != WQ_OK && err != WQ_ETIMEDOUT && err != WQ_EINTERRUPTED &&
             err != WQ_ESHUTDOWN)
        broken("get: %s", wq_err_name(err));
    return err != WQ_ESHUTDOWN;
}

static wq_err
consume_one(wq_queue *q, struct dice *dice)
{
    wq_item     *item = NULL;
    const wq_err err =
        wq_get_within(q, dice_roll(dice, 4) ? WQ_FOREVER : 100 * US, &item);

    if (!err) {
        work(q, item, dice);
        finish(q, item, roll_result(dice));
    }
    return err;
}

static wq_err
consume_chain(wq_queue *q, struct dice *dice)
{
    wq_item  *item = NULL;
    wq_result result = wq_result_done();
    wq_err    err = WQ_OK;

    for (size_t i = dice_roll(dice, 20); i > 0; i--) {
        err = wq_next_with(q, result, 200 * US, &item);
        if (!err) {
            work(q, item, dice);
            result = roll_result(dice);
        } else if (!is_trouble(err)) {
            break;
        }
    }
    if (item)
        finish(q, item, result);
    return err;
}

static wq_err
consume_many(wq_queue *q, struct dice *dice)
{
    wq_item     *items[6];
    size_t       n = 0;
    const wq_err err = wq_get_many(q, items, 6, WQ_FOREVER, &n);

    if (err)
        return err;
    for (size_t i = 0; i < n; i++)
        work(q, items[i], dice);
    for (size_t i = 0; i < n; i++)
        finish(q, items[i], roll_result(dice));
    return WQ_OK;
}

static void *
consume(void *arg)
{
    wq_queue   *q = handle_of(arg);
    struct dice dice = own_dice();
    bool        on = true;

    while (on) {
        const size_t how = dice_roll(&dice, 3);
        on = goes_on(how == 0   ? consume_one(q, &dice)
                     : how == 1 ? consume_chain(q, &dice)
                                : consume_many(q, &dice));
    }
    return NULL;
}

static void
cause_trouble(struct dice *dice)
{
    const size_t handle = dice_roll(dice, HANDLES);

    if (m.plan->ends && dice_roll(dice, 20) == 0)
        memory_store_end_session(m.engines[handle]);
    if (!m.plan->faults)
        return;
    memory_store_heal(m.store); /* there may be few plans at a time */
    memory_store_plan(m.store,
                      (struct store_plan){
                          .fault = (enum store_fault)dice_roll(dice, 3),
                          .nth = 1 + (unsigned)dice_roll(dice, 5),
                          .engine = m.engines[handle],
                      });
    atomic_fetch_add(&m.faults, 1);
}

static void *
trouble(void *unused)
{
    struct dice dice = own_dice();

    while (!atomic_load(&stop)) {
        cause_trouble(&dice);
        if (dice_roll(&dice, 10) == 0)
            wq_interrupt(m.q[dice_roll(&dice, HANDLES)]);
        nap_ns((int64_t)dice_roll(&dice, 100) * US);
    }
    memory_store_heal(m.store);
    return unused;
}

/* What people and sinks do. */
static void *
observe(void *unused)
{
    struct dice dice = own_dice();

    while (!atomic_load(&stop)) {
        wq_queue *q = m.q[dice_roll(&dice, HANDLES)];
        wq_stats  s = {.size = sizeof s};

        (void)wq_read_stats(q, &s);
        (void)wq_len(q);
        (void)wq_renew(q);
        (void)wq_fd(q);
        const wq_err err = wq_wait_idle(q, 50 * US);
        if (err && err != WQ_ETIMEDOUT && !is_trouble(err))
            broken("wait_idle: %s", wq_err_name(err));
        if (dice_roll(&dice, 8) == 0) {
            (void)wq_pause(q);
            nap_ns(50 * US);
            (void)wq_resume(q);
        }
        nap_ns((int64_t)dice_roll(&dice, 300) * US);
    }
    return unused;
}

/* ---- a run --------------------------------------------------------------- */

static void
open_handle(size_t i)
{
    const struct shared_queue_options options = {.lease_ns = m.plan->lease_ns};
    wq_config                         config = {
                                .size = sizeof config,
                                .limiter = wq_limiter_exponential(10 * US, 200 * US),
                                .on_lost = hear_loss,
    };

    expect_err(
        "open", WQ_OK,
        shared_queue_join(m.store, &options, &config, &m.engines[i], &m.q[i]));
}

/* All that is left is worked on by the last handle. */
static void
work_off(void)
{
    struct dice dice = own_dice();

    for (;;) {
        wq_item     *item = NULL;
        const wq_err err = wq_get_within(m.q[0], 0, &item);
        wq_stats     s = {.size = sizeof s};

        if (err == WQ_OK) {
            work(m.q[0], item, &dice);
            finish(m.q[0], item, wq_result_done());
            continue;
        }
        expect_err("stats", WQ_OK, wq_read_stats(m.q[0], &s));
        if (s.ready + s.held + s.waiting == 0)
            return;
        nap_ns(100 * US);
    }
}

static uint64_t
count_lost(wq_queue *q)
{
    wq_stats s = {.size = sizeof s};

    expect_err("stats", WQ_OK, wq_read_stats(q, &s));
    return s.lost;
}

static void
expect_sound(void)
{
    const char *law = memory_store_check(m.store);

    if (law)
        broken("%s", law);
}

static void
play(const struct plan *plan)
{
    struct crowd getting = {.n = 0}, stopping = {.n = 0}, dog;
    uint64_t     lost = 0;

    memset(&m, 0, sizeof m);
    m.plan = plan;
    atomic_store(&stop, false);
    m.store = memory_store_create(NULL);
    for (size_t i = 0; i < HANDLES; i++)
        open_handle(i);
    start_watchdog(&dog);
    for (size_t i = 0; i < HANDLES; i++) {
        crowd_start(&getting, CONSUMERS, consume, &m.q[i]);
        crowd_start(&stopping, PRODUCERS, produce, &m.q[i]);
    }
    crowd_start(&stopping, 1, trouble, NULL);
    crowd_start(&stopping, 1, observe, NULL);
    crowd_stop_after_share(&stopping);
    expect_sound();
    for (size_t i = 0; i < HANDLES; i++)
        wq_shutdown(m.q[i]);
    crowd_join(&getting);
    for (size_t i = 0; i < HANDLES; i++)
        lost += count_lost(m.q[i]);
    expect_equal("reported losses", lost, m.losses);
    for (size_t i = HANDLES - 1; i > 0; i--)
        wq_destroy(m.q[i]);
    work_off();
    stop_watchdog(&dog);
    expect_sound();
    for (size_t n = 0; n < NAMES; n++)
        if (m.names[n].seen < m.names[n].accepted)
            broken("I1: key %zu: version %llu was accepted, %llu seen", n,
                   (unsigned long long)m.names[n].accepted,
                   (unsigned long long)m.names[n].seen);
    wq_destroy(m.q[0]);
    memory_store_destroy(m.store);
    if (m.gets < 100)
        broken("only %llu keys were handed out", (unsigned long long)m.gets);
    print_message("%llu gets, %llu faults, %llu losses\n",
                  (unsigned long long)m.gets, (unsigned long long)m.faults,
                  (unsigned long long)m.losses);
}

/* S-01 S-05 S-07 */
PLAY(several_handles_share_the_keys, .lease_ns = 0)

/* S-02 S-04 */
PLAY(no_key_is_lost_when_calls_fail, .lease_ns = 0, .faults = true)

/* S-02 S-03 S-04 */
PLAY(no_key_is_lost_when_sessions_end, .lease_ns = 20 * MS, .faults = true,
     .ends = true)

/* S-03 */
PLAY(threads_renew_short_leases, .lease_ns = 3 * MS, .faults = true)

WQ_TESTS(test(several_handles_share_the_keys),
         test(no_key_is_lost_when_calls_fail),
         test(no_key_is_lost_when_sessions_end),
         test(threads_renew_short_leases));
