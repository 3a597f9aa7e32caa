/* SPDX-License-Identifier: MIT */
/* test_destroy.c: does a thread touch the queue after wq_destroy() freed it?
 *
 * Threads are blocked in a queue that is destroyed (O-03). The allocator gives
 * the memory of the queue back to the system at once, so that a thread which
 * touches it on its way out crashes. WQ_STRESS_SECONDS says how long the whole
 * program takes.
 */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */

#include "stress/crowd.h"

#include <sched.h>
#include <sys/mman.h>

enum { LARGE = 1024, PAGE = 65536, GETTERS = 16 };

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
    atomic_fetch_add(&progress, 1);
}

static void
play(bool real_time)
{
    struct timespec begin, now;
    struct crowd    dog;
    uint64_t        rounds = 0;

    start_watchdog(&dog);
    (void)clock_gettime(CLOCK_MONOTONIC, &begin);
    do {
        destroy_with_getters(real_time, rounds % 2 ? GETTERS : 1);
        rounds++;
        (void)clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - begin.tv_sec) * SECOND + now.tv_nsec -
                 begin.tv_nsec <
             share_ns());
    atomic_store(&stop, true);
    stop_watchdog(&dog);
    print_message("%llu queues destroyed\n", (unsigned long long)rounds);
}

/* O-03 */
TEST(getters_that_leave_do_not_touch_a_destroyed_queue)
{
    play(false);
}

/* O-03 O-74 */
TEST(getters_that_leave_do_not_touch_a_destroyed_real_time_queue)
{
    play(true);
}

WQ_TESTS(test(getters_that_leave_do_not_touch_a_destroyed_queue),
         test(getters_that_leave_do_not_touch_a_destroyed_real_time_queue));
