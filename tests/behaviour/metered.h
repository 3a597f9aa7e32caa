/* SPDX-License-Identifier: MIT */
/* metered.h: how does a test look at what a queue reports to a sink?
 *
 * with_sink(...) makes a queue named "test" for a test, on a fake clock that
 * begins at 0, with a recorder (support/recorder.h) as its sink.
 */
#ifndef WQ_BEHAVIOUR_METERED_H
#define WQ_BEHAVIOUR_METERED_H

#include "asked.h"

#include <wq/metrics.h>

#include "support/recorder.h"

struct metered {
    struct timed   *t;
    wq_queue       *q; /* t->q */
    struct recorder r;
};

/* An entry of WQ_TESTS() for a test that wants a queue with a sink. */
#define with_sink(name) test_with(name, metered_setup, metered_teardown)

static inline int
metered_setup(void **state)
{
    struct metered *m = malloc(sizeof *m);

    assert_non_null(m);
    recorder_init(&m->r);
    m->t = timed_create(WQ_CONFIG(.name = "test", .metrics = &m->r.sink));
    m->q = m->t->q;
    *state = m;
    return 0;
}

/* Destroy the queue before the end of the test. */
static inline void
destroy_queue(struct metered *m)
{
    wq_destroy(m->q);
    m->q = m->t->q = NULL;
}

static inline int
metered_teardown(void **state)
{
    struct metered *m = *state;

    timed_destroy(m->t);
    free(m);
    return 0;
}

/* The sums of all changes are what the queue says of itself. */
static inline void
assert_sums(const struct recorder *r, const wq_stats *counts)
{
    if (!recorder_agrees(r, counts))
        fail_msg("sums of changes: depth %jd, adds %ju, merged %ju, retries "
                 "%ju, drops %ju, and %zu without a change; stats: %zu, %ju, "
                 "%ju, %ju, %ju",
                 (intmax_t)r->sum.depth, (uintmax_t)r->sum.adds,
                 (uintmax_t)r->sum.merged, (uintmax_t)r->sum.retries,
                 (uintmax_t)r->sum.drops, r->empty,
                 counts->ready + counts->dirty, (uintmax_t)counts->adds,
                 (uintmax_t)counts->merged, (uintmax_t)counts->retries,
                 (uintmax_t)counts->drops);
}

/* These durations were reported, in this order, and no others. */
#define assert_reported(series, ...)                                           \
    do {                                                                       \
        const int64_t expected_[] = {__VA_ARGS__};                             \
        assert_int_equal((series).n, sizeof expected_ / sizeof expected_[0]);  \
        for (size_t i_ = 0; i_ < (series).n; i_++)                             \
            assert_int_equal((series).ns[i_], expected_[i_]);                  \
    } while (0)

#endif
