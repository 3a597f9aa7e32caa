/* SPDX-License-Identifier: MIT */
/* test_workers.c: how does a pool of workers begin, work, change and end? */
#include "fixture.h"

#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include <wq/backend.h>
#include <wq/limiter.h>
#include <wq/workers.h>

#include "support/stage.h"
#include "support/worker.h"

#define MS INT64_C(1000000)

/* What the callbacks of a test share. */
struct room {
    wq_queue        *q;
    wq_workers      *pool;
    struct stage     handlers; /* held, unless opened */
    struct stage     reports;  /* on_stuck(): likewise */
    struct tally     drops;
    wq_result        result;
    atomic_int       most;  /* handlers that were running at the same time */
    atomic_int       now;   /* and are */
    atomic_int       wrong; /* what a callback found wrong: a line number */
    atomic_llong     running_ns;   /* what on_stuck() was told */
    atomic_int       drop_why;     /* what on_drop() was told */
    atomic_uint      drop_retries; /* likewise */
    char             names[4][32]; /* of threads, by the last byte of the key */
    wq_workers_stats last;         /* the stats when it ended */
};

static struct room
make_room(wq_queue *q)
{
    return (struct room){
        .q = q,
        .handlers = STAGE_INIT,
        .reports = STAGE_INIT,
        .drops = TALLY_INIT,
    };
}

static void
open_stage(struct stage *s)
{
    tally_add(&s->allowed, STAGE_OPEN);
}

static wq_result
handle(void *ctx, const wq_item *item)
{
    struct room *room = ctx;
    const int    now = atomic_fetch_add(&room->now, 1) + 1;
    int          most = atomic_load(&room->most);

    (void)item;
    while (now > most && !atomic_compare_exchange_weak(&room->most, &most, now))
        ;
    stage_pass(&room->handlers);
    atomic_fetch_sub(&room->now, 1);
    return room->result;
}

static void
note_drop(void *ctx, wq_key key, unsigned retries, wq_err why)
{
    struct room *room = ctx;

    (void)key;
    room->drop_why = (int)why;
    room->drop_retries = retries;
    tally_add(&room->drops, 1);
}

static void
report(void *ctx, const wq_item *item, int64_t running_ns)
{
    struct room *room = ctx;

    room->running_ns = running_ns;
    stage_pass(&room->reports);
    /* The handler may have returned meanwhile; the key is still there. */
    if (item->key.len != 3)
        room->wrong = __LINE__;
}

static void
start(struct room *room, wq_workers_config *config)
{
    config->size = sizeof *config;
    config->ctx = room;
    if (!config->handler)
        config->handler = handle;
    assert_err(wq_workers_start(room->q, config, &room->pool), WQ_OK);
    assert_non_null(room->pool);
}

static void
end(struct room *room)
{
    open_stage(&room->handlers);
    open_stage(&room->reports);
    assert_err(wq_workers_stop(room->pool), WQ_OK);
    room->last.size = sizeof room->last;
    assert_err(wq_workers_read_stats(room->pool, &room->last), WQ_OK);
    assert_err(wq_workers_destroy(room->pool), WQ_OK);
    assert_int_equal(room->wrong, 0);
}

static wq_workers_stats
stats(struct room *room)
{
    wq_workers_stats counts = {.size = sizeof counts};

    assert_err(wq_workers_read_stats(room->pool, &counts), WQ_OK);
    return counts;
}

static bool
has_no_threads(void *arg)
{
    return stats(arg).threads == 0;
}

static bool
has_one_thread(void *arg)
{
    return stats(arg).threads == 1;
}

static bool
is_idle(void *arg)
{
    return stats(arg).busy == 0;
}

static int
run_stop(struct worker *self)
{
    return (int)wq_workers_stop(((struct room *)self->arg)->pool);
}

static int
run_drain_forever(struct worker *self)
{
    return (int)wq_workers_drain(((struct room *)self->arg)->pool, WQ_FOREVER);
}

/* ---- beginning ----------------------------------------------------------- */

/* PW-01 */
TEST(start_refuses_what_makes_no_pool)
{
    wq_queue          *q = *state;
    struct room        room = make_room(q);
    wq_workers *const  untouched = (wq_workers *)(void *)&room;
    wq_workers        *pool = untouched;
    const wq_allocator half = {.size = sizeof half};
    struct {
        wq_workers_config config;
        char              more[16]; /* what a later release would have added */
    } later = {.config = {.size = sizeof later, .handler = handle}};

    assert_err(wq_workers_start(NULL, WQ_WORKERS(.handler = handle), &pool),
               WQ_EINVAL);
    assert_err(wq_workers_start(q, NULL, &pool), WQ_EINVAL);
    assert_err(wq_workers_start(q, WQ_WORKERS(.handler = handle), NULL),
               WQ_EINVAL);
    assert_err(wq_workers_start(q, WQ_WORKERS(.threads = 1), &pool), WQ_EINVAL);
    assert_err(
        wq_workers_start(
            q, WQ_WORKERS(.handler = handle, .item_deadline_ns = 1), &pool),
        WQ_EINVAL);
    assert_err(
        wq_workers_start(q,
                         WQ_WORKERS(.handler = handle, .on_stuck = report,
                                    .item_deadline_ns = -1),
                         &pool),
        WQ_EINVAL);
    assert_err(wq_workers_start(
                   q, WQ_WORKERS(.handler = handle, .allocator = &half), &pool),
               WQ_EINVAL);
    later.more[15] = 1;
    assert_err(wq_workers_start(q, &later.config, &pool), WQ_EINVAL);
    later.config.size = 0;
    assert_err(wq_workers_start(q, &later.config, &pool), WQ_EINVAL);
    later.config.size = 13;
    assert_err(wq_workers_start(q, &later.config, &pool), WQ_EINVAL);
    assert_ptr_equal(pool, untouched);
}

