/* SPDX-License-Identifier: MIT */
/* test_layers_full.c: what do the layers do around a queue that has no room, and
 * who is still inside when they are destroyed?
 *
 * The inner queue is an in-memory one that knows at most one key and blocks
 * adds of others, on a fake clock; where a test must stop a call, or wants
 * another refusal, it is wrapped in a probe.
 */
#include "timed.h"

#include <sched.h>
#include <stdatomic.h>

#include <wq/backend.h>
#include <wq/limiter.h>

#include "support/stage.h"

/* ---- a probe ------------------------------------------------------------- */

/* Where a call stops when the in-memory queue has let it go. The test's own: it
 * outlives the probe. */
struct hold {
    atomic_bool  next; /* the next add, get or drain stops at `stage` */
    struct stage stage;
};

struct probe {
    wq_queue       base;
    wq_backend     backend;   /* its own: verbs can be taken away */
    wq_queue      *memory;    /* what does the work; owned */
    const char    *refused;   /* the key that adds refuse; NULL: none */
    _Atomic wq_err answer;    /* ... with this error; WQ_OK: they do not */
    size_t         max_ready; /* WQ_EFULL when so many are READY; 0: never */
    wq_err         with;      /* what add_with() answers; WQ_OK: as add() */
    atomic_int     withs;     /* calls of add_with() that asked not to wait */
    struct hold   *hold;      /* not owned; NULL: no call stops */
    atomic_int    *destroys;  /* counted there, if not NULL */
};

static struct probe *
probe(const wq_queue *q)
{
    return (struct probe *)(void *)(uintptr_t)q;
}

/* The end of a call. The probe may be gone by now. */
static wq_err
leave(struct hold *hold, wq_err err)
{
    if (hold && atomic_exchange(&hold->next, false))
        stage_pass(&hold->stage);
    return err;
}

static wq_err
refusal(struct probe *p, wq_key key)
{
    if (p->max_ready && wq_len(p->memory) >= p->max_ready)
        return WQ_EFULL;
    if (p->refused && key.len == strlen(p->refused) &&
        memcmp(key.data, p->refused, key.len) == 0)
        return atomic_load(&p->answer);
    return WQ_OK;
}

static wq_err
probe_add(wq_queue *q, wq_key key)
{
    struct probe *p = probe(q);
    struct hold  *hold = p->hold;
    const wq_err  err = refusal(p, key);

    return leave(hold, err ? err : wq_add(p->memory, key));
}

static wq_err
probe_add_with(wq_queue *q, const wq_add_options *how, const wq_key *keys,
               size_t n)
{
    struct probe *p = probe(q);
    struct hold  *hold = p->hold;
    wq_err        err = refusal(p, *keys);

    atomic_fetch_add(&p->withs, how->nowait);
    if (p->with)
        return p->with;
    return leave(hold, err ? err : wq_add_with(p->memory, how, keys, n));
}

static wq_err
probe_add_after(wq_queue *q, wq_key key, int64_t delay_ns)
{
    struct probe *p = probe(q);
    struct hold  *hold = p->hold;

    return leave(hold, wq_add_after(p->memory, key, delay_ns));
}

static wq_err
probe_get(wq_queue *q, int64_t timeout_ns, wq_item **out)
{
    struct probe *p = probe(q);
    struct hold  *hold = p->hold;

    return leave(hold, wq_get_within(p->memory, timeout_ns, out));
}

static wq_err
probe_done(wq_queue *q, wq_item *item)
{
    return wq_done(probe(q)->memory, item);
}

static wq_err
probe_len(wq_queue *q, size_t *out)
{
    *out = wq_len(probe(q)->memory);
    return WQ_OK;
}

static void
probe_shutdown(wq_queue *q)
{
    wq_shutdown(probe(q)->memory);
}

static bool
probe_shutting_down(const wq_queue *q)
{
    return wq_shutting_down(probe(q)->memory);
}

static wq_err
probe_drain(wq_queue *q, int64_t timeout_ns)
{
    struct probe *p = probe(q);
    struct hold  *hold = p->hold;

    return leave(hold, wq_shutdown_with_drain_within(p->memory, timeout_ns));
}

static void
probe_interrupt(wq_queue *q)
{
    wq_interrupt(probe(q)->memory);
}

