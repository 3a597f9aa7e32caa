/* SPDX-License-Identifier: MIT */
/* test_falling_asleep.c: what becomes of a key that comes just when a getter
 * has looked for the last time and is about to sleep?
 *
 * A getter with a timeout reads the clock after it has found nothing and before
 * it goes to sleep, while it holds the lock. This program's clock_gettime() adds
 * a key at that very moment, which must go through the ring. The argument that
 * the getter then stays awake is I4 in inbox.h; here it is tested, not by
 * chance.
 */
#define _GNU_SOURCE /* RTLD_NEXT */

#include "unit/queue_fixture.h"

#include <time.h>

#include "unit/interpose.h"

#define SECOND INT64_C(1000000000)

/* Looks at the clock until the key is added: 1 is the next; 0: it is not. Only
 * the thread that set it is meant. */
static _Thread_local int looks_left;
static wq_err            added; /* what the add returned */

static void
meddle(void)
{
    if (looks_left && --looks_left == 0)
        added = wq_add_str(q, "late");
}

int
clock_gettime(clockid_t clock, struct timespec *out)
{
    int (*next)(clockid_t, struct timespec *);

    meddle();
    next_function("clock_gettime", &next);
    return next(clock, out);
}

static int64_t
now_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * SECOND + t.tv_nsec;
}

static int
open_asleep(void **state)
{
    (void)open_queue(state);
    open_inbox();
    m->may_spin = false; /* a spin reads the clock, too */
    added = WQ_EIO;
    return 0;
}

/* Get, while a key comes at the `look`th look at the clock. The timeout is long:
 * a getter that sleeps although the key is there takes too much time. */
static void
expect_get_at_look(int look)
{
    wq_item      *item = NULL;
    const int64_t began = now_ns();

    looks_left = look;
    const wq_err err = wq_get_within(q, 5 * SECOND, &item);
    looks_left = 0;
    assert_err(added, WQ_OK);
    assert_err(err, WQ_OK);
    assert_true(now_ns() - began < SECOND);
    assert_memory_equal(item->key.data, "late", 4);
}

TEST(key_before_the_first_sleep_is_taken_at_once)
{
    expect_get_at_look(1); /* the limit is computed */
}

TEST(key_after_the_last_look_is_taken_at_once)
{
    expect_get_at_look(2); /* is the limit past? no: go to sleep */
}

TEST(key_that_comes_at_the_timeout_stays_ready)
{
    wq_item *item = NULL;

    looks_left = 2;
    assert_err(wq_get_within(q, 1, &item), WQ_ETIMEDOUT);
    looks_left = 0;
    assert_err(added, WQ_OK);
    (void)take("late");
}

#define asleep_test(name) test_with(name, open_asleep, close_queue)

WQ_TESTS(asleep_test(key_before_the_first_sleep_is_taken_at_once),
         asleep_test(key_after_the_last_look_is_taken_at_once),
         asleep_test(key_that_comes_at_the_timeout_stays_ready));
