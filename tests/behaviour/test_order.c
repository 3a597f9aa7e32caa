/* SPDX-License-Identifier: MIT */
/* test_order.c: what may a wq_order rely on, and what if it fails?
 *
 * Asked through an order that hands out the newest key first, counts what it is
 * told, fails on demand, and lies on demand.
 */
#include "fixture.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "support/worker.h"

enum { ROOM = 4096 };

struct lifo {
    wq_key keys[ROOM]; /* pushed and not popped; no copies of the bytes */
    size_t len;
    int    pushes, touches, destroys;
    wq_err push_error; /* what the next pushes answer */
    bool   withhold;   /* pop says that there is none */
    bool   lie;        /* pop hands out `lie_key` */
    wq_key lie_key;

    pthread_t   thread;    /* who calls the queue */
    bool        inside;    /* a verb of the queue is at work */
    int         uninvited; /* calls by others, or outside of any verb */
    atomic_flag busy;      /* a call is at work */
    atomic_int  overlaps;  /* calls that began meanwhile */
};

/* Relaxed, so that nothing here orders the calls of different threads: only the
 * queue's lock does. */
static void
begin_call(struct lifo *l)
{
    if (atomic_flag_test_and_set_explicit(&l->busy, memory_order_relaxed))
        atomic_fetch_add_explicit(&l->overlaps, 1, memory_order_relaxed);
    if (!l->inside || !pthread_equal(pthread_self(), l->thread))
        l->uninvited++;
}

static void
end_call(struct lifo *l)
{
    atomic_flag_clear_explicit(&l->busy, memory_order_relaxed);
}

static wq_err
lifo_push(void *self, wq_key key, int priority)
{
    struct lifo *l = self;
    wq_err       err = l->push_error;

    begin_call(l);
    if (!err && (l->len == ROOM || priority != 0))
        err = WQ_EFULL;
    if (!err) {
        l->pushes++;
        l->keys[l->len++] = key;
    }
    end_call(l);
    return err;
}

static void
lifo_touch(void *self, wq_key key)
{
    struct lifo *l = self;

    (void)key;
    begin_call(l);
    l->touches++;
    end_call(l);
}

static bool
lifo_pop(void *self, wq_key *out)
{
    struct lifo *l = self;
    bool         found = true;

    begin_call(l);
    if (l->lie)
        *out = l->lie_key;
    else if (l->withhold || l->len == 0)
        found = false;
    else
        *out = l->keys[--l->len];
    end_call(l);
    return found;
}

static size_t
lifo_len(void *self)
{
    return ((struct lifo *)self)->len;
}

static void
lifo_destroy(void *self)
{
    ((struct lifo *)self)->destroys++;
}

/* ---- a queue with it ---------------------------------------------------- */

static struct lifo lifo;

/* Of an empty stack. */
static wq_order
begin_lifo(void)
{
    const wq_order order = {
        .size = sizeof order,
        .self = &lifo,
        .push = lifo_push,
        .touch = lifo_touch,
        .pop = lifo_pop,
        .len = lifo_len,
        .destroy = lifo_destroy,
    };

    memset(&lifo, 0, sizeof lifo);
    atomic_flag_clear(&lifo.busy);
    return order;
}

static int
make_lifo_queue(void **state)
{
    const wq_order order = begin_lifo();

    *state = open_queue(WQ_CONFIG(.order = &order));
    return 0;
}

/* ---- the order decides -------------------------------------------------- */

/* */
TEST(keys_leave_in_the_order_of_the_plug_in)
{
    wq_queue *q = *state;

    add(q, "foo");
    add(q, "bar");
    add(q, "baz");
    assert_int_equal(wq_len(q), 3);

    work_on(q, "baz");
    work_on(q, "bar");
    work_on(q, "foo");
    assert_none_ready(q, WQ_ETIMEDOUT);
}

/* */
TEST(ready_key_added_again_is_touched_once_and_not_pushed)
{
    wq_queue *q = *state;

    add(q, "bar");
    add(q, "bar");

    assert_int_equal(lifo.pushes, 1);
    assert_int_equal(lifo.touches, 1);
    work_on(q, "bar");
    assert_none_ready(q, WQ_ETIMEDOUT);
}