static void
probe_destroy(wq_queue *q)
{
    struct probe *p = probe(q);

    wq_destroy(p->memory);
    if (p->destroys)
        atomic_fetch_add(p->destroys, 1);
    free(p);
}

/* A probe on the clock of `t`, around a queue for `max_len` keys (0: any number)
 * that blocks. */
static struct probe *
probe_create(struct timed *t, size_t max_len)
{
    struct probe *p = calloc(1, sizeof *p);

    assert_non_null(p);
    p->backend = (wq_backend){
        .size = sizeof p->backend,
        .name = "probe",
        .destroy = probe_destroy,
        .add = probe_add,
        .get = probe_get,
        .done = probe_done,
        .len = probe_len,
        .shutdown = probe_shutdown,
        .shutting_down = probe_shutting_down,
        .drain = probe_drain,
        .interrupt = probe_interrupt,
        .add_after = probe_add_after,
        .add_with = probe_add_with,
    };
    assert_err(wq_backend_init(&p->base, &p->backend), WQ_OK);
    assert_err(wq_create(WQ_CONFIG(.clock = t->clock, .max_len = max_len,
                                   .overflow = max_len ? WQ_OVERFLOW_BLOCK
                                                       : WQ_OVERFLOW_REFUSE),
                         &p->memory),
               WQ_OK);
    return p;
}

/* ---- words --------------------------------------------------------------- */

static void
wrap_delays(struct timed *t, wq_queue *inner)
{
    assert_err(wq_delaying_wrap(inner, WQ_CONFIG(.clock = t->clock), &t->q),
               WQ_OK);
}

/* A delaying layer around a probe, which is in *out. */
static struct timed *
wrap_probe(size_t max_len, struct probe **out)
{
    struct timed *t = timed_begin(0);

    *out = probe_create(t, max_len);
    wrap_delays(t, &(*out)->base);
    return t;
}

/* A delaying layer around a queue for one key that blocks. */
static struct timed *
wrap_narrow(void)
{
    struct timed *t = timed_begin(0);
    wq_queue     *inner = NULL;

    assert_err(wq_create(WQ_CONFIG(.clock = t->clock, .max_len = 1,
                                   .overflow = WQ_OVERFLOW_BLOCK),
                         &inner),
               WQ_OK);
    wrap_delays(t, inner);
    return t;
}

static int
narrow_setup(void **state)
{
    *state = wrap_narrow();
    return 0;
}

#define with_narrow(name) test_with(name, narrow_setup, timed_teardown)

/* A thread that does one thing to a queue. */
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

static void
destroy_meets(wq_err (*verb)(struct call *c), wq_err expected)
{
    struct hold   hold = {.stage = STAGE_INIT};
    atomic_int    destroys = 0;
    struct probe *p;
    struct timed *t = wrap_probe(1, &p);
    struct call   blocked = {.q = t->q, .verb = verb};
    struct call   last = {.q = t->q, .verb = call_destroy};

    p->hold = &hold;
    p->destroys = &destroys;
    add(t->q, "held");
    (void)take_key(t->q, "held");
    struct worker *w = start_call(&blocked);
    worker_await_blocked(w);
    atomic_store(&hold.next, true);
    struct worker *end = start_call(&last);
    tally_await(&hold.stage.begun, 1);
    assert_stays_zero(&destroys);
    tally_add(&hold.stage.allowed, STAGE_OPEN);

    assert_err(worker_join(w), expected);
    assert_int_equal(worker_join(end), 0);
    assert_int_equal(destroys, 1);
    t->q = NULL;
    timed_destroy(t);
}

/* O-18 O-03: it has left the inner queue and is still in the layer. */
TEST(destroy_waits_for_adds_that_leave_a_delaying_layer)
{
    destroy_meets(call_add, WQ_ESHUTDOWN);
    destroy_meets(call_add_now, WQ_ESHUTDOWN);
}

/* O-18 O-03 */
TEST(destroy_waits_for_gets_that_leave_a_delaying_layer)
{
    destroy_meets(call_get, WQ_ESHUTDOWN);
}

/* O-18 O-03 */
TEST(destroy_waits_for_drains_that_leave_a_delaying_layer)
{
    destroy_meets(call_drain, WQ_EINTERRUPTED);
}