/* PW-01: a program of another age. */
TEST(start_accepts_older_and_newer_configs)
{
    wq_queue   *q = *state;
    struct room room = make_room(q);
    struct {
        wq_workers_config config;
        char              more[16];
    } later = {.config = {.size = sizeof later, .handler = handle}};
    wq_workers_config early = {.size = offsetof(wq_workers_config, ctx),
                               .handler = handle,
                               .item_deadline_ns = -1}; /* is not looked at */

    assert_err(wq_workers_start(q, &later.config, &room.pool), WQ_OK);
    end(&room);
    assert_err(wq_workers_start(q, &early, &room.pool), WQ_OK);
    end(&room);
}

/* PW-01: NULL pools. */
TEST(null_pools_are_refused)
{
    wq_workers_stats counts = {.size = sizeof counts};

    assert_err(wq_workers_stop(NULL), WQ_EINVAL);
    assert_err(wq_workers_drain(NULL, 0), WQ_EINVAL);
    assert_err(wq_workers_resize(NULL, 1), WQ_EINVAL);
    assert_err(wq_workers_read_stats(NULL, &counts), WQ_EINVAL);
    assert_int_equal(wq_workers_count(NULL), 0);
    assert_err(wq_workers_destroy(NULL), WQ_OK);
}

/* PW-02 */
TEST(zero_threads_are_as_many_as_processors)
{
    struct room room = make_room(*state);

    start(&room, &(wq_workers_config){0});
    assert_true(wq_workers_count(room.pool) >= 1);
    assert_true(wq_workers_count(room.pool) <=
                (unsigned)sysconf(_SC_NPROCESSORS_ONLN));
    assert_int_equal(stats(&room).threads, wq_workers_count(room.pool));
    end(&room);
}

/* Notes what its thread is called. */
static wq_result
say_name(void *ctx, const wq_item *item)
{
    struct room *room = ctx;
    char        *name = room->names[((const char *)item->key.data)[0] - '0'];
    FILE        *f = fopen("/proc/thread-self/comm", "r");

    if (!f)
        return wq_result_done();
    if (fgets(name, sizeof room->names[0], f))
        name[strcspn(name, "\n")] = '\0';
    (void)fclose(f);
    stage_pass(&room->handlers);
    return wq_result_done();
}

/* PW-03 */
TEST(threads_are_named_and_numbered)
{
    wq_queue   *q = *state;
    struct room room = make_room(q);

    if (access("/proc/thread-self/comm", R_OK) != 0)
        wq_test_skip("the system does not tell what a thread is called");
    start(&room, &(wq_workers_config){
                     .threads = 1, .name = "pod", .handler = say_name});
    add(q, "0");
    tally_await(&room.handlers.begun, 1);
    assert_err(wq_workers_resize(room.pool, 2), WQ_OK);
    add(q, "1");
    tally_await(&room.handlers.begun, 2);
    end(&room);
    assert_string_equal(room.names[0], "pod-0");
    assert_string_equal(room.names[1], "pod-1");
}

/* PW-03 */
TEST(long_thread_names_are_cut_before_the_number)
{
    wq_queue   *q = *state;
    struct room room = make_room(q);

    if (access("/proc/thread-self/comm", R_OK) != 0)
        wq_test_skip("the system does not tell what a thread is called");
    open_stage(&room.handlers);
    start(&room, &(wq_workers_config){.threads = 1,
                                      .name = "a-name-longer-than-15-bytes",
                                      .handler = say_name});
    add(q, "0");
    tally_await(&room.handlers.begun, 1);
    end(&room);
    assert_string_equal(room.names[0], "a-name-longer-0");
}

/* ---- working ------------------------------------------------------------- */

/* PQ-47 PW-12 PW-21 */
TEST(every_key_is_handled_once_and_done)
{
    wq_queue   *q = *state;
    struct room room = make_room(q);
    char        key[16];

    open_stage(&room.handlers);
    start(&room, &(wq_workers_config){.threads = 4});
    for (int i = 0; i < 100; i++) {
        (void)snprintf(key, sizeof key, "%d", i);
        add(q, key);
    }
    assert_err(wq_workers_drain(room.pool, WQ_FOREVER), WQ_OK);
    assert_int_equal(tally_read(&room.handlers.begun), 100);
    assert_int_equal(stats(&room).done, 100);
    assert_int_equal(stats(&room).threads, 0);
    assert_none_ready(q, WQ_ESHUTDOWN);
    end(&room);
}

/* A key added while its handler runs. Q-04 */
TEST(key_added_while_it_is_handled_is_handled_once_more_and_not_meanwhile)
{
    wq_queue   *q = *state;
    struct room room = make_room(q);

    start(&room, &(wq_workers_config){.threads = 2});
    add(q, "foo");
    tally_await(&room.handlers.begun, 1);
    add(q, "foo");
    add(q, "foo");
    open_stage(&room.handlers);
    assert_err(wq_workers_drain(room.pool, WQ_FOREVER), WQ_OK);
    assert_int_equal(tally_read(&room.handlers.begun), 2);
    assert_int_equal(room.most, 1);
    end(&room);
}

static wq_result
use_everything(void *ctx, const wq_item *item)
{
    struct room     *room = ctx;
    wq_workers_stats counts = {.size = sizeof counts};
    wq_item         *other;

    if (item->key.len != 3 || wq_shutting_down(room->q))
        return wq_result_done(); /* one that it added itself */
    if (wq_add_str(room->q, "other") || wq_add(room->q, item->key) ||
        wq_add_after(room->q, wq_str("later"), MS) ||
        wq_forget(room->q, item->key) ||
        wq_num_requeues(room->q, item->key) != 0 || wq_len(room->q) > 2)
        room->wrong = __LINE__;
    if (wq_get_within(room->q, 0, &other) == WQ_OK &&
        wq_done(room->q, other) != WQ_OK)
        room->wrong = __LINE__;
    wq_interrupt(room->q);
    if (wq_workers_resize(room->pool, 3) || wq_workers_resize(room->pool, 1) ||
        wq_workers_count(room->pool) != 1 ||
        wq_workers_read_stats(room->pool, &counts) || counts.busy < 1)
        room->wrong = __LINE__;
    wq_shutdown(room->q);
    tally_add(&room->handlers.begun, 1);
    return wq_result_done();
}

