/* SPDX-License-Identifier: MIT */
/* test_processes.c: what do processes that share a queue do to each other?
 *
 * On the server's clock. Children open handles of their own, exit without
 * cleaning up, and report by their exit status; a pipe tells when one is ready.
 */
#define _GNU_SOURCE
#include "redis/fixture.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "redis/proxy.h"

#define LEASE WQ_MS(700)

static wq_queue *
open_leased(const char *queue, int64_t lease_ns)
{
    wq_queue *q = NULL;

    if (wq_redis_open(url_of(redis_server_of_process()->socket, queue),
                      WQ_REDIS_OPTIONS(.lease_ns = lease_ns,
                                       .timeout_ns = WQ_SECONDS(20)),
                      NULL, &q))
        abort();
    return q;
}

/* A child, and the pipes to and from it. */
struct child {
    pid_t pid;
    int   to, from;
};

/* Start a child that runs `run`. Before a handle is opened: the process has no
 * other thread then. */
static struct child
start(int (*run)(int out, int in))
{
    int up[2], down[2];

    assert_int_equal(pipe(up), 0);
    assert_int_equal(pipe(down), 0);
    (void)redis_server_of_process(); /* not a child of the child */
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)close(down[1]); /* the end of the parent ends the child */
        _exit(run(up[1], down[0]));
    }
    (void)close(up[1]);
    (void)close(down[0]);
    return (struct child){pid, down[1], up[0]};
}

/* Until it has written a byte. */
static void
await(const struct child *c)
{
    char byte;

    assert_int_equal(read(c->from, &byte, 1), 1);
}

/* Wait until it has ended; its status. */
static int
end(const struct child *c)
{
    int status = 0;

    assert_int_equal(waitpid(c->pid, &status, 0), c->pid);
    (void)close(c->to);
    (void)close(c->from);
    return status;
}

/* ---- holders -------------------------------------------------------------- */

/* Get a key with a lease that a thread renews, say so, wait for a byte, and
 * finish the key: the exit status is the error. */
static int
hold(int out, int in)
{
    wq_queue *q = open_leased("holders", LEASE);
    wq_item  *item = NULL;
    char      byte = 'x';

    if (wq_get_within(q, WQ_SECONDS(60), &item) || write(out, &byte, 1) != 1 ||
        read(in, &byte, 1) != 1)
        return 100;
    return (int)wq_finish(q, item, wq_result_done());
}

/* Another process holds a key of a queue that is open here, too. */
static struct child
hold_in_child(wq_queue **q)
{
    const struct child c = start(hold);

    *q = open_leased("holders", LEASE);
    assert_err(wq_add(*q, wq_str("k")), WQ_OK);
    await(&c);
    return c;
}

TEST(key_of_a_killed_process_comes_back_after_the_lease)
{
    wq_item *item = NULL;

    (void)state;
    need_server();
    wq_queue          *q;
    const struct child c = hold_in_child(&q);
    const int64_t      killed_ns = now_ns();
    assert_int_equal(kill(c.pid, SIGKILL), 0);
    (void)end(&c);
    assert_err(wq_get_within(q, WQ_SECONDS(60), &item), WQ_OK);
    /* it was renewed at most a third of the lease before */
    assert_true(now_ns() - killed_ns >= LEASE / 2 - WQ_MS(20));
    assert_int_equal(stats_of(q).expired, 1);
    assert_err(wq_done(q, item), WQ_OK);
    check(q);
    wq_destroy(q);
}

TEST(process_that_is_stopped_for_too_long_has_lost_its_key)
{
    wq_item *item = NULL;

    (void)state;
    need_server();
    wq_queue          *q;
    const struct child c = hold_in_child(&q);
    assert_int_equal(kill(c.pid, SIGSTOP), 0);
    assert_err(wq_get_within(q, WQ_SECONDS(60), &item), WQ_OK);
    assert_int_equal(kill(c.pid, SIGCONT), 0);
    assert_int_equal(write(c.to, "x", 1), 1);
    const int status = end(&c);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), WQ_ELOST);
    assert_err(wq_done(q, item), WQ_OK); /* it changed nothing */
    check(q);
    wq_destroy(q);
}

TEST(thread_renews_the_lease_of_a_long_handler)
{
    wq_item *item = NULL;

    (void)state;
    need_server();
    wq_queue          *q;
    const struct child c = hold_in_child(&q);
    assert_err(wq_get_within(q, 3 * LEASE, &item), WQ_ETIMEDOUT);
    assert_int_equal(write(c.to, "x", 1), 1);
    assert_int_equal(WEXITSTATUS(end(&c)), WQ_OK);
    wq_destroy(q);
}