/* O-18 O-03: the drain was blocked by a hand-over, and reaches the inner queue
 * only after destroy has shut that down. */
TEST(destroy_ends_a_drain_that_begins_in_the_inner_queue)
{
    struct probe *p;
    struct timed *t = wrap_probe(1, &p);
    struct call   drain = {.q = t->q, .verb = call_drain};
    struct call   last = {.q = t->q, .verb = call_destroy};

    p->backend.add_with = NULL; /* hand-overs wait for room */
    add(t->q, "held");
    (void)take_key(t->q, "held");
    add_after(t, "due", S);
    step(t, S);
    struct worker *w = start_call(&drain);
    worker_await_blocked(w);
    struct worker *end = start_call(&last);

    assert_err(worker_join(w), WQ_EINTERRUPTED);
    assert_int_equal(worker_join(end), 0);
    t->q = NULL;
    timed_destroy(t);
}

/* A limiter that knows whether it was used after its end. */
struct limits {
    atomic_int undone;
    atomic_int destroyed;
};

static int64_t
limits_when(void *self, wq_key key)
{
    (void)self;
    (void)key;
    return MS;
}

static void
limits_undo(void *self, wq_key key)
{
    struct limits *l = self;

    (void)key;
    atomic_fetch_add(&l->undone, 1);
}

static void
limits_destroy(void *self)
{
    struct limits *l = self;

    atomic_fetch_add(&l->destroyed, 1);
}

static wq_limiter *
limits_create(struct limits *l)
{
    const wq_limiter_ops ops = {.size = sizeof ops,
                                .when = limits_when,
                                .undo = limits_undo,
                                .destroy = limits_destroy};
    wq_limiter          *limiter = wq_limiter_create(&ops, l);

    assert_err(wq_limiter_error(limiter), WQ_OK);
    return limiter;
}

/* O-18 O-03 R-03: the limiter is there for as long as an add needs it. */
TEST(destroy_waits_for_a_limited_add_to_be_undone)
{
    struct hold   hold = {.stage = STAGE_INIT};
    struct limits limits = {.undone = 0};
    struct timed *t = timed_begin(0);
    struct probe *p = probe_create(t, 1);

    p->hold = &hold;
    assert_err(
        wq_rate_limiting_wrap(
            &p->base,
            WQ_CONFIG(.clock = t->clock, .limiter = limits_create(&limits)),
            &t->q),
        WQ_OK);
    struct call blocked = {.q = t->q, .verb = call_add_limited};
    struct call last = {.q = t->q, .verb = call_destroy};
    add(t->q, "held");
    struct worker *w = start_call(&blocked);
    worker_await_blocked(w);
    atomic_store(&hold.next, true);
    struct worker *end = start_call(&last);
    tally_await(&hold.stage.begun, 1);
    assert_stays_zero(&limits.destroyed);
    assert_int_equal(limits.undone, 0);
    tally_add(&hold.stage.allowed, STAGE_OPEN);

    assert_err(worker_join(w), WQ_ESHUTDOWN);
    assert_int_equal(worker_join(end), 0);
    assert_int_equal(limits.undone, 1);
    assert_int_equal(limits.destroyed, 1);
    t->q = NULL;
    timed_destroy(t);
}

/* O-18 O-03: a shutdown does not end a get that waits for a kept key. */
TEST(destroy_ends_a_get_beside_a_key_that_is_kept)
{
    struct timed *t = timed_begin(0);
    wq_queue     *inner = NULL;

    assert_err(
        wq_create(WQ_CONFIG(.clock = t->clock, .waiting = WQ_WAITING_KEEP),
                  &inner),
        WQ_OK);
    assert_err(wq_add_after(inner, wq_str("kept"), HOUR), WQ_OK);
    wrap_delays(t, inner);
    struct call    get = {.q = t->q, .verb = call_get};
    struct call    last = {.q = t->q, .verb = call_destroy};
    struct worker *w = start_call(&get);
    worker_await_blocked(w);
    struct worker *end = start_call(&last);

    assert_err(worker_join(w), WQ_ESHUTDOWN);
    assert_int_equal(worker_join(end), 0);
    t->q = NULL;
    timed_destroy(t);
}