/* */
TEST(held_key_added_again_is_not_touched_and_pushed_once_at_done)
{
    wq_queue *q = *state;

    add(q, "foo");
    wq_item *item = take_key(q, "foo");
    add(q, "foo");
    add(q, "foo");
    assert_int_equal(lifo.pushes, 1);
    finish(q, item);
    assert_int_equal(lifo.pushes, 2);
    work_on(q, "foo");

    assert_int_equal(lifo.touches, 0);
    assert_none_ready(q, WQ_ETIMEDOUT);
}

/* */
TEST(refused_add_neither_pushes_nor_touches)
{
    wq_queue *q = *state;

    add(q, "foo");
    wq_shutdown(q);
    assert_err(wq_add_str(q, "foo"), WQ_ESHUTDOWN);
    assert_err(wq_add_str(q, "bar"), WQ_ESHUTDOWN);

    assert_int_equal(lifo.pushes, 1);
    assert_int_equal(lifo.touches, 0);
}

/* so an order need not copy keys, short or long. */
TEST(bytes_of_a_pushed_key_stay_where_they_are)
{
    enum { KEYS = 1000 };
    wq_queue *q = *state;
    char      bytes[KEYS];

    memset(bytes, 'x', sizeof bytes);
    for (size_t len = 1; len <= KEYS; len++)
        assert_err(wq_add(q, (wq_key){bytes, len}), WQ_OK);
    for (size_t len = KEYS; len > 0; len--) {
        const wq_key pushed = lifo.keys[len - 1];
        assert_int_equal(pushed.len, len);
        assert_memory_equal(pushed.data, bytes, len);
        wq_item *item = take(q);
        assert_int_equal(item->key.len, len);
        finish(q, item);
    }
}

/* */
TEST(order_without_touch_and_destroy_works)
{
    wq_order order = begin_lifo();

    order.touch = NULL;
    order.destroy = NULL;
    wq_queue *q = open_queue(WQ_CONFIG(.order = &order));
    add(q, "foo");
    add(q, "foo");
    work_on(q, "foo");
    wq_destroy(q);

    assert_int_equal(lifo.destroys, 0);
}

/* */
TEST(order_is_destroyed_once_with_the_queue)
{
    wq_queue *q = *state;

    add(q, "foo");
    assert_int_equal(lifo.destroys, 0);
    wq_destroy(q);

    assert_int_equal(lifo.destroys, 1);
}

/* ---- when the order fails ----------------------------------------------- */

/* */
TEST(add_whose_push_fails_changes_nothing)
{
    wq_queue *q = *state;

    add(q, "foo");
    lifo.push_error = WQ_ENOMEM;
    assert_err(wq_add_str(q, "bar"), WQ_ENOMEM);
    lifo.push_error = WQ_EFULL;
    assert_err(wq_add_str(q, "bar"), WQ_EFULL);
    assert_int_equal(wq_len(q), 1);
    assert_err(wq_done_key(q, wq_str("bar")), WQ_ESTATE);

    lifo.push_error = WQ_OK;
    add(q, "bar");
    assert_int_equal(lifo.touches, 0); /* it was not there */
    work_on(q, "bar");
    work_on(q, "foo");
}

/* */
TEST(done_whose_push_fails_leaves_the_item_on_loan)
{
    wq_queue *q = *state;

    add(q, "foo");
    wq_item       *item = take(q);
    const uint64_t fence = item->fence;
    add(q, "foo");
    lifo.push_error = WQ_ENOMEM;
    assert_err(wq_done(q, item), WQ_ENOMEM);
    assert_err(wq_done_key(q, wq_str("foo")), WQ_ENOMEM);
    assert_none_ready(q, WQ_ETIMEDOUT);
    assert_key(item, "foo");
    assert_int_equal(item->fence, fence);

    lifo.push_error = WQ_OK;
    finish(q, item);
    work_on(q, "foo");
    assert_none_ready(q, WQ_ETIMEDOUT);
}

/* nothing is pushed, so nothing can fail. */
TEST(done_of_a_key_that_is_not_dirty_does_not_ask_the_order)
{
    wq_queue *q = *state;

    add(q, "foo");
    wq_item *item = take(q);
    lifo.push_error = WQ_ENOMEM;

    finish(q, item);
    assert_none_ready(q, WQ_ETIMEDOUT);
}

