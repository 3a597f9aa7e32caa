/* SPDX-License-Identifier: MIT */
/* stage.h: how does a test hold a callback at the point it wants, and learn
 * that it got there?
 *
 *     static wq_result handler(void *ctx, const wq_item *item)
 *     {
 *         stage_pass(ctx);                 waits until the test allows it
 *         return wq_result_done();
 *     }
 *
 *     tally_await(&stage.begun, 1);        it is in there
 *     ...
 *     tally_add(&stage.allowed, 1);        and may go on
 *
 * A tally is a number that grows and can be waited for. Waits give up after
 * STAGE_LIMIT_S seconds: those of the test fail it; those of a callback end,
 * and the test fails by what it finds then.
 */
#ifndef WQ_TEST_STAGE_H
#define WQ_TEST_STAGE_H

#include <pthread.h>
#include <stdbool.h>

/* Far more than a slow machine under a sanitizer needs. */
enum { STAGE_LIMIT_S = 20 };

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

/* Wait until it is at least `n`; false: in vain. For any thread. */
bool tally_reaches(struct tally *t, unsigned n);

/* The same, and in vain fails the test. For the test's own thread. */
void tally_await(struct tally *t, unsigned n);

/* Where callbacks come by, one after the other or many at once. */
struct stage {
    struct tally begun;   /* callbacks that came */
    struct tally allowed; /* how many of them may go */
    struct tally ended;   /* and have gone */
};

#define STAGE_INIT                                                             \
    {                                                                          \
        .begun = TALLY_INIT, .allowed = TALLY_INIT, .ended = TALLY_INIT        \
    }

/* More than ever come: nobody is held. */
enum { STAGE_OPEN = 1000000 };

/* For a callback: say that it came, wait until it may go. */
void stage_pass(struct stage *s);

/* Wait until `done(arg)`, which nobody signals; in vain fails the test. */
void await_that(bool (*done)(void *arg), void *arg, const char *what);

#endif