/* ---- a hand-over never waits --------------------------------------------- */

/* "held" takes all the room, and "due" is due. */
static struct timed *
make_full(wq_item **held)
{
    struct timed *t = wrap_narrow();

    add(t->q, "held");
    *held = take_key(t->q, "held");
    add_after(t, "due", S);
    step(t, S);
    return t;
}

static void
due_key_does_not_hold_up(wq_err (*verb)(struct call *c), wq_err expected)
{
    struct call   c = {.verb = verb};
    struct timed *t = make_full(&c.item);

    c.q = t->q;
    assert_err(worker_join(start_call(&c)), expected);
    timed_destroy(t);
}

/* O-19 */
TEST(done_does_not_wait_for_room_for_a_due_key)
{
    due_key_does_not_hold_up(call_done, WQ_OK);
}

/* O-19 */
TEST(try_get_does_not_wait_for_room_for_a_due_key)
{
    due_key_does_not_hold_up(call_try_get, WQ_ETIMEDOUT);
}

/* O-19 */
TEST(len_does_not_wait_for_room_for_a_due_key)
{
    due_key_does_not_hold_up(call_len, WQ_OK);
}

/* O-19 */
TEST(shutdown_does_not_wait_for_room_for_a_due_key)
{
    due_key_does_not_hold_up(call_shutdown, WQ_OK);
    due_key_does_not_hold_up(call_drain_at_once, WQ_ETIMEDOUT);
}

/* O-19 D-14 */
TEST(delay_does_not_wait_for_room_for_a_due_key)
{
    due_key_does_not_hold_up(call_add_later, WQ_OK);
}

/* O-19 O-55: the caller asked for that. */
TEST(add_through_a_layer_waits_for_room)
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
TEST(due_key_comes_when_a_done_has_made_room)
{
    wq_item      *held;
    struct timed *t = make_full(&held);

    assert_none_due(t);
    finish(t->q, held);
    assert_int_equal(wq_len(t->q), 1);
    work_on(t->q, "due");
    assert_none_due(t);
    timed_destroy(t);
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
    wq_item       *held;
    struct timed  *t = make_full(&held);
    struct worker *w = get_in_time(t, WQ_FOREVER);

    worker_await_blocked(w);
    finish(t->q, held);

    assert_err(worker_join(w), WQ_OK);
    assert_key(t->item, "due");
    timed_destroy(t);
}

/* O-19: a queue whose bound is on READY keys. */
TEST(due_key_comes_when_a_get_has_made_room)
{
    struct probe *p;
    struct timed *t = wrap_probe(0, &p);

    p->max_ready = 1;
    add_after(t, "a", S);
    add_after(t, "b", S);
    step(t, S);
    wq_item *a = take_key(t->q, "a");

    assert_int_equal(wq_len(p->memory), 1);
    work_on(t->q, "b");
    finish(t->q, a);
    timed_destroy(t);
}

/* O-19 D-13: there is nowhere it could go. */
TEST(shutdown_drops_a_due_key_that_is_refused)
{
    wq_item      *held;
    struct timed *t = make_full(&held);

    wq_shutdown(t->q);
    finish(t->q, held);
    assert_none_ready(t->q, WQ_ESHUTDOWN);
    timed_destroy(t);
}

/* O-19 D-10 */
TEST(refused_key_that_is_due_again_comes_once)
{
    wq_item      *held;
    struct timed *t = make_full(&held);

    assert_none_due(t);
    add_after(t, "due", S);
    step(t, S);
    assert_none_due(t);
    finish(t->q, held);

    work_on(t->q, "due");
    step(t, HOUR);
    assert_none_due(t);
    timed_destroy(t);
}

/* O-19 Q-24 */
TEST(key_the_inner_queue_rejects_holds_up_no_other)
{
    struct probe *p;
    struct timed *t = wrap_probe(0, &p);

    p->refused = "bad";
    atomic_store(&p->answer, WQ_EIO);
    add_after(t, "bad", 1);
    add_after(t, "good", 2);
    step(t, 2);
    (void)wq_len(t->q); /* offers "bad" */
    work_on(t->q, "good");
    atomic_store(&p->answer, WQ_OK);

    work_on(t->q, "bad");
    timed_destroy(t);
}

