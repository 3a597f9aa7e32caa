/* SPDX-License-Identifier: MIT */
/* tracking.h: does every accepted add reach a worker, and one worker at a time?
 *
 *   L1  A key is HELD by one worker: each key has a flag that its holder sets.
 *   L3  An add that was accepted is followed by a get: each key has a version,
 *       raised before every add and read after every get. In the end the last
 *       accepted version has been read.
 *
 * The flag and the version are relaxed atomics and the fence is a plain
 * variable, so that nothing but the queue orders the accesses.
 */
#ifndef WQ_STRESS_TRACKING_H
#define WQ_STRESS_TRACKING_H

#include "stress/crowd.h"

#include <sched.h>

#include "memory/memory.h"
#include "support/counting.h"

/* ---- one key ------------------------------------------------------------- */

struct tracked {
    _Atomic uint64_t wanted;   /* raised before an add */
    _Atomic uint64_t accepted; /* the highest whose add returned WQ_OK */
    _Atomic uint64_t seen;     /* the highest read after a get */
    atomic_bool      held;     /* L1 */
    uint64_t         fence;    /* of the latest loan; its holder's */
};

static inline void
raise_to(_Atomic uint64_t *place, uint64_t value)
{
    uint64_t now = atomic_load(place);
    while (now < value && !atomic_compare_exchange_weak(place, &now, value))
        ;
}

/* Call before an add; returns the version that the add requests. */
static inline uint64_t
want(struct tracked *key)
{
    return atomic_fetch_add_explicit(&key->wanted, 1, memory_order_relaxed) + 1;
}

/* Call after an add that returned WQ_OK. */
static inline void
accept(struct tracked *key, uint64_t version)
{
    raise_to(&key->accepted, version);
}

/* Call after a get. */
static inline void
begin_loan(struct tracked *key, const wq_item *item)
{
    if (atomic_exchange_explicit(&key->held, true, memory_order_relaxed))
        broken("L1: two workers hold a key");
    expect(item->fence > key->fence, "fence: more than", key->fence,
           item->fence);
    key->fence = item->fence;
    raise_to(&key->seen,
             atomic_load_explicit(&key->wanted, memory_order_relaxed));
    atomic_fetch_add(&progress, 1);
}

/* Call before a done. */
static inline void
end_loan(struct tracked *key)
{
    atomic_store_explicit(&key->held, false, memory_order_relaxed);
}

/* L3, at the end. */
static inline void
expect_all_seen(const struct tracked *keys, size_t n)
{
    for (size_t k = 0; k < n; k++)
        if (keys[k].seen < keys[k].accepted)
            broken("L3: key %zu: version %llu was accepted, %llu seen", k,
                   (unsigned long long)keys[k].accepted,
                   (unsigned long long)keys[k].seen);
}

/* The number that the first eight bytes of a key are. */
static inline uint64_t
number_of(wq_key key)
{
    uint64_t number;

    memcpy(&number, key.data, sizeof number);
    return number;
}

/* ---- consumers ----------------------------------------------------------- */

enum { BATCH = 24 }; /* the most keys that are added or taken at once */

struct work {
    wq_queue **q;
    void (*begin)(const wq_item *item); /* called at the begin of a loan */
    void (*end)(const wq_item *item);   /* and at its end */
};

static inline wq_err
work_on_many(const struct work *work, struct dice *dice)
{
    wq_item     *items[BATCH];
    size_t       n = 0;
    const size_t max = dice_roll(dice, BATCH) + 1;
    const wq_err err = wq_get_many(*work->q, items, max, WQ_FOREVER, &n);

    if (err)
        return err;
    if (n == 0 || n > max)
        broken("get_many: %zu of %zu items", n, max);
    for (size_t i = 0; i < n; i++)
        work->begin(items[i]);
    if (dice_roll(dice, 8) == 0)
        (void)sched_yield();
    for (size_t i = 0; i < n; i++)
        work->end(items[i]);
    return wq_done_many(*work->q, items, n);
}

static inline wq_err
work_on_next(const struct work *work, struct dice *dice)
{
    wq_item *item = NULL;
    wq_err   err = WQ_OK;

    for (size_t i = dice_roll(dice, 20); i-- > 0 && !err;) {
        err =
            wq_next(*work->q, dice_roll(dice, 2) ? WQ_FOREVER : 10 * US, &item);
        if (!err != (item != NULL))
            broken("next: %s, and the item is %p", wq_err_name(err),
                   (void *)item);
        if (item) {
            work->begin(item);
            work->end(item);
        }
        err = err == WQ_ETIMEDOUT ? WQ_OK : err;
    }
    return item ? wq_done(*work->q, item) : err;
}

/* A thread: works in batches and key by key until the queue is shut down. */
static inline void *
consume_all(void *arg)
{
    const struct work *work = arg;
    struct dice        dice = own_dice();
    wq_err             err = WQ_OK;

    while (!err)
        err = dice_roll(&dice, 2) ? work_on_many(work, &dice)
                                  : work_on_next(work, &dice);
    expect_err("the last get", WQ_ESHUTDOWN, err);
    return NULL;
}

/* ---- a run --------------------------------------------------------------- */

/* Begin a run: forget the one before, and create a queue of `config` that uses
 * `mem`. `keys` is NULL if the test tracks none. */
static inline wq_queue *
create_tracked(struct tracked *keys, size_t n, struct counting *mem,
               const wq_config *config)
{
    wq_config with_memory = *config;
    wq_queue *q = NULL;

    if (keys)
        memset(keys, 0, n * sizeof *keys);
    atomic_store(&stop, false);
    counting_init(mem);
    with_memory.allocator = &mem->allocator;
    expect_err("create", WQ_OK, wq_create(&with_memory, &q));
    return q;
}

static inline void
expect_laws(wq_queue *q)
{
    const char *law = wq__core_check(&wq__memory_of(q)->core);

    if (law)
        broken("%s", law);
}

/* Destroy a drained queue that used `mem` and handed out `delivered` keys. */
static inline void
destroy_drained(wq_queue *q, const struct counting *mem, uint64_t delivered)
{
    const wq_stats c = look(q);

    expect_equal("keys left", 0, c.ready + c.held + c.dirty + c.waiting);
    expect_equal("groups left", 0, c.groups);
    expect_equal("gets", delivered, c.gets);
    expect_laws(q);
    wq_destroy(q);
    expect_equal("bytes left", 0, mem->bytes);
    if (delivered < 100)
        broken("only %llu keys were handed out", (unsigned long long)delivered);
}

#endif
