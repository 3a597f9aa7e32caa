/* SPDX-License-Identifier: MIT */
/* test_pause.c: does a key that comes into the inbox of a paused queue disturb
 * anybody?
 *
 * A producer that does not need the lock puts a key there at any moment, also
 * between a thread's last look at it and its release of the lock. Here that
 * moment is made: the key is put there by a thread that has the lock. */
#include "support/wq_test.h"

#include "memory/gate.h"
#include "memory/memory.h"

static wq_queue          *q;
static struct wq__memory *m;

static int
open_queue(void **state)
{
    (void)state;
    assert_int_equal(wq_create(NULL, &q), WQ_OK);
    m = wq__memory_of(q);
    return 0;
}

static int
close_queue(void **state)
{
    (void)state;
    wq_destroy(q);
    return 0;
}

/* A key has come, and nobody has looked since. */
static void
put_while_locked(const char *name)
{
    const wq_key key = wq_str(name);
    uint64_t     position;

    wq__gate_enter(m);
    wq__inbox_open(&m->inbox);
    assert_true(wq__inbox_put(&m->inbox, key, wq__core_hash(&m->core, key), 0,
                              &position));
    wq__gate_leave(m);
    assert_true(wq__inbox_holds(&m->inbox));
}

#if defined(__linux__) && !defined(WQ_PORT_POSIX)

/* O-85 O-70 */
TEST(key_in_the_inbox_leaves_a_paused_queue_unreadable)
{
    wq_item *item;

    assert_true(wq_fd(q) >= 0);
    assert_int_equal(wq_pause(q), WQ_OK);
    put_while_locked("a");
    assert_false(m->lit);
    assert_int_equal(wq_resume(q), WQ_OK);
    assert_true(m->lit);
    assert_int_equal(wq_get_within(q, 0, &item), WQ_OK);
    assert_false(m->lit);
    assert_int_equal(wq_done(q, item), WQ_OK);
}

#define fd_tests queue_test(key_in_the_inbox_leaves_a_paused_queue_unreadable),
#else
#define fd_tests /* there is no wq_fd() */
#endif

/* O-85: a get that comes then finds nothing, and it stays READY. */
TEST(key_in_the_inbox_is_not_handed_out_while_paused)
{
    wq_item *item;

    assert_int_equal(wq_pause(q), WQ_OK);
    put_while_locked("a");
    assert_int_equal(wq_get_within(q, 0, &item), WQ_ETIMEDOUT);
    assert_int_equal(wq_len(q), 1);
    assert_int_equal(wq_resume(q), WQ_OK);
    assert_int_equal(wq_get_within(q, 0, &item), WQ_OK);
    assert_int_equal(wq_done(q, item), WQ_OK);
}

#define queue_test(name) test_with(name, open_queue, close_queue)

WQ_TESTS(fd_tests queue_test(key_in_the_inbox_is_not_handed_out_while_paused));
