/* SPDX-License-Identifier: MIT */
/* test_destroy.c: does a thread touch the queue after wq_destroy() freed it?
 *
 * Threads are blocked in a queue that is destroyed (O-03). In the first tests
 * the allocator returns the memory of the queue to the system at once, so that
 * a thread which touches it on its way out crashes. In the last one sleepers
 * are also woken for keys and time out, and freed memory is overwritten.
 */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */

#include "stress/crowd.h"

#include <sched.h>
#include <sys/mman.h>

#include "memory/memory.h"
#include "support/counting.h"

enum { LARGE = 1024, PAGE = 65536, GETTERS = 16 };

/* ---- memory that is unmapped at once ------------------------------------ */

static size_t
pages(size_t n)
{
    return (n + PAGE - 1) / PAGE * PAGE;
}

static void *
map(void *ctx, size_t n)
{
    (void)ctx;
    if (n < LARGE)
        return malloc(n);
    void *p = mmap(NULL, pages(n), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

static void
unmap(void *ctx, void *p, size_t n)
{
    (void)ctx;
    if (n < LARGE)
        free(p);
    else if (p)
        (void)munmap(p, pages(n));
}

static const wq_allocator mapped = {
    .size = sizeof mapped, .alloc = map, .free = unmap};

static void *
get(void *q)
{
    wq_item *item;

    expect_err("get", WQ_ESHUTDOWN, wq_get(q, &item));
    return NULL;
}

static void
destroy_with_getters(bool real_time, int n)
{
    struct crowd getters = {.n = 0};
    wq_queue    *q;

    expect_err(
        "create", WQ_OK,
        wq_create(WQ_CONFIG(.allocator = &mapped, .real_time = real_time), &q));
    crowd_start(&getters, n, get, q);
    while (look(q).sleeping < (size_t)n)
        (void)sched_yield();
    wq_destroy(q);
    crowd_join(&getters);
}

static void
destroy_in_real_time(struct dice *dice)
{
    destroy_with_getters(true, dice_roll(dice, 2) ? GETTERS : 1);
}

static void
destroy_plain(struct dice *dice)
{
    destroy_with_getters(false, dice_roll(dice, 2) ? GETTERS : 1);
}

/* O-03 */
REPEAT(getters_do_not_touch_a_destroyed_queue, destroy_plain)

/* O-03 O-74 */
REPEAT(getters_do_not_touch_a_destroyed_real_time_queue, destroy_in_real_time)

/* ---- sleepers that are woken and that time out -------------------------- */

enum { SLEEPERS = 4 };

static struct counting mem; /* overwrites what is freed */
static atomic_size_t   timed_out;

static void *
get_once(void *q)
{
    wq_item     *item;
    const wq_err err = wq_get(q, &item);

    if (err != WQ_OK && err != WQ_ESHUTDOWN)
        broken("get: %s", wq_err_name(err));
    return NULL;
}

static void *
get_once_within(void *q)
{
    wq_item     *item;
    const wq_err err = wq_get_within(q, 500 * US, &item);

    if (err != WQ_ESHUTDOWN && err != WQ_ETIMEDOUT)
        broken("get: %s", wq_err_name(err));
    atomic_fetch_add(&timed_out, 1);
    return NULL;
}

/* Wait until `n` gets have begun: none may begin after wq_destroy(). */
static void
await_begun(wq_queue *q, size_t n)
{
    struct wq__memory *m = wq__memory_of(q);
    size_t             begun = 0;

    while (begun < n) {
        (void)sched_yield();
        wq__lock_take(&m->lock);
        begun = m->blocked + atomic_load(&timed_out);
        wq__lock_release(&m->lock);
    }
}

/* Some sleepers have just been woken for a key. */
static void
wake_some(wq_queue *q, struct crowd *crowd, struct dice *dice)
{
    for (int i = 0; i < SLEEPERS; i++) {
        crowd_start(crowd, 1, get_once, q);
        await_begun(q, crowd->n);
    }
    const uint64_t keys = dice_roll(dice, SLEEPERS + 2);
    for (uint64_t k = 0; k < keys; k++)
        expect_err("add", WQ_OK, wq_add(q, wq_u64(&k)));
    if (dice_roll(dice, 2))
        nap_ns((int64_t)dice_roll(dice, 60) * US);
}

/* One sleeper times out at about the time of wq_destroy(). */
static void
let_one_time_out(wq_queue *q, struct crowd *crowd, struct dice *dice)
{
    crowd_start(crowd, 1, get_once_within, q);
    await_begun(q, 1);
    nap_ns((int64_t)(300 + dice_roll(dice, 200)) * US);
}

static void
destroy_with_sleepers(struct dice *dice)
{
    struct crowd crowd = {.n = 0};
    wq_queue    *q;

    counting_init(&mem);
    atomic_store(&timed_out, 0);
    expect_err("create", WQ_OK,
               wq_create(WQ_CONFIG(.allocator = &mem.allocator), &q));
    if (dice_roll(dice, 4))
        wake_some(q, &crowd, dice);
    else
        let_one_time_out(q, &crowd, dice);
    wq_destroy(q);
    expect_equal("bytes left", 0, mem.bytes);
    crowd_join(&crowd);
}

/* O-03 */
REPEAT(destroy_waits_until_the_last_sleeper_has_left, destroy_with_sleepers)

WQ_TESTS(test(getters_do_not_touch_a_destroyed_queue),
         test(getters_do_not_touch_a_destroyed_real_time_queue),
         test(destroy_waits_until_the_last_sleeper_has_left));
