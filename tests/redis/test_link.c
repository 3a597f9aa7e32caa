/* SPDX-License-Identifier: MIT */
/* test_link.c: what if the connection to the server is damaged, or cut? (S-20,
 * S-21)
 *
 * Each test has a server of its own; handle a is behind a proxy (proxy.h).
 * WQ_RECONNECTS says how often the last test lets the server close all
 * connections.
 */
#define _GNU_SOURCE
#include "redis/served.h"

#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "support/entries.h"

/* ---- bytes ---------------------------------------------------------------- */

TEST(replies_in_pieces_are_put_together)
{
    (void)state;
    put_proxy();
    proxy_set(f.proxy, PROXY_SPLIT);
    for (int i = 0; i < 3; i++) {
        assert_err(wq_add(f.a, wq_str("k")), WQ_OK);
        assert_err(wq_done(f.a, take_key(f.a, "k")), WQ_OK);
    }
    check(f.a);
}

/* The key was handed out, and nobody knows: the next call gives it back. */
TEST(key_whose_reply_is_lost_is_given_back)
{
    wq_item *item = NULL;

    (void)state;
    put_proxy();
    assert_err(wq_add(f.a, wq_str("k")), WQ_OK);
    proxy_set(f.proxy, PROXY_LOSE);
    assert_err(wq_get_within(f.a, 0, &item), WQ_EIO);
    assert_err(wq_add(f.a, wq_str("other")), WQ_OK); /* reconciles first */
    assert_int_equal(stats_of(f.b).held, 0);
    assert_err(wq_done(f.b, take_key(f.b, "k")), WQ_OK);
    assert_err(wq_done(f.b, take_key(f.b, "other")), WQ_OK);
    check(f.b);
}

/* The network has kept it for longer than the call waited. */
TEST(key_that_a_late_request_takes_is_given_back)
{
    wq_queue *q = NULL;
    wq_item  *item = NULL;

    (void)state;
    f.proxy = proxy_start(&f.server);
    assert_err(wq_redis_open(url_of(proxy_socket(f.proxy), "q"),
                             WQ_REDIS_OPTIONS(.lease_ns = LEASE,
                                              .timeout_ns = WQ_MS(500),
                                              .manual_renew = true),
                             NULL, &q),
               WQ_OK);
    assert_err(wq_add(f.b, wq_str("k")), WQ_OK);
    proxy_set(f.proxy, PROXY_LATE);
    assert_err(wq_get_within(q, 0, &item), WQ_EIO);
    assert_err(add_until_answered(q, "other"), WQ_OK); /* reconciles first */
    assert_int_equal(stats_of(f.b).ready, 2);
    proxy_set(f.proxy, PROXY_PASS);
    redis_server_await(&f.server, "ZCARD wq:{q}:held", "2"); /* and the guard */
    assert_err(wq_renew(q), WQ_OK);
    assert_err(wq_add(q, wq_str("other")), WQ_OK);
    assert_int_equal(stats_of(f.b).held, 0);
    assert_int_equal(stats_of(f.b).ready, 2);
    wq_destroy(q);
    check(f.b);
}

static wq_item *
get_through_proxy(void)
{
    put_proxy();
    assert_err(wq_add(f.a, wq_str("k")), WQ_OK);
    return take_key(f.a, "k");
}

TEST(finish_whose_reply_is_lost_has_happened_once)
{
    (void)state;
    wq_item *item = get_through_proxy();
    proxy_set(f.proxy, PROXY_LOSE);
    const wq_err err = wq_finish(f.a, item, wq_result_retry());
    assert_true(err == WQ_EIO || err == WQ_OK);
    if (err)
        (void)wq_finish(f.a, item, wq_result_retry());
    assert_int_equal(wq_num_requeues(f.b, wq_str("k")), 1);
    assert_int_equal(stats_of(f.b).held, 0);
    check(f.b);
}

/* The finish is one step of the server, and a throttled key is handed out by the
 * long way, in two more: then not all of the batch has happened. */
