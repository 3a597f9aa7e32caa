/* SPDX-License-Identifier: MIT */
/* test_waits.c: what do keys in the inbox mean for threads that wait for work to
 * be over?
 *
 * A producer that does not need the lock puts a key there at any moment, also
 * between a thread's last look at it and its release of the lock. Here that
 * moment is made: the key is put there by a thread that has the lock. */
#include "support/wq_test.h"

#include <wq/limiter.h>

#include "memory/gate.h"
#include "memory/memory.h"
#include "port/relax.h"
#include "support/counting.h"
#include "support/worker.h"

static struct counting    mem;
static wq_queue          *q;
static struct wq__memory *m;

static int
open_queue(void **state)
{
    (void)state;
    counting_init(&mem);
    assert_int_equal(
        wq_create(
            WQ_CONFIG(.allocator = &mem.allocator, .retry = WQ_RETRY_RESPECT,
                      .limiter = wq_limiter_exponential(WQ_SECONDS(1000),
                                                        WQ_SECONDS(1000))),
            &q),
        WQ_OK);
    m = wq__memory_of(q);
    return 0;
}

static int
close_queue(void **state)
{
    (void)state;
    wq_destroy(q);
    assert_int_equal(mem.bytes, 0);
    return 0;
}

#define waits_test(name) test_with(name, open_queue, close_queue)

/* With the lock. */
static void
put(const char *name)
{
    const wq_key key = wq_str(name);
    uint64_t     position;

    assert_true(wq__inbox_put(&m->inbox, key, wq__core_hash(&m->core, key), 0,
                              &position));
}

static wq_item *
take(const char *name)
{
    wq_item *item = NULL;

    assert_int_equal(wq_get_within(q, 0, &item), WQ_OK);
    assert_string_equal(item->key.data, name);
    return item;
}

/* Until a thread sleeps in waits.c. */
static void
await_waiter(void)
{
    size_t len = 0;

    for (unsigned round = 0; !len; round++) {
        wq__relax(round);
        wq__gate_enter(m);
        len = m->waiters.len;
        wq__gate_leave(m);
    }
}

static int
run_remove(struct worker *self)
{
    (void)self;
    return (int)wq_remove_wait(q, wq_str("x"), WQ_FOREVER);
}

static int
run_idle(struct worker *self)
{
    (void)self;
    return (int)wq_wait_idle(q, WQ_FOREVER);
}

/* O-84 O-13: there is no memory to merge the adds before the done. */
TEST(add_in_the_inbox_is_removed_at_the_done_without_memory)
{
    const char *const long_key = "a key that needs memory of its own";

    assert_int_equal(wq_add_str(q, "x"), WQ_OK);
    wq_item       *x = take("x");
    struct worker *remover = worker_start(run_remove, NULL);
    await_waiter();
    wq__gate_enter(m);
    wq__inbox_open(&m->inbox);
    put(long_key);
    put("x");
    wq__lock_release(&m->lock); /* nobody looks */
    counting_fail(&mem, 1, COUNTING_FROM_NOW);
    assert_int_equal(wq_done(q, x), WQ_OK);
    assert_true(wq__inbox_holds(&m->inbox));
    assert_int_equal(worker_join(remover), WQ_OK);
    counting_heal(&mem);

    wq_item *other = take(long_key);
    assert_int_equal(wq_done(q, other), WQ_OK);
    assert_int_equal(wq_get_within(q, 0, &other), WQ_ETIMEDOUT);
}

/* O-82 O-16: the key merges into its backoff, and the queue is idle. */
TEST(add_in_the_inbox_that_merges_hides_no_idle_moment)
{
    int64_t work;

    assert_int_equal(wq_add_rate_limited_str(q, "x"), WQ_OK);
    assert_int_equal(wq_add_str(q, "held"), WQ_OK);
    wq_item       *held = take("held");
    struct worker *idler = worker_start(run_idle, NULL);
    await_waiter();
    wq__gate_enter(m);
    wq__inbox_open(&m->inbox);
    assert_int_equal(wq__core_done(&m->core, held, 0, &work), WQ_OK);
    put("x"); /* after the last look */
    wq__gate_leave(m);
    assert_int_equal(worker_join(idler), WQ_OK);
}

WQ_TESTS(waits_test(add_in_the_inbox_is_removed_at_the_done_without_memory),
         waits_test(add_in_the_inbox_that_merges_hides_no_idle_moment));