/* ---- inside a call -------------------------------------------------------- */

/* Get a key of a server behind a proxy, which keeps the reply: this never ends. */
static int
get_in_vain(int out, int in)
{
    char      path[sizeof "/proxy" + 160], byte = 'x';
    wq_queue *q = NULL;
    wq_item  *item = NULL;

    (void)snprintf(path, sizeof path, "%s/proxy",
                   redis_server_of_process()->dir);
    if (read(in, &byte, 1) != 1 ||
        wq_redis_open(
            url_of(path, "inside"),
            WQ_REDIS_OPTIONS(.lease_ns = LEASE, .timeout_ns = WQ_SECONDS(60)),
            NULL, &q) ||
        write(out, &byte, 1) != 1 || read(in, &byte, 1) != 1)
        return 100;
    return (int)wq_get_within(q, WQ_SECONDS(60), &item);
}

TEST(key_that_a_killed_process_never_heard_of_comes_back)
{
    wq_item *item = NULL;

    (void)state;
    need_server();
    const struct child c = start(get_in_vain);
    struct proxy      *proxy = proxy_start(redis_server_of_process());
    wq_queue          *q = open_leased("inside", WQ_SECONDS(60));
    assert_err(wq_add(q, wq_str("k")), WQ_OK);
    assert_int_equal(write(c.to, "x", 1), 1);
    await(&c);
    proxy_set(proxy, PROXY_HOLD);
    assert_int_equal(write(c.to, "x", 1), 1);
    while (!stats_of(q).held) /* the server has handed it out */
        (void)poll(NULL, 0, 1);
    assert_int_equal(kill(c.pid, SIGKILL), 0);
    (void)end(&c);
    assert_err(wq_get_within(q, WQ_SECONDS(60), &item), WQ_OK);
    assert_int_equal(stats_of(q).expired, 1);
    assert_err(wq_done(q, item), WQ_OK);
    check(q);
    wq_destroy(q);
    proxy_stop(proxy);
}

/* ---- waking --------------------------------------------------------------- */

enum { ROUNDS = 6 };

/* Get ROUNDS keys, one after the other; say when each is in hand. */
static int
consume(int out, int in)
{
    wq_queue *q = open_leased("wakes", WQ_SECONDS(60));

    (void)in;
    for (int i = 0; i <= ROUNDS; i++) {
        wq_item *item = NULL;
        if (write(out, "x", 1) != 1)
            return 100;
        if (i < ROUNDS &&
            (wq_get_within(q, WQ_SECONDS(60), &item) || wq_done(q, item)))
            return 101;
    }
    return 0;
}

/* Without a wake-up each would take until the next look: a second. The lease is
 * long: a sleeper also looks when the lease of another session may end. */
TEST(sleeping_get_of_another_process_is_woken)
{
    const int64_t idle_ns = WQ_MS(150);
    int64_t       took_ns = 0;

    (void)state;
    need_server();
    const struct child c = start(consume);
    wq_queue          *q = open_leased("wakes", WQ_SECONDS(60));
    for (int i = 0; i < ROUNDS; i++) {
        const struct timespec idle = {.tv_nsec = (long)idle_ns};
        await(&c);
        (void)nanosleep(&idle, NULL); /* it sleeps by now, or hardly not */
        const int64_t begin_ns = now_ns();
        assert_err(wq_add(q, wq_str("k")), WQ_OK);
        while (stats_of(q).known) /* until it is done */
            ;
        took_ns += now_ns() - begin_ns;
    }
    assert_int_equal(WEXITSTATUS(end(&c)), 0);
    wq_destroy(q);
    if (took_ns > ROUNDS * (WQ_SECONDS(1) - idle_ns) / 2)
        fail_msg("%d wake-ups took %lld ms", ROUNDS,
                 (long long)(took_ns / 1000000));
}

/* The queue of this test, and of its children. Sessions live long in it. */
static const char *tokens;

static int
consume_one(int out, int in)
{
    wq_queue *q = open_leased(tokens, WQ_SECONDS(600));
    wq_item  *item = NULL;

    (void)out, (void)in;
    const int64_t begin_ns = now_ns();
    const wq_err  err = wq_get_within(q, WQ_SECONDS(60), &item);
    if (err)
        return (int)err;
    return now_ns() - begin_ns < WQ_SECONDS(30) ? 0 : 100; /* the last look */
}

