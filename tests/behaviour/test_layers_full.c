/* SPDX-License-Identifier: MIT */
/* test_layers_full.c: what do the layers do around a queue that is full, and
 * which calls does their destroy wait for?
 *
 * The inner queue is a bare one (support/bare_queue.h) on a fake clock, in most
 * tests with a capacity of one key, where adds of others block.
 */
#include "layered.h"

#include <sched.h>

/* A delaying layer around a bare queue for `max_len` keys (0: any number) whose
 * adds block. It has the options of adds. */
static struct timed *
wrap_bounded(size_t max_len, struct bare **out)
{
    struct timed *t = timed_begin(0);

    *out = bare_create(WQ_CONFIG(.clock = t->clock, .max_len = max_len,
                                 .overflow = max_len ? WQ_OVERFLOW_BLOCK
                                                     : WQ_OVERFLOW_REFUSE));
    bare_show_adds(*out);
    wrap_delays(t, &(*out)->base, NULL);
    return t;
}

/* "held" takes the whole capacity, and "due" is due. */
static void
make_full(struct scene *s)
{
    s->t = wrap_bounded(1, &s->inner);
    add(s->t->q, "held");
    s->held = take_key(s->t->q, "held");
    add_after(s->t, "due", S);
    step(s->t, S);
}

static int
full_setup(void **state)
{
    static struct scene s;

    make_full(&s);
    *state = &s;
    return 0;
}

#define with_full(name) test_with(name, full_setup, scene_teardown)

static int
one_key_setup(void **state)
{
    struct bare *b;

    *state = wrap_bounded(1, &b);
    return 0;
}

#define with_one_key(name) test_with(name, one_key_setup, timed_teardown)

/* A call in a thread of its own. */
struct call {
    wq_queue *q;
    wq_item  *item;
    wq_err (*verb)(struct call *c);
};

static int
run_call(struct worker *self)
{
    struct call *c = self->arg;

    return (int)c->verb(c);
}

static struct worker *
start_call(struct call *c)
{
    return worker_start(run_call, c);
}

static wq_err
call_add(struct call *c)
{
    return wq_add_str(c->q, "new");
}

static wq_err
call_add_now(struct call *c)
{
    return wq_add_after(c->q, wq_str("new"), 0);
}

static wq_err
call_add_later(struct call *c)
{
    return wq_add_after(c->q, wq_str("new"), S);
}

static wq_err
call_add_limited(struct call *c)
{
    return wq_add_rate_limited(c->q, wq_str("new"));
}

static wq_err
call_get(struct call *c)
{
    return wq_get(c->q, &c->item);
}

static wq_err
call_try_get(struct call *c)
{
    return wq_get_within(c->q, 0, &c->item);
}

static wq_err
call_done(struct call *c)
{
    return wq_done(c->q, c->item);
}

static wq_err
call_len(struct call *c)
{
    return wq_len(c->q) ? WQ_ESTATE : WQ_OK;
}

static wq_err
call_shutdown(struct call *c)
{
    wq_shutdown(c->q);
    return WQ_OK;
}

static wq_err
call_drain(struct call *c)
{
    return wq_shutdown_with_drain(c->q);
}

static wq_err
call_drain_at_once(struct call *c)
{
    return wq_shutdown_with_drain_within(c->q, 0);
}

static wq_err
call_destroy(struct call *c)
{
    wq_destroy(c->q);
    return WQ_OK;
}

/* ---- destroy ------------------------------------------------------------- */

/* Nothing happens to what `n` counts, although other threads may run. */
static void
assert_stays_zero(atomic_int *n)
{
    for (int i = 0; i < 100; i++) {
        assert_int_equal(atomic_load(n), 0);
        (void)sched_yield();
    }
}

/* Destroy t->q while `w` is blocked in it, which returns `expected`. */
static void
destroy_beside(struct timed *t, struct worker *w, wq_err expected)
{
    struct call    last = {.q = t->q, .verb = call_destroy};
    struct worker *end = start_call(&last);

    assert_err(worker_join(w), expected);
    assert_int_equal(worker_join(end), 0);
    t->q = NULL;
    timed_destroy(t);
}

/* The same; `w` is stopped when it leaves the inner queue, and meanwhile `n`
 * stays 0. */
