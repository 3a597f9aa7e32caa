/* SPDX-License-Identifier: MIT */
/* test_order_calls.c: what does a wq_order hear of priorities and removals, and
 * what if it cannot do them? */
#include "waits.h"

/* An order for one key, which counts its calls. */
struct heard {
    wq_key key; /* the key it holds, if any */
    size_t len;
    int    pushed, raised; /* the priorities */
    int    raises, touches, removes;
};

static wq_err
hear_push(void *self, wq_key key, int priority)
{
    struct heard *h = self;

    if (h->len)
        return WQ_EFULL;
    h->key = key;
    h->len = 1;
    h->pushed = priority;
    return WQ_OK;
}

static void
hear_touch(void *self, wq_key key)
{
    (void)key;
    ((struct heard *)self)->touches++;
}

static bool
hear_pop(void *self, wq_key *out)
{
    struct heard *h = self;

    *out = h->key;
    return h->len && h->len--;
}

static size_t
hear_len(void *self)
{
    return ((struct heard *)self)->len;
}

static void
hear_raise(void *self, wq_key key, int priority)
{
    struct heard *h = self;

    assert_ptr_equal(key.data, h->key.data);
    h->raised = priority;
    h->raises++;
}

static void
hear_remove(void *self, wq_key key)
{
    struct heard *h = self;

    assert_ptr_equal(key.data, h->key.data);
    h->len = 0;
    h->removes++;
}

/* `all`: the order has raise and remove, which are optional. */
static wq_queue *
open_heard(struct heard *h, bool all)
{
    wq_order order = {.size = sizeof order,
                      .self = h,
                      .push = hear_push,
                      .touch = hear_touch,
                      .pop = hear_pop,
                      .len = hear_len};

    if (all) {
        order.raise = hear_raise;
        order.remove = hear_remove;
    }
    *h = (struct heard){0};
    return open_queue(WQ_CONFIG(.order = &order));
}

/* O-51 Q-24 */
TEST(order_hears_the_priority_and_when_it_is_raised)
{
    struct heard h;
    wq_queue    *q = open_heard(&h, true);

    add_at(q, 3, "foo");
    assert_int_equal(h.pushed, 3);
    assert_added(add_how(q, WQ_ADD(.priority = 2), "foo"), WQ_ADDED_MERGED);
    assert_int_equal(h.touches, 1);
    assert_added(add_how(q, WQ_ADD(.priority = 8), "foo"), WQ_ADDED_RAISED);
    assert_int_equal(h.raised, 8);
    assert_int_equal(h.touches, 1);
    work_on_at(q, "foo", 8);
    assert_int_equal(h.raises, 1);
    wq_destroy(q);
}

/* O-51 Q-05 */
TEST(order_without_raise_is_touched)
{
    struct heard h;
    wq_queue    *q = open_heard(&h, false);

    add_at(q, 3, "foo");
    add_at(q, 8, "foo");
    assert_int_equal(h.touches, 1);
    work_on_at(q, "foo", 8);
    wq_destroy(q);
}

/* O-57 */
TEST(order_hears_of_a_key_that_is_removed)
{
    struct heard h;
    wq_queue    *q = open_heard(&h, true);

    add_at(q, 3, "foo");
    assert_err(wq_remove(q, wq_str("foo")), WQ_OK);
    assert_int_equal(h.removes, 1);
    assert_none_ready(q, WQ_ETIMEDOUT);
    add(q, "foo");
    work_on_at(q, "foo", 0);
    wq_destroy(q);
}

/* O-57 O-84: an order holds READY keys only; DIRTY and WAITING keys need no
 * removal by it. */
TEST(order_without_remove_keeps_its_ready_keys)
{
    struct heard h;
    wq_queue    *q = open_heard(&h, false);
    struct wait  w;

    add_at(q, 3, "foo");
    assert_err(wq_add_after(q, wq_str("foo"), HOUR), WQ_OK);
    assert_err(wq_remove(q, wq_str("foo")), WQ_ENOTSUP);
    assert_err(wq_remove_wait(q, wq_str("foo"), WQ_FOREVER), WQ_ENOTSUP);
    assert_states(q, "foo", WQ_STATE_READY | WQ_STATE_WAITING);
    assert_err(wq_cancel_after(q, wq_str("foo")), WQ_OK);
    assert_err(wq_add_after(q, wq_str("bar"), HOUR), WQ_OK);
    assert_err(wq_remove(q, wq_str("bar")), WQ_OK);
    assert_err(wq_add_after(q, wq_str("bar"), HOUR), WQ_OK);
    assert_err(wq_remove_wait(q, wq_str("bar"), WQ_FOREVER), WQ_OK);

    wq_item *foo = take_at(q, "foo", 3);
    add(q, "foo");
    assert_err(wq_remove(q, wq_str("foo")), WQ_OK);
    begin_wait(&w, FOR_REMOVAL, q, "foo");
    add(q, "foo");
    finish(q, foo);
    assert_ends(&w, WQ_OK);
    assert_none_ready(q, WQ_ETIMEDOUT);
    wq_destroy(q);
}

/* O-50: with an order, a batch is not all or none. */
TEST(order_that_refuses_a_key_keeps_those_before_it)
{
    struct heard h;
    wq_queue    *q = open_heard(&h, true);
    const wq_key keys[] = {wq_str("a"), wq_str("b"), wq_str("c")};

    assert_err(wq_add_with(q, WQ_ADD(.priority = 1), keys, 3), WQ_EFULL);
    assert_int_equal(wq_len(q), 1);
    assert_states(q, "b", 0);
    assert_states(q, "c", 0);
    work_on_at(q, "a", 1);
    assert_none_ready(q, WQ_ETIMEDOUT);
    wq_destroy(q);
}

WQ_TESTS(test(order_hears_the_priority_and_when_it_is_raised),
         test(order_without_raise_is_touched),
         test(order_hears_of_a_key_that_is_removed),
         test(order_without_remove_keeps_its_ready_keys),
         test(order_that_refuses_a_key_keeps_those_before_it));
