/* SPDX-License-Identifier: MIT */
/* checkpoint.h: how does a test hold a callback at a chosen point, and learn
 * that it got there?
 *
 *     static wq_result handler(void *ctx, const wq_item *item)
 *     {
 *         checkpoint_pass(ctx);            blocks until the test allows it
 *         return wq_result_done();
 *     }
 *
 *     tally_await(&checkpoint.begun, 1);   the handler is at the checkpoint
 *     ...
 *     tally_add(&checkpoint.allowed, 1);   and may go on
 *
 * A tally is a number that only grows and that threads can wait for. Waits time
 * out after CHECKPOINT_LIMIT_S seconds. In the test's thread a timeout fails
 * the test; in a callback it only ends the wait, and the test then fails on
 * what it observes.
 */
#ifndef WQ_TEST_CHECKPOINT_H
#define WQ_TEST_CHECKPOINT_H

#include <pthread.h>
#include <stdbool.h>

/* Far more than a slow machine under a sanitizer needs. */
enum { CHECKPOINT_LIMIT_S = 20 };

struct tally {
    pthread_mutex_t mutex; /* guards n */
    pthread_cond_t  cond;  /* "n has grown" */
    unsigned        n;
};

#define TALLY_INIT                                                             \
    {                                                                          \
        .mutex = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER   \
    }

void     tally_add(struct tally *t, unsigned n);
unsigned tally_read(struct tally *t);

/* Wait until the tally is at least `n`; false: timed out. For any thread. */
bool tally_reaches(struct tally *t, unsigned n);

/* The same; a timeout fails the test. For the test's own thread. */
void tally_await(struct tally *t, unsigned n);

/* A point that callbacks pass, one after the other or many at once. */
struct checkpoint {
    struct tally begun;   /* callbacks that have arrived */
    struct tally allowed; /* callbacks that may go on */
    struct tally ended;   /* callbacks that have gone on */
};

#define CHECKPOINT_INIT                                                        \
    {                                                                          \
        .begun = TALLY_INIT, .allowed = TALLY_INIT, .ended = TALLY_INIT        \
    }

/* Allow so many to let every callback pass. */
enum { CHECKPOINT_OPEN = 1000000 };

/* For a callback: report the arrival, then wait until it may go on. */
void checkpoint_pass(struct checkpoint *c);

/* Poll `done(arg)` until it is true; a timeout fails the test. `what` ends the
 * sentence "timed out waiting until ...". */
void await_that(bool (*done)(void *arg), void *arg, const char *what);

#endif