TEST(lost_reply_of_a_get_by_the_long_way_is_in_doubt)
{
    (void)state;
    wq_item *item = get_through_proxy();
    assert_err(
        wq_add_one(f.a, wq_str("next"), WQ_ADD(.throttle_ns = WQ_SECONDS(100))),
        WQ_OK);
    proxy_lose_after(f.proxy, 1);
    assert_err(wq_next_with(f.a, wq_result_done(), 0, &item), WQ_EIO);
    assert_int_equal(stats_of(f.b).known, 1); /* the finish has happened */
    assert_err(wq_finish(f.a, item, wq_result_done()), WQ_OK);
    assert_err(wq_done(f.a, take_key(f.a, "next")), WQ_OK);
    check(f.b);
}

/* The retry goes the long way, and the get the short one. */
TEST(batch_that_is_half_done_is_in_doubt)
{
    (void)state;
    wq_item *item = get_through_proxy();
    assert_err(wq_add(f.a, wq_str("next")), WQ_OK);
    proxy_lose_after(f.proxy, 2);
    assert_err(wq_next_with(f.a, wq_result_retry(), 0, &item), WQ_EIO);
    assert_int_equal(wq_num_requeues(f.b, wq_str("k")), 1);
    assert_err(wq_finish(f.a, item, wq_result_retry()), WQ_OK);
    assert_int_equal(wq_num_requeues(f.b, wq_str("k")), 1); /* once */
    assert_int_equal(stats_of(f.b).held, 0);
    assert_int_equal(stats_of(f.b).known, 2); /* both run, or run again */
    check(f.b);
}

TEST(add_whose_reply_is_lost_can_be_repeated)
{
    (void)state;
    put_proxy();
    proxy_set(f.proxy, PROXY_LOSE);
    assert_err(wq_add(f.a, wq_str("k")), WQ_EIO);
    assert_err(wq_add(f.a, wq_str("k")), WQ_OK);
    assert_int_equal(stats_of(f.b).ready, 1);
}

static wq_err
retry_until_answered(wq_queue *q, wq_item *item)
{
    wq_err err;

    for (int i = 0; i < 3000; i++) {
        err = wq_finish(q, item, wq_result_retry());
        if (err != WQ_EAWAY && err != WQ_EIO)
            break;
        (void)poll(NULL, 0, 1);
    }
    return err;
}

TEST(finish_whose_request_is_lost_can_be_repeated)
{
    (void)state;
    wq_item *item = get_through_proxy();
    proxy_set(f.proxy, PROXY_CUT);
    const wq_err err = wq_finish(f.a, item, wq_result_retry());
    assert_true(err == WQ_EIO || err == WQ_EAWAY);
    assert_int_equal(wq_num_requeues(f.b, wq_str("k")), 0);
    assert_int_equal(stats_of(f.b).held, 1);
    proxy_set(f.proxy, PROXY_PASS);
    assert_err(retry_until_answered(f.a, item), WQ_OK);
    assert_int_equal(wq_num_requeues(f.b, wq_str("k")), 1);
    check(f.b);
}

TEST(connection_that_is_half_closed_comes_back)
{
    wq_item *item = NULL;

    (void)state;
    put_proxy();
    assert_err(wq_add(f.a, wq_str("k")), WQ_OK);
    proxy_set(f.proxy, PROXY_HALF);
    assert_err(wq_get_within(f.a, 0, &item), WQ_EIO);
    last_error_has("closed the connection");
    assert_err(wq_get_within(f.a, 0, &item), WQ_OK); /* reconciled before */
    assert_err(wq_done(f.a, item), WQ_OK);
    check(f.b);
}

TEST(replies_that_come_late_are_waited_for)
{
    (void)state;
    put_proxy();
    proxy_set(f.proxy, PROXY_DELAY);
    assert_err(wq_add(f.a, wq_str("k")), WQ_OK);
    assert_err(wq_done(f.a, take_key(f.a, "k")), WQ_OK);
    assert_int_equal(stats_of(f.b).known, 0);
}

TEST(answer_of_another_protocol_is_shown)
{
    (void)state;
    put_proxy();
    proxy_set(f.proxy, PROXY_NOISE);
    assert_err(wq_add(f.a, wq_str("k")), WQ_EIO);
    last_error_has("Protocol error, got \"H\"");
    proxy_set(f.proxy, PROXY_PASS);
    assert_err(add_until_answered(f.a, "k"), WQ_OK);
}

