/* SPDX-License-Identifier: MIT */
/* test_falling_asleep.c: what becomes of a key that comes just when a getter
 * has looked for the last time and is about to sleep?
 *
 * A getter with a time limit looks at the clock after it has found nothing and
 * before it goes to sleep, all with the lock in its hand. This program has a
 * clock_gettime() of its own, which the library, linked in statically, finds
 * before the C library's: at that very moment it adds a key, which must go
 * through the ring. The argument that the getter then stays awake is I4 in
 * inbox.h; here it is asked, without chance.
 */
#define _GNU_SOURCE /* RTLD_NEXT */

#include "support/wq_test.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "memory/memory.h"

#define SECOND INT64_C(1000000000)

static wq_queue *q;

/* Looks at the clock until the key is added: 1 is the next; 0: it is not. Only
 * the thread that set it is meant. */
static _Thread_local int looks_left;
static wq_err            added; /* what the add said */

static void
meddle(void)
{
    if (looks_left && --looks_left == 0)
        added = wq_add_str(q, "late");
}

/* The C library's own. */
typedef int (*clock_reader)(clockid_t, struct timespec *);

static clock_reader
next_clock(void)
{
    static _Atomic(clock_reader) next;
    clock_reader                 found = atomic_load(&next);

    if (!found) {
        void *symbol = dlsym(RTLD_NEXT, "clock_gettime");
        memcpy(&found, &symbol, sizeof found);
        atomic_store(&next, found);
    }
    return found;
}

int
clock_gettime(clockid_t clock, struct timespec *out)
{
    meddle();
    return next_clock()(clock, out);
}

static int64_t
now_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * SECOND + t.tv_nsec;
}

static int
open_queue(void **state)
{
    (void)state;
    assert_int_equal(wq_create(NULL, &q), WQ_OK);
    struct wq__memory *m = (struct wq__memory *)(void *)q;
    wq__lock_take(&m->lock);
    m->may_spin = false; /* a spin reads the clock, too */
    wq__inbox_open(&m->inbox);
    wq__lock_release(&m->lock);
    added = WQ_EIO;
    return 0;
}

static int
close_queue(void **state)
{
    (void)state;
    wq_destroy(q);
    return 0;
}

/* Get, while a key comes at the `look`th look at the clock. The limit is long:
 * who sleeps although the key is there is found out by the time it takes. */
static void
expect_get_at_look(int look)
{
    wq_item      *item = NULL;
    const int64_t began = now_ns();

    looks_left = look;
    const wq_err err = wq_get_within(q, 5 * SECOND, &item);
    looks_left = 0;
    assert_int_equal(added, WQ_OK);
    assert_int_equal(err, WQ_OK);
    assert_true(now_ns() - began < SECOND);
    assert_memory_equal(item->key.data, "late", 4);
}

TEST(key_that_comes_before_the_first_rest_is_taken_at_once)
{
    expect_get_at_look(1); /* the limit is computed */
}

TEST(key_that_comes_after_the_last_look_is_taken_at_once)
{
    expect_get_at_look(2); /* is the limit past? no: go to sleep */
}

TEST(key_that_comes_when_time_is_up_waits_for_the_next_get)
{
    wq_item *item = NULL;

    looks_left = 2;
    assert_int_equal(wq_get_within(q, 1, &item), WQ_ETIMEDOUT);
    looks_left = 0;
    assert_int_equal(added, WQ_OK);
    assert_int_equal(wq_get_within(q, 0, &item), WQ_OK);
}

#define asleep_test(name) test_with(name, open_queue, close_queue)

WQ_TESTS(asleep_test(key_that_comes_before_the_first_rest_is_taken_at_once),
         asleep_test(key_that_comes_after_the_last_look_is_taken_at_once),
         asleep_test(key_that_comes_when_time_is_up_waits_for_the_next_get));
