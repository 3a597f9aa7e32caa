/* SPDX-License-Identifier: MIT */
/* test_cancellation.c: is any function a cancellation point? (O-73)
 *
 * A thread with a pending cancellation calls one function, or a few that belong
 * together. If one of them were a cancellation point, the thread would end
 * there and not return. tests/stress/test_cancel.c cancels at random moments.
 */
#include "timed.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include <wq/backend.h>
#include <wq/inspect.h>
#include <wq/limiter.h>
#include <wq/metrics.h>
#include <wq/workers.h>

#include "support/handlers.h"
#include "support/look.h"

static struct {
    wq_queue    *q; /* with metrics; one key is HELD, so that a drain waits */
    wq_registry *registry;
    wq_bucket   *bucket; /* empty: a token comes every 20 ms */
} f;

static void
begin(void)
{
    wq_item *item;

    assert_err(wq_registry_create(&f.registry), WQ_OK);
    f.q = open_queue(
        WQ_CONFIG(.name = "test", .metrics = wq_registry_sink(f.registry)));
    add(f.q, "held");
    assert_err(wq_get(f.q, &item), WQ_OK);
    assert_true(wq_fd(f.q) >= 0 || errno == ENOSYS);
    f.bucket = wq_bucket_create(50, 1, NULL);
    assert_non_null(f.bucket);
    assert_err(wq_bucket_wait(f.bucket, WQ_FOREVER), WQ_OK);
}

static void
end(void)
{
    wq_bucket_destroy(f.bucket);
    wq_destroy(f.q);
    wq_registry_destroy(f.registry);
}

static void
ignore(wq_err err)
{
    (void)err;
}

/* ---- queues -------------------------------------------------------------- */

static void
create_watch_and_destroy(void)
{
    wq_queue *q;

    if (wq_create(NULL, &q))
        return;
    (void)wq_fd(q);
    ignore(wq_add_str(q, "foo")); /* the descriptor becomes readable */
    wq_destroy(q);
}

static void
add_and_take_out(void)
{
    wq_item *item = NULL, *items[2];
    size_t   n;

    ignore(wq_add_str(f.q, "a"));
    ignore(wq_add_rate_limited(f.q, wq_str("b")));
    ignore(wq_add_after(f.q, wq_str("c"), MS));
    ignore(wq_next(f.q, MS, &item));
    ignore(wq_next(f.q, MS, &item));
    if (item)
        ignore(wq_done(f.q, item));
    if (wq_get_many(f.q, items, 2, 20 * MS, &n) == WQ_OK)
        ignore(wq_done_many(f.q, items, n));
    ignore(wq_remove(f.q, wq_str("a")));
    ignore(wq_cancel_after(f.q, wq_str("c")));
    ignore(wq_forget(f.q, wq_str("b")));
    ignore(wq_done_key(f.q, wq_str("held")));
    wq_interrupt(f.q);
}

static void
wait_for_a_key(void)
{
    wq_item *item;

    ignore(wq_get_within(f.q, 20 * MS, &item));
}

static void
wait_for_capacity(void)
{
    wq_queue *q;

    if (wq_create(WQ_CONFIG(.max_len = 1, .overflow = WQ_OVERFLOW_BLOCK), &q))
        return;
    ignore(wq_add_str(q, "a"));
    ignore(wq_add_one(q, wq_str("b"), WQ_ADD(.max_block_ns = 20 * MS)));
    wq_destroy(q);
}

static void
wait_for_work_to_be_over(void)
{
    ignore(wq_flush(f.q, 10 * MS)); /* "held" is HELD by another thread */
    ignore(wq_wait_idle(f.q, 10 * MS));
    ignore(wq_flush_key(f.q, wq_str("held"), 10 * MS));
    ignore(wq_remove_wait(f.q, wq_str("held"), 10 * MS));
    ignore(wq_pause(f.q));
    ignore(wq_resume(f.q));
}

static void
drain(void)
{
    ignore(wq_shutdown_with_drain_within(f.q, 20 * MS));
}

static void
look_inside(void)
{
    wq_stats    counts = {.size = sizeof counts};
    wq_key_info info = {.size = sizeof info};
    wq_depth    depth;
    size_t      n = 0;
    char       *text;

    ignore(wq_read_stats(f.q, &counts));
    ignore(wq_read_depths(f.q, &depth, 1, &n));
    ignore(wq_read_key(f.q, wq_str("held"), &info));
    ignore(wq_each(f.q, 0, count_visit, &n));
    if (wq_registry_text(f.registry, WQ_TEXT_PROMETHEUS, &text, &n) == WQ_OK)
        free(text);
}

static void
use_a_layer(void)
{
    wq_queue *inner, *q;
    wq_item  *item;

    if (wq_create(NULL, &inner) || wq_delaying_wrap(inner, NULL, &q))
        return;
    ignore(wq_add_after(q, wq_str("foo"), MS));
    ignore(wq_get_within(q, 20 * MS, &item));
    wq_destroy(q);
}

/* ---- pools, parallel work, buckets --------------------------------------- */

static void
run_workers(void)
{
    wq_queue   *q;
    wq_workers *pool;

    if (wq_create(NULL, &q) ||
        wq_workers_start(q, WQ_WORKERS(.threads = 2, .handler = handle_done),
                         &pool))
        return;
    ignore(wq_add_str(q, "foo"));
    ignore(wq_workers_resize(pool, 1));
    ignore(wq_workers_drain(pool, WQ_FOREVER));
    ignore(wq_workers_destroy(pool));
    wq_destroy(q);
}

/* The calling thread takes the first piece, and must wait for the other one. */
static void
take_a_while(void *ctx, size_t piece)
{
    const int64_t until_ns = now_ns() + (piece == 0 ? 5 : 20) * MS;

    (void)ctx;
    while (now_ns() < until_ns)
        ;
}

static void
share_work(void)
{
    for (int i = 0; i < 5; i++) /* on a busy machine it may take both */
        ignore(wq_parallelize(2, 2, take_a_while, NULL, NULL));
}

static void
wait_for_a_token(void)
{
    ignore(wq_bucket_wait(f.bucket, WQ_FOREVER));
}

/* ---- the tests ----------------------------------------------------------- */

static const struct {
    const char *name;
    void (*call)(void);
} rows[] = {
    {"create and destroy", create_watch_and_destroy},
    {"add, get and done", add_and_take_out},
    {"get that sleeps", wait_for_a_key},
    {"add that waits for capacity", wait_for_capacity},
    {"flush, remove_wait and pause", wait_for_work_to_be_over},
    {"drain", drain},
    {"inspection", look_inside},
    {"layer", use_a_layer},
    {"worker pool", run_workers},
    {"wait for threads", share_work},
    {"wait for a token", wait_for_a_token},
};

static int
call_when_cancelled(struct worker *self)
{
    void (*const *call)(void) = self->arg;

    (void)pthread_cancel(pthread_self());
    (*call)();
    return 1; /* it was not a cancellation point */
}

/* O-73 */
TEST(no_function_is_a_cancellation_point)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        void (*call)(void) = rows[i].call;

        print_message("%s\n", rows[i].name);
        begin();
        assert_int_equal(worker_join(worker_start(call_when_cancelled, &call)),
                         1);
        end();
    }
}

WQ_TESTS(test(no_function_is_a_cancellation_point));
