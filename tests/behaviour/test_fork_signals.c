/* SPDX-License-Identifier: MIT */
/* test_fork_signals.c: what becomes of a queue when the process forks or gets a
 * signal?
 *
 * A child tells what it found by its exit status: cmocka's assertions are the
 * parent's.
 */
#include "timed.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- fork ---------------------------------------------------------------- */

/* Run `run(q)` in a child; what it returned. */
static int
in_child(int (*run)(wq_queue *q), wq_queue *q)
{
    const pid_t child = fork();
    int         status = -1;

    assert_true(child >= 0);
    if (child == 0)
        _exit(run(q));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* Takes the next key, which must be this one. */
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
use_up_and_destroy(wq_queue *q)
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
    assert_int_equal(in_child(use_up_and_destroy, q), 0);

    assert_false(wq_shutting_down(q));
    assert_int_equal(wq_len(q), 2);
    work_on(q, "a");
    work_on(q, "b");
    assert_none_ready(q, WQ_ETIMEDOUT);
}

static wq_item *held;

static int
finish_and_take_again(wq_queue *q)
{
    return wq_done(q, held) == WQ_OK && takes(q, "a") ? 0 : 1;
}

/* O-71 */
TEST(child_can_finish_what_was_held)
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
use_threads(wq_queue *q)
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