/* PW-09 */
TEST(handler_may_use_the_queue_and_resize_its_pool)
{
    wq_queue   *q = *state;
    struct room room = make_room(q);

    start(&room, &(wq_workers_config){.threads = 2, .handler = use_everything});
    add(q, "foo");
    tally_await(&room.handlers.begun, 1);
    await_that(has_no_threads, &room, "shutdown has ended the workers");
    end(&room);
}

static bool
try_to_end_own_pool(struct room *room)
{
    return wq_workers_stop(room->pool) == WQ_ESTATE &&
           wq_workers_drain(room->pool, 0) == WQ_ESTATE &&
           wq_workers_destroy(room->pool) == WQ_ESTATE &&
           !wq_shutting_down(room->q);
}

static void
try_in_parallel(void *ctx, size_t piece)
{
    (void)piece;
    if (!try_to_end_own_pool(ctx))
        ((struct room *)ctx)->wrong = __LINE__;
}

static wq_result
end_own_pool(void *ctx, const wq_item *item)
{
    struct room *room = ctx;

    (void)item;
    if (!try_to_end_own_pool(room) ||
        wq_parallelize(3, 9, try_in_parallel, room, NULL))
        room->wrong = __LINE__;
    stage_pass(&room->handlers);
    return wq_result_drop();
}

static void
end_own_pool_on_drop(void *ctx, wq_key key, unsigned retries, wq_err why)
{
    struct room *room = ctx;

    if (!try_to_end_own_pool(room))
        room->wrong = __LINE__;
    note_drop(ctx, key, retries, why);
}

static void
end_own_pool_on_stuck(void *ctx, const wq_item *item, int64_t running_ns)
{
    struct room *room = ctx;

    (void)item;
    (void)running_ns;
    if (!try_to_end_own_pool(room) || wq_workers_resize(room->pool, 2))
        room->wrong = __LINE__;
    stage_pass(&room->reports);
}

/* PW-11 PW-09 */
TEST(callbacks_cannot_end_their_own_pool)
{
    wq_queue   *q = *state;
    struct room room = make_room(q);
    wq_clock   *clock = wq_clock_fake_create(0);

    start(&room, &(wq_workers_config){.threads = 1,
                                      .handler = end_own_pool,
                                      .on_drop = end_own_pool_on_drop,
                                      .item_deadline_ns = MS,
                                      .on_stuck = end_own_pool_on_stuck,
                                      .clock = clock});
    add(q, "foo");
    tally_await(&room.handlers.begun, 1);
    wq_clock_fake_wait_for_waiters(clock, 1);
    wq_clock_fake_step(clock, MS);
    tally_await(&room.reports.begun, 1);
    open_stage(&room.reports);
    open_stage(&room.handlers);
    tally_await(&room.drops, 1);
    end(&room);
    wq_clock_destroy(clock);
}

/* ---- results, with a queue that lives by a fake clock -------------------- */

static wq_queue *
make_limited_queue(wq_clock *clock, unsigned max_retries)
{
    wq_queue *q = NULL;

    assert_err(wq_create(WQ_CONFIG(.clock = clock, .max_retries = max_retries,
                                   .limiter = wq_limiter_exponential(
                                       5 * MS, 1000 * MS)),
                         &q),
               WQ_OK);
    return q;
}

static wq_queue *
make_timed_queue(wq_clock *clock)
{
    return make_limited_queue(clock, 0);
}

/* PQ-47 R-01 */
TEST(key_that_fails_comes_back_when_the_limiter_says)
{
    wq_clock   *clock = wq_clock_fake_create(0);
    struct room room = make_room(make_timed_queue(clock));

    room.result = wq_result_retry();
    open_stage(&room.handlers);
    start(&room, &(wq_workers_config){.threads = 1});
    add(room.q, "foo");
    for (unsigned n = 1; n <= 4; n++) {
        tally_await(&room.handlers.begun, n);
        wq_clock_fake_wait_for_waiters(clock, 1);
        wq_clock_fake_step(clock, (5 * MS << (n - 1)) - 1);
        assert_int_equal(tally_read(&room.handlers.begun), n);
        assert_int_equal(wq_num_requeues(room.q, wq_str("foo")), n);
        wq_clock_fake_step(clock, 1);
    }
    tally_await(&room.handlers.begun, 5);
    end(&room);
    assert_int_equal(room.last.retried, 5);
    wq_destroy(room.q);
    wq_clock_destroy(clock);
}

/* PQ-47: and its failures are forgotten. */
TEST(key_to_look_at_later_comes_back_then)
{
    wq_clock   *clock = wq_clock_fake_create(0);
    struct room room = make_room(make_timed_queue(clock));

    room.result = wq_result_after(70 * MS);
    open_stage(&room.handlers);
    start(&room, &(wq_workers_config){.threads = 1});
    assert_err(wq_add_rate_limited(room.q, wq_str("foo")), WQ_OK);
    wq_clock_fake_wait_for_waiters(clock, 1);
    wq_clock_fake_step(clock, 5 * MS);
    for (unsigned n = 1; n <= 3; n++) {
        tally_await(&room.handlers.begun, n);
        wq_clock_fake_wait_for_waiters(clock, 1);
        assert_int_equal(wq_num_requeues(room.q, wq_str("foo")), 0);
        wq_clock_fake_step(clock, 70 * MS - 1);
        assert_int_equal(tally_read(&room.handlers.begun), n);
        wq_clock_fake_step(clock, 1);
    }
    tally_await(&room.handlers.begun, 4);
    end(&room);
    wq_destroy(room.q);
    wq_clock_destroy(clock);
}

static wq_result
retry_urgent(void *ctx, const wq_item *item)
{
    struct room *room = ctx;

    if (item->priority != 7)
        room->wrong = __LINE__;
    stage_pass(&room->handlers);
    return tally_read(&room->handlers.begun) % 2 ? wq_result_retry()
                                                 : wq_result_after(MS);
}

