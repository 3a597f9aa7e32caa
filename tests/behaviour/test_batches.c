/* SPDX-License-Identifier: MIT */
/* test_batches.c: how are several items taken and given back at one go, and
 * one after the other in one step? */
#include "asked.h"

#include <stdatomic.h>
#include <stdio.h>

#include <wq/metrics.h>

#include "support/checkpoint.h"
#include "support/plug_in.h"

static void
add_numbers(wq_queue *q, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        assert_err(wq_add(q, wq_u64(&i)), WQ_OK);
}

static void
assert_number(const wq_item *item, uint64_t number)
{
    assert_non_null(item);
    assert_int_equal(item->key.len, sizeof number);
    assert_memory_equal(item->key.data, &number, sizeof number);
}

/* ---- done --------------------------------------------------------------- */

static void
take_many(struct timed *t, wq_item **items, size_t n)
{
    size_t got = 0;

    add_numbers(t->q, n);
    assert_err(wq_get_many(t->q, items, n, 0, &got), WQ_OK);
    assert_int_equal(got, n);
}

/* O-60 O-06: all or none. */
TEST(one_that_is_not_on_loan_refuses_them_all)
{
    enum { MANY = 100 };
    struct timed *t = *state;
    wq_item      *items[MANY], *given[MANY];

    take_many(t, items, MANY);
    for (size_t bad = 0; bad < MANY; bad += 11) {
        wq_item copy = *items[bad];
        memcpy(given, items, sizeof given);
        given[bad] = &copy;
        assert_err(wq_done_many(t->q, given, MANY), WQ_ESTATE);
        given[bad] = items[(bad + 50) % MANY]; /* named twice */
        assert_err(wq_done_many(t->q, given, MANY), WQ_ESTATE);
        given[bad] = NULL;
        assert_err(wq_done_many(t->q, given, MANY), WQ_EINVAL);
        assert_int_equal(counts_of(t->q).held, MANY);
        given[bad] = items[bad];
        assert_memory_equal(given, items, sizeof given);
    }
    assert_err(wq_done_many(t->q, items, MANY), WQ_OK);
    assert_int_equal(counts_of(t->q).dones, MANY);
}

/* ---- next --------------------------------------------------------------- */

/* What a sink heard. */
struct heard {
    atomic_int works, latencies;
};

/* The handle of a sink is the sink. */
static wq_err
open_self(void *self, wq_queue *q, const char *name, void **handle)
{
    (void)q, (void)name;
    *handle = self;
    return WQ_OK;
}

static void
hear_work(void *handle, int64_t ns)
{
    struct heard *h = handle;

    atomic_fetch_add(&h->works, ns == S ? 1 : 100);
}

static void
hear_latency(void *handle, int64_t ns)
{
    struct heard *h = handle;

    atomic_fetch_add(&h->latencies, ns == 0 ? 1 : 100);
}

static struct timed *
create_heard(struct heard *h)
{
    return timed_create(
        WQ_CONFIG(.name = "test", .metrics = &(wq_metrics){
                                      .size = sizeof(wq_metrics),
                                      .self = h,
                                      .open = open_self,
                                      .work = hear_work,
                                      .latency = hear_latency,
                                  }));
}

struct nexting {
    struct timed *t;
    wq_item      *item;
    int64_t       timeout_ns;
};

static int
run_next(struct worker *self)
{
    struct nexting *n = self->arg;

    return (int)wq_next(n->t->q, n->timeout_ns, &n->item);
}

/* O-61 M-04: the old one is done before the wait begins, and said to be. */
TEST(next_that_sleeps_has_given_back_and_reported_the_old_one)
{
    struct heard   h = {0};
    struct nexting n = {.t = create_heard(&h), .timeout_ns = WQ_FOREVER};
    wq_queue      *q = n.t->q;

    add(q, "a");
    assert_err(wq_next(q, 0, &n.item), WQ_OK);
    assert_int_equal(h.latencies, 1);
    step(n.t, S);
    struct worker *w = worker_start(run_next, &n);
    worker_await_blocked(w);
    assert_int_equal(counts_of(q).held, 0);
    assert_int_equal(counts_of(q).sleeping, 1);
    assert_int_equal(h.works, 1);
    add(q, "b");
    assert_err(worker_join(w), WQ_OK);
    assert_key(n.item, "b");
    assert_int_equal(h.works, 1);
    assert_int_equal(h.latencies, 2);
    timed_destroy(n.t);
}