/* Run a program, /bin/sh, in a child; what it exited with. */
static int
run_script(const char *script)
{
    const pid_t child = fork();
    int         status = -1;

    assert_true(child >= 0);
    if (child == 0) {
        (void)execl("/bin/sh", "sh", "-c", script, (char *)NULL);
        _exit(127);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* O-71: what a program with threads may do after fork() is exec. */
TEST(program_can_be_started_while_threads_sleep)
{
    wq_queue *q = *state;

    struct worker *w = worker_get(q, NULL);
    worker_await_blocked(w);
    assert_int_equal(run_script("exit 3"), 3);
    worker_await_blocked(w);
    add(q, "a");
    assert_err(worker_join(w), WQ_OK);
}

#if defined(__linux__) && !defined(WQ_PORT_POSIX)

static bool
readable(wq_queue *q)
{
    struct pollfd p = {.fd = wq_fd(q), .events = POLLIN};

    return poll(&p, 1, 0) == 1;
}

/* O-71 */
TEST(child_that_takes_keys_does_not_put_out_the_parents_light)
{
    wq_queue *q = *state;

    add(q, "a");
    add(q, "b");
    assert_true(readable(q));
    assert_int_equal(in_child(use_up_and_destroy, q), 0);
    assert_true(readable(q));
    work_on(q, "a");
    work_on(q, "b");
    assert_false(readable(q));
}

static int
add_and_shut_down(wq_queue *q)
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
cancel(wq_queue *q)
{
    return wq_cancel_after(q, wq_str("soon")) == WQ_OK ? 0 : 1;
}

/* O-71 */
TEST(child_that_ends_a_deadline_does_not_stop_the_parents_timer)
{
    wq_queue     *q = *state;
    struct pollfd p = {.fd = wq_fd(q), .events = POLLIN};

    assert_err(wq_add_after(q, wq_str("soon"), 100 * MS), WQ_OK);
    assert_int_equal(in_child(cancel, q), 0);
    assert_int_equal(poll(&p, 1, (int)(LONG_NS / MS)), 1);
    work_on(q, "soon");
}

/* Which of the first so many descriptors are open? */
static uint64_t
open_descriptors(void)
{
    uint64_t set = 0;

    for (int fd = 0; fd < 64; fd++)
        if (fcntl(fd, F_GETFD) != -1)
            set |= UINT64_C(1) << fd;
    return set;
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
            assert_int_equal(run_script(script), 0);
        }
}

#define DESCRIPTOR_TESTS                                                       \
    with_queue(child_that_takes_keys_does_not_put_out_the_parents_light),      \
        with_queue(child_that_adds_keys_does_not_wake_the_parent),             \
        with_queue(                                                            \
            child_that_ends_a_deadline_does_not_stop_the_parents_timer),       \
        with_queue(program_inherits_no_descriptor),

#else
#define DESCRIPTOR_TESTS /* there are no descriptors */
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

/* All that a handler may do: here, to write a byte. */
static void
write_byte(int number)
{
    const int  cause = errno;
    const char byte = (char)number;

    (void)!write(self_pipe[1], &byte, 1);
    errno = cause;
}

static void
handle(void (*handler)(int), int flags)
{
    struct sigaction action = {.sa_flags = flags};

    action.sa_handler = handler;
    (void)sigemptyset(&action.sa_mask);
    assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
    atomic_store(&signals_seen, 0);
}

/* A thread that sleeps is no longer asleep when this returns. */
static void
disturb(struct worker *w)
{
    assert_int_equal(pthread_kill(w->thread, SIGUSR1), 0);
}

/* All threads started from now on leave SIGUSR1 to others, or to us. */
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
TEST(get_sleeps_on_when_a_signal_comes)
{
    wq_queue *q = *state;

    for (int i = 0; i < 2; i++) {
        wq_item *item = NULL;
        handle(count_signal, flags[i]);
        struct worker *w = worker_get(q, &item);
        for (int n = 0; n < 10; n++) {
            worker_await_blocked(w); /* fails if it has returned */
            disturb(w);
        }
        worker_await_blocked(w);
        add(q, "a");
        assert_err(worker_join(w), WQ_OK);
        assert_key(item, "a");
        finish(q, item);
        assert_true(atomic_load(&signals_seen) > 0);
    }
}

/* O-72 */
TEST(drain_sleeps_on_when_a_signal_comes)
{
    wq_queue *q = *state;

    add(q, "a");
    for (int i = 0; i < 2; i++) {
        handle(count_signal, flags[i]);
        struct worker *w = worker_drain(q);
        for (int n = 0; n < 10; n++) {
            worker_await_blocked(w);
            disturb(w);
        }
        worker_await_blocked(w);
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

/* O-72: nor does it sleep for longer. */
TEST(time_out_ends_when_it_should_although_signals_come)
{
    for (int i = 0; i < 2; i++) {
        handle(count_signal, flags[i]);
        struct worker *w = worker_start(get_for_a_while, *state);
        while (!worker_has_ended(w)) {
            (void)pthread_kill(w->thread, SIGUSR1); /* it is not joined yet */
            (void)sched_yield();
        }
        assert_int_equal(worker_join(w), 0);
        assert_true(atomic_load(&signals_seen) > 0);
    }
}

/* O-72: the same with a deadline that one getter watches for all. */
TEST(deadline_is_kept_although_signals_come)
{
    struct timed *t = *state;
    wq_item      *item = NULL;

    for (int i = 0; i < 2; i++) {
        handle(count_signal, flags[i]);
        add_after(t, "a", S);
        struct worker *w = worker_get(t->q, &item);
        await_sleepers(t, 1);
        worker_await_blocked(w);
        disturb(w);
        worker_await_blocked(w);
        step(t, S);
        assert_err(worker_join(w), WQ_OK);
        finish(t->q, item);
    }
}

/* O-72: the handler writes to a pipe, and a loop shuts down. */
TEST(handler_tells_a_loop_and_the_loop_shuts_down)
{
    wq_queue *q = *state;
    char      byte = 0;

    assert_int_equal(pipe(self_pipe), 0);
    handle(write_byte, 0);
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
         with_queue(child_can_finish_what_was_held),
         with_queue(child_can_use_threads),
         with_queue(program_can_be_started_while_threads_sleep),
         DESCRIPTOR_TESTS with_queue(get_sleeps_on_when_a_signal_comes),
         with_queue(drain_sleeps_on_when_a_signal_comes),
         with_queue(time_out_ends_when_it_should_although_signals_come),
         with_time(deadline_is_kept_although_signals_come),
         with_queue(handler_tells_a_loop_and_the_loop_shuts_down),
         with_queue(thread_that_waits_for_signals_interrupts_a_get));