/* So many sessions of the queue are asleep, says the server. */
static void
await_sleepers(int n)
{
    char words[120];

    (void)snprintf(words, sizeof words, "ZCARD %s",
                   name_of(tokens, "k", "idle"));
    for (int i = 0; i < 60000; i++) {
        if (atoi(redis_server_say(redis_server_of_process(), words)) == n)
            return;
        (void)poll(NULL, 0, 1);
    }
    fail_msg("there are not %d sleepers", n);
}

/* The process that sleeps longest has the token, and does nothing. */
static void
swallow_token(int signal)
{
    const struct child first = start(consume_one);
    await_sleepers(1);
    const struct child second = start(consume_one);
    await_sleepers(2);
    wq_queue *q = open_leased(tokens, WQ_SECONDS(600));
    assert_int_equal(kill(first.pid, signal), 0);
    assert_err(wq_add(q, wq_str("k")), WQ_OK);
    assert_int_equal(WEXITSTATUS(end(&second)), WQ_OK);
    (void)kill(first.pid, SIGKILL);
    (void)end(&first);
    check(q);
    wq_destroy(q);
}

TEST(token_of_a_stopped_process_does_not_lose_the_key)
{
    (void)state;
    need_server();
    tokens = "stopped";
    swallow_token(SIGSTOP);
}

TEST(token_of_a_killed_process_does_not_lose_the_key)
{
    (void)state;
    need_server();
    tokens = "killed";
    swallow_token(SIGKILL);
}

/* The server has forgotten who sleeps. */
TEST(sleeper_of_a_flushed_server_gets_the_next_key)
{
    (void)state;
    need_server();
    tokens = "flushed";
    const struct child c = start(consume_one);
    await_sleepers(1);
    assert_string_equal(redis_server_say(redis_server_of_process(), "FLUSHALL"),
                        "OK");
    wq_queue *q = open_leased(tokens, WQ_SECONDS(600));
    assert_err(wq_add(q, wq_str("k")), WQ_OK);
    assert_int_equal(WEXITSTATUS(end(&c)), WQ_OK);
    check(q);
    wq_destroy(q);
}

/* ---- conflicts ------------------------------------------------------------ */

enum { THREADS = 4, STEPS = 150 };

static const char *const keys[] = {"a", "b", "c"};

/* Operations of the long way, of a handle of its own, on the same few keys. */
static void *
quarrel(void *arg)
{
    wq_queue *q = open_leased("quarrel", WQ_SECONDS(60));
    unsigned  seed = (unsigned)(size_t)arg;

    for (int i = 0; i < STEPS; i++) {
        const char *key = keys[rand_r(&seed) % 3];
        wq_item    *item = NULL;
        wq_err      err = WQ_OK;

        switch (rand_r(&seed) % 5) {
        case 0:
            err = wq_add_rate_limited(q, wq_str(key));
            break;
        case 1:
            err = wq_add_after(q, wq_str(key), WQ_MS(1));
            break;
        case 2:
            (void)wq_remove(q, wq_str(key)); /* also: not found, or HELD */
            break;
        default:
            err = wq_get_within(q, 0, &item);
            if (err == WQ_ETIMEDOUT)
                err = WQ_OK;
            else if (!err)
                err = wq_finish(q, item,
                                rand_r(&seed) % 2 ? wq_result_retry()
                                                  : wq_result_done());
        }
        if (err)
            return (void *)(size_t)err;
    }
    wq_destroy(q);
    return NULL;
}

TEST(handles_that_change_the_same_keys_agree)
{
    pthread_t threads[THREADS];

    (void)state;
    need_server();
    wq_queue *q = open_leased("quarrel", WQ_SECONDS(60));
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(
            pthread_create(&threads[i], NULL, quarrel, (void *)(i + 1)), 0);
    for (size_t i = 0; i < THREADS; i++) {
        void *err = NULL;
        assert_int_equal(pthread_join(threads[i], &err), 0);
        assert_err((wq_err)(size_t)err, WQ_OK);
    }
    check(q);
    assert_int_equal(stats_of(q).held, 0);
    wq_destroy(q);
}

WQ_TESTS(test(key_of_a_killed_process_comes_back_after_the_lease),
         test(process_that_is_stopped_for_too_long_has_lost_its_key),
         test(thread_renews_the_lease_of_a_long_handler),
         test(key_that_a_killed_process_never_heard_of_comes_back),
         test(token_of_a_stopped_process_does_not_lose_the_key),
         test(token_of_a_killed_process_does_not_lose_the_key),
         test(sleeper_of_a_flushed_server_gets_the_next_key),
         test(sleeping_get_of_another_process_is_woken),
         test(handles_that_change_the_same_keys_agree));
