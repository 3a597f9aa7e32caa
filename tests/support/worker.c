/* SPDX-License-Identifier: MIT */
/* worker.c: calls in a second thread; see worker.h. */
#include "support/worker.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "support/backend.h"
#include "support/wq_test.h"

/* ---- the thread --------------------------------------------------------- */

/* Linux names the calling thread: "1234/task/1235". */
static void
find_task(struct worker *w)
{
    char          name[sizeof w->task - sizeof "/proc/"];
    const ssize_t n = readlink("/proc/thread-self", name, sizeof name - 1);

    if (n <= 0)
        return;
    name[n] = '\0';
    (void)snprintf(w->task, sizeof w->task, "/proc/%s", name);
}

static void *
thread_main(void *arg)
{
    struct worker *w = arg;

    find_task(w);
    atomic_store(&w->begun, true);
    w->result = w->run(w);
    (void)sem_post(&w->has_ended);
    return NULL;
}

static struct worker *
make(int (*run)(struct worker *self))
{
    struct worker *w = calloc(1, sizeof *w);

    assert_non_null(w);
    w->run = run;
    atomic_init(&w->begun, false);
    assert_int_equal(sem_init(&w->has_ended, 0, 0), 0);
    return w;
}

static struct worker *
launch(struct worker *w)
{
    assert_int_equal(pthread_create(&w->thread, NULL, thread_main, w), 0);
    return w;
}

struct worker *
worker_start(int (*run)(struct worker *self), void *arg)
{
    struct worker *w = make(run);

    w->arg = arg;
    return launch(w);
}

static int
run_get(struct worker *self)
{
    wq_item     *item;
    const wq_err err = wq_get(self->queue, &item);

    if (!err && self->item)
        *self->item = item;
    return (int)err;
}

struct worker *
worker_get(wq_queue *q, wq_item **item)
{
    struct worker *w = make(run_get);

    w->queue = q;
    w->item = item;
    return launch(w);
}

static int
run_work(struct worker *self)
{
    wq_item *item;
    wq_err   err = wq_get_within(self->arg, 0, &item);

    if (!err)
        err = wq_done(self->arg, item);
    return (int)err;
}

struct worker *
worker_work(wq_queue *q)
{
    return worker_start(run_work, q);
}

static int
run_drain(struct worker *self)
{
    return (int)wq_shutdown_with_drain(self->queue);
}

struct worker *
worker_drain(wq_queue *q)
{
    struct worker *w = make(run_drain);

    w->queue = q;
    return launch(w);
}

static int
run_destroy(struct worker *self)
{
    wq_destroy(self->arg);
    return 0;
}

struct worker *
worker_destroy(wq_queue *q)
{
    return worker_start(run_destroy, q);
}

/* ---- timeouts ----------------------------------------------------------- */

static int64_t
now_s(clockid_t clock)
{
    struct timespec t;

    (void)clock_gettime(clock, &t);
    return (int64_t)t.tv_sec;
}

/* Yield; fail the test once `deadline_s` has passed. */
static void
yield_until(int64_t deadline_s, const char *what)
{
    if (now_s(CLOCK_MONOTONIC) > deadline_s)
        fail_msg("timed out after %d s waiting for %s", WORKER_LIMIT_S, what);
    (void)sched_yield();
}

/* ---- is it asleep? ------------------------------------------------------ */

/* How often the worker has gone to sleep so far; -1 if it is awake. */
static long
sleeps_if_asleep(const struct worker *w)
{
    static const char switches[] = "voluntary_ctxt_switches:";
    char              path[sizeof w->task + sizeof "/status"];
    char              line[256];
    bool              asleep = false;
    long              sleeps = -1;

    (void)snprintf(path, sizeof path, "%s/status", w->task);
    FILE *f = fopen(path, "r");
    if (!f)
        return -1; /* it has just ended */
    while (fgets(line, sizeof line, f)) {
        if (strncmp(line, "State:\tS", strlen("State:\tS")) == 0)
            asleep = true;
        if (strncmp(line, switches, strlen(switches)) == 0)
            sleeps = strtol(line + strlen(switches), NULL, 10);
    }
    (void)fclose(f);
    return asleep ? sleeps : -1;
}

/* The sum of sleeps_if_asleep() of all; -1 if one is awake. */
static long
sleeps_if_all_asleep(struct worker *const *all, size_t n)
{
    long sum = 0;

    for (size_t i = 0; i < n; i++) {
        if (worker_has_ended(all[i]))
            fail_msg("worker %zu should be blocked; it returned %d", i,
                     all[i]->result);
        if (!atomic_load(&all[i]->begun))
            return -1;
        if (!all[i]->task[0])
            wq_test_skip(
                "the system does not report the state of threads in /proc");
        const long sleeps = sleeps_if_asleep(all[i]);
        if (sleeps < 0)
            return -1;
        sum += sleeps;
    }
    return sum;
}

void
worker_await_all_blocked(struct worker *const *all, size_t n)
{
    enum { TIMES = 5 }; /* equal observations in a row */
    const int64_t deadline_s = now_s(CLOCK_MONOTONIC) + WORKER_LIMIT_S;
    long          last = -1;

    for (int seen = 0; seen < TIMES;) {
        if (seen == TIMES - 1 && backend.settle)
            backend.settle();
        const long sleeps = sleeps_if_all_asleep(all, n);
        seen = sleeps >= 0 && sleeps == last ? seen + 1 : 0;
        last = sleeps;
        yield_until(deadline_s, "a worker to block");
    }
}

void
worker_await_blocked(struct worker *w)
{
    worker_await_all_blocked(&w, 1);
}

int64_t
worker_cpu_ns(const struct worker *w)
{
    clockid_t       clock;
    struct timespec t;

    assert_int_equal(pthread_getcpuclockid(w->thread, &clock), 0);
    assert_int_equal(clock_gettime(clock, &t), 0);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ---- has it ended? ------------------------------------------------------ */

bool
worker_has_ended(struct worker *w)
{
    int value = 0;

    (void)sem_getvalue(&w->has_ended, &value);
    return value > 0;
}

size_t
worker_await_any_ended(struct worker *const *all, size_t n)
{
    const int64_t deadline_s = now_s(CLOCK_MONOTONIC) + WORKER_LIMIT_S;

    for (;;) {
        for (size_t i = 0; i < n; i++)
            if (worker_has_ended(all[i]))
                return i;
        yield_until(deadline_s, "a worker to return");
    }
}

int
worker_join(struct worker *w)
{
    const struct timespec deadline = {
        .tv_sec = (time_t)(now_s(CLOCK_REALTIME) + WORKER_LIMIT_S)};
    int rc;

    do
        rc = sem_timedwait(&w->has_ended, &deadline);
    while (rc != 0 && errno == EINTR);
    if (rc != 0)
        fail_msg("timed out after %d s waiting for a worker to return",
                 WORKER_LIMIT_S);
    assert_int_equal(pthread_join(w->thread, NULL), 0);

    const int result = w->result;
    (void)sem_destroy(&w->has_ended);
    free(w);
    return result;
}