/* ---- a get beside a key that is refused ---------------------------------- */

/* O-19: the key is neither here nor there when the get looks. */
TEST(get_beside_a_key_being_handed_over_looks_again)
{
    struct hold   hold = {.stage = STAGE_INIT};
    struct probe *p;
    struct timed *t = wrap_probe(0, &p);
    struct call   len = {.q = t->q, .verb = call_len};

    p->hold = &hold;
    p->refused = "due";
    atomic_store(&p->answer, WQ_EFULL);
    add_after(t, "due", S);
    step(t, S);
    atomic_store(&hold.next, true);
    struct worker *w = start_call(&len);
    tally_await(&hold.stage.begun,
                1); /* it was refused and does not know yet */
    struct worker *get = get_in_time(t, WQ_FOREVER);
    worker_await_blocked(get);
    tally_add(&hold.stage.allowed, STAGE_OPEN);
    assert_err(worker_join(w), WQ_OK);
    atomic_store(&p->answer, WQ_OK);
    await_sleepers(t, 1);
    step(t, 10 * MS);

    assert_err(worker_join(get), WQ_OK);
    assert_key(t->item, "due");
    timed_destroy(t);
}

/* O-19 D-16: of two gets one keeps time, and leaves with another key. */
TEST(refused_key_is_watched_when_the_keeper_leaves)
{
    struct probe *p;
    struct timed *t = wrap_probe(0, &p);
    struct call   calls[2] = {{.q = t->q, .verb = call_get},
                              {.q = t->q, .verb = call_get}};

    p->refused = "due";
    atomic_store(&p->answer, WQ_EFULL);
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
    atomic_store(&p->answer, WQ_OK);
    step(t, 10 * MS);

    assert_err(worker_join(both[1 - who]), WQ_OK);
    assert_key(calls[1 - who].item, "due");
    timed_destroy(t);
}

/* ---- how a key is offered ------------------------------------------------ */

/* O-19 */
TEST(due_key_is_offered_without_waiting)
{
    struct probe *p;
    struct timed *t = wrap_probe(1, &p);

    add_after(t, "foo", S);
    step(t, S);
    work_on(t->q, "foo");
    assert_int_equal(p->withs, 1);
    timed_destroy(t);
}

/* O-19: by a plain add. */
TEST(due_key_comes_where_adds_have_no_options)
{
    struct probe *p;
    struct timed *t = wrap_probe(0, &p);

    p->with = WQ_ENOTSUP;
    add_after(t, "foo", S);
    step(t, S);
    work_on(t->q, "foo");

    p->backend.add_with = NULL;
    add_after(t, "bar", S);
    step(t, S);
    work_on(t->q, "bar");
    timed_destroy(t);
}

WQ_TESTS(test(destroy_waits_for_adds_that_leave_a_delaying_layer),
         test(destroy_waits_for_gets_that_leave_a_delaying_layer),
         test(destroy_waits_for_drains_that_leave_a_delaying_layer),
         test(destroy_ends_a_drain_that_begins_in_the_inner_queue),
         test(destroy_waits_for_a_limited_add_to_be_undone),
         test(destroy_ends_a_get_beside_a_key_that_is_kept),
         test(done_does_not_wait_for_room_for_a_due_key),
         test(try_get_does_not_wait_for_room_for_a_due_key),
         test(len_does_not_wait_for_room_for_a_due_key),
         test(shutdown_does_not_wait_for_room_for_a_due_key),
         test(delay_does_not_wait_for_room_for_a_due_key),
         with_narrow(add_through_a_layer_waits_for_room),
         test(due_key_comes_when_a_done_has_made_room),
         with_narrow(due_keys_come_in_order_through_a_full_queue),
         test(get_that_sleeps_has_a_due_key_after_done),
         test(due_key_comes_when_a_get_has_made_room),
         test(shutdown_drops_a_due_key_that_is_refused),
         test(refused_key_that_is_due_again_comes_once),
         test(key_the_inner_queue_rejects_holds_up_no_other),
         test(get_beside_a_key_being_handed_over_looks_again),
         test(refused_key_is_watched_when_the_keeper_leaves),
         test(due_key_is_offered_without_waiting),
         test(due_key_comes_where_adds_have_no_options));