/* PQ-47 */
TEST(key_that_is_added_again_keeps_its_priority)
{
    const wq_key key = wq_str("foo");
    wq_clock    *clock = wq_clock_fake_create(0);
    struct room  room = make_room(make_timed_queue(clock));

    open_stage(&room.handlers);
    start(&room, &(wq_workers_config){.threads = 1, .handler = retry_urgent});
    assert_err(wq_add_with(room.q, WQ_ADD(.priority = 7), &key, 1), WQ_OK);
    for (unsigned n = 1; n <= 5; n++) {
        tally_await(&room.handlers.begun, n);
        wq_clock_fake_wait_for_waiters(clock, 1);
        wq_clock_fake_step(clock, 1000 * MS);
    }
    end(&room);
    assert_true(room.last.retried >= 3 && room.last.delayed >= 2);
    wq_destroy(room.q);
    wq_clock_destroy(clock);
}

static wq_result
fail_once(void *ctx, const wq_item *item)
{
    struct room *room = ctx;

    (void)item;
    stage_pass(&room->handlers);
    return tally_read(&room->handlers.begun) == 1 ? wq_result_retry()
                                                  : wq_result_done();
}

/* PQ-47: a layer knows no priorities; the key comes back without. */
TEST(key_is_retried_where_priorities_cannot_be_kept)
{
    wq_limiter *limiter = wq_limiter_exponential(1, 1);
    wq_queue   *inner, *q;

    assert_err(wq_create(NULL, &inner), WQ_OK);
    assert_err(wq_add_one(inner, wq_str("foo"), WQ_ADD(.priority = 5)), WQ_OK);
    assert_err(wq_rate_limiting_wrap(inner, WQ_CONFIG(.limiter = limiter), &q),
               WQ_OK);
    struct room room = make_room(q);
    open_stage(&room.handlers);
    start(&room, &(wq_workers_config){
                     .threads = 1, .handler = fail_once, .on_drop = note_drop});
    tally_await(&room.handlers.begun, 2);
    end(&room);
    assert_int_equal(room.last.retried, 1);
    assert_int_equal(room.last.dropped, 0);
    wq_destroy(q);
}

/* PW-06 */
TEST(key_is_given_up_after_max_retries)
{
    wq_clock   *clock = wq_clock_fake_create(0);
    struct room room = make_room(make_limited_queue(clock, 2));

    room.result = wq_result_retry();
    open_stage(&room.handlers);
    start(&room, &(wq_workers_config){.threads = 1, .on_drop = note_drop});
    add(room.q, "foo");
    for (unsigned n = 1; n <= 2; n++) {
        tally_await(&room.handlers.begun, n);
        wq_clock_fake_wait_for_waiters(clock, 1);
        wq_clock_fake_step(clock, 1000 * MS);
    }
    tally_await(&room.drops, 1);
    assert_int_equal(tally_read(&room.handlers.begun), 3);
    assert_err(room.drop_why, WQ_EGIVENUP);
    assert_int_equal(room.drop_retries, 2);
    assert_int_equal(wq_num_requeues(room.q, wq_str("foo")), 0);
    end(&room);
    wq_destroy(room.q);
    wq_clock_destroy(clock);
}

/* O-62 PW-08 */
TEST(key_that_the_pool_drops_counts_once_in_the_queue)
{
    wq_queue   *q = *state;
    wq_stats    counts = {.size = sizeof counts};
    struct room room = make_room(q);

    room.result = wq_result_drop();
    open_stage(&room.handlers);
    start(&room, &(wq_workers_config){.threads = 1, .on_drop = note_drop});
    add(q, "foo");
    tally_await(&room.drops, 1);
    assert_err(wq_read_stats(q, &counts), WQ_OK);
    assert_int_equal(counts.drops, 1);
    end(&room);
    assert_int_equal(room.last.dropped, 1);
}

/* PW-07 */
TEST(key_that_fails_after_shutdown_goes_to_on_drop)
{
    wq_queue   *q = *state;
    struct room room = make_room(q);

    room.result = wq_result_retry();
    start(&room, &(wq_workers_config){.threads = 1, .on_drop = note_drop});
    add(q, "foo");
    tally_await(&room.handlers.begun, 1);
    wq_shutdown(q);
    open_stage(&room.handlers);
    tally_await(&room.drops, 1);
    assert_err(room.drop_why, WQ_ESHUTDOWN);
    end(&room);
}

/* ---- stop ---------------------------------------------------------------- */

/* PW-10 */
TEST(stop_waits_for_the_item_in_hand_and_leaves_the_rest)
{
    wq_queue   *q = *state;
    struct room room = make_room(q);

    start(&room, &(wq_workers_config){.threads = 1});
    add(q, "foo");
    tally_await(&room.handlers.begun, 1);
    add(q, "bar");
    struct worker *stop = worker_start(run_stop, &room);
    worker_await_blocked(stop);
    tally_add(&room.handlers.allowed, 1);
    assert_err(worker_join(stop), WQ_OK);

    assert_int_equal(tally_read(&room.handlers.begun), 1);
    assert_int_equal(stats(&room).threads, 0);
    assert_false(wq_shutting_down(q));
    work_on(q, "bar");
    add(q, "foo"); /* foo was done */
    work_on(q, "foo");
    end(&room);
}

/* PW-10 PW-14 */
TEST(stop_is_for_good_and_a_second_one_harmless)
{
    struct room room = make_room(*state);

    start(&room, &(wq_workers_config){.threads = 2});
    assert_err(wq_workers_stop(room.pool), WQ_OK);
    assert_err(wq_workers_stop(room.pool), WQ_OK);
    assert_int_equal(wq_workers_count(room.pool), 0);
    assert_err(wq_workers_resize(room.pool, 1), WQ_ESTATE);
    assert_err(wq_workers_resize(room.pool, 0), WQ_ESTATE);
    end(&room);
}

/* PW-10 */
TEST(two_stops_at_once_both_wait)
{
    wq_queue   *q = *state;
    struct room room = make_room(q);

    start(&room, &(wq_workers_config){.threads = 3});
    add(q, "foo");
    tally_await(&room.handlers.begun, 1);
    struct worker *stops[] = {worker_start(run_stop, &room),
                              worker_start(run_stop, &room)};
    worker_await_all_blocked(stops, 2);
    open_stage(&room.handlers);
    assert_err(worker_join(stops[0]), WQ_OK);
    assert_err(worker_join(stops[1]), WQ_OK);
    end(&room);
}