static void
destroy_while_it_leaves(struct timed *t, struct gate *g, struct worker *w,
                        wq_err expected, atomic_int *n)
{
    struct call last = {.q = t->q, .verb = call_destroy};

    worker_await_blocked(w);
    gate_arm(g, GATE_AFTER_ADD | GATE_AFTER_GET | GATE_AFTER_DRAIN);
    struct worker *end = start_call(&last);
    gate_await(g);
    assert_stays_zero(n);
    gate_open(g);

    assert_err(worker_join(w), expected);
    assert_int_equal(worker_join(end), 0);
    assert_int_equal(atomic_load(n), 1);
    t->q = NULL;
    timed_destroy(t);
}

/* O-18 O-03: they have left the inner queue and are still in the layer. */
TEST(destroy_waits_for_calls_that_leave_a_delaying_layer)
{
    const struct {
        wq_err (*verb)(struct call *c);
        wq_err expected;
    } rows[] = {{call_add, WQ_ESHUTDOWN},
                {call_add_now, WQ_ESHUTDOWN},
                {call_get, WQ_ESHUTDOWN},
                {call_drain, WQ_EINTERRUPTED}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct gate   g = GATE_INIT;
        atomic_int    destroys = 0;
        struct bare  *b;
        struct timed *t = wrap_bounded(1, &b);
        struct call   blocked = {.q = t->q, .verb = rows[i].verb};

        b->gate = &g;
        b->destroys = &destroys;
        add(t->q, "held");
        (void)take_key(t->q, "held");
        add_after(t, "later", HOUR);
        destroy_while_it_leaves(t, &g, start_call(&blocked), rows[i].expected,
                                &destroys);
    }
}

/* O-18 O-03: the drain was blocked by a hand-over, and reaches the inner queue
 * only after destroy has shut that down. */
TEST(destroy_ends_a_drain_that_begins_in_the_inner_queue)
{
    struct scene s;

    make_full(&s);
    s.inner->backend.add_with = NULL; /* hand-overs wait for capacity */
    struct call    drain = {.q = s.t->q, .verb = call_drain};
    struct worker *w = start_call(&drain);
    worker_await_blocked(w);
    destroy_beside(s.t, w, WQ_EINTERRUPTED);
}

/* O-18 O-03 R-03: the limiter is there for as long as an add needs it. */
TEST(destroy_waits_for_a_limited_add_to_be_undone)
{
    struct gate   g = GATE_INIT;
    struct probe  probe = {.delay_ns = MS};
    struct timed *t = timed_begin(0);
    struct bare  *b = bare_create(WQ_CONFIG(.clock = t->clock, .max_len = 1,
                                            .overflow = WQ_OVERFLOW_BLOCK));

    bare_show_adds(b);
    b->gate = &g;
    t->q = &b->base;
    wrap_limits(t, WQ_CONFIG(.limiter = wq_limiter_create(&probe_ops, &probe)));
    struct call blocked = {.q = t->q, .verb = call_add_limited};
    add(t->q, "held");
    destroy_while_it_leaves(t, &g, start_call(&blocked), WQ_ESHUTDOWN,
                            &probe.destroys);
    assert_int_equal(probe.undos, 1);
}

/* O-18 O-03: a shutdown does not end a get that waits for a kept key. */
TEST(destroy_ends_a_get_beside_a_key_that_is_kept)
{
    struct timed *t = timed_create(WQ_CONFIG(.waiting = WQ_WAITING_KEEP));

    add_after(t, "kept", HOUR);
    wrap_delays(t, t->q, NULL);
    struct call    get = {.q = t->q, .verb = call_get};
    struct worker *w = start_call(&get);
    worker_await_blocked(w);
    destroy_beside(t, w, WQ_ESHUTDOWN);
}

/* ---- a hand-over never waits --------------------------------------------- */

/* O-19 D-14 */
TEST(no_call_waits_for_capacity_for_a_due_key)
{
    const struct {
        const char *name;
        wq_err (*verb)(struct call *c);
        wq_err expected;
    } rows[] = {
        {"done", call_done, WQ_OK},
        {"get", call_try_get, WQ_ETIMEDOUT},
        {"len", call_len, WQ_OK},
        {"shutdown", call_shutdown, WQ_OK},
        {"drain", call_drain_at_once, WQ_ETIMEDOUT},
        {"add_after", call_add_later, WQ_OK},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct scene s;

        make_full(&s);
        struct call  c = {.q = s.t->q, .item = s.held, .verb = rows[i].verb};
        const wq_err err = (wq_err)worker_join(start_call(&c));
        if (err != rows[i].expected)
            fail_msg("%s: %s", rows[i].name, wq_err_name(err));
        timed_destroy(s.t);
    }
}

