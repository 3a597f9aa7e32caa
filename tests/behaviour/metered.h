/* SPDX-License-Identifier: MIT */
/* metered.h: what do tests about metrics and inspection say so often that it
 * has a word?
 *
 * A queue named "test" on a fake clock that begins at 0, with a recorder as its
 * sink: made by with_sink(...) for a test that finds both in *state, or by
 * metered_create() with a config of the test's own.
 */
#ifndef WQ_BEHAVIOUR_METERED_H
#define WQ_BEHAVIOUR_METERED_H

#include "timed.h"

#include <wq/metrics.h>

#include "support/recorder.h"

struct metered {
    struct timed    t; /* first: it has words of its own */
    struct recorder r;
};

/* An entry of WQ_TESTS() for a test that wants a queue with a sink. */
#define with_sink(name) test_with(name, metered_setup, metered_teardown)

/* A clock and a recorder, and no queue yet. */
static inline struct metered *
metered_begin(void)
{
    struct metered *m = calloc(1, sizeof *m);

    assert_non_null(m);
    m->t.clock = wq_clock_fake_create(0);
    assert_non_null(m->t.clock);
    recorder_init(&m->r);
    return m;
}

/* And a queue; what `config` says of name, sink and clock is not used. */
static inline struct metered *
metered_create(const wq_config *config)
{
    struct metered *m = metered_begin();
    wq_config       mine = *config;

    mine.clock = m->t.clock;
    mine.name = "test";
    mine.metrics = &m->r.sink;
    assert_err(wq_create(&mine, &m->t.q), WQ_OK);
    return m;
}

static inline void
metered_destroy(struct metered *m)
{
    wq_destroy(m->t.q);
    wq_clock_destroy(m->t.clock);
    free(m);
}

static inline int
metered_setup(void **state)
{
    *state = metered_create(WQ_CONFIG(.order = NULL));
    return 0;
}

static inline int
metered_teardown(void **state)
{
    metered_destroy(*state);
    return 0;
}

static inline wq_stats
stats(wq_queue *q)
{
    wq_stats counts = {.size = sizeof counts};

    assert_err(wq_read_stats(q, &counts), WQ_OK);
    return counts;
}

static inline wq_key_info
look(wq_queue *q, const char *key)
{
    wq_key_info info = {.size = sizeof info};

    assert_err(wq_read_key(q, wq_str(key), &info), WQ_OK);
    return info;
}

/* What the sums of changes and what the queue says of itself have in common is
 * the same. */
static inline void
assert_sums(const struct recorder *r, const wq_stats *counts)
{
    assert_int_equal(r->sum.depth, counts->ready + counts->dirty);
    assert_int_equal(r->sum.adds, counts->adds);
    assert_int_equal(r->sum.merged, counts->merged);
    assert_int_equal(r->sum.retries, counts->retries);
    assert_int_equal(r->sum.drops, counts->drops);
    assert_int_equal(r->empty, 0);
}

/* The law of wq_stats. */
static inline void
assert_adds_up(const wq_stats *c)
{
    assert_int_equal(c->adds, c->gets + c->removed + c->displaced +
                                  c->deferred + c->ready + c->dirty);
}

/* So many adds were made and so many keys are in line, by both accounts. */
static inline void
assert_adds_and_depth(struct metered *m, uint64_t adds, size_t depth)
{
    const wq_stats counts = stats(m->t.q);

    assert_int_equal(counts.adds, adds);
    assert_int_equal(counts.ready + counts.dirty, depth);
    assert_sums(&m->r, &counts);
    assert_adds_up(&counts);
}

/* These durations were told, in this order, and no others. */
#define assert_told(series, ...)                                               \
    do {                                                                       \
        const int64_t told_[] = {__VA_ARGS__};                                 \
        assert_int_equal((series).n, sizeof told_ / sizeof told_[0]);          \
        for (size_t i_ = 0; i_ < (series).n; i_++)                             \
            assert_int_equal((series).ns[i_], told_[i_]);                      \
    } while (0)

#endif
