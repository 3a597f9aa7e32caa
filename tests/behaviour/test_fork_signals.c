/* SPDX-License-Identifier: MIT */
/* test_fork_signals.c: what happens to a queue when the process forks or gets a
 * signal?
 *
 * A child reports what it found by its exit status: only the parent can use
 * cmocka's assertions.
 */
#include "timed.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "descriptors.h"

/* ---- fork ---------------------------------------------------------------- */

/* Run `run(arg)` in a child; what it returned. */
static int
in_child(int (*run)(void *arg), void *arg)
{
    const pid_t child = fork();
    int         status = -1;

    assert_true(child >= 0);
    if (child == 0)
        _exit(run(arg));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* Works on the next key, which must be this one. */
static bool
takes(wq_queue *q, const char *key)
{
    wq_item *item;

    return wq_get_within(q, 0, &item) == WQ_OK &&
           item->key.len == strlen(key) &&
           memcmp(item->key.data, key, item->key.len) == 0 &&
           wq_done(q, item) == WQ_OK;
}

static int
work_and_destroy(void *q)
{
    wq_item *item;

    if (!takes(q, "a") || wq_add_str(q, "c") != WQ_OK || !takes(q, "b") ||
        !takes(q, "c") || wq_get_within(q, 0, &item) != WQ_ETIMEDOUT)
        return 1;
    wq_shutdown(q);
    if (wq_get(q, &item) != WQ_ESHUTDOWN)
        return 2;
    wq_destroy(q);
    return 0;
}

/* O-71 */
TEST(child_has_a_queue_of_its_own)
{
    wq_queue *q = *state;

    add(q, "a");
    add(q, "b");
    assert_int_equal(in_child(work_and_destroy, q), 0);

    assert_false(wq_shutting_down(q));
    assert_int_equal(wq_len(q), 2);
    work_on(q, "a");
    work_on(q, "b");
    assert_none_ready(q, WQ_ETIMEDOUT);
}

static wq_item *held;

static int
finish_and_take_again(void *q)
{
    return wq_done(q, held) == WQ_OK && takes(q, "a") ? 0 : 1;
}

/* O-71 */
TEST(child_can_finish_an_item_of_the_parent)
{
    wq_queue *q = *state;

    add(q, "a");
    held = take(q);
    add(q, "a");
    assert_int_equal(in_child(finish_and_take_again, q), 0);
    finish(q, held);
    work_on(q, "a");
}

static void *
get_one(void *q)
{
    wq_item *item;

    return wq_get(q, &item) == WQ_OK ? q : NULL;
}

static int
use_threads(void *q)
{
    pthread_t thread;
    void     *got = NULL;

    return pthread_create(&thread, NULL, get_one, q) == 0 &&
                   wq_add_str(q, "a") == WQ_OK &&
                   pthread_join(thread, &got) == 0 && got == q
               ? 0
               : 1;
}

/* O-71 */
TEST(child_can_use_threads)
{
    assert_int_equal(in_child(use_threads, *state), 0);
    assert_none_ready(*state, WQ_ETIMEDOUT);
}

static int
run_shell(void *script)
{
    (void)execl("/bin/sh", "sh", "-c", (char *)script, (char *)NULL);
    return 127;
}

/* O-71: after fork(), a program with threads may only call exec. */
TEST(program_can_be_started_while_threads_are_blocked)
{
    wq_queue *q = *state;
    char      script[] = "exit 3";

    struct worker *w = worker_get(q, NULL);
    worker_await_blocked(w);
    assert_int_equal(in_child(run_shell, script), 3);
    worker_await_blocked(w);
    add(q, "a");
    assert_err(worker_join(w), WQ_OK);
}

#if HAS_WQ_FD

/* O-71 */
TEST(child_that_takes_keys_leaves_the_descriptor_of_the_parent)
{
    wq_queue *q = *state;

    add(q, "a");
    add(q, "b");
    assert_true(readable(q));
    assert_int_equal(in_child(work_and_destroy, q), 0);
    assert_true(readable(q));
    work_on(q, "a");
    work_on(q, "b");
    assert_false(readable(q));
}

static int
add_and_shut_down(void *q)
{
    if (wq_add_str(q, "a") != WQ_OK)
        return 1;
    wq_shutdown(q);
    wq_destroy(q);
    return 0;
}

/* O-71 */
TEST(child_that_adds_keys_does_not_wake_the_parent)
{
    wq_queue *q = *state;

    assert_false(readable(q));
    assert_int_equal(in_child(add_and_shut_down, q), 0);
    assert_false(readable(q));
    add(q, "b");
    assert_true(readable(q));
    work_on(q, "b");
}

static int
cancel(void *q)
{
    return wq_cancel_after(q, wq_str("soon")) == WQ_OK ? 0 : 1;
}

/* O-71 */
TEST(child_that_ends_a_deadline_leaves_the_timer_of_the_parent)
{
    wq_queue     *q = *state;
    struct pollfd p = {.fd = wq_fd(q), .events = POLLIN};

    assert_err(wq_add_after(q, wq_str("soon"), 100 * MS), WQ_OK);
    assert_int_equal(in_child(cancel, q), 0);
    assert_int_equal(poll(&p, 1, (int)(LONG_NS / MS)), 1);
    work_on(q, "soon");
}

/* O-71 */
TEST(program_inherits_no_descriptor)
{
    const uint64_t before = open_descriptors();
    char           script[64];

    assert_true(wq_fd(*state) >= 0);
    const uint64_t ours = open_descriptors() & ~before;
    assert_true(ours != 0);
    for (int fd = 0; fd < 64; fd++)
        if (ours >> fd & 1) {
            (void)snprintf(script, sizeof script, "test ! -e /proc/self/fd/%d",
                           fd);
            assert_int_equal(in_child(run_shell, script), 0);
        }
}

#define DESCRIPTOR_TESTS                                                       \
    with_queue(child_that_takes_keys_leaves_the_descriptor_of_the_parent),     \
        with_queue(child_that_adds_keys_does_not_wake_the_parent),             \
        with_queue(child_that_ends_a_deadline_leaves_the_timer_of_the_parent), \
        with_queue(program_inherits_no_descriptor),

#else
#define DESCRIPTOR_TESTS /* there is no wq_fd() */
#endif

/* ---- signals ------------------------------------------------------------- */

static atomic_int signals_seen;
static int        self_pipe[2];

static void
count_signal(int number)
{
    (void)number;
    atomic_fetch_add(&signals_seen, 1);
}

/* A handler may call only few functions, write() among them. */
static void
write_byte(int number)
{
    const int  cause = errno;
    const char byte = (char)number;

    (void)!write(self_pipe[1], &byte, 1);
    errno = cause;
}

static void
catch_signal(void (*handler)(int), int flags)
{
    struct sigaction action = {.sa_flags = flags};

    action.sa_handler = handler;
    (void)sigemptyset(&action.sa_mask);
    assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
    atomic_store(&signals_seen, 0);
}

/* Send signals to a thread that is blocked. It must stay so. */
static void
disturb(struct worker *w, int times)
{
    for (int i = 0; i < times; i++) {
        worker_await_blocked(w); /* fails if it has returned */
        assert_int_equal(pthread_kill(w->thread, SIGUSR1), 0);
    }
    worker_await_blocked(w);
}

/* SIG_BLOCK: this thread, and threads that it starts, do not get SIGUSR1. */
static void
block_signal(int how)
{
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGUSR1);
    assert_int_equal(pthread_sigmask(how, &set, NULL), 0);
}

