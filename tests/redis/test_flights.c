/* SPDX-License-Identifier: MIT */
/* test_flights.c: what if two batches are under way on one connection? (S-28)
 *
 * The tests call the engine of handle a as the shell does: begin() of two batches,
 * run() of both. So it is known what is under way when something goes wrong.
 */
#include "spread.h" /* first: it has parameters that are named f, too */

#include "redis/served.h"

#include <pthread.h>
#include <stdatomic.h>

#include "shared/shared.h"

static struct wq__engine *
engine(void)
{
    return wq__shared_of(f.a)->engine;
}

/* A batch of one operation, and what was handed out to it. */
struct batch {
    struct wq__op    op;
    wq_add_options   how;
    wq_key           key;
    wq_added         added;
    struct wq__pulse pulse;
    char             got[40]; /* "": nothing */
    uint64_t         fence;
};

static void
make_add(struct batch *b, const char *key)
{
    *b = (struct batch){.how = {.size = sizeof b->how}, .key = wq_str(key)};
    b->op = (struct wq__op){
        .kind = WQ__OP_ADD,
        .as.add = {
            .how = &b->how, .keys = &b->key, .n = 1, .added = &b->added}};
}

static wq_err
note_key(void *ctx, const struct wq__handed *handed)
{
    struct batch *b = ctx;

    (void)snprintf(b->got, sizeof b->got, "%.*s", (int)handed->key.len,
                   (const char *)handed->key.data);
    b->fence = handed->fence;
    return WQ_OK;
}

static void
make_get(struct batch *b)
{
    *b = (struct batch){.fence = 0};
    b->op = (struct wq__op){.kind = WQ__OP_GET,
                            .as.get = {.max = 1, .take = note_key, .ctx = b}};
}

static void
make_finish(struct batch *b, const char *key, uint64_t fence)
{
    *b = (struct batch){.key = wq_str(key)};
    b->op = (struct wq__op){.kind = WQ__OP_FINISH,
                            .as.finish = {.key = b->key,
                                          .fence = fence,
                                          .result = wq_result_done()}};
}

static bool
begin(struct batch *b)
{
    return engine()->ops->begin(engine(), &b->op);
}

static wq_err
run(struct batch *b)
{
    return engine()->ops->run(engine(), &b->op, &b->pulse);
}

static void
begin_both(struct batch *first, struct batch *second)
{
    assert_true(begin(first));
    assert_true(begin(second));
}

static void
run_both(struct batch *first, struct batch *second)
{
    assert_err(run(first), WQ_OK);
    assert_err(run(second), WQ_OK);
    assert_err(first->op.err, WQ_OK);
    assert_err(second->op.err, WQ_OK);
}

/* Give back what handle a holds, and nobody knows of. */
static void
reconcile(void)
{
    bool lost = false;

    assert_err(engine()->ops->reconcile(engine(), NULL, 0, &lost), WQ_OK);
}

/* ---- both answered -------------------------------------------------------- */

TEST(batches_that_were_begun_happen_in_order)
{
    struct batch add, get, third;

    (void)state;
    make_add(&add, "k");
    make_get(&get);
    begin_both(&add, &get);
    run_both(&add, &get);
    assert_int_equal(add.added, WQ_ADDED_NEW);
    assert_string_equal(get.got, "k");
    make_finish(&third, "k", get.fence);
    assert_err(run(&third), WQ_OK);
    assert_err(third.op.err, WQ_OK);
    assert_int_equal(stats_of(f.b).known, 0);
    check(f.b);
}

TEST(batch_is_begun_after_the_first_has_run)
{
    struct batch add, more, get;

    (void)state;
    make_add(&add, "k");
    make_add(&more, "l");
    make_get(&get);
    begin_both(&add, &more);
    assert_err(run(&add), WQ_OK);
    assert_true(begin(&get));
    run_both(&more, &get);
    assert_string_equal(get.got, "k");
    reconcile();
    check(f.b);
}

/* Both are answered NOSCRIPT; each is sent again with its own arguments. */
TEST(server_that_has_forgotten_the_script_gets_each_batch_again)
{
    struct batch add, more;

    (void)state;
    make_add(&add, "k");
    make_add(&more, "l");
    tell(&f.server, "SCRIPT FLUSH");
    begin_both(&add, &more);
    run_both(&add, &more);
    assert_int_equal(stats_of(f.b).ready, 2);
    assert_err(wq_done(f.b, take_key(f.b, "k")), WQ_OK);
    assert_err(wq_done(f.b, take_key(f.b, "l")), WQ_OK);
    check(f.b);
}

/* The first batch needs more calls, whose replies come behind that of the second
 * one: a key with a deadline that has passed goes the long way. */