static wq_result
resize_meanwhile(void *ctx, const wq_item *item)
{
    struct room *room = ctx;

    stage_pass(&room->handlers);
    (void)item;
    if (wq_workers_resize(room->pool, 5) != WQ_ESTATE)
        room->wrong = __LINE__;
    return wq_result_done();
}

/* PW-14: the handler does not wait for a stop that waits for it. */
TEST(resize_in_a_handler_is_refused_while_the_pool_stops)
{
    wq_queue   *q = *state;
    struct room room = make_room(q);

    start(&room,
          &(wq_workers_config){.threads = 1, .handler = resize_meanwhile});
    add(q, "foo");
    tally_await(&room.handlers.begun, 1);
    struct worker *stop = worker_start(run_stop, &room);
    worker_await_blocked(stop);
    open_stage(&room.handlers);
    assert_err(worker_join(stop), WQ_OK);
    end(&room);
}

/* An order that has room for nothing more once it says so. */
static struct {
    wq_key      line;
    bool        full;
    atomic_bool refuses;
} narrow;

static wq_err
push_narrow(void *self, wq_key key, int priority)
{
    (void)self;
    (void)priority;
    if (narrow.full || narrow.refuses)
        return WQ_ENOMEM;
    narrow.line = key;
    narrow.full = true;
    return WQ_OK;
}

static bool
pop_narrow(void *self, wq_key *out)
{
    (void)self;
    *out = narrow.line;
    const bool had = narrow.full;
    narrow.full = false;
    return had;
}

static size_t
len_narrow(void *self)
{
    (void)self;
    return narrow.full;
}

/* Its key comes again, and cannot. */
static wq_result
add_and_refuse(void *ctx, const wq_item *item)
{
    struct room *room = ctx;

    if (wq_add(room->q, item->key))
        room->wrong = __LINE__;
    narrow.refuses = true;
    tally_add(&room->handlers.begun, 1);
    return wq_result_done();
}

static void
resize_at_drop(void *ctx, wq_key key, unsigned retries, wq_err why)
{
    struct room *room = ctx;

    note_drop(ctx, key, retries, why);
    if (wq_workers_resize(room->pool, 2) != WQ_ESTATE)
        room->wrong = __LINE__;
}

/* PW-09 PW-14 PW-20: nobody waits for a done that fails, as for no handler. */
TEST(resize_is_refused_while_a_stop_waits_for_a_done_that_fails)
{
    const wq_order order = {.size = sizeof order,
                            .push = push_narrow,
                            .pop = pop_narrow,
                            .len = len_narrow};
    wq_queue      *q;

    narrow.full = false;
    narrow.refuses = false;
    assert_err(wq_create(WQ_CONFIG(.order = &order), &q), WQ_OK);
    struct room room = make_room(q);
    start(&room, &(wq_workers_config){.threads = 1,
                                      .handler = add_and_refuse,
                                      .on_drop = resize_at_drop});
    add(q, "foo");
    tally_await(&room.handlers.begun, 1);
    end(&room);
    assert_int_equal(room.drop_why, WQ_ENOMEM);
    wq_destroy(q);
}

/* PW-10: in whatever state the workers are, just begun or about to block. */
TEST(idle_pool_stops_whenever_it_is_told)
{
    wq_queue *q = *state;

    for (int i = 0; i < 200; i++) {
        struct room room = make_room(q);

        start(&room, &(wq_workers_config){.threads = 1 + (unsigned)i % 5});
        assert_err(worker_join(worker_start(run_stop, &room)), WQ_OK);
        end(&room);
    }
}

/* A get of the user's own that goes on after interrupts. */
static int
run_get_until_shutdown(struct worker *self)
{
    wq_item *item;
    wq_err   err;

    while ((err = wq_get(self->arg, &item)) == WQ_EINTERRUPTED)
        ;
    return (int)err;
}

/* PW-15 */
TEST(pool_stops_beside_gets_of_others_and_other_pools)
{
    wq_queue      *q = *state;
    struct room    other = make_room(q);
    struct worker *own = worker_start(run_get_until_shutdown, q);

    open_stage(&other.handlers);
    start(&other, &(wq_workers_config){.threads = 2});
    for (int i = 0; i < 50; i++) {
        struct room room = make_room(q);

        start(&room, &(wq_workers_config){.threads = 3});
        assert_err(worker_join(worker_start(run_stop, &room)), WQ_OK);
        end(&room);
    }
    assert_int_equal(stats(&other).threads, 2);
    wq_shutdown(q);
    assert_err(worker_join(own), WQ_ESHUTDOWN);
    end(&other);
}

/* PW-15 */
TEST(workers_go_on_after_an_interrupt)
{
    wq_queue   *q = *state;
    struct room room = make_room(q);

    open_stage(&room.handlers);
    start(&room, &(wq_workers_config){.threads = 2});
    for (unsigned i = 1; i <= 50; i++) {
        wq_interrupt(q);
        add(q, "foo");
        tally_await(&room.handlers.ended, i);
        await_that(is_idle, &room, "foo is done");
    }
    assert_int_equal(stats(&room).threads, 2);
    assert_int_equal(stats(&room).errors, 0);
    end(&room);
}

/* PW-16 */
TEST(shutdown_of_the_queue_ends_the_workers)
{
    wq_queue   *q = *state;
    struct room room = make_room(q);

    start(&room, &(wq_workers_config){.threads = 3});
    add(q, "foo");
    add(q, "bar");
    wq_shutdown(q);
    open_stage(&room.handlers);
    await_that(has_no_threads, &room, "all workers have left");
    assert_int_equal(tally_read(&room.handlers.ended), 2);
    assert_int_equal(wq_workers_count(room.pool), 3);
    assert_err(wq_workers_resize(room.pool, 4), WQ_OK);
    await_that(has_no_threads, &room, "new workers have left too");
    end(&room);
}

/* ---- drain --------------------------------------------------------------- */

