/* SPDX-License-Identifier: MIT */
/* fixture.h: what do the behaviour tests say so often that it has a word?
 *
 * Each word is one call of wq.h that must succeed, or one thing to be seen from
 * outside. A test with `with_queue(...)` finds a new queue in *state.
 */
#ifndef WQ_BEHAVIOUR_FIXTURE_H
#define WQ_BEHAVIOUR_FIXTURE_H

#include "support/wq_test.h"

#include <stdbool.h>
#include <string.h>
#include <time.h>

#include <wq/wq.h>

#include "support/backend.h"

/* An entry of WQ_TESTS() for a test that wants a queue. */
#define with_queue(name) test_with(name, make_queue, drop_queue)

/* Longer than any test takes: a wait that should end by itself. */
#define LONG_NS (INT64_C(20) * 1000000000)

static inline int64_t
now_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* The one place where tests get their queues, except those that test
 * wq_create() itself: so they can be run over another backend. */
static inline wq_queue *
open_queue(const wq_config *config)
{
    wq_queue *q = NULL;

    assert_err(backend.open(config, &q), WQ_OK);
    assert_non_null(q);
    return q;
}

static inline int
make_queue(void **state)
{
    *state = open_queue(NULL);
    return 0;
}

static inline int
drop_queue(void **state)
{
    wq_destroy(*state);
    return 0;
}

static inline void
add(wq_queue *q, const char *key)
{
    assert_err(wq_add_str(q, key), WQ_OK);
}

/* The next item, which must be there already. */
static inline wq_item *
take(wq_queue *q)
{
    wq_item *item = NULL;

    assert_err(wq_get_within(q, 0, &item), WQ_OK);
    assert_non_null(item);
    return item;
}

static inline void
assert_key(const wq_item *item, const char *key)
{
    assert_int_equal(item->key.len, strlen(key));
    assert_memory_equal(item->key.data, key, strlen(key));
}

/* The next item, which must be there already and have this key. */
static inline wq_item *
take_key(wq_queue *q, const char *key)
{
    wq_item *item = take(q);

    assert_key(item, key);
    return item;
}

static inline void
finish(wq_queue *q, wq_item *item)
{
    assert_err(wq_done(q, item), WQ_OK);
}

/* Work on the next key, which must be this one, from get to done. */
static inline void
work_on(wq_queue *q, const char *key)
{
    finish(q, take_key(q, key));
}

/* No key can be taken now; `why` is WQ_ETIMEDOUT, or WQ_ESHUTDOWN. */
static inline void
assert_none_ready(wq_queue *q, wq_err why)
{
    wq_item *const untouched = (wq_item *)(void *)q;
    wq_item       *item = untouched;

    assert_err(wq_get_within(q, 0, &item), why);
    assert_ptr_equal(item, untouched);
    assert_int_equal(wq_len(q), 0);
}

#endif