/* As long as SIGPIPE has its default action, it ends the program. */
TEST(connection_that_is_cut_while_a_batch_is_sent_raises_no_SIGPIPE)
{
    enum { KEYS = 100 };
    static unsigned char bytes[KEYS][WQ_KEY_MAX];
    wq_key               keys[KEYS];

    (void)state;
    for (size_t i = 0; i < KEYS; i++) {
        memset(bytes[i], (int)i, sizeof bytes[i]);
        keys[i] = (wq_key){bytes[i], sizeof bytes[i]};
    }
    put_proxy();
    assert_true(signal(SIGPIPE, SIG_DFL) != SIG_ERR);
    proxy_set(f.proxy, PROXY_CUT);
    for (int i = 0; i < 3; i++) {
        const wq_err err = wq_add_with(f.a, NULL, keys, KEYS);
        assert_true(err == WQ_EIO || err == WQ_EAWAY);
    }
    assert_int_equal(stats_of(f.b).known, 0);
}

TEST(connection_that_is_cut_comes_back)
{
    (void)state;
    wq_item *item = get_through_proxy();
    proxy_set(f.proxy, PROXY_CUT);
    const wq_err err = wq_add(f.a, wq_str("other"));
    assert_true(err == WQ_EIO || err == WQ_EAWAY);
    proxy_set(f.proxy, PROXY_PASS);
    assert_err(add_until_answered(f.a, "other"), WQ_OK);
    assert_err(wq_done(f.a, item), WQ_OK);
    check(f.a);
}

/* Nothing comes, and nothing ends: the call ends by its own time. */
TEST(server_that_says_nothing_is_left_in_time)
{
    wq_queue *q = NULL;

    (void)state;
    put_proxy();
    assert_err(wq_redis_open(url_of(proxy_socket(f.proxy), "q"),
                             WQ_REDIS_OPTIONS(.timeout_ns = WQ_MS(500),
                                              .manual_renew = true),
                             NULL, &q),
               WQ_OK);
    proxy_set(f.proxy, PROXY_HANG);
    assert_err(wq_add(q, wq_str("k")), WQ_EIO);
    last_error_has("no reply in time");
    proxy_set(f.proxy, PROXY_PASS);
    assert_err(add_until_answered(q, "k"), WQ_OK);
    wq_destroy(q);
    assert_int_equal(stats_of(f.b).ready, 1);
}

/* ---- leases --------------------------------------------------------------- */

TEST(lease_that_ends_while_a_queue_is_opened_is_not_a_lost_key)
{
    wq_queue *q = NULL;

    (void)state;
    put_proxy();
    proxy_set(f.proxy, PROXY_DELAY);
    assert_err(wq_redis_open(url_of(proxy_socket(f.proxy), "q"),
                             WQ_REDIS_OPTIONS(.lease_ns = WQ_MS(50),
                                              .timeout_ns = WQ_SECONDS(10)),
                             NULL, &q),
               WQ_EAWAY);
    last_error_has("redis: the lease ended while the queue was opened");
}

static wq_queue *
open_renewing(const char *socket, int64_t lease_ns, int64_t timeout_ns)
{
    wq_queue *q = NULL;

    assert_err(wq_redis_open(url_of(socket, "q"),
                             WQ_REDIS_OPTIONS(.lease_ns = lease_ns,
                                              .timeout_ns = timeout_ns),
                             NULL, &q),
               WQ_OK);
    return q;
}

/* The reply comes late: the server counts from the arrival of the renewal. */
TEST(hold_is_certain_from_the_sending_of_a_renewal)
{
    (void)state;
    const wq_item *item = get_through_proxy();
    proxy_set(f.proxy, PROXY_DELAY);
    assert_err(wq_renew(f.a), WQ_OK);
    assert_true(wq_hold_left(f.a, item) <= LEASE - WQ_MS(PROXY_DELAY_MS));
    assert_true(wq_hold_left(f.a, item) > 0);
}

