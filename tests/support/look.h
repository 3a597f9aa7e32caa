/* SPDX-License-Identifier: MIT */
/* look.h: how do tests look at queues and keys? */
#ifndef WQ_TEST_LOOK_H
#define WQ_TEST_LOOK_H

#include "support/wq_test.h"

#include <wq/inspect.h>

static inline wq_key_info
info_of(wq_queue *q, const char *key)
{
    wq_key_info info = {.size = sizeof info};

    assert_err(wq_read_key(q, wq_str(key), &info), WQ_OK);
    return info;
}

static inline wq_stats
stats_of(wq_queue *q)
{
    wq_stats stats = {.size = sizeof stats};

    assert_err(wq_read_stats(q, &stats), WQ_OK);
    return stats;
}

static inline void
expect_same(const wq_key_info *a, const wq_key_info *b)
{
    assert_int_equal(a->states, b->states);
    assert_int_equal(a->priority, b->priority);
    assert_int_equal(a->requeues, b->requeues);
    assert_int_equal(a->ready_ns, b->ready_ns);
    assert_int_equal(a->held_ns, b->held_ns);
    assert_int_equal(a->wait_ns, b->wait_ns);
    assert_int_equal(a->fence, b->fence);
    assert_string_equal(a->holder, b->holder);
}

/* For wq_each(): visit all keys; `n`, a size_t, counts them. */
static inline bool
count_visit(void *n, wq_key key, const wq_key_info *info)
{
    (void)key;
    (void)info;
    ++*(size_t *)n;
    return true;
}

/* A walk visits all keys, `n`, or none and fails. */
static inline wq_err
each_or_none(wq_queue *q, size_t n)
{
    size_t       visited = 0;
    const wq_err err = wq_each(q, 0, count_visit, &visited);

    assert_int_equal(visited, err ? 0 : n);
    return err;
}

#endif
