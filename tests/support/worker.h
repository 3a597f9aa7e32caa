/* SPDX-License-Identifier: MIT */
/* worker.h: how does a test run a call in a second thread, and know that the
 * call is blocked?
 *
 *     struct worker *w = worker_get(q, &item);
 *     worker_await_blocked(w);
 *     add(q, "foo");
 *     assert_err(worker_join(w), WQ_OK);
 *
 * No test sleeps to "give the thread time": it queries the system for the state
 * of the thread. Every wait times out after WORKER_LIMIT_S seconds and fails
 * the test, so that a lost wake-up is a failure and not a hang.
 *
 * A worker's function must not use cmocka's assertions, which work in the
 * test's own thread only: it returns what it found. Call all functions below
 * from the test's thread.
 */
#ifndef WQ_WORKER_H
#define WQ_WORKER_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <wq/wq.h>

/* Far more than a slow machine under a sanitizer needs. */
enum { WORKER_LIMIT_S = 20 };

struct worker {
    int (*run)(struct worker *self); /* the thread's function */
    void     *arg;                   /* for `run`; the test chooses it */
    wq_queue *queue;                 /* for the verbs below */
    wq_item **item;                  /* where worker_get() stores its loan */

    int         result; /* what `run` returned */
    pthread_t   thread;
    char        task[64];  /* the thread's directory in /proc */
    atomic_bool begun;     /* `task` is set and `run` begins */
    sem_t       has_ended; /* 1 once `run` has returned */
};

/* Run `run` in a new thread. */
struct worker *worker_start(int (*run)(struct worker *self), void *arg);

/* Run wq_get(q, item). `item` may be NULL when no loan is expected. */
struct worker *worker_get(wq_queue *q, wq_item **item);

/* Run wq_get_within(q, 0) and wq_done(). */
struct worker *worker_work(wq_queue *q);

/* Run wq_shutdown_with_drain(q). */
struct worker *worker_drain(wq_queue *q);

/* Run wq_destroy(q). */
struct worker *worker_destroy(wq_queue *q);

/* Has it returned? */
bool worker_has_ended(struct worker *w);

/* Wait until all of the `n` workers are asleep at the same time: several
 * observations in a row find each asleep, and none ran in between. A thread
 * that only waits for a lock does not pass for blocked, since the thread that
 * has the lock is awake. A worker that has ended fails the test. */
void worker_await_all_blocked(struct worker *const *all, size_t n);
void worker_await_blocked(struct worker *w);

/* Wait until one of the `n` has returned. Returns its index. */
size_t worker_await_any_ended(struct worker *const *all, size_t n);

/* Processor time the worker has used. */
int64_t worker_cpu_ns(const struct worker *w);

/* Wait until it has returned, free the worker, and return its result. */
int worker_join(struct worker *w);

#endif
