/* SPDX-License-Identifier: MIT */
/* queue_fixture.h: how do tests drive a queue in memory, and look inside it?
 *
 * One queue with a counting allocator. A producer that does not need the lock
 * may put a key into the inbox at any moment: put_while_locked() makes that
 * moment.
 */
#ifndef WQ_TEST_QUEUE_FIXTURE_H
#define WQ_TEST_QUEUE_FIXTURE_H

#include "support/wq_test.h"

#include <string.h>

#include "memory/gate.h"
#include "memory/memory.h"
#include "support/counting.h"
#include "support/worker.h"

static struct counting    mem;
static wq_queue          *q;
static struct wq__memory *m; /* the same queue, seen from inside */

static inline void
create(const wq_config *config)
{
    wq_config mine = *config;

    counting_init(&mem);
    mine.allocator = &mem.allocator;
    assert_err(wq_create(&mine, &q), WQ_OK);
    m = wq__memory_of(q);
}

static inline int
open_queue(void **state)
{
    (void)state;
    create(WQ_CONFIG(.name = NULL));
    return 0;
}

static inline int
close_queue(void **state)
{
    (void)state;
    const char *broken = wq__core_check(&m->core);
    if (broken)
        fail_msg("%s", broken);
    wq_destroy(q);
    assert_int_equal(mem.bytes, 0);
    return 0;
}

#define queue_test(name) test_with(name, open_queue, close_queue)

static inline void
add(const char *key)
{
    assert_err(wq_add_str(q, key), WQ_OK);
}

static inline wq_item *
take(const char *key)
{
    wq_item *item = NULL;

    assert_err(wq_get_within(q, 0, &item), WQ_OK);
    assert_string_equal(item->key.data, key);
    assert_int_equal(item->key.len, strlen(key));
    return item;
}

static inline void
work_on(const char *key)
{
    assert_err(wq_done(q, take(key)), WQ_OK);
}

static inline void
expect_get(wq_err err)
{
    wq_item *item = NULL;

    assert_err(wq_get_within(q, 0, &item), err);
    assert_null(item);
}

/* Makes the ring, as the first fight for the lock does. */
static inline void
open_inbox(void)
{
    wq__lock_take(&m->lock);
    wq__inbox_open(&m->inbox);
    wq__lock_release(&m->lock);
}

/* A key comes in after the last look of the thread that has the lock, which
 * is this one. */
static inline void
put_while_locked(const char *name)
{
    const wq_key key = wq_str(name);
    uint64_t     position;

    wq__inbox_open(&m->inbox);
    assert_true(wq__inbox_put(&m->inbox, key, wq__core_hash(&m->core, key), 0,
                              &position));
}

/* Has any thread, be it this one, taken it? For a moment when no other thread
 * comes. */
static inline bool
lock_is_taken(struct wq__lock *l)
{
    const bool taken = wq__lock_try(l);

    if (taken)
        wq__lock_release(l);
    return !taken;
}

#endif
