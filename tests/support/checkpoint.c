/* SPDX-License-Identifier: MIT */
/* checkpoint.c: how callbacks are held; see checkpoint.h. */
#include "support/checkpoint.h"

#include <errno.h>
#include <sched.h>
#include <time.h>

#include "support/wq_test.h"

static struct timespec
limit_from_now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_REALTIME, &t);
    t.tv_sec += CHECKPOINT_LIMIT_S;
    return t;
}

void
tally_add(struct tally *t, unsigned n)
{
    (void)pthread_mutex_lock(&t->mutex);
    t->n += n;
    (void)pthread_cond_broadcast(&t->cond);
    (void)pthread_mutex_unlock(&t->mutex);
}

unsigned
tally_read(struct tally *t)
{
    (void)pthread_mutex_lock(&t->mutex);
    const unsigned n = t->n;
    (void)pthread_mutex_unlock(&t->mutex);
    return n;
}

bool
tally_reaches(struct tally *t, unsigned n)
{
    const struct timespec limit = limit_from_now();
    int                   rc = 0;

    (void)pthread_mutex_lock(&t->mutex);
    while (t->n < n && rc != ETIMEDOUT)
        rc = pthread_cond_timedwait(&t->cond, &t->mutex, &limit);
    const bool reached = t->n >= n;
    (void)pthread_mutex_unlock(&t->mutex);
    return reached;
}

void
tally_await(struct tally *t, unsigned n)
{
    if (!tally_reaches(t, n))
        fail_msg("timed out after %d s: expected at least %u, got %u",
                 CHECKPOINT_LIMIT_S, n, tally_read(t));
}

void
checkpoint_pass(struct checkpoint *c)
{
    (void)pthread_mutex_lock(&c->begun.mutex);
    const unsigned number = ++c->begun.n;
    (void)pthread_cond_broadcast(&c->begun.cond);
    (void)pthread_mutex_unlock(&c->begun.mutex);
    (void)tally_reaches(&c->allowed, number);
    tally_add(&c->ended, 1);
}

void
await_that(bool (*done)(void *arg), void *arg, const char *what)
{
    const time_t limit = time(NULL) + CHECKPOINT_LIMIT_S;

    while (!done(arg)) {
        if (time(NULL) > limit)
            fail_msg("timed out after %d s waiting until %s",
                     CHECKPOINT_LIMIT_S, what);
        (void)sched_yield();
    }
}