/* When the other handle has the key, this one is not certain any more. */
TEST(link_that_is_cut_for_longer_than_the_lease_loses_the_key)
{
    wq_item *item = NULL;

    (void)state;
    put_proxy();
    wq_queue *q = open_renewing(proxy_socket(f.proxy), WQ_MS(800), WQ_MS(100));
    assert_err(wq_add(f.b, wq_str("k")), WQ_OK);
    wq_item       *old = take_key(q, "k");
    const uint64_t fence = old->fence;
    proxy_set(f.proxy, PROXY_HANG);
    assert_err(wq_get_within(f.b, WQ_SECONDS(60), &item), WQ_OK);
    assert_int_equal(wq_hold_left(q, old), 0);
    assert_true(item->fence > fence);
    proxy_set(f.proxy, PROXY_PASS);
    assert_err(retry_until_answered(q, old), WQ_ELOST);
    assert_int_equal(wq_num_requeues(f.b, wq_str("k")), 0);
    assert_err(wq_done(f.b, item), WQ_OK);
    wq_destroy(q);
    check(f.b);
}

static int lost_fds[2];

static void
note_loss(void *ctx, wq_key key, uint64_t fence)
{
    (void)ctx;
    (void)key;
    (void)fence;
    if (write(lost_fds[1], "", 1) != 1)
        abort();
}

/* A handle whose calls may take a minute loses its lease: `in_doubt`, it has to
 * reconcile before it renews. */
static void
expect_loss_in_time(bool in_doubt)
{
    wq_queue *q = NULL;

    put_proxy();
    assert_int_equal(pipe(lost_fds), 0);
    assert_err(wq_redis_open(url_of(proxy_socket(f.proxy), "q"),
                             WQ_REDIS_OPTIONS(.lease_ns = WQ_MS(800),
                                              .timeout_ns = WQ_SECONDS(60)),
                             WQ_CONFIG(.on_lost = note_loss), &q),
               WQ_OK);
    assert_err(wq_add(f.b, wq_str("k")), WQ_OK);
    wq_item *item = take_key(q, "k");
    if (in_doubt) {
        proxy_set(f.proxy, PROXY_LOSE);
        const wq_err err = wq_add(q, wq_str("x"));
        assert_true(err == WQ_EIO || err == WQ_OK); /* a renewal's was lost */
    }
    proxy_set(f.proxy, PROXY_HANG);
    struct pollfd loss = {.fd = lost_fds[0], .events = POLLIN};
    assert_int_equal(poll(&loss, 1, 30000), 1);
    assert_int_equal(wq_hold_left(q, item), 0);
    proxy_set(f.proxy, PROXY_PASS);
    assert_err(retry_until_answered(q, item), WQ_ELOST);
    wq_destroy(q);
    (void)close(lost_fds[0]);
    (void)close(lost_fds[1]);
}

TEST(loss_is_noticed_in_time_while_calls_hang)
{
    (void)state;
    expect_loss_in_time(false);
}

TEST(loss_is_noticed_in_time_while_the_handle_reconciles)
{
    (void)state;
    expect_loss_in_time(true);
}

/* Over a new connection, although calls may take a minute. */
TEST(renewal_that_hangs_is_made_again_within_the_lease)
{
    const int64_t lease_ns = WQ_SECONDS(2);
    wq_item      *other = NULL;

    (void)state;
    put_proxy();
    wq_queue *q =
        open_renewing(proxy_socket(f.proxy), lease_ns, WQ_SECONDS(60));
    assert_err(wq_add(f.b, wq_str("k")), WQ_OK);
    wq_item *item = take_key(q, "k");
    proxy_set(f.proxy, PROXY_LATE);
    assert_err(wq_get_within(f.b, lease_ns / 2 * 3, &other), WQ_ETIMEDOUT);
    assert_true(wq_hold_left(q, item) > 0);
    assert_err(wq_done(q, item), WQ_OK);
    wq_destroy(q);
}

static void *
add_slowly(void *q)
{
    return (void *)(size_t)wq_add(q, wq_str(PROXY_KEY));
}