/* O-19 O-55: the add is the caller's own. */
TEST(add_through_a_layer_waits_for_capacity)
{
    struct timed *t = *state;
    struct call   c = {.q = t->q, .verb = call_add};

    add(t->q, "held");
    wq_item       *held = take_key(t->q, "held");
    struct worker *w = start_call(&c);
    worker_await_blocked(w);
    finish(t->q, held);

    assert_err(worker_join(w), WQ_OK);
    work_on(t->q, "new");
}

/* O-19 */
TEST(due_key_comes_when_a_done_has_freed_capacity)
{
    const struct scene *s = *state;
    struct timed       *t = s->t;

    assert_none_due(t);
    finish(t->q, s->held);
    assert_int_equal(wq_len(t->q), 1);
    work_on(t->q, "due");
    assert_none_due(t);
}

/* O-19 D-05: however often they are refused. */
TEST(due_keys_come_in_order_through_a_full_queue)
{
    const char *const keys[] = {"a", "b", "c", "d", "e"};
    enum { KEYS = sizeof keys / sizeof keys[0] };
    struct timed *t = *state;

    for (int i = 0; i < KEYS; i++)
        add_after(t, keys[i], i < 2 ? S : i * S);
    step(t, HOUR);
    for (int i = 0; i < KEYS; i++) {
        for (int k = 0; k < 3; k++)
            assert_int_equal(wq_len(t->q), 1);
        wq_item *item = take_key(t->q, keys[i]);
        for (int k = 0; k <= i; k++)
            assert_none_due(t);
        finish(t->q, item);
    }
    assert_none_due(t);
}

/* O-19: at once, and not when the get would look again. */
TEST(get_that_sleeps_has_a_due_key_after_done)
{
    const struct scene *s = *state;
    struct timed       *t = s->t;
    struct worker      *w = get_in_time(t, WQ_FOREVER);

    worker_await_blocked(w);
    finish(t->q, s->held);

    assert_err(worker_join(w), WQ_OK);
    assert_key(t->item, "due");
}

/* O-19: a queue whose bound is on READY keys. */
TEST(due_key_comes_when_a_get_has_freed_capacity)
{
    struct bare  *b;
    struct timed *t = wrap_bounded(0, &b);

    b->max_ready = 1;
    add_after(t, "a", S);
    add_after(t, "b", S);
    step(t, S);
    wq_item *a = take_key(t->q, "a");

    assert_int_equal(wq_len(b->memory), 1);
    work_on(t->q, "b");
    finish(t->q, a);
    timed_destroy(t);
}

/* O-19 D-13: there is nowhere it could go. */
TEST(shutdown_drops_a_due_key_that_is_refused)
{
    const struct scene *s = *state;
    struct timed       *t = s->t;

    wq_shutdown(t->q);
    finish(t->q, s->held);
    assert_none_ready(t->q, WQ_ESHUTDOWN);
}

/* O-19 D-10 */
TEST(refused_key_that_is_due_again_comes_once)
{
    const struct scene *s = *state;
    struct timed       *t = s->t;

    assert_none_due(t);
    add_after(t, "due", S);
    step(t, S);
    assert_none_due(t);
    finish(t->q, s->held);

    work_on(t->q, "due");
    step(t, HOUR);
    assert_none_due(t);
}

/* O-19 Q-24 */
TEST(key_the_inner_queue_rejects_holds_up_no_other)
{
    struct bare  *b;
    struct timed *t = wrap_bounded(0, &b);

    b->refused_key = "bad";
    atomic_store(&b->refused_with, WQ_EIO);
    add_after(t, "bad", 1);
    add_after(t, "good", 2);
    step(t, 2);
    (void)wq_len(t->q); /* offers "bad" */
    work_on(t->q, "good");
    atomic_store(&b->refused_with, WQ_OK);

    work_on(t->q, "bad");
    timed_destroy(t);
}

/* ---- a get beside a key that is refused ---------------------------------- */