/* PW-12 */
TEST(drain_waits_for_what_is_ready_and_what_is_held)
{
    wq_queue   *q = *state;
    struct room room = make_room(q);

    start(&room, &(wq_workers_config){.threads = 1});
    add(q, "foo");
    add(q, "bar");
    tally_await(&room.handlers.begun, 1);
    add(q, "foo"); /* dirty */
    struct worker *drain = worker_start(run_drain_forever, &room);
    worker_await_blocked(drain);
    tally_add(&room.handlers.allowed, 2);
    tally_await(&room.handlers.begun, 3);
    worker_await_blocked(drain);
    tally_add(&room.handlers.allowed, 1);
    assert_err(worker_join(drain), WQ_OK);
    assert_int_equal(tally_read(&room.handlers.ended), 3);
    assert_int_equal(stats(&room).threads, 0);
    assert_err(wq_workers_resize(room.pool, 1), WQ_ESTATE);
    assert_err(wq_workers_drain(room.pool, 0), WQ_OK); /* again */
    end(&room);
}

/* PW-13 */
TEST(drain_that_times_out_lets_the_workers_go_on)
{
    wq_queue   *q = *state;
    struct room room = make_room(q);

    start(&room, &(wq_workers_config){.threads = 1});
    add(q, "foo");
    add(q, "bar");
    tally_await(&room.handlers.begun, 1);
    assert_err(wq_workers_drain(room.pool, 0), WQ_ETIMEDOUT);
    assert_err(wq_workers_drain(room.pool, MS), WQ_ETIMEDOUT);
    assert_true(wq_shutting_down(q));
    assert_int_equal(stats(&room).busy, 1);
    open_stage(&room.handlers);
    assert_err(wq_workers_drain(room.pool, WQ_FOREVER), WQ_OK);
    assert_int_equal(tally_read(&room.handlers.ended), 2);
    end(&room);
}

/* PW-13 */
TEST(stop_after_a_drain_that_timed_out_waits_for_the_item_in_hand_only)
{
    wq_queue   *q = *state;
    struct room room = make_room(q);

    start(&room, &(wq_workers_config){.threads = 1});
    add(q, "foo");
    add(q, "bar");
    tally_await(&room.handlers.begun, 1);
    assert_err(wq_workers_drain(room.pool, 0), WQ_ETIMEDOUT);
    struct worker *stop = worker_start(run_stop, &room);
    worker_await_blocked(stop);
    tally_add(&room.handlers.allowed, 1);
    assert_err(worker_join(stop), WQ_OK);
    assert_int_equal(wq_len(q), 1);
    end(&room);
}

/* PW-12 */
TEST(drain_ends_when_the_queue_is_shut_down_meanwhile)
{
    wq_queue   *q = *state;
    struct room room = make_room(q);

    start(&room, &(wq_workers_config){.threads = 1});
    add(q, "foo");
    tally_await(&room.handlers.begun, 1);
    struct worker *drain = worker_start(run_drain_forever, &room);
    worker_await_blocked(drain);
    wq_shutdown(q);
    assert_err(worker_join(drain), WQ_EINTERRUPTED);
    end(&room);
}

/* PW-12 */
TEST(drain_refuses_a_negative_timeout)
{
    wq_queue   *q = *state;
    struct room room = make_room(q);

    start(&room, &(wq_workers_config){.threads = 1});
    assert_err(wq_workers_drain(room.pool, -1), WQ_EINVAL);
    assert_false(wq_shutting_down(q));
    end(&room);
}

/* ---- resize -------------------------------------------------------------- */

/* PW-14 */
TEST(resize_up_lets_more_handlers_run_at_once)
{
    wq_queue   *q = *state;
    struct room room = make_room(q);

    start(&room, &(wq_workers_config){.threads = 1});
    add(q, "foo");
    add(q, "bar");
    add(q, "baz");
    tally_await(&room.handlers.begun, 1);
    assert_err(wq_workers_resize(room.pool, 3), WQ_OK);
    tally_await(&room.handlers.begun, 3);
    assert_int_equal(room.most, 3);
    assert_int_equal(wq_workers_count(room.pool), 3);
    assert_int_equal(stats(&room).threads, 3);
    assert_int_equal(stats(&room).busy, 3);
    end(&room);
}

/* PW-14 */
TEST(resize_down_waits_for_nobody_and_the_surplus_leaves_after_its_item)
{
    wq_queue   *q = *state;
    struct room room = make_room(q);

    start(&room, &(wq_workers_config){.threads = 3});
    add(q, "foo");
    add(q, "bar");
    add(q, "baz");
    tally_await(&room.handlers.begun, 3);
    assert_err(wq_workers_resize(room.pool, 1), WQ_OK);
    assert_int_equal(wq_workers_count(room.pool), 1);
    assert_int_equal(stats(&room).threads, 3);
    tally_add(&room.handlers.allowed, 3);
    await_that(has_one_thread, &room, "two have left");

    add(q, "foo");
    add(q, "bar");
    tally_await(&room.handlers.begun, 4);
    assert_int_equal(stats(&room).busy, 1);
    assert_int_equal(wq_len(q), 1);
    end(&room);
}

/* PW-14: those who were to leave stay. */
TEST(resize_up_while_workers_are_to_leave_needs_fewer_new_ones)
{
    wq_queue   *q = *state;
    struct room room = make_room(q);

    start(&room, &(wq_workers_config){.threads = 3});
    add(q, "foo");
    add(q, "bar");
    add(q, "baz");
    tally_await(&room.handlers.begun, 3);
    assert_err(wq_workers_resize(room.pool, 1), WQ_OK);
    assert_err(wq_workers_resize(room.pool, 4), WQ_OK);
    assert_int_equal(stats(&room).threads, 4);
    open_stage(&room.handlers);
    await_that(is_idle, &room, "all are idle");
    assert_int_equal(stats(&room).threads, 4);
    end(&room);
}

