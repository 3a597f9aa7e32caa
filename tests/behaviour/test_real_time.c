/* SPDX-License-Identifier: MIT */
/* test_real_time.c: does a queue for real-time threads keep their priorities?
 * (real_time.scenario: it works as other queues do.)
 *
 * Three threads share one processor. A thread without a real-time priority is
 * inside the queue, in its allocator, which is called under the lock. A thread
 * of high priority calls the queue and must wait for it. A hog of middle
 * priority wants the processor for itself. Without priority inheritance the hog
 * runs on until its time limit, and both others wait for it.
 */
#define _GNU_SOURCE /* CPU_SET */

#include "fixture.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "support/counting.h"

enum { TEST_PRIORITY = 30, CALLER_PRIORITY = 20, HOG_PRIORITY = 10 };

#define HOG_LIMIT_NS (INT64_C(300) * 1000000)

static struct {
    wq_queue   *q;
    wq_err      added;   /* what the slow add returned */
    atomic_bool armed;   /* the next allocation stays for a while */
    sem_t       inside;  /* it has begun */
    atomic_bool called;  /* the caller is about to call the queue */
    atomic_bool through; /* ... and its call has returned */
    atomic_bool starved; /* the hog ran until its limit, and it had not */
} scene;

/* ---- a slow allocator ---------------------------------------------------- */

static void *
allocate_slowly(void *ctx, size_t n)
{
    struct counting *mem = ctx;

    if (atomic_exchange(&scene.armed, false)) {
        (void)sem_post(&scene.inside);
        while (!atomic_load(&scene.called))
            ; /* busy: it needs the processor to go on */
    }
    return mem->allocator.alloc(ctx, n);
}

/* ---- the threads --------------------------------------------------------- */

static void *
add_slowly(void *unused)
{
    scene.added = wq_add_str(scene.q, "foo");
    return unused;
}

static void *
call(void *unused)
{
    atomic_store(&scene.called, true);
    (void)wq_len(scene.q);
    atomic_store(&scene.through, true);
    return unused;
}

static void *
hog(void *unused)
{
    const int64_t limit_ns = now_ns() + HOG_LIMIT_NS;

    while (!atomic_load(&scene.through))
        if (now_ns() > limit_ns) {
            atomic_store(&scene.starved, true);
            break;
        }
    return unused;
}

/* On this thread's processor; priority 0: an ordinary thread. */
static pthread_t
start(void *(*run)(void *), int priority)
{
    const struct sched_param param = {.sched_priority = priority};
    pthread_attr_t           attr;
    pthread_t                thread;

    assert_int_equal(pthread_attr_init(&attr), 0);
    (void)pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
    (void)pthread_attr_setschedpolicy(&attr,
                                      priority ? SCHED_FIFO : SCHED_OTHER);
    (void)pthread_attr_setschedparam(&attr, &param);
    assert_int_equal(pthread_create(&thread, &attr, run, NULL), 0);
    (void)pthread_attr_destroy(&attr);
    return thread;
}

/* This thread, and those it starts, run on one processor. */
static void
take_one_processor(void)
{
    const struct sched_param param = {.sched_priority = TEST_PRIORITY};
    cpu_set_t                all, one;

    CPU_ZERO(&one);
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    for (size_t i = 0; i < CPU_SETSIZE && !CPU_COUNT(&one); i++)
        if (CPU_ISSET(i, &all))
            CPU_SET(i, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    if (pthread_setschedparam(pthread_self(), SCHED_FIFO, &param) != 0)
        wq_test_skip("this user may not use SCHED_FIFO");
}

/* Does the hog keep the caller waiting? */
static bool
is_starved(bool real_time)
{
    struct counting mem;
    pthread_t       threads[3];

    counting_init(&mem);
    wq_allocator slow = mem.allocator;
    slow.alloc = allocate_slowly;
    const wq_err err = wq_create(
        WQ_CONFIG(.allocator = &slow, .real_time = real_time), &scene.q);
    if (err == WQ_ENOTSUP)
        wq_test_skip("the system has no priority inheritance");
    assert_err(err, WQ_OK);
    assert_int_equal(sem_init(&scene.inside, 0, 0), 0);
    atomic_store(&scene.called, false);
    atomic_store(&scene.through, false);
    atomic_store(&scene.starved, false);
    atomic_store(&scene.armed, true);

    threads[0] = start(add_slowly, 0);
    while (sem_wait(&scene.inside) != 0)
        ;
    threads[1] = start(call, CALLER_PRIORITY); /* both begin when this */
    threads[2] = start(hog, HOG_PRIORITY);     /* thread waits */
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_err(scene.added, WQ_OK);
    wq_destroy(scene.q);
    (void)sem_destroy(&scene.inside);
    return atomic_load(&scene.starved);
}

/* O-74 */
TEST(hog_does_not_delay_a_real_time_call)
{
    take_one_processor();
    if (!is_starved(false))
        wq_test_skip("the scheduler does not honour priorities here");
    assert_false(is_starved(true));
}

WQ_TESTS(test(hog_does_not_delay_a_real_time_call));