TEST(batch_that_needs_more_calls_keeps_the_reply_of_the_next)
{
    struct batch first, second;

    (void)state;
    assert_err(wq_add_with(f.b,
                           &(wq_add_options){.size = sizeof(wq_add_options),
                                             .debounce_ns = 1},
                           &(wq_key){"slow", 4}, 1),
               WQ_OK);
    make_get(&first);
    make_add(&second, "k");
    begin_both(&first, &second);
    run_both(&first, &second);
    assert_string_equal(first.got, "slow");
    assert_int_equal(second.added, WQ_ADDED_NEW);
    reconcile();
    check(f.b);
}

/* The first batch finds that the session has ended, and begins another one; the
 * second one was sent before it knew. */
TEST(session_that_has_ended_is_replaced_once_for_both_batches)
{
    struct batch get, more;

    (void)state;
    assert_err(wq_add(f.b, wq_str("k")), WQ_OK);
    assert_err(wq_add(f.b, wq_str("l")), WQ_OK);
    const uint64_t before = wq_redis_session(f.a);
    (void)redis_server_say(&f.server, "DEL wq:{q}:sess");
    (void)redis_server_say(&f.server, "HDEL wq:{q}:meta calm");
    make_get(&get);
    make_get(&more);
    begin_both(&get, &more);
    assert_err(run(&get), WQ_OK);
    const uint64_t after = wq_redis_session(f.a);
    assert_err(run(&more), WQ_OK);
    assert_true(get.pulse.session_lost);
    assert_false(more.pulse.session_lost);
    assert_true(before != after);
    assert_true(wq_redis_session(f.a) == after);
    assert_string_equal(get.got, "k");
    assert_string_equal(more.got, "l");
    reconcile();
}

/* Only the core understands such a key: the server answers that a batch which
 * names it must go the long way. */
static const wq_add_options debounced = {.size = sizeof debounced,
                                         .debounce_ns = WQ_SECONDS(100)};

/* The reply to the second batch is kept while the first one finds that the session
 * has ended, and gives back its keys: also that of the second. */
TEST(key_that_a_former_session_got_is_not_handed_out)
{
    struct batch   slow, get;
    const wq_key   key = wq_str("slow");
    wq_item       *item = NULL;
    const uint64_t before = wq_redis_session(f.a);

    (void)state;
    assert_err(wq_add_with(f.b, &debounced, &key, 1), WQ_OK);
    assert_err(wq_add(f.b, wq_str("k")), WQ_OK);
    make_add(&slow, "slow");
    make_get(&get);
    begin_both(&slow, &get);
    redis_server_await(&f.server, "ZCARD wq:{q}:held", "2"); /* and the guard */
    (void)redis_server_say(&f.server, "DEL wq:{q}:sess");
    (void)redis_server_say(&f.server, "HDEL wq:{q}:meta calm");
    assert_err(run(&slow), WQ_OK);
    assert_true(slow.pulse.session_lost);
    assert_true(wq_redis_session(f.a) != before);
    assert_err(run(&get), WQ_EIO);
    last_error_has("the lease has ended in a batch");
    assert_string_equal(get.got, "");
    assert_err(wq_get_within(f.b, 0, &item), WQ_OK);
    assert_err(wq_done(f.b, item), WQ_OK);
    reconcile();
    check(f.b);
}

/* The first batch happens after the second one, whose pulse is later even so. */
TEST(pulse_of_a_reply_that_was_kept_is_read_anew)
{
    struct batch         get, finish, none;
    const wq_key         key = wq_str("slow");
    const wq_add_options throttled = {.size = sizeof throttled,
                                      .throttle_ns = WQ_SECONDS(100)};

    (void)state;
    assert_err(wq_add_with(f.b, &throttled, &key, 1), WQ_OK);
    make_get(&get);
    assert_err(run(&get), WQ_OK);
    assert_string_equal(get.got, "slow");
    make_finish(&finish, "slow", get.fence);
    make_get(&none);
    begin_both(&finish, &none);
    run_both(&finish, &none);
    assert_string_equal(none.got, "");
    assert_int_equal(stats_of(f.b).held, 0);
    assert_int_equal(none.pulse.held, 0);
}

/* ---- not answered --------------------------------------------------------- */

TEST(both_replies_are_lost_with_the_connection)
{
    struct batch get, more;
    char         why[240];

    (void)state;
    put_proxy();
    assert_err(wq_add(f.b, wq_str("k")), WQ_OK);
    assert_err(wq_add(f.b, wq_str("l")), WQ_OK);
    make_get(&get);
    make_get(&more);
    proxy_set(f.proxy, PROXY_LOSE);
    begin_both(&get, &more);
    assert_err(run(&get), WQ_EIO);
    last_error_has("/proxy': "); /* it ends, is reset, or a broken pipe */
    (void)snprintf(why, sizeof why, "%s", wq_last_error());
    (void)wq_fail(WQ_EINVAL, "something else");
    assert_err(run(&more), WQ_EIO);
    assert_string_equal(wq_last_error(), why);
    reconcile();
    assert_int_equal(stats_of(f.b).held, 0);
    assert_int_equal(stats_of(f.b).ready, 2);
    check(f.b);
}