/* O-59 O-60 M-04: each item is reported for itself. */
TEST(items_of_a_batch_are_reported_one_by_one)
{
    struct heard  h = {0};
    struct timed *t = create_heard(&h);
    wq_item      *items[100];

    take_many(t, items, 100);
    assert_int_equal(h.latencies, 100);
    step(t, S);
    assert_err(wq_done_many(t->q, items, 100), WQ_OK);
    assert_int_equal(h.works, 100);
    timed_destroy(t);
}

/* Where a sink holds up whoever reports a hand-out. */
struct held_up {
    struct checkpoint checkpoint;
    bool              by_changes; /* else by latencies */
};

static void
hold_up_change(void *handle, const wq_change *change)
{
    struct held_up *h = handle;

    if (h->by_changes && change->depth < 0)
        checkpoint_pass(&h->checkpoint);
}

static void
hold_up_latency(void *handle, int64_t ns)
{
    struct held_up *h = handle;

    (void)ns;
    if (!h->by_changes)
        checkpoint_pass(&h->checkpoint);
}

/* O-59 O-03: a get that slept, and was woken by a key, reports it; the queue
 * does not go before that. */
TEST(destroy_waits_for_a_woken_get_that_reports)
{
    for (int by_changes = 0; by_changes < 2; by_changes++) {
        struct held_up h = {.checkpoint = CHECKPOINT_INIT,
                            .by_changes = by_changes};
        struct timed  *t = timed_create(
             WQ_CONFIG(.name = "test", .metrics = &(wq_metrics){
                                           .size = sizeof(wq_metrics),
                                           .self = &h,
                                           .open = open_self,
                                           .latency = hold_up_latency,
                                           .changed = hold_up_change,
                                      }));
        struct worker *getter = get_in_time(t, WQ_FOREVER);

        worker_await_blocked(getter);
        add(t->q, "a");
        tally_await(&h.checkpoint.begun, 1);
        struct worker *destroyer = worker_destroy(t->q);
        worker_await_blocked(destroyer);
        tally_add(&h.checkpoint.allowed, 1);
        assert_err(worker_join(getter), WQ_OK);
        assert_int_equal(worker_join(destroyer), 0);
        t->q = NULL;
        timed_destroy(t);
    }
}

/* ---- a wq_order that refuses -------------------------------------------- */

/* O-60: those before it are done. */
TEST(order_that_refuses_one_of_many_ends_the_call_there)
{
    struct plug_in p = {0};
    const wq_order order = plug_in_order(&p);
    wq_queue      *q = open_queue(WQ_CONFIG(.order = &order));
    wq_item       *items[3];
    size_t         n = 0;

    add_numbers(q, 3);
    assert_err(wq_get_many(q, items, 3, 0, &n), WQ_OK);
    add_numbers(q, 3); /* all are dirty */
    p.refuse = 2;
    assert_err(wq_done_many(q, items, 3), WQ_ENOMEM);
    assert_null(items[0]);
    assert_number(items[1], 1);
    assert_number(items[2], 2);
    assert_int_equal(counts_of(q).held, 2);
    assert_err(wq_done_many(q, items + 1, 2), WQ_OK);
    assert_int_equal(wq_len(q), 3);
    wq_destroy(q);
}

/* O-61: whatever the error is called. */
TEST(next_whose_done_the_order_refuses_keeps_the_item)
{
    static const wq_err errors[] = {WQ_ENOMEM, WQ_ENOTFOUND, WQ_ETIMEDOUT,
                                    WQ_EFULL, WQ_ESHUTDOWN};

    for (int i = 0; i < 5; i++) {
        struct plug_in p = {.refusal = errors[i]};
        const wq_order order = plug_in_order(&p);
        wq_queue      *q = open_queue(WQ_CONFIG(.order = &order));
        wq_item       *item = NULL;

        add(q, "a");
        add(q, "b");
        assert_err(wq_next(q, 0, &item), WQ_OK);
        add(q, "a");
        p.refuse = 1;
        wq_item *const before = item;
        assert_err(wq_next(q, 0, &item), errors[i]);
        assert_ptr_equal(item, before);
        assert_key(item, "a");
        assert_int_equal(counts_of(q).held, 1);
        assert_err(wq_next(q, 0, &item), WQ_OK);
        assert_key(item, "b");
        wq_destroy(q);
    }
}

WQ_TESTS(with_time(one_that_is_not_on_loan_refuses_them_all),
         test(next_that_sleeps_has_given_back_and_reported_the_old_one),
         test(items_of_a_batch_are_reported_one_by_one),
         test(destroy_waits_for_a_woken_get_that_reports),
         test(order_that_refuses_one_of_many_ends_the_call_there),
         test(next_whose_done_the_order_refuses_keeps_the_item));
