/* SPDX-License-Identifier: MIT */
/* test_waits.c: what do keys in the inbox mean for threads that wait for work to
 * be over? */
#include "unit/queue_fixture.h"

#include <wq/limiter.h>

#include "port/relax.h"

static int
open_respectful(void **state)
{
    (void)state;
    create(WQ_CONFIG(.retry = WQ_RETRY_RESPECT,
                     .limiter = wq_limiter_exponential(WQ_SECONDS(1000),
                                                       WQ_SECONDS(1000))));
    return 0;
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

/* Starts a thread, and returns when it sleeps in waits.c. */
static struct worker *
start_waiter(int (*run)(struct worker *))
{
    struct worker *w = worker_start(run, NULL);
    size_t         len = 0;

    for (unsigned round = 0; !len; round++) {
        wq__relax(round);
        wq__gate_enter(m);
        len = m->waiters.len;
        wq__gate_leave(m);
    }
    return w;
}

/* O-84 O-13: there is no memory to merge the adds before the done. */
TEST(add_in_the_inbox_is_removed_at_done_without_memory)
{
    const char *const long_key = "a key that needs memory of its own";

    add("x");
    wq_item       *x = take("x");
    struct worker *remover = start_waiter(run_remove);
    wq__gate_enter(m);
    put_while_locked(long_key);
    put_while_locked("x");
    wq__lock_release(&m->lock); /* without a look at the inbox */
    counting_fail(&mem, 1, COUNTING_FROM_NOW);
    assert_err(wq_done(q, x), WQ_OK);
    assert_true(wq__inbox_holds(&m->inbox));
    assert_err(worker_join(remover), WQ_OK);
    counting_heal(&mem);
    work_on(long_key);
    expect_get(WQ_ETIMEDOUT);
}

/* O-82 O-16: the key merges into its backoff, and the queue is idle. */
TEST(add_in_the_inbox_that_merges_hides_no_idle_moment)
{
    int64_t work;

    assert_err(wq_add_rate_limited_str(q, "x"), WQ_OK);
    add("held");
    wq_item       *held = take("held");
    struct worker *idler = start_waiter(run_idle);
    wq__gate_enter(m);
    assert_err(wq__core_done(&m->core, held, 0, &work), WQ_OK);
    put_while_locked("x");
    wq__gate_leave(m);
    assert_err(worker_join(idler), WQ_OK);
}

#define waits_test(name) test_with(name, open_respectful, close_queue)

WQ_TESTS(waits_test(add_in_the_inbox_is_removed_at_done_without_memory),
         waits_test(add_in_the_inbox_that_merges_hides_no_idle_moment));