TEST(renewal_does_not_wait_for_a_call_that_hangs)
{
    const int64_t lease_ns = WQ_MS(700);
    wq_item      *other = NULL;
    pthread_t     thread;
    void         *err = NULL;

    (void)state;
    put_proxy();
    wq_queue *q =
        open_renewing(proxy_socket(f.proxy), lease_ns, WQ_SECONDS(60));
    assert_err(wq_add(f.b, wq_str("k")), WQ_OK);
    wq_item *item = take_key(q, "k");
    proxy_set(f.proxy, PROXY_HOLD_ONE);
    assert_int_equal(pthread_create(&thread, NULL, add_slowly, q), 0);
    assert_err(wq_get_within(f.b, WQ_SECONDS(60), &other), WQ_OK);
    assert_err(wq_done(f.b, other), WQ_OK); /* it has arrived, then */
    assert_err(wq_get_within(f.b, 3 * lease_ns, &other), WQ_ETIMEDOUT);
    assert_true(wq_hold_left(q, item) > 0);
    proxy_set(f.proxy, PROXY_PASS);
    assert_int_equal(pthread_join(thread, &err), 0);
    assert_err((wq_err)(size_t)err, WQ_OK);
    assert_err(wq_done(q, item), WQ_OK);
    wq_destroy(q);
}

/* ---- what is left --------------------------------------------------------- */

static size_t
bytes_in_use(void)
{
#ifdef __GLIBC__
    return mallinfo2().uordblks;
#else
    return 0;
#endif
}

/* The server closes all connections; all kinds of calls connect again. */
static void
reconnect(int times)
{
    for (int i = 0; i < times; i++) {
        wq_item *item = NULL;

        (void)redis_server_say(&f.server, "CLIENT KILL TYPE normal");
        assert_err(wq_add(f.a, wq_str("k")), WQ_OK);
        assert_err(wq_done(f.a, take_key(f.a, "k")), WQ_OK);
        assert_err(wq_renew(f.a), WQ_OK);
        if (i % 8 == 0) /* this one sleeps */
            assert_err(wq_get_within(f.a, WQ_MS(1), &item), WQ_ETIMEDOUT);
    }
}

TEST(reconnects_leave_no_descriptor_thread_or_memory)
{
    const char *text = getenv("WQ_RECONNECTS");
    const int   times = text ? atoi(text) : 1000;

    (void)state;
    (void)redis_server_say(&f.server, "CONFIG SET appendfsync no");
    reconnect(64);
    const size_t fds = entries_of("/proc/self/fd");
    const size_t threads = entries_of("/proc/self/task");
    const size_t bytes = bytes_in_use();
    reconnect(times);
    assert_int_equal(entries_of("/proc/self/fd"), fds);
    assert_int_equal(entries_of("/proc/self/task"), threads);
    assert_true(bytes_in_use() <= bytes + 10000);
}

WQ_TESTS(
    with_server(replies_in_pieces_are_put_together),
    with_server(key_whose_reply_is_lost_is_given_back),
    with_server(key_that_a_late_request_takes_is_given_back),
    with_server(finish_whose_reply_is_lost_has_happened_once),
    with_server(lost_reply_of_a_get_by_the_long_way_is_in_doubt),
    with_server(batch_that_is_half_done_is_in_doubt),
    with_server(add_whose_reply_is_lost_can_be_repeated),
    with_server(finish_whose_request_is_lost_can_be_repeated),
    with_server(connection_that_is_half_closed_comes_back),
    with_server(answer_of_another_protocol_is_shown),
    with_server(replies_that_come_late_are_waited_for),
    with_server(connection_that_is_cut_while_a_batch_is_sent_raises_no_SIGPIPE),
    with_server(connection_that_is_cut_comes_back),
    with_server(server_that_says_nothing_is_left_in_time),
    with_server(lease_that_ends_while_a_queue_is_opened_is_not_a_lost_key),
    with_server(hold_is_certain_from_the_sending_of_a_renewal),
    with_server(link_that_is_cut_for_longer_than_the_lease_loses_the_key),
    with_server(loss_is_noticed_in_time_while_calls_hang),
    with_server(loss_is_noticed_in_time_while_the_handle_reconciles),
    with_server(renewal_that_hangs_is_made_again_within_the_lease),
    with_server(renewal_does_not_wait_for_a_call_that_hangs),
    with_server(reconnects_leave_no_descriptor_thread_or_memory));