/* run() finds out why, and says so. */
TEST(batch_is_not_begun_while_the_server_is_away)
{
    struct batch add;

    (void)state;
    make_add(&add, "k");
    redis_server_kill(&f.server);
    assert_false(begin(&add));
    assert_err(run(&add), WQ_EAWAY);
    last_error_has("cannot connect to '");
    redis_server_restart(&f.server, aof);
}

/* ---- what is not begun ---------------------------------------------------- */

TEST(batch_that_needs_more_than_one_call_is_not_begun)
{
    struct batch late, look;

    (void)state;
    make_add(&late, "k");
    late.how.after_ns = WQ_SECONDS(100);
    assert_false(begin(&late));
    make_get(&look);
    look.op.kind = WQ__OP_REQUEUES;
    assert_false(begin(&look));
    assert_false(engine()->ops->begin(engine(), NULL));
}

TEST(handle_with_a_descriptor_begins_no_batch)
{
    struct batch add;

    (void)state;
    make_add(&add, "k");
    assert_true(wq_fd(f.a) >= 0);
    assert_false(begin(&add));
}

/* ---- threads -------------------------------------------------------------- */

enum { THREADS = 12, CYCLES = 400 };

static const struct wq__engine_ops *inner;
static atomic_int                   begun;

static bool
begin_and_count(struct wq__engine *e, struct wq__op *batch)
{
    const bool is_begun = inner->begin(e, batch);

    atomic_fetch_add(&begun, is_begun);
    return is_begun;
}

static atomic_int done;
static char       failure[] = "a call has failed";

static void *
work(void *arg)
{
    const char      letter = (char)('a' + (int)(intptr_t)arg);
    const wq_result ok = wq_result_done();
    char            key[20];
    wq_item        *item = NULL;

    for (int i = 0; i < CYCLES; i++) {
        (void)snprintf(key, sizeof key, "%c%d", letter, i);
        if (wq_add(f.a, wq_str(key)) ||
            wq_next_with(f.a, ok, WQ_FOREVER, &item))
            return failure;
        atomic_fetch_add(&done, 1);
    }
    return wq_finish(f.a, item, ok) ? failure : NULL;
}

/* Each gets as many keys as it adds: none is handed out twice, none is lost. */
TEST(crowd_of_threads_gets_all_of_its_keys)
{
    pthread_t             threads[THREADS];
    struct wq__engine_ops ops = *engine()->ops;

    (void)state;
    inner = engine()->ops;
    ops.begin = begin_and_count;
    engine()->ops = &ops;
    done = begun = 0;
    for (intptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, (void *)i), 0);
    for (size_t i = 0; i < THREADS; i++) {
        void *failed = NULL;

        (void)pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    engine()->ops = inner;
    assert_true(atomic_load(&begun) > 0); /* else this has tested nothing */
    assert_int_equal(atomic_load(&done), THREADS * CYCLES);
    assert_int_equal(stats_of(f.b).known, 0);
    check(f.b);
}

/* ---- waiting --------------------------------------------------------------- */

/* S-26 */
TEST(batch_of_a_server_is_worth_waiting_for)
{
    assert_true(engine()->distant);
}

/* S-26, S-27: together they lose a twentieth of the time, not each of them. */
TEST(partitions_share_an_account_of_yields)
{
    wq_queue *q = NULL;

    assert_err(wq_redis_open(url_of(f.server.socket, "parts"),
                             WQ_REDIS_OPTIONS(.partitions = 3), NULL, &q),
               WQ_OK);
    struct wq__spread *s = wq__spread_of(wq__shared_of(q)->engine);
    assert_true(s->base.distant);
    assert_int_equal(s->n, 3);
    for (unsigned p = 0; p < s->n; p++)
        assert_ptr_equal(s->part[p]->wire.yields, &s->root->yields);
    wq_destroy(q);
}

WQ_TESTS(
    with_server(batches_that_were_begun_happen_in_order),
    with_server(batch_is_begun_after_the_first_has_run),
    with_server(server_that_has_forgotten_the_script_gets_each_batch_again),
    with_server(batch_that_needs_more_calls_keeps_the_reply_of_the_next),
    with_server(session_that_has_ended_is_replaced_once_for_both_batches),
    with_server(key_that_a_former_session_got_is_not_handed_out),
    with_server(pulse_of_a_reply_that_was_kept_is_read_anew),
    with_server(both_replies_are_lost_with_the_connection),
    with_server(batch_is_not_begun_while_the_server_is_away),
    with_server(batch_that_needs_more_than_one_call_is_not_begun),
    with_server(handle_with_a_descriptor_begins_no_batch),
    with_server(crowd_of_threads_gets_all_of_its_keys),
    with_server(batch_of_a_server_is_worth_waiting_for),
    with_server(partitions_share_an_account_of_yields));