/* */
TEST(pop_that_withholds_a_ready_key_is_told)
{
    wq_queue *q = *state;
    wq_item  *item = NULL;

    add(q, "foo");
    lifo.withhold = true;
    assert_err(wq_get(q, &item), WQ_ESTATE);
    assert_null(item);
    assert_int_equal(wq_len(q), 1);

    lifo.withhold = false;
    work_on(q, "foo");
}

static void
assert_lie_is_told(wq_queue *q, wq_key key)
{
    const size_t len = wq_len(q);
    wq_item     *item = NULL;

    lifo.lie = true;
    lifo.lie_key = key;
    assert_err(wq_get(q, &item), WQ_ESTATE);
    lifo.lie = false;

    assert_null(item);
    assert_int_equal(wq_len(q), len);
}

/* */
TEST(pop_of_a_key_that_is_not_ready_is_told)
{
    wq_queue *q = *state;

    add(q, "ready");
    add(q, "held");
    wq_item *held = take_key(q, "held");

    assert_lie_is_told(q, wq_str("nobody"));
    assert_lie_is_told(q, wq_str("held"));
    assert_lie_is_told(q, wq_str(""));

    finish(q, held);
    work_on(q, "ready");
    assert_none_ready(q, WQ_ETIMEDOUT);
}

/* ---- under the lock, in the caller's thread ----------------------------- */

/* Q-24 Q-25: the order is, with the allocator, all of the user's code that a
 * queue runs under its lock, and it runs it nowhere else. */
TEST(order_is_called_by_the_caller_of_a_verb_and_during_it_only)
{
    wq_queue *q = *state;

    lifo.thread = pthread_self();
    lifo.inside = true;
    add(q, "foo");
    add(q, "foo");
    wq_item *item = take(q);
    add(q, "foo");
    finish(q, item);
    work_on(q, "foo");
    add(q, "bar");
    (void)wq_len(q);
    wq_shutdown(q);
    lifo.inside = false;

    assert_int_equal(lifo.uninvited, 0);
}

static int
add_get_and_done(struct worker *self)
{
    wq_queue *q = self->arg;

    for (uint64_t i = 0; i < 2000; i++) {
        const uint64_t n = i % 50; /* the others add them, too */
        wq_item       *item;

        if (wq_add(q, wq_u64(&n)) != WQ_OK)
            return 1;
        const wq_err err = wq_get_within(q, 0, &item);
        if (err == WQ_ETIMEDOUT)
            continue;
        if (err != WQ_OK || wq_done(q, item) != WQ_OK)
            return 2;
    }
    return 0;
}

/* its calls never overlap, so it needs no lock of its own. (It has none:
 * a thread sanitizer would find them, too.) */
TEST(order_is_never_called_twice_at_once)
{
    enum { THREADS = 4 };
    wq_queue      *q = *state;
    struct worker *all[THREADS];

    for (int i = 0; i < THREADS; i++)
        all[i] = worker_start(add_get_and_done, q);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(worker_join(all[i]), 0);

    assert_int_equal(atomic_load(&lifo.overlaps), 0);
    assert_int_equal(lifo.len, wq_len(q));
}

#define with_lifo(name) test_with(name, make_lifo_queue, drop_queue)

WQ_TESTS(with_lifo(keys_leave_in_the_order_of_the_plug_in),
         with_lifo(ready_key_added_again_is_touched_once_and_not_pushed),
         with_lifo(held_key_added_again_is_not_touched_and_pushed_once_at_done),
         with_lifo(refused_add_neither_pushes_nor_touches),
         with_lifo(bytes_of_a_pushed_key_stay_where_they_are),
         test(order_without_touch_and_destroy_works),
         test_with(order_is_destroyed_once_with_the_queue, make_lifo_queue,
                   NULL),
         with_lifo(add_whose_push_fails_changes_nothing),
         with_lifo(done_whose_push_fails_leaves_the_item_on_loan),
         with_lifo(done_of_a_key_that_is_not_dirty_does_not_ask_the_order),
         with_lifo(pop_that_withholds_a_ready_key_is_told),
         with_lifo(pop_of_a_key_that_is_not_ready_is_told),
         with_lifo(order_is_called_by_the_caller_of_a_verb_and_during_it_only),
         with_lifo(order_is_never_called_twice_at_once));
