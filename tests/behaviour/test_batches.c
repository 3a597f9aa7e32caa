/* SPDX-License-Identifier: MIT */
/* test_batches.c: how are several items taken and given back at one go, and
 * one after the other in one step? */
#include "asked.h"

#include <stdatomic.h>
#include <stdio.h>

#include <wq/metrics.h>

#include "support/stage.h"

enum { FEW = 5 };

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

/* ---- get ---------------------------------------------------------------- */

/* O-59 */
TEST(get_of_many_takes_all_there_are_in_order)
{
    struct timed *t = *state;
    wq_item      *items[FEW] = {NULL};
    size_t        n = 0;

    add(t->q, "b");
    add_at(t->q, 1, "a");
    add(t->q, "c");
    assert_err(wq_get_many(t->q, items, FEW, 0, &n), WQ_OK);

    assert_int_equal(n, 3);
    assert_key(items[0], "a");
    assert_int_equal(items[0]->priority, 1);
    assert_key(items[1], "b");
    assert_key(items[2], "c");
    assert_null(items[3]);
    assert_true(items[0]->fence < items[1]->fence &&
                items[1]->fence < items[2]->fence);
    assert_none_due(t);
}

/* O-59 */
TEST(get_of_many_takes_no_more_than_asked_for)
{
    struct timed *t = *state;
    wq_item      *items[FEW] = {NULL};
    size_t        n = 0;

    add_numbers(t->q, FEW);
    assert_err(wq_get_many(t->q, items, 2, 0, &n), WQ_OK);
    assert_int_equal(n, 2);
    assert_number(items[1], 1);
    assert_null(items[2]);
    assert_int_equal(wq_len(t->q), FEW - 2);
    assert_err(wq_get_many(t->q, items, 1, 0, &n), WQ_OK);
    assert_int_equal(n, 1);
    assert_number(items[0], 2);
    assert_err(wq_get_many(t->q, items, SIZE_MAX, 0, &n), WQ_OK);
    assert_int_equal(n, 2);
}

static void
assert_untouched(struct timed *t, int64_t timeout_ns, wq_err expected)
{
    wq_item *item = (wq_item *)(void *)t;
    size_t   n = 77;

    assert_err(wq_get_many(t->q, &item, 1, timeout_ns, &n), expected);
    assert_int_equal(n, 77);
    assert_ptr_equal(item, t);
}

/* O-59 */
TEST(get_of_many_that_gets_none_says_why)
{
    struct timed *t = *state;

    assert_untouched(t, 0, WQ_ETIMEDOUT);
    wq_interrupt(t->q);
    assert_untouched(t, WQ_FOREVER, WQ_EINTERRUPTED);
    wq_shutdown(t->q);
    assert_untouched(t, WQ_FOREVER, WQ_ESHUTDOWN);
}

/* O-59 Q-13 */
TEST(get_of_many_after_shutdown_takes_what_is_ready)
{
    struct timed *t = *state;
    wq_item      *items[FEW];
    size_t        n = 0;

    add_numbers(t->q, 3);
    wq_shutdown(t->q);
    assert_err(wq_get_many(t->q, items, 2, WQ_FOREVER, &n), WQ_OK);
    assert_int_equal(n, 2);
    assert_err(wq_get_many(t->q, items, FEW, WQ_FOREVER, &n), WQ_OK);
    assert_int_equal(n, 1);
    assert_untouched(t, WQ_FOREVER, WQ_ESHUTDOWN);
}

struct many {
    struct timed *t;
    int64_t       timeout_ns;
    wq_item      *items[FEW];
    size_t        n;
};

static int
run_get_many(struct worker *self)
{
    struct many *m = self->arg;

    return (int)wq_get_many(m->t->q, m->items, FEW, m->timeout_ns, &m->n);
}

/* O-59: it does not wait for more than one. */
TEST(get_of_many_sleeps_until_there_is_one)
{
    struct many    m = {.t = *state, .timeout_ns = WQ_FOREVER};
    struct worker *w = worker_start(run_get_many, &m);

    worker_await_blocked(w);
    add(m.t->q, "a");
    assert_err(worker_join(w), WQ_OK);
    assert_int_equal(m.n, 1);
    assert_key(m.items[0], "a");
}

/* O-59: what comes in one step is taken in one step. */
TEST(get_of_many_is_woken_by_a_batch_and_takes_it_all)
{
    struct many    m = {.t = *state, .timeout_ns = WQ_FOREVER};
    struct worker *w = worker_start(run_get_many, &m);
    const wq_key   keys[] = {wq_str("a"), wq_str("b"), wq_str("c")};

    worker_await_blocked(w);
    assert_err(wq_add_with(m.t->q, NULL, keys, 3), WQ_OK);
    assert_err(worker_join(w), WQ_OK);
    assert_int_equal(m.n, 3);
}