/* O-19: the key is neither here nor there when the get looks. */
TEST(get_beside_a_key_being_handed_over_looks_again)
{
    struct gate   g = GATE_INIT;
    struct bare  *b;
    struct timed *t = wrap_bounded(0, &b);
    struct call   len = {.q = t->q, .verb = call_len};

    b->gate = &g;
    b->refused_key = "due";
    atomic_store(&b->refused_with, WQ_EFULL);
    add_after(t, "due", S);
    step(t, S);
    gate_arm(&g, GATE_AFTER_ADD);
    struct worker *w = start_call(&len);
    gate_await(&g); /* it was refused and does not know yet */
    struct worker *get = get_in_time(t, WQ_FOREVER);
    worker_await_blocked(get);
    gate_open(&g);
    assert_err(worker_join(w), WQ_OK);
    atomic_store(&b->refused_with, WQ_OK);
    await_sleepers(t, 1);
    step(t, 10 * MS);

    assert_err(worker_join(get), WQ_OK);
    assert_key(t->item, "due");
    timed_destroy(t);
}

/* O-19 D-16: the timekeeper leaves with another key. */
TEST(refused_key_is_watched_when_the_timekeeper_leaves)
{
    struct bare  *b;
    struct timed *t = wrap_bounded(0, &b);
    struct call   calls[2] = {{.q = t->q, .verb = call_get},
                              {.q = t->q, .verb = call_get}};

    b->refused_key = "due";
    atomic_store(&b->refused_with, WQ_EFULL);
    add_after(t, "due", S);
    struct worker *both[2];
    for (int i = 0; i < 2; i++) {
        both[i] = start_call(&calls[i]);
        worker_await_blocked(both[i]);
    }
    step(t, S);
    worker_await_all_blocked(both, 2);
    add(t->q, "other");
    const size_t who = worker_await_any_ended(both, 2);
    assert_err(worker_join(both[who]), WQ_OK);
    assert_key(calls[who].item, "other");
    await_sleepers(t, 1);
    worker_await_blocked(both[1 - who]);
    atomic_store(&b->refused_with, WQ_OK);
    step(t, 10 * MS);

    assert_err(worker_join(both[1 - who]), WQ_OK);
    assert_key(calls[1 - who].item, "due");
    timed_destroy(t);
}

/* ---- how a key is offered ------------------------------------------------ */

/* O-19 */
TEST(due_key_is_offered_without_waiting)
{
    struct bare  *b;
    struct timed *t = wrap_bounded(1, &b);

    add_after(t, "foo", S);
    step(t, S);
    work_on(t->q, "foo");
    assert_int_equal(b->nowaits, 1);
    timed_destroy(t);
}

/* O-19: by a plain add. */
TEST(due_key_comes_where_adds_have_no_options)
{
    struct bare  *b;
    struct timed *t = wrap_bounded(0, &b);

    b->add_with_err = WQ_ENOTSUP;
    add_after(t, "foo", S);
    step(t, S);
    work_on(t->q, "foo");

    b->backend.add_with = NULL;
    add_after(t, "bar", S);
    step(t, S);
    work_on(t->q, "bar");
    timed_destroy(t);
}

WQ_TESTS(test(destroy_waits_for_calls_that_leave_a_delaying_layer),
         test(destroy_ends_a_drain_that_begins_in_the_inner_queue),
         test(destroy_waits_for_a_limited_add_to_be_undone),
         test(destroy_ends_a_get_beside_a_key_that_is_kept),
         test(no_call_waits_for_capacity_for_a_due_key),
         with_one_key(add_through_a_layer_waits_for_capacity),
         with_full(due_key_comes_when_a_done_has_freed_capacity),
         with_one_key(due_keys_come_in_order_through_a_full_queue),
         with_full(get_that_sleeps_has_a_due_key_after_done),
         test(due_key_comes_when_a_get_has_freed_capacity),
         with_full(shutdown_drops_a_due_key_that_is_refused),
         with_full(refused_key_that_is_due_again_comes_once),
         test(key_the_inner_queue_rejects_holds_up_no_other),
         test(get_beside_a_key_being_handed_over_looks_again),
         test(refused_key_is_watched_when_the_timekeeper_leaves),
         test(due_key_is_offered_without_waiting),
         test(due_key_comes_where_adds_have_no_options));