/* PW-14 */
TEST(resize_to_zero_pauses)
{
    wq_queue   *q = *state;
    struct room room = make_room(q);

    open_stage(&room.handlers);
    start(&room, &(wq_workers_config){.threads = 3});
    assert_err(wq_workers_resize(room.pool, 0), WQ_OK);
    assert_int_equal(stats(&room).threads, 0); /* all were idle */
    add(q, "foo");
    assert_int_equal(wq_len(q), 1);
    assert_err(wq_workers_drain(room.pool, 0), WQ_ETIMEDOUT);
    assert_int_equal(tally_read(&room.handlers.begun), 0);
    assert_err(wq_workers_resize(room.pool, 1), WQ_OK);
    assert_err(wq_workers_drain(room.pool, WQ_FOREVER), WQ_OK);
    assert_int_equal(tally_read(&room.handlers.ended), 1);
    end(&room);
}

/* PW-14 */
TEST(resize_of_an_idle_pool_leaves_exactly_as_many)
{
    struct room room = make_room(*state);

    start(&room, &(wq_workers_config){.threads = 1});
    for (unsigned i = 0; i < 200; i++) {
        const unsigned n = (i * 7) % 6;

        assert_err(wq_workers_resize(room.pool, n), WQ_OK);
        assert_int_equal(stats(&room).threads, n);
    }
    end(&room);
}

/* ---- the watchdog -------------------------------------------------------- */

static void
start_watched(struct room *room, wq_clock *clock)
{
    start(room, &(wq_workers_config){.threads = 2,
                                     .item_deadline_ns = 10 * MS,
                                     .on_stuck = report,
                                     .clock = clock});
}

/* PW-18 */
TEST(handler_that_takes_too_long_is_reported_once_each_time)
{
    wq_queue   *q = *state;
    struct room room = make_room(q);
    wq_clock   *clock = wq_clock_fake_create(0);

    open_stage(&room.reports);
    start_watched(&room, clock);
    for (unsigned n = 1; n <= 3; n++) {
        add(q, "foo");
        tally_await(&room.handlers.begun, n);
        wq_clock_fake_wait_for_waiters(clock, 1);
        wq_clock_fake_step(clock, 10 * MS - 1);
        assert_int_equal(tally_read(&room.reports.begun), n - 1);
        wq_clock_fake_step(clock, 1);
        tally_await(&room.reports.ended, n);
        assert_int_equal(room.running_ns, 10 * MS);
        wq_clock_fake_step(clock, 1000 * MS); /* not again */
        tally_add(&room.handlers.allowed, 1);
        tally_await(&room.handlers.ended, n);
        await_that(is_idle, &room, "foo is done");
    }
    end(&room);
    assert_int_equal(tally_read(&room.reports.begun), 3);
    wq_clock_destroy(clock);
}

/* PW-18 */
TEST(each_of_several_handlers_is_reported_at_its_own_time)
{
    wq_queue   *q = *state;
    struct room room = make_room(q);
    wq_clock   *clock = wq_clock_fake_create(0);

    open_stage(&room.reports);
    start_watched(&room, clock);
    add(q, "foo");
    tally_await(&room.handlers.begun, 1);
    wq_clock_fake_step(clock, 4 * MS);
    add(q, "bar");
    tally_await(&room.handlers.begun, 2);
    wq_clock_fake_wait_for_waiters(clock, 1);
    wq_clock_fake_step(clock, 6 * MS);
    tally_await(&room.reports.begun, 1);
    wq_clock_fake_wait_for_waiters(clock, 1);
    wq_clock_fake_step(clock, 3 * MS);
    assert_int_equal(tally_read(&room.reports.begun), 1);
    wq_clock_fake_step(clock, 2 * MS);
    tally_await(&room.reports.begun, 2);
    assert_int_equal(room.running_ns, 11 * MS);
    end(&room);
    wq_clock_destroy(clock);
}

/* PW-18 */
TEST(handler_that_returns_in_time_is_not_reported)
{
    wq_queue   *q = *state;
    struct room room = make_room(q);
    wq_clock   *clock = wq_clock_fake_create(0);

    open_stage(&room.handlers);
    start_watched(&room, clock);
    for (unsigned n = 1; n <= 5; n++) {
        add(q, "foo");
        tally_await(&room.handlers.ended, n);
        await_that(is_idle, &room, "foo is done");
        wq_clock_fake_step(clock, 7 * MS);
    }
    end(&room);
    assert_int_equal(tally_read(&room.reports.begun), 0);
    wq_clock_destroy(clock);
}

/* PW-18 */
TEST(item_is_not_handed_back_while_it_is_reported)
{
    wq_queue   *q = *state;
    struct room room = make_room(q);
    wq_clock   *clock = wq_clock_fake_create(0);

    start_watched(&room, clock);
    add(q, "foo");
    tally_await(&room.handlers.begun, 1);
    wq_clock_fake_wait_for_waiters(clock, 1);
    wq_clock_fake_step(clock, 10 * MS);
    tally_await(&room.reports.begun, 1);
    tally_add(&room.handlers.allowed, 1);
    tally_await(&room.handlers.ended, 1);
    struct worker *drain = worker_drain(q);
    worker_await_blocked(drain);
    tally_add(&room.reports.allowed, 1);
    assert_err(worker_join(drain), WQ_OK);
    end(&room);
    wq_clock_destroy(clock);
}

/* PW-18: stop waits for the report, and for the handler it is about. */
TEST(stop_waits_while_a_handler_is_reported)
{
    wq_queue   *q = *state;
    struct room room = make_room(q);
    wq_clock   *clock = wq_clock_fake_create(0);

    start_watched(&room, clock);
    add(q, "foo");
    tally_await(&room.handlers.begun, 1);
    struct worker *stop = worker_start(run_stop, &room);
    worker_await_blocked(stop);
    wq_clock_fake_wait_for_waiters(clock, 1);
    wq_clock_fake_step(clock, 10 * MS);
    tally_await(&room.reports.begun, 1); /* while stopping, too */
    open_stage(&room.handlers);
    worker_await_blocked(stop);
    open_stage(&room.reports);
    assert_err(worker_join(stop), WQ_OK);
    end(&room);
    wq_clock_destroy(clock);
}

/* Threads of this process; 0 where the system does not tell. */
static size_t
count_threads(void)
{
    char   line[128];
    size_t n = 0;
    FILE  *f = fopen("/proc/self/status", "r");

    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "Threads: %zu", &n) == 1)
            break;
    if (f)
        (void)fclose(f);
    return n;
}