static const int flags[] = {0, SA_RESTART};

/* O-72: with and without SA_RESTART */
TEST(signal_does_not_end_a_get)
{
    wq_queue *q = *state;

    for (int i = 0; i < 2; i++) {
        wq_item *item = NULL;
        catch_signal(count_signal, flags[i]);
        struct worker *w = worker_get(q, &item);
        disturb(w, 10);
        add(q, "a");
        assert_err(worker_join(w), WQ_OK);
        assert_key(item, "a");
        finish(q, item);
        assert_true(atomic_load(&signals_seen) > 0);
    }
}

/* O-72 */
TEST(signal_does_not_end_a_drain)
{
    wq_queue *q = *state;

    add(q, "a");
    for (int i = 0; i < 2; i++) {
        catch_signal(count_signal, flags[i]);
        struct worker *w = worker_drain(q);
        disturb(w, 10);
        if (i == 0) {
            wq_shutdown(q);
            assert_err(worker_join(w), WQ_EINTERRUPTED);
        } else {
            work_on(q, "a");
            assert_err(worker_join(w), WQ_OK);
        }
        assert_true(atomic_load(&signals_seen) > 0);
    }
}

static int
get_for_a_while(struct worker *self)
{
    const int64_t start = now_ns();
    wq_item      *item;
    const wq_err  err = wq_get_within(self->arg, 50 * MS, &item);

    return err == WQ_ETIMEDOUT && now_ns() - start >= 50 * MS ? 0 : 1;
}