/* O-59 O-05 */
TEST(get_of_many_gives_up_when_its_time_is_up)
{
    struct many    m = {.t = *state, .timeout_ns = S};
    struct worker *w = worker_start(run_get_many, &m);

    await_sleepers(m.t, 1);
    step(m.t, S - 1);
    worker_await_blocked(w);
    step(m.t, 1);
    assert_err(worker_join(w), WQ_ETIMEDOUT);
}

/* O-59 Q-26: a batch of three wakes three gets. */
TEST(batch_wakes_as_many_gets_as_it_has_keys)
{
    struct timed  *t = *state;
    wq_item       *items[FEW] = {NULL};
    struct worker *all[FEW];
    const wq_key   keys[] = {wq_str("a"), wq_str("b"), wq_str("c")};

    for (int i = 0; i < FEW; i++)
        all[i] = worker_get(t->q, &items[i]);
    worker_await_all_blocked(all, FEW);
    assert_err(wq_add_with(t->q, WQ_ADD(.priority = 2), keys, 3), WQ_OK);
    for (int got = 0; got < 3; got++) {
        const size_t i = worker_await_any_ended(all, (size_t)(FEW - got));
        assert_err(worker_join(all[i]), WQ_OK);
        all[i] = all[FEW - got - 1];
    }
    worker_await_all_blocked(all, 2);
    wq_shutdown(t->q);
    assert_err(worker_join(all[0]), WQ_ESHUTDOWN);
    assert_err(worker_join(all[1]), WQ_ESHUTDOWN);
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

/* O-60: more than are handled at one go, too. */
TEST(done_of_many_ends_all_their_loans)
{
    enum { MANY = 200 };
    struct timed *t = *state;
    wq_item      *items[MANY];

    for (size_t n = 1; n <= MANY; n = n < 62 ? n + 20 : n + 1) {
        take_many(t, items, n);
        assert_err(wq_done_many(t->q, items, n), WQ_OK);
        for (size_t i = 0; i < n; i++)
            assert_null(items[i]);
        assert_int_equal(counts_of(t->q).held, 0);
    }
    assert_none_due(t);
}

/* O-60 */
TEST(done_of_none_is_all_right)
{
    struct timed *t = *state;

    assert_err(wq_done_many(t->q, NULL, 0), WQ_OK);
}

/* O-60 Q-18 */
TEST(dirty_ones_among_many_become_ready_in_order)
{
    struct timed *t = *state;
    wq_item      *items[FEW];

    take_many(t, items, FEW);
    for (uint64_t i = FEW; i-- > 2;)
        assert_err(wq_add(t->q, wq_u64(&i)), WQ_OK);
    assert_err(wq_done_many(t->q, items, FEW), WQ_OK);
    for (uint64_t i = 2; i < FEW; i++)
        assert_number(take(t->q), i);
    assert_none_due(t);
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

/* O-60: the last of many ends a drain. */
TEST(done_of_many_ends_a_drain)
{
    struct timed *t = *state;
    wq_item      *items[FEW];

    take_many(t, items, FEW);
    struct worker *w = worker_drain(t->q);
    worker_await_blocked(w);
    assert_err(wq_done_many(t->q, items, FEW), WQ_OK);
    assert_err(worker_join(w), WQ_OK);
}

/* ---- next --------------------------------------------------------------- */

/* O-61 */
TEST(next_gives_one_back_and_takes_the_next)
{
    struct timed *t = *state;
    wq_item      *item = NULL;

    add(t->q, "a");
    add_at(t->q, -1, "b");
    assert_err(wq_next(t->q, 0, &item), WQ_OK);
    assert_key(item, "a");
    assert_err(wq_next(t->q, 0, &item), WQ_OK);
    assert_key(item, "b");
    assert_int_equal(item->priority, -1);
    assert_int_equal(counts_of(t->q).held, 1);
    assert_err(wq_next(t->q, 0, &item), WQ_ETIMEDOUT);
    assert_null(item);
    assert_int_equal(counts_of(t->q).held, 0);
    assert_err(wq_next(t->q, 0, &item), WQ_ETIMEDOUT);
    assert_null(item);
}

/* O-61: a worker that is alone gets its own dirty key again. */
TEST(next_may_be_the_same_key_again)
{
    struct timed *t = *state;
    wq_item      *item = NULL;

    add(t->q, "a");
    assert_err(wq_next(t->q, 0, &item), WQ_OK);
    const uint64_t fence = item->fence;
    add(t->q, "a");
    assert_err(wq_next(t->q, 0, &item), WQ_OK);
    assert_key(item, "a");
    assert_true(item->fence > fence);
}

/* O-61 Q-23: at the tail. */
TEST(dirty_key_given_back_by_next_waits_its_turn)
{
    struct timed *t = *state;
    wq_item      *item = NULL;

    add(t->q, "a");
    assert_err(wq_next(t->q, 0, &item), WQ_OK);
    add(t->q, "a");
    add(t->q, "b");
    assert_err(wq_next(t->q, 0, &item), WQ_OK);
    assert_key(item, "b");
}

/* O-61 */
TEST(next_of_an_item_that_is_not_on_loan_takes_nothing)
{
    struct timed *t = *state;

    add(t->q, "a");
    add(t->q, "b");
    wq_item        copy = *take_key(t->q, "a");
    wq_item *const before = &copy;
    wq_item       *item = before;
    assert_err(wq_next(t->q, WQ_FOREVER, &item), WQ_ESTATE);
    assert_ptr_equal(item, before);
    assert_int_equal(wq_len(t->q), 1);
    assert_int_equal(counts_of(t->q).held, 1);
}

/* O-61 */
TEST(next_ends_with_the_queue)
{
    struct timed *t = *state;
    wq_item      *item = NULL;

    add(t->q, "a");
    wq_shutdown(t->q);
    assert_err(wq_next(t->q, WQ_FOREVER, &item), WQ_OK);
    assert_err(wq_next(t->q, WQ_FOREVER, &item), WQ_ESHUTDOWN);
    assert_null(item);
    assert_err(wq_shutdown_with_drain_within(t->q, 0), WQ_OK);
}

/* What a sink heard. */
struct heard {
    atomic_int works, latencies;
};

static wq_err
open_heard(void *self, wq_queue *q, const char *name, void **handle)
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
                                      .open = open_heard,
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

/* O-61 O-05 O-08: NULL says that nothing is on loan. */
TEST(next_that_waits_in_vain_leaves_no_item)
{
    struct nexting n = {.t = *state, .timeout_ns = S};

    add(n.t->q, "a");
    assert_err(wq_next(n.t->q, 0, &n.item), WQ_OK);
    struct worker *w = worker_start(run_next, &n);
    await_sleepers(n.t, 1);
    step(n.t, S);
    assert_err(worker_join(w), WQ_ETIMEDOUT);
    assert_null(n.item);

    add(n.t->q, "a");
    assert_err(wq_next(n.t->q, 0, &n.item), WQ_OK);
    wq_interrupt(n.t->q);
    assert_err(wq_next(n.t->q, WQ_FOREVER, &n.item), WQ_EINTERRUPTED);
    assert_null(n.item);
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
    struct stage stage;
    bool         by_changes; /* else by latencies */
};

static wq_err
open_held_up(void *self, wq_queue *q, const char *name, void **handle)
{
    (void)q, (void)name;
    *handle = self;
    return WQ_OK;
}

static void
hold_up_latency(void *handle, int64_t ns)
{
    struct held_up *h = handle;

    (void)ns;
    if (!h->by_changes)
        stage_pass(&h->stage);
}

static void
hold_up_change(void *handle, const wq_change *change)
{
    struct held_up *h = handle;

    if (h->by_changes && change->depth < 0)
        stage_pass(&h->stage);
}

static int
run_destroy(struct worker *self)
{
    wq_destroy(self->arg);
    return 0;
}

/* O-59 O-03: a get that slept, and was woken by a key, reports it; the queue
 * does not go before that. */
TEST(destroy_waits_for_a_woken_get_that_reports)
{
    for (int by_changes = 0; by_changes < 2; by_changes++) {
        struct held_up h = {.stage = STAGE_INIT, .by_changes = by_changes};
        struct timed  *t = timed_create(
             WQ_CONFIG(.name = "test", .metrics = &(wq_metrics){
                                           .size = sizeof(wq_metrics),
                                           .self = &h,
                                           .open = open_held_up,
                                           .latency = hold_up_latency,
                                           .changed = hold_up_change,
                                      }));
        struct worker *getter = get_in_time(t, WQ_FOREVER);

        worker_await_blocked(getter);
        add(t->q, "a");
        tally_await(&h.stage.begun, 1);
        struct worker *destroyer = worker_start(run_destroy, t->q);
        worker_await_blocked(destroyer);
        tally_add(&h.stage.allowed, 1);
        assert_err(worker_join(getter), WQ_OK);
        assert_int_equal(worker_join(destroyer), 0);
        t->q = NULL;
        timed_destroy(t);
    }
}

/* ---- a wq_order that refuses -------------------------------------------- */

struct fussy {
    wq_key keys[FEW];
    size_t len;
    size_t room;  /* how many more pushes it takes */
    wq_err error; /* what it says to others */
};

static wq_err
fussy_push(void *self, wq_key key, int priority)
{
    struct fussy *f = self;

    (void)priority;
    if (f->room == 0)
        return f->error;
    f->room--;
    f->keys[f->len++] = key;
    return WQ_OK;
}

static bool
fussy_pop(void *self, wq_key *out)
{
    struct fussy *f = self;

    if (f->len == 0)
        return false;
    *out = f->keys[0];
    memmove(f->keys, f->keys + 1, --f->len * sizeof f->keys[0]);
    return true;
}

static size_t
fussy_len(void *self)
{
    return ((struct fussy *)self)->len;
}

static wq_queue *
create_fussy(struct fussy *f)
{
    const wq_order order = {
        .size = sizeof order,
        .self = f,
        .push = fussy_push,
        .pop = fussy_pop,
        .len = fussy_len,
    };
    wq_queue *q = NULL;

    assert_err(wq_create(WQ_CONFIG(.order = &order), &q), WQ_OK);
    return q;
}

/* O-60: those before it are done. */
TEST(order_that_refuses_one_of_many_ends_the_call_there)
{
    struct fussy f = {.room = 3, .error = WQ_ENOMEM};
    wq_queue    *q = create_fussy(&f);
    wq_item     *items[3];
    size_t       n = 0;

    add_numbers(q, 3);
    assert_err(wq_get_many(q, items, 3, 0, &n), WQ_OK);
    add_numbers(q, 3); /* all are dirty */
    f.room = 1;
    assert_err(wq_done_many(q, items, 3), WQ_ENOMEM);
    assert_null(items[0]);
    assert_number(items[1], 1);
    assert_number(items[2], 2);
    assert_int_equal(counts_of(q).held, 2);
    f.room = 2;
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
        struct fussy f = {.room = 2, .error = errors[i]};
        wq_queue    *q = create_fussy(&f);
        wq_item     *item = NULL;

        add(q, "a");
        add(q, "b");
        assert_err(wq_next(q, 0, &item), WQ_OK);
        add(q, "a");
        wq_item *const before = item;
        assert_err(wq_next(q, 0, &item), errors[i]);
        assert_ptr_equal(item, before);
        assert_key(item, "a");
        assert_int_equal(counts_of(q).held, 1);
        f.room = 1;
        assert_err(wq_next(q, 0, &item), WQ_OK);
        assert_key(item, "b");
        wq_destroy(q);
    }
}

WQ_TESTS(with_time(get_of_many_takes_all_there_are_in_order),
         with_time(get_of_many_takes_no_more_than_asked_for),
         with_time(get_of_many_that_gets_none_says_why),
         with_time(get_of_many_after_shutdown_takes_what_is_ready),
         with_time(get_of_many_sleeps_until_there_is_one),
         with_time(get_of_many_is_woken_by_a_batch_and_takes_it_all),
         with_time(get_of_many_gives_up_when_its_time_is_up),
         with_time(batch_wakes_as_many_gets_as_it_has_keys),
         with_time(done_of_many_ends_all_their_loans),
         with_time(done_of_none_is_all_right),
         with_time(dirty_ones_among_many_become_ready_in_order),
         with_time(one_that_is_not_on_loan_refuses_them_all),
         with_time(done_of_many_ends_a_drain),
         with_time(next_gives_one_back_and_takes_the_next),
         with_time(next_may_be_the_same_key_again),
         with_time(dirty_key_given_back_by_next_waits_its_turn),
         with_time(next_of_an_item_that_is_not_on_loan_takes_nothing),
         with_time(next_ends_with_the_queue),
         test(next_that_sleeps_has_given_back_and_reported_the_old_one),
         with_time(next_that_waits_in_vain_leaves_no_item),
         test(items_of_a_batch_are_reported_one_by_one),
         test(destroy_waits_for_a_woken_get_that_reports),
         test(order_that_refuses_one_of_many_ends_the_call_there),
         test(next_whose_done_the_order_refuses_keeps_the_item));
