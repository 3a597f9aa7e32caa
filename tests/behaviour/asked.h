/* SPDX-License-Identifier: MIT */
/* asked.h: short names for wq_add_with(), and for what wq_read_stats(),
 * wq_read_depths() and wq_read_key() show. Each call must succeed. */
#ifndef WQ_BEHAVIOUR_ASKED_H
#define WQ_BEHAVIOUR_ASKED_H

#include "timed.h"

#include <wq/inspect.h>

#include "support/look.h"

/* For messages: cmocka would print numbers. */
static inline const char *
added_name(wq_added added)
{
    static const char *const names[] = {"NEW",    "MERGED",    "DIRTY",
                                        "RAISED", "SCHEDULED", "SOONER",
                                        "LATER",  "KEPT"};

    return (unsigned)added < 8 ? names[added] : "?";
}

#define assert_added(actual, expected)                                         \
    assert_string_equal(added_name(actual), added_name(expected))

/* Add one key; the result of the add. */
static inline wq_added
add_how(wq_queue *q, const wq_add_options *how, const char *key)
{
    wq_add_options with_result = *how;
    const wq_key   keys[] = {wq_str(key)};
    wq_added       added = (wq_added)-1;

    with_result.results = &added;
    assert_err(wq_add_with(q, &with_result, keys, 1), WQ_OK);
    assert_in_range(added, WQ_ADDED_NEW, WQ_ADDED_KEPT);
    return added;
}

/* Add one key, which may fail. */
static inline wq_err
try_how(wq_queue *q, const wq_add_options *how, const char *key)
{
    const wq_key keys[] = {wq_str(key)};

    return wq_add_with(q, how, keys, 1);
}

static inline void
add_at(wq_queue *q, int priority, const char *key)
{
    (void)add_how(q, WQ_ADD(.priority = priority), key);
}

/* The next item, which must be there already, with this key and priority. */
static inline wq_item *
take_at(wq_queue *q, const char *key, int priority)
{
    wq_item *item = take_key(q, key);

    assert_int_equal(item->priority, priority);
    return item;
}

static inline void
work_on_at(wq_queue *q, const char *key, int priority)
{
    finish(q, take_at(q, key, priority));
}

static inline wq_stats
counts_of(wq_queue *q)
{
    wq_stats counts = {.size = sizeof counts};

    assert_err(wq_read_stats(q, &counts), WQ_OK);
    assert_int_equal(counts.adds, counts.gets + counts.removed +
                                      counts.displaced + counts.deferred +
                                      counts.ready + counts.dirty);
    assert_int_equal(counts.gets, counts.dones + counts.held);
    return counts;
}

static inline void
assert_counts(wq_queue *q, uint64_t adds, uint64_t retries)
{
    const wq_stats counts = counts_of(q);

    assert_int_equal(counts.adds, adds);
    assert_int_equal(counts.retries, retries);
}

/* How many keys are READY or DIRTY with this priority. */
static inline size_t
depth_at(wq_queue *q, int priority)
{
    wq_depth depths[64];
    size_t   n = 0;

    assert_err(wq_read_depths(q, depths, 64, &n), WQ_OK);
    assert_in_range(n, 1, 64);
    for (size_t i = 0; i < n; i++)
        if (depths[i].priority == priority)
            return depths[i].keys;
    return 0;
}

static inline size_t
depth_of(wq_queue *q)
{
    const wq_stats counts = counts_of(q);

    return counts.ready + counts.dirty;
}

static inline void
assert_states(wq_queue *q, const char *key, unsigned states)
{
    assert_int_equal(info_of(q, key).states, states);
}

#endif
