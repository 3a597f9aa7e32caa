/* SPDX-License-Identifier: MIT */
/* backoff.c: how long does a key wait that failed for the nth time?
 *
 * The failures of each key are counted by a limiter of the library; this one
 * makes a delay of their number.
 */
#include "backoff.h"

#include <math.h>
#include <stdlib.h>
#include <sys/random.h>

struct backing_off {
    struct backoff how;
    wq_limiter    *failures; /* owned; asked for its count alone */
    uint64_t       dice;     /* state of the jitter */
};

/* A number from 0 to 1. Marsaglia's xorshift: spreading needs no more. */
static double
roll(struct backing_off *self)
{
    self->dice ^= self->dice << 13;
    self->dice ^= self->dice >> 7;
    self->dice ^= self->dice << 17;
    return (double)(self->dice >> 11) / (double)(1ULL << 53);
}

static int64_t
when(void *ctx, wq_key key)
{
    struct backing_off *self = ctx;

    (void)wq_limiter_when(self->failures, key);
    const unsigned n = wq_limiter_num_requeues(self->failures, key);
    const double   longest =
        (double)self->how.base_ns * pow(self->how.factor, n > 0 ? n - 1 : 0);
    return (int64_t)(roll(self) * fmin(longest, (double)self->how.max_ns));
}

static void
forget(void *ctx, wq_key key)
{
    struct backing_off *self = ctx;

    wq_limiter_forget(self->failures, key);
}

static unsigned
num_requeues(void *ctx, wq_key key)
{
    struct backing_off *self = ctx;

    return wq_limiter_num_requeues(self->failures, key);
}

static void
undo(void *ctx, wq_key key)
{
    struct backing_off *self = ctx;

    wq_limiter_undo(self->failures, key);
}

static void
destroy(void *ctx)
{
    struct backing_off *self = ctx;

    wq_limiter_destroy(self->failures);
    free(self);
}

wq_limiter *
backoff_create(const struct backoff *how)
{
    static const wq_limiter_ops ops = {
        .size = sizeof ops,
        .when = when,
        .forget = forget,
        .num_requeues = num_requeues,
        .destroy = destroy,
        .undo = undo,
    };
    struct backing_off *self = calloc(1, sizeof *self);

    if (!self)
        return NULL;
    self->how = *how;
    if (getrandom(&self->dice, sizeof self->dice, 0) < 0 || !self->dice)
        self->dice = 1; /* xorshift stays at 0 for ever */
    wq_limiter *failures = wq_limiter_fast_slow(0, 0, 0);
    if (wq_limiter_error(failures)) {
        free(self);
        return failures;
    }
    self->failures = failures;
    return wq_limiter_create(&ops, self); /* takes `self` over */
}