static bool
has_threads(void *n)
{
    return count_threads() == *(size_t *)n;
}

static bool
has_no_more_threads(void *n)
{
    return count_threads() <= *(size_t *)n;
}

/* PW-17 */
TEST(there_are_as_many_threads_as_asked_for)
{
    wq_queue   *q = *state;
    struct room room = make_room(q);
    size_t      one_more = count_threads() + 1;

    if (one_more == 1)
        wq_test_skip("the system does not count threads");
    /* A sanitizer may start a thread of its own with the first of ours. */
    start(&room, &(wq_workers_config){.threads = 2});
    end(&room);
    await_that(has_no_more_threads, &one_more, "the first ones are gone");
    size_t before = count_threads();

    room = make_room(q);
    start(&room, &(wq_workers_config){.threads = 3, .on_stuck = report});
    size_t with = before + 3;
    await_that(has_threads, &with, "there are three more");
    end(&room);
    await_that(has_threads, &before, "they are gone");

    room = make_room(q);
    start(&room, &(wq_workers_config){
                     .threads = 3, .on_stuck = report, .item_deadline_ns = MS});
    with = before + 4;
    await_that(has_threads, &with, "there are three and a watchdog");
    end(&room);
    await_that(has_threads, &before, "they are gone");
}

/* ---- numbers ------------------------------------------------------------- */

/* PW-21 */
TEST(stats_say_what_is_and_was)
{
    wq_queue   *q = *state;
    struct room room = make_room(q);

    start(&room, &(wq_workers_config){.threads = 2});
    add(q, "foo");
    tally_await(&room.handlers.begun, 1);
    assert_int_equal(stats(&room).threads, 2);
    assert_int_equal(stats(&room).busy, 1);
    assert_int_equal(stats(&room).done, 0);
    open_stage(&room.handlers);
    await_that(is_idle, &room, "foo is done");
    assert_int_equal(stats(&room).done, 1);
    assert_int_equal(stats(&room).threads, 2);
    assert_err(wq_workers_stop(room.pool), WQ_OK);
    assert_int_equal(stats(&room).done, 1); /* of workers who have left */
    assert_int_equal(stats(&room).threads, 0);
    end(&room);
}

/* PW-21 */
TEST(stats_fill_in_as_far_as_the_size_reaches)
{
    struct room      room = make_room(*state);
    wq_workers_stats counts = {.size = offsetof(wq_workers_stats, busy),
                               .busy = 77};

    start(&room, &(wq_workers_config){.threads = 2});
    assert_err(wq_workers_read_stats(room.pool, &counts), WQ_OK);
    assert_int_equal(counts.threads, 2);
    assert_int_equal(counts.busy, 77);
    assert_int_equal(counts.size, offsetof(wq_workers_stats, busy));
    counts.size = 0;
    assert_err(wq_workers_read_stats(room.pool, &counts), WQ_EINVAL);
    counts.size = 9;
    assert_err(wq_workers_read_stats(room.pool, &counts), WQ_EINVAL);
    assert_err(wq_workers_read_stats(room.pool, NULL), WQ_EINVAL);
    end(&room);
}

WQ_TESTS(
    with_queue(start_refuses_what_makes_no_pool),
    with_queue(start_accepts_older_and_newer_configs),
    test(null_pools_are_refused),
    with_queue(zero_threads_are_as_many_as_processors),
    with_queue(threads_are_named_and_numbered),
    with_queue(long_thread_names_are_cut_before_the_number),
    with_queue(every_key_is_handled_once_and_done),
    with_queue(
        key_added_while_it_is_handled_is_handled_once_more_and_not_meanwhile),
    with_queue(handler_may_use_the_queue_and_resize_its_pool),
    with_queue(callbacks_cannot_end_their_own_pool),
    test(key_that_fails_comes_back_when_the_limiter_says),
    test(key_to_look_at_later_comes_back_then),
    test(key_that_is_added_again_keeps_its_priority),
    test(key_is_given_up_after_max_retries),
    with_queue(key_that_the_pool_drops_counts_once_in_the_queue),
    with_queue(key_that_fails_after_shutdown_goes_to_on_drop),
    with_queue(stop_waits_for_the_item_in_hand_and_leaves_the_rest),
    with_queue(stop_is_for_good_and_a_second_one_harmless),
    with_queue(two_stops_at_once_both_wait),
    with_queue(resize_in_a_handler_is_refused_while_the_pool_stops),
    test(resize_is_refused_while_a_stop_waits_for_a_done_that_fails),
    test(key_is_retried_where_priorities_cannot_be_kept),
    with_queue(idle_pool_stops_whenever_it_is_told),
    with_queue(pool_stops_beside_gets_of_others_and_other_pools),
    with_queue(workers_go_on_after_an_interrupt),
    with_queue(shutdown_of_the_queue_ends_the_workers),
    with_queue(drain_waits_for_what_is_ready_and_what_is_held),
    with_queue(drain_that_times_out_lets_the_workers_go_on),
    with_queue(
        stop_after_a_drain_that_timed_out_waits_for_the_item_in_hand_only),
    with_queue(drain_ends_when_the_queue_is_shut_down_meanwhile),
    with_queue(drain_refuses_a_negative_timeout),
    with_queue(resize_up_lets_more_handlers_run_at_once),
    with_queue(
        resize_down_waits_for_nobody_and_the_surplus_leaves_after_its_item),
    with_queue(resize_up_while_workers_are_to_leave_needs_fewer_new_ones),
    with_queue(resize_to_zero_pauses),
    with_queue(resize_of_an_idle_pool_leaves_exactly_as_many),
    with_queue(handler_that_takes_too_long_is_reported_once_each_time),
    with_queue(each_of_several_handlers_is_reported_at_its_own_time),
    with_queue(handler_that_returns_in_time_is_not_reported),
    with_queue(item_is_not_handed_back_while_it_is_reported),
    with_queue(stop_waits_while_a_handler_is_reported),
    with_queue(there_are_as_many_threads_as_asked_for),
    with_queue(stats_say_what_is_and_was),
    with_queue(stats_fill_in_as_far_as_the_size_reaches));