/* O-72: the get does not return early, nor sleep longer. */
TEST(signals_do_not_change_a_timeout)
{
    for (int i = 0; i < 2; i++) {
        catch_signal(count_signal, flags[i]);
        struct worker *w = worker_start(get_for_a_while, *state);
        while (!worker_has_ended(w)) {
            (void)pthread_kill(w->thread, SIGUSR1); /* it is not joined yet */
            (void)sched_yield();
        }
        assert_int_equal(worker_join(w), 0);
        assert_true(atomic_load(&signals_seen) > 0);
    }
}

/* O-72: the get is the timekeeper. */
TEST(signals_do_not_change_a_deadline)
{
    struct timed *t = *state;
    wq_item      *item = NULL;

    for (int i = 0; i < 2; i++) {
        catch_signal(count_signal, flags[i]);
        add_after(t, "a", S);
        struct worker *w = worker_get(t->q, &item);
        await_sleepers(t, 1);
        disturb(w, 1);
        step(t, S);
        assert_err(worker_join(w), WQ_OK);
        finish(t->q, item);
    }
}

/* O-72: the signal handler writes to a pipe. */
TEST(event_loop_shuts_down_after_a_signal)
{
    wq_queue *q = *state;
    char      byte = 0;

    assert_int_equal(pipe(self_pipe), 0);
    catch_signal(write_byte, 0);
    block_signal(SIG_BLOCK);
    struct worker *w = worker_get(q, NULL);
    worker_await_blocked(w);
    block_signal(SIG_UNBLOCK);
    assert_int_equal(kill(getpid(), SIGUSR1), 0);

    struct pollfd p = {.fd = self_pipe[0], .events = POLLIN};
    assert_int_equal(poll(&p, 1, (int)(LONG_NS / MS)), 1);
    assert_int_equal(read(self_pipe[0], &byte, 1), 1);
    assert_int_equal(byte, SIGUSR1);
    worker_await_blocked(w);
    wq_shutdown(q);
    assert_err(worker_join(w), WQ_ESHUTDOWN);
    (void)close(self_pipe[0]);
    (void)close(self_pipe[1]);
}

static int
wait_for_signal_and_interrupt(struct worker *self)
{
    sigset_t set;
    int      number = 0;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGUSR1);
    if (sigwait(&set, &number) != 0)
        return -1;
    wq_interrupt(self->arg);
    return number;
}

/* O-72: all threads block the signal, and one waits for it. */
TEST(thread_that_waits_for_signals_interrupts_a_get)
{
    wq_queue *q = *state;

    block_signal(SIG_BLOCK);
    struct worker *waiter = worker_start(wait_for_signal_and_interrupt, q);
    struct worker *getter = worker_get(q, NULL);
    worker_await_blocked(waiter);
    worker_await_blocked(getter);
    assert_int_equal(kill(getpid(), SIGUSR1), 0);
    assert_int_equal(worker_join(waiter), SIGUSR1);
    assert_err(worker_join(getter), WQ_EINTERRUPTED);
    assert_false(wq_shutting_down(q));
    block_signal(SIG_UNBLOCK);
}

WQ_TESTS(with_queue(child_has_a_queue_of_its_own),
         with_queue(child_can_finish_an_item_of_the_parent),
         with_queue(child_can_use_threads),
         with_queue(program_can_be_started_while_threads_are_blocked),
         DESCRIPTOR_TESTS with_queue(signal_does_not_end_a_get),
         with_queue(signal_does_not_end_a_drain),
         with_queue(signals_do_not_change_a_timeout),
         with_time(signals_do_not_change_a_deadline),
         with_queue(event_loop_shuts_down_after_a_signal),
         with_queue(thread_that_waits_for_signals_interrupts_a_get));
