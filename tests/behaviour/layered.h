/* SPDX-License-Identifier: MIT */
/* layered.h: what do tests of the layers of backend.h say so often that it has a
 * word?
 *
 * The layers are put around a bare queue (support/bare_queue.h), on the clock of
 * a struct timed, whose queue is the outermost layer.
 */
#ifndef WQ_BEHAVIOUR_LAYERED_H
#define WQ_BEHAVIOUR_LAYERED_H

#include "timed.h"

#include <wq/backend.h>
#include <wq/limiter.h>

#include "support/bare_queue.h"
#include "support/probe.h"

/* Put a delaying layer around `inner`. `mem` may be NULL. */
static inline void
wrap_delays(struct timed *t, wq_queue *inner, const wq_allocator *mem)
{
    assert_err(wq_delaying_wrap(inner,
                                WQ_CONFIG(.clock = t->clock, .allocator = mem),
                                &t->q),
               WQ_OK);
}

/* Put a rate-limiting layer around t->q; of `config` all but the clock is
 * used. */
static inline void
wrap_limits(struct timed *t, const wq_config *config)
{
    wq_config mine = *config;
    wq_queue *outer = NULL;

    mine.clock = t->clock;
    assert_err(wq_rate_limiting_wrap(t->q, &mine, &outer), WQ_OK);
    t->q = outer;
}

/* A delaying layer that allocates by `mem`, around a bare queue. */
static inline struct timed *
wrap_bare_with(const wq_allocator *mem, struct bare **out)
{
    struct timed *t = timed_begin(0);

    *out = bare_create(WQ_CONFIG(.clock = t->clock));
    wrap_delays(t, &(*out)->base, mem);
    return t;
}

static inline struct timed *
wrap_bare(struct bare **out)
{
    return wrap_bare_with(NULL, out);
}

/* A delaying layer around a bare queue, for a test that finds it in *state. */
struct scene {
    struct timed *t;
    struct bare  *inner;
    struct gate   gate;
    wq_item      *held; /* if the test begins with a loan */
};

static inline int
scene_teardown(void **state)
{
    timed_destroy(((struct scene *)*state)->t);
    return 0;
}

#endif
