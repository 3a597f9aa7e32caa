/* SPDX-License-Identifier: MIT */
/* test_layers.c: what do the layers of backend.h add to a queue that knows no
 * time, and what do they leave as it was?
 *
 * Two inner queues are wrapped here. A bare queue is an in-memory one on a fake
 * clock that shows only the verbs a backend must have: with it the delaying
 * layer keeps the same facts as the in-memory queue (delay_facts.h). A plain
 * queue (support/plain_queue.h) is somebody else's, and sleeps in real time.
 */
#include "delay_facts.h"

#include <errno.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>

#include <wq/backend.h>
#include <wq/limiter.h>

#include "support/counting.h"
#include "support/plain_queue.h"

/* ---- a bare queue -------------------------------------------------------- */

/* Where a get of a bare queue can be stopped. */
struct gate {
    atomic_bool before; /* the next get that may sleep stops before it does */
    atomic_bool after;  /* it stops when it has left the in-memory queue */
    sem_t       held;   /* it has stopped */
    sem_t       go;     /* it may go on */
};

struct bare {
    wq_queue     base;
    wq_queue    *memory;   /* what does the work; owned */
    atomic_int   refuse;   /* so many adds from now find no memory */
    atomic_int   adds;     /* how many were asked for */
    struct gate *gate;     /* not owned; NULL: none */
    atomic_int  *destroys; /* counted there, if not NULL */
};

static struct bare *
bare(const wq_queue *q)
{
    return (struct bare *)(void *)(uintptr_t)q;
}

static void
bare_destroy(wq_queue *q)
{
    struct bare *b = bare(q);

    wq_destroy(b->memory);
    if (b->destroys)
        atomic_fetch_add(b->destroys, 1);
    free(b);
}

static wq_err
bare_add(wq_queue *q, wq_key key)
{
    struct bare *b = bare(q);

    atomic_fetch_add(&b->adds, 1);
    if (atomic_load(&b->refuse) > 0) {
        atomic_fetch_sub(&b->refuse, 1);
        return WQ_ENOMEM;
    }
    return wq_add(b->memory, key);
}

static void
stop_at(struct gate *g, atomic_bool *where)
{
    if (atomic_exchange(where, false)) {
        (void)sem_post(&g->held);
        (void)sem_wait(&g->go);
    }
}

static wq_err
bare_get(wq_queue *q, int64_t timeout_ns, wq_item **out)
{
    struct bare *b = bare(q);
    struct gate *g = b->gate;

    if (g && timeout_ns > 0)
        stop_at(g, &g->before);
    const wq_err err = wq_get_within(b->memory, timeout_ns, out);
    if (g && timeout_ns > 0)
        stop_at(g, &g->after);
    return err;
}

static wq_err
bare_done(wq_queue *q, wq_item *item)
{
    return wq_done(bare(q)->memory, item);
}

static wq_err
bare_len(wq_queue *q, size_t *out)
{
    *out = wq_len(bare(q)->memory);
    return WQ_OK;
}

static void
bare_shutdown(wq_queue *q)
{
    wq_shutdown(bare(q)->memory);
}

static bool
bare_shutting_down(const wq_queue *q)
{
    return wq_shutting_down(bare(q)->memory);
}

static wq_err
bare_drain(wq_queue *q, int64_t timeout_ns)
{
    return wq_shutdown_with_drain_within(bare(q)->memory, timeout_ns);
}

static void
bare_interrupt(wq_queue *q)
{
    wq_interrupt(bare(q)->memory);
}

static const wq_backend bare_backend = {
    .size = sizeof bare_backend,
    .name = "bare",
    .destroy = bare_destroy,
    .add = bare_add,
    .get = bare_get,
    .done = bare_done,
    .len = bare_len,
    .shutdown = bare_shutdown,
    .shutting_down = bare_shutting_down,
    .drain = bare_drain,
    .interrupt = bare_interrupt,
};

static struct bare *
bare_create(wq_clock *clock)
{
    struct bare *b = calloc(1, sizeof *b);

    assert_non_null(b);
    assert_err(wq_backend_init(&b->base, &bare_backend), WQ_OK);
    assert_err(wq_create(WQ_CONFIG(.clock = clock), &b->memory), WQ_OK);
    return b;
}

static void
gate_init(struct gate *g, struct bare *b)
{
    memset(g, 0, sizeof *g);
    assert_int_equal(sem_init(&g->held, 0, 0), 0);
    assert_int_equal(sem_init(&g->go, 0, 0), 0);
    b->gate = g;
}

static void
gate_fini(struct gate *g)
{
    (void)sem_destroy(&g->held);
    (void)sem_destroy(&g->go);
}

/* Wait until a get has stopped there. */
static void
await_held(struct gate *g)
{
    const struct timespec limit = {.tv_sec = time(NULL) + WORKER_LIMIT_S};

    assert_int_equal(sem_timedwait(&g->held, &limit), 0);
}

static void
let_go(struct gate *g)
{
    assert_int_equal(sem_post(&g->go), 0);
}

/* ---- words --------------------------------------------------------------- */

/* A delaying layer around a bare queue, which is in *out. */
static struct timed *
wrap_bare(struct bare **out)
{
    struct timed *t = timed_begin(0);
    struct bare  *b = bare_create(t->clock);

    assert_err(wq_delaying_wrap(&b->base, WQ_CONFIG(.clock = t->clock), &t->q),
               WQ_OK);
    *out = b;
    return t;
}

static int
layered_setup(void **state)
{
    struct bare *b;

    *state = wrap_bare(&b);
    return 0;
}

#define with_layer(name) test_with(name, layered_setup, timed_teardown)

/* A delaying layer on a fake clock around a plain queue. */
static struct timed *
wrap_plain(enum plain_verbs verbs)
{
    struct timed *t = timed_begin(0);
    wq_queue     *inner = NULL;

    assert_err(plain_create(verbs, &inner), WQ_OK);
    assert_err(wq_delaying_wrap(inner, WQ_CONFIG(.clock = t->clock), &t->q),
               WQ_OK);
    return t;
}

/* Put a rate-limiting layer around what `t` has. */
static void
wrap_limits(struct timed *t, const wq_config *config)
{
    wq_config mine = *config;
    wq_queue *outer = NULL;

    mine.clock = t->clock;
    assert_err(wq_rate_limiting_wrap(t->q, &mine, &outer), WQ_OK);
    t->q = outer;
}

/* Both layers, 1, 2, 4, ... ms. */
static int
limited_setup(void **state)
{
    (void)layered_setup(state);
    wrap_limits(*state, WQ_CONFIG(.limiter = wq_limiter_exponential(MS, S)));
    return 0;
}

#define with_limits(name) test_with(name, limited_setup, timed_teardown)

static void
retry(struct timed *t, const char *key)
{
    assert_err(wq_add_rate_limited(t->q, wq_str(key)), WQ_OK);
}

/* ---- what a backend alone can do ----------------------------------------- */

/* O-18 */
TEST(plain_queue_alone_knows_neither_delays_nor_limits)
{
    wq_queue *q = NULL;

    assert_err(plain_create(PLAIN_REQUIRED, &q), WQ_OK);

    assert_err(wq_add_after(q, wq_str("foo"), S), WQ_ENOTSUP);
    assert_err(wq_add_after(q, wq_str("foo"), 0), WQ_ENOTSUP);
    assert_err(wq_add_rate_limited(q, wq_str("foo")), WQ_ENOTSUP);
    assert_err(wq_forget(q, wq_str("foo")), WQ_ENOTSUP);
    assert_int_equal(wq_num_requeues(q, wq_str("foo")), 0);
    assert_none_ready(q, WQ_ETIMEDOUT);
    wq_destroy(q);
}

/* O-18 */
TEST(delaying_layer_gives_delays_and_no_limits)
{
    struct timed *t = wrap_plain(PLAIN_REQUIRED);

    add_after(t, "foo", S);
    assert_err(wq_add_rate_limited(t->q, wq_str("foo")), WQ_ENOTSUP);
    assert_err(wq_forget(t->q, wq_str("foo")), WQ_ENOTSUP);

    assert_due_in(t, "foo", S);
    timed_destroy(t);
}

/* O-18 R-01 */
TEST(both_layers_give_delays_and_limits)
{
    struct timed *t = wrap_plain(PLAIN_REQUIRED);

    wrap_limits(t, WQ_CONFIG(.limiter = wq_limiter_exponential(MS, S)));
    add_after(t, "foo", S);
    assert_due_in(t, "foo", S);
    retry(t, "foo");
    assert_due_in(t, "foo", MS);
    add(t->q, "foo");
    work_on(t->q, "foo");
    timed_destroy(t);
}

/* O-18 D-10: what the inner queue means by a key holds for what waits. */
TEST(key_that_is_due_in_a_plain_queue_is_as_one_that_was_added)
{
    struct timed *t = wrap_plain(PLAIN_REQUIRED);

    add(t->q, "foo");
    wq_item *item = take_key(t->q, "foo");
    add_after(t, "foo", MS);
    add_after(t, "bar", 2 * MS);
    step(t, 2 * MS);
    assert_int_equal(wq_len(t->q), 1);
    finish(t->q, item);

    work_on(t->q, "bar");
    work_on(t->q, "foo");
    assert_none_due(t);
    timed_destroy(t);
}

/* O-18 */
TEST(verbs_the_inner_queue_lacks_stay_unsupported)
{
    struct timed *t = wrap_plain(PLAIN_REQUIRED);

    wrap_limits(t, WQ_CONFIG(.limiter = NULL));
    add(t->q, "foo");
    wq_item *item = take_key(t->q, "foo");

    assert_err(wq_done_key(t->q, wq_str("foo")), WQ_ENOTSUP);
    assert_err(wq_shutdown_with_drain_within(t->q, 0), WQ_ENOTSUP);
    assert_false(wq_shutting_down(t->q));
    finish(t->q, item);
    timed_destroy(t);
}

/* O-18 Q-21 */
TEST(verbs_the_inner_queue_has_go_through)
{
    struct timed *t = wrap_plain(PLAIN_BASE);

    wrap_limits(t, WQ_CONFIG(.limiter = NULL));
    add(t->q, "foo");
    (void)take_key(t->q, "foo");

    assert_err(wq_done_key(t->q, wq_str("foo")), WQ_OK);
    assert_err(wq_done_key(t->q, wq_str("foo")), WQ_ESTATE);
    assert_err(wq_shutdown_with_drain_within(t->q, 0), WQ_OK);
    assert_true(wq_shutting_down(t->q));
    timed_destroy(t);
}

/* O-18 D-17: nothing of it is hidden behind our limiter. */
TEST(limits_can_be_put_around_any_queue_with_delays)
{
    struct timed *t =
        timed_create(WQ_CONFIG(.limiter = wq_limiter_exponential(S, HOUR)));

    wrap_limits(t, WQ_CONFIG(.limiter = wq_limiter_exponential(MS, S)));
    retry(t, "foo");
    assert_due_in(t, "foo", MS);
    retry(t, "foo");
    assert_due_in(t, "foo", 2 * MS);
    timed_destroy(t);
}

/* O-19 D-02 D-11: no verb has looked at the clock between the two. */
TEST(delay_after_a_deadline_that_has_passed_is_kept)
{
    struct timed *t = *state;

    add_after(t, "foo", 10);
    step(t, 20);
    add_after(t, "foo", 50);

    work_on(t->q, "foo");
    assert_due_in(t, "foo", 50);
    step(t, HOUR);
    assert_none_due(t);
}

/* ---- which verbs a layer has --------------------------------------------- */

/* Every verb of a backend, in the order of backend.h. */
static const struct {
    const char *name;
    size_t      offset;   /* in wq_backend */
    bool        delaying; /* the delaying layer has it */
    bool        limiting; /* the rate-limiting layer has it */
} layer_verbs[] = {
#define VERB(verb, in_delaying, in_limiting)                                   \
    {                                                                          \
        .name = #verb, .offset = offsetof(wq_backend, verb),                   \
        .delaying = in_delaying, .limiting = in_limiting                       \
    }
    VERB(destroy, true, true),       VERB(add, true, true),
    VERB(get, true, true),           VERB(done, true, true),
    VERB(len, true, true),           VERB(shutdown, true, true),
    VERB(shutting_down, true, true), VERB(done_key, true, true),
    VERB(drain, true, true),         VERB(interrupt, true, true),
    VERB(add_after, true, true),     VERB(add_rate_limited, false, true),
    VERB(forget, false, true),       VERB(num_requeues, false, true),
    VERB(count_drops, true, true),   VERB(add_with, false, false),
    VERB(remove, false, false),      VERB(cancel_after, false, false),
    VERB(get_many, false, false),    VERB(done_many, false, false),
    VERB(next, false, false),        VERB(fd, false, false),
    VERB(stats, false, false),       VERB(depths, false, false),
    VERB(key_info, false, false),    VERB(each, false, false),
    VERB(queue_name, false, false),  VERB(remove_wait, false, false),
    VERB(flush, false, false),       VERB(flush_key, false, false),
    VERB(wait_idle, false, false),   VERB(pause, false, false),
    VERB(resume, false, false),
#undef VERB
};

static bool
has_verb(const wq_queue *q, size_t offset)
{
    void (*verb)(void);

    memcpy(&verb, (const char *)q->backend + offset, sizeof verb);
    return verb != NULL;
}

/* A delaying layer around an in-memory queue, which has all verbs. */
static struct timed *
wrap_memory(void)
{
    struct timed *t = timed_begin(0);
    wq_queue     *inner = NULL;

    assert_err(wq_create(WQ_CONFIG(.clock = t->clock), &inner), WQ_OK);
    assert_err(wq_delaying_wrap(inner, WQ_CONFIG(.clock = t->clock), &t->q),
               WQ_OK);
    return t;
}

/* O-18: a verb that a release adds must be listed here. */
TEST(layers_have_the_verbs_that_are_listed_and_no_others)
{
    enum { LISTED = sizeof layer_verbs / sizeof layer_verbs[0] };
    struct timed *t = wrap_memory();
    wq_queue     *delaying = t->q;

    assert_int_equal((sizeof(wq_backend) - offsetof(wq_backend, destroy)) /
                         sizeof(void (*)(void)),
                     LISTED);
    wrap_limits(t, WQ_CONFIG(.limiter = NULL));
    for (size_t i = 0; i < LISTED; i++) {
        if (has_verb(delaying, layer_verbs[i].offset) !=
                layer_verbs[i].delaying ||
            has_verb(t->q, layer_verbs[i].offset) != layer_verbs[i].limiting)
            fail_msg("%s: not as listed", layer_verbs[i].name);
    }
    timed_destroy(t);
}

static bool
visit_none(void *ctx, wq_key key, const wq_key_info *info)
{
    (void)ctx;
    (void)key;
    (void)info;
    return true;
}

static void
assert_lacks_verbs(wq_queue *q)
{
    const wq_key key = wq_str("foo");
    wq_stats     counts = {.size = sizeof counts};
    wq_key_info  info = {.size = sizeof info};
    wq_depth     depth;
    size_t       n;

    assert_err(wq_add_with(q, NULL, &key, 1), WQ_ENOTSUP);
    assert_err(wq_add_with(q, NULL, &key, 0), WQ_ENOTSUP);
    assert_err(wq_add_one(q, key, WQ_ADD(.priority = 1)), WQ_ENOTSUP);
    assert_err(wq_remove(q, key), WQ_ENOTSUP);
    assert_err(wq_cancel_after(q, key), WQ_ENOTSUP);
    assert_err(wq_read_stats(q, &counts), WQ_ENOTSUP);
    assert_err(wq_read_depths(q, &depth, 1, &n), WQ_ENOTSUP);
    assert_err(wq_read_key(q, key, &info), WQ_ENOTSUP);
    assert_err(wq_each(q, 0, visit_none, NULL), WQ_ENOTSUP);
    assert_err(wq_dump(q, wq_write_file, stderr), WQ_ENOTSUP);
    errno = 0;
    assert_int_equal(wq_fd(q), -1);
    assert_int_equal(errno, ENOSYS);
}

/* O-18: although the inner queue has them. */
TEST(verbs_a_layer_lacks_are_unsupported)
{
    struct timed *t = wrap_memory();

    assert_lacks_verbs(t->q);
    assert_err(wq_add_rate_limited(t->q, wq_str("foo")), WQ_ENOTSUP);
    assert_err(wq_forget(t->q, wq_str("foo")), WQ_ENOTSUP);
    assert_int_equal(wq_num_requeues(t->q, wq_str("foo")), 0);
    wrap_limits(t, WQ_CONFIG(.limiter = NULL));
    assert_lacks_verbs(t->q);

    assert_none_due(t);
    timed_destroy(t);
}

/* O-18 O-59 O-60 O-61 */
TEST(batches_go_through_a_layer_one_by_one)
{
    struct timed *t = wrap_memory();
    wq_item      *items[3] = {NULL}, *item = NULL;
    size_t        n = 0;

    wrap_limits(t, WQ_CONFIG(.limiter = NULL));
    add(t->q, "a");
    add(t->q, "b");
    add(t->q, "c");
    assert_err(wq_get_many(t->q, items, 2, 0, &n), WQ_OK);
    assert_int_equal(n, 2);
    assert_key(items[1], "b");
    assert_err(wq_done_many(t->q, items, 2), WQ_OK);
    assert_err(wq_next(t->q, 0, &item), WQ_OK);
    assert_key(item, "c");
    assert_err(wq_next(t->q, 0, &item), WQ_ETIMEDOUT);
    assert_null(item);
    timed_destroy(t);
}

/* ---- a get that sleeps in the inner queue -------------------------------- */

/* O-18: the inner queue is interrupted, the caller is not. */
TEST(callers_do_not_notice_that_the_layer_interrupts)
{
    struct timed *t = *state;

    struct worker *w = get_in_time(t, WQ_FOREVER);
    for (int i = 10; i > 1; i--) {
        worker_await_blocked(w);
        add_after(t, "foo", i * S);
    }
    worker_await_blocked(w);
    step(t, 2 * S);

    assert_err(worker_join(w), WQ_OK);
    assert_key(t->item, "foo");
}

/* O-18 D-03: the one that keeps time is about to sleep, another one sleeps, and
 * a deadline comes up that is earlier than what it looked at. */
TEST(earlier_deadline_is_watched_while_the_keeper_falls_asleep)
{
    struct gate   g;
    struct bare  *b;
    struct timed *t = wrap_bare(&b);
    wq_item      *other_item = NULL;

    gate_init(&g, b);
    struct worker *keeper = get_in_time(t, WQ_FOREVER);
    worker_await_blocked(keeper);
    atomic_store(&g.before, true);
    add_after(t, "late", HOUR);
    await_held(&g);
    struct worker *other = worker_get(t->q, &other_item);
    worker_await_blocked(other);
    add_after(t, "soon", MS);
    await_sleepers(t, 1); /* the other one knows */
    let_go(&g);
    await_sleepers(t, 2);
    step(t, MS);

    struct worker *both[] = {keeper, other}; /* whoever is quicker takes it */
    const size_t   who = worker_await_any_ended(both, 2);
    assert_err(worker_join(both[who]), WQ_OK);
    assert_key(who == 0 ? t->item : other_item, "soon");
    worker_await_blocked(both[1 - who]); /* C-08: not just before it sleeps */
    step(t, HOUR);
    assert_err(worker_join(both[1 - who]), WQ_OK);
    timed_destroy(t);
    gate_fini(&g);
}

/* O-18 O-08: nobody sleeps who could be interrupted. */
TEST(interrupt_of_a_get_that_has_its_key_is_remembered)
{
    struct gate   g;
    struct bare  *b;
    struct timed *t = wrap_bare(&b);

    gate_init(&g, b);
    atomic_store(&g.after, true);
    struct worker *w = get_in_time(t, WQ_FOREVER);
    worker_await_blocked(w);
    add(t->q, "foo");
    await_held(&g);
    wq_interrupt(t->q);
    let_go(&g);
    assert_err(worker_join(w), WQ_OK);
    finish(t->q, t->item);

    assert_err(worker_join(get_in_time(t, WQ_FOREVER)), WQ_EINTERRUPTED);
    timed_destroy(t);
    gate_fini(&g);
}

static int
destroy_layer(struct worker *self)
{
    wq_destroy(self->arg);
    return 0;
}

/* O-18 O-03: even if keys remain. */
TEST(get_blocked_in_a_layer_that_is_destroyed_gets_no_key)
{
    struct gate   g;
    struct bare  *b;
    struct timed *t = wrap_bare(&b);

    gate_init(&g, b);
    atomic_store(&g.before, true);
    struct worker *w = get_in_time(t, WQ_FOREVER);
    await_held(&g);
    add(t->q, "foo");
    struct worker *end = worker_start(destroy_layer, t->q);
    while (!wq_shutting_down(b->memory))
        (void)sched_yield();
    let_go(&g);

    assert_err(worker_join(w), WQ_ESHUTDOWN);
    assert_int_equal(worker_join(end), 0);
    t->q = NULL;
    timed_destroy(t);
    gate_fini(&g);
}

/* O-18: nor one that comes later, when the sleeper was gone already. */
TEST(interrupt_the_layer_had_no_use_for_ends_no_later_get)
{
    struct gate   g;
    struct bare  *b;
    struct timed *t = wrap_bare(&b);

    gate_init(&g, b);
    atomic_store(&g.before, true);
    struct worker *w = get_in_time(t, WQ_FOREVER);
    await_held(&g); /* about to sleep, and does not yet */
    add(t->q, "now");
    add_after(t, "later", S);
    let_go(&g);
    assert_err(worker_join(w), WQ_OK);
    finish(t->q, t->item);

    w = get_in_time(t, WQ_FOREVER);
    await_sleepers(t, 1);
    worker_await_blocked(w);
    step(t, S);
    assert_err(worker_join(w), WQ_OK);
    assert_key(t->item, "later");
    timed_destroy(t);
    gate_fini(&g);
}

/* O-18 D-03: a deadline that comes up between the look at the deadlines and
 * the sleep. */
TEST(get_that_is_about_to_sleep_learns_of_an_earlier_deadline)
{
    struct gate   g;
    struct bare  *b;
    struct timed *t = wrap_bare(&b);

    gate_init(&g, b);
    atomic_store(&g.before, true);
    struct worker *w = get_in_time(t, WQ_FOREVER);
    await_held(&g);
    add_after(t, "foo", S);
    let_go(&g);
    await_sleepers(t, 1);
    step(t, S);

    assert_err(worker_join(w), WQ_OK);
    assert_key(t->item, "foo");
    timed_destroy(t);
    gate_fini(&g);
}

/* O-18 D-03: the same, while another get is asleep already: the interrupt is
 * for that one, which then leaves with a key. */
TEST(get_that_is_about_to_sleep_learns_of_it_even_if_another_leaves)
{
    struct gate   g;
    struct bare  *b;
    struct timed *t = wrap_bare(&b);
    wq_item      *first_item = NULL;

    gate_init(&g, b);
    struct worker *first = worker_get(t->q, &first_item);
    worker_await_blocked(first);
    atomic_store(&g.before, true);
    struct worker *second = get_in_time(t, WQ_FOREVER);
    await_held(&g);
    add_after(t, "foo", S);
    await_sleepers(t, 1); /* the first one knows */
    add(t->q, "now");
    assert_err(worker_join(first), WQ_OK);
    assert_key(first_item, "now");
    let_go(&g);
    worker_await_blocked(second);
    step(t, S);

    assert_err(worker_join(second), WQ_OK);
    assert_key(t->item, "foo");
    timed_destroy(t);
    gate_fini(&g);
}

/* O-18 Q-26 */
TEST(several_gets_share_what_is_due)
{
    enum { GETTERS = 3 };
    struct timed  *t = *state;
    struct worker *all[GETTERS];
    wq_item       *items[GETTERS] = {NULL};
    unsigned       seen = 0;

    add_after(t, "a", S);
    add_after(t, "b", S);
    add_after(t, "c", S);
    for (int i = 0; i < GETTERS; i++)
        all[i] = worker_get(t->q, &items[i]);
    await_sleepers(t, 1); /* one keeps time for all */
    worker_await_all_blocked(all, GETTERS);
    step(t, S);
    for (int i = 0; i < GETTERS; i++) {
        assert_err(worker_join(all[i]), WQ_OK);
        seen |= 1U << (*(const char *)items[i]->key.data - 'a');
    }

    assert_int_equal(seen, 7);
}

/* O-18 O-08 */
TEST(interrupt_is_remembered_by_the_layer)
{
    struct timed *t = *state;
    wq_item      *item = NULL;

    wq_interrupt(t->q);
    wq_interrupt(t->q);
    assert_none_due(t);
    assert_err(wq_get(t->q, &item), WQ_EINTERRUPTED);
    struct worker *w = get_in_time(t, S);
    await_sleepers(t, 1);
    step(t, S);

    assert_err(worker_join(w), WQ_ETIMEDOUT);
}

/* O-18: what the clock shows does not matter. */
TEST(get_sleeps_when_time_is_below_zero)
{
    struct timed *t = *state;

    wq_clock_fake_set(t->clock, -HOUR);
    add_after(t, "foo", S);
    struct worker *w = get_in_time(t, WQ_FOREVER);
    await_sleepers(t, 1);
    step(t, S);

    assert_err(worker_join(w), WQ_OK);
}

/* O-18: farther away than a number can tell. */
TEST(get_sleeps_when_the_deadline_is_ages_away)
{
    struct timed *t = *state;

    wq_clock_fake_set(t->clock, WQ_FOREVER - 10);
    add_after(t, "foo", 5);
    wq_clock_fake_set(t->clock, -HOUR);
    struct worker *w = get_in_time(t, WQ_FOREVER);
    worker_await_blocked(w);
    wq_interrupt(t->q);

    assert_err(worker_join(w), WQ_EINTERRUPTED);
}

/* ---- an inner queue that cannot be interrupted --------------------------- */

/* O-18: it looks every 10 ms, in real time since that is what a plain queue
 * sleeps by. */
TEST(get_in_a_queue_without_interrupt_learns_of_a_deadline)
{
    struct timed *t = wrap_plain(PLAIN_REQUIRED);

    struct worker *w = get_in_time(t, WQ_FOREVER);
    worker_await_blocked(w);
    add_after(t, "foo", HOUR);
    step(t, HOUR);

    assert_err(worker_join(w), WQ_OK);
    assert_key(t->item, "foo");
    timed_destroy(t);
}

/* O-18 O-08 */
TEST(get_in_a_queue_without_interrupt_can_be_interrupted)
{
    struct timed *t = wrap_plain(PLAIN_REQUIRED);
    wq_item      *item = NULL;

    struct worker *w = get_in_time(t, WQ_FOREVER);
    worker_await_blocked(w);
    wq_interrupt(t->q);
    assert_err(worker_join(w), WQ_EINTERRUPTED);

    add(t->q, "foo");
    work_on(t->q, "foo");
    wq_interrupt(t->q);
    assert_err(wq_get(t->q, &item), WQ_EINTERRUPTED);
    timed_destroy(t);
}

/* O-18 O-05 */
TEST(get_in_a_queue_without_interrupt_gives_up_in_time)
{
    struct timed *t = wrap_plain(PLAIN_REQUIRED);

    struct worker *w = get_in_time(t, HOUR);
    worker_await_blocked(w);
    step(t, HOUR);

    assert_err(worker_join(w), WQ_ETIMEDOUT);
    timed_destroy(t);
}

/* O-18: an end that is farther away than a number can tell. */
TEST(get_in_a_queue_without_interrupt_sleeps_when_time_is_below_zero)
{
    struct timed *t = wrap_plain(PLAIN_REQUIRED);

    wq_clock_fake_set(t->clock, -HOUR);
    struct worker *w = get_in_time(t, WQ_FOREVER);
    worker_await_blocked(w);
    add(t->q, "foo");

    assert_err(worker_join(w), WQ_OK);
    timed_destroy(t);
}

/* O-18 Q-19 */
TEST(shutdown_wakes_gets_in_any_inner_queue)
{
    for (int verbs = PLAIN_REQUIRED; verbs <= PLAIN_BASE; verbs++) {
        struct timed *t = wrap_plain((enum plain_verbs)verbs);

        struct worker *w = get_in_time(t, WQ_FOREVER);
        worker_await_blocked(w);
        wq_shutdown(t->q);
        assert_err(worker_join(w), WQ_ESHUTDOWN);
        timed_destroy(t);
    }
}

/* O-18 O-03 */
TEST(destroy_sends_gets_home_from_any_inner_queue)
{
    enum { GETTERS = 3 };

    for (int verbs = PLAIN_REQUIRED; verbs <= PLAIN_BASE; verbs++) {
        struct timed  *t = wrap_plain((enum plain_verbs)verbs);
        struct worker *all[GETTERS];

        wrap_limits(t, WQ_CONFIG(.limiter = NULL));
        add_after(t, "foo", HOUR);
        for (int i = 0; i < GETTERS; i++)
            all[i] = worker_get(t->q, NULL);
        worker_await_all_blocked(all, GETTERS);
        timed_destroy(t);
        for (int i = 0; i < GETTERS; i++)
            assert_err(worker_join(all[i]), WQ_ESHUTDOWN);
    }
}

/* O-18 O-03: a get that has left the inner queue is still in the layer. */
TEST(destroy_waits_for_gets_that_are_on_their_way_out)
{
    struct gate   g;
    struct bare  *b;
    struct timed *t = wrap_bare(&b);
    atomic_int    destroys = 0;

    gate_init(&g, b);
    b->destroys = &destroys;
    add_after(t, "foo", HOUR);
    struct worker *get = get_in_time(t, WQ_FOREVER);
    await_sleepers(t, 1);
    atomic_store(&g.after, true);
    struct worker *destroy = worker_start(destroy_layer, t->q);
    await_held(&g);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(atomic_load(&destroys), 0);
        (void)sched_yield();
    }
    let_go(&g);

    assert_err(worker_join(get), WQ_ESHUTDOWN);
    assert_int_equal(worker_join(destroy), 0);
    assert_int_equal(destroys, 1);
    t->q = NULL;
    timed_destroy(t);
    gate_fini(&g);
}

/* ---- an inner queue that refuses ----------------------------------------- */

/* O-18 */
TEST(refused_key_is_handed_over_by_the_next_who_looks)
{
    struct bare  *b;
    struct timed *t = wrap_bare(&b);

    add_after(t, "foo", S);
    step(t, S);
    atomic_store(&b->refuse, 2);
    assert_none_due(t); /* looks twice */
    assert_int_equal(atomic_load(&b->adds), 2);

    work_on(t->q, "foo");
    step(t, HOUR);
    assert_none_due(t);
    timed_destroy(t);
}

/* O-18 D-05 */
TEST(refused_keys_are_all_handed_over_in_the_end)
{
    struct bare  *b;
    struct timed *t = wrap_bare(&b);
    unsigned      seen = 0;

    for (char key[] = "a"; key[0] < 'a' + 8; key[0]++)
        add_after(t, key, S);
    step(t, S);
    for (int i = 0; i < 20; i++) {
        atomic_store(&b->refuse, 1);
        (void)wq_len(t->q);
    }
    atomic_store(&b->refuse, 0);

    assert_int_equal(wq_len(t->q), 8);
    for (int i = 0; i < 8; i++) {
        wq_item *item = take(t->q);
        seen |= 1U << (*(const char *)item->key.data - 'a');
        finish(t->q, item);
    }
    assert_int_equal(seen, 255);
    timed_destroy(t);
}

/* O-18: 10 ms later. */
TEST(get_that_sleeps_tries_a_refused_key_again)
{
    struct bare  *b;
    struct timed *t = wrap_bare(&b);

    add_after(t, "foo", S);
    struct worker *w = get_in_time(t, WQ_FOREVER);
    await_sleepers(t, 1);
    worker_await_blocked(w);
    atomic_store(&b->refuse, 1);
    step(t, S);
    worker_await_blocked(w);
    assert_int_equal(atomic_load(&b->refuse), 0);
    await_sleepers(t, 1);
    step(t, 10 * MS);

    assert_err(worker_join(w), WQ_OK);
    assert_key(t->item, "foo");
    timed_destroy(t);
}

/* O-18 O-05: and gives up in time. */
TEST(get_gives_up_in_time_while_a_key_is_refused)
{
    struct bare  *b;
    struct timed *t = wrap_bare(&b);

    add_after(t, "foo", 1);
    step(t, 1);
    atomic_store(&b->refuse, INT32_MAX);
    struct worker *w = get_in_time(t, MS);
    await_sleepers(t, 1);
    step(t, MS);
    assert_err(worker_join(w), WQ_ETIMEDOUT);

    atomic_store(&b->refuse, 0);
    work_on(t->q, "foo");
    timed_destroy(t);
}

/* O-18 D-11: a key that waits again, while it is refused. */
TEST(refused_key_may_wait_again)
{
    struct bare  *b;
    struct timed *t = wrap_bare(&b);

    add_after(t, "foo", S);
    step(t, S);
    atomic_store(&b->refuse, 1);
    assert_int_equal(wq_len(t->q), 0);
    add_after(t, "foo", S);

    work_on(t->q, "foo");
    assert_due_in(t, "foo", S);
    timed_destroy(t);
}

/* O-18: the add that is refused is the caller's own. */
TEST(refused_add_is_told_to_the_caller)
{
    struct bare  *b;
    struct timed *t = wrap_bare(&b);

    atomic_store(&b->refuse, 1);
    assert_err(wq_add_str(t->q, "foo"), WQ_ENOMEM);
    atomic_store(&b->refuse, 1);
    assert_err(wq_add_after(t->q, wq_str("foo"), 0), WQ_ENOMEM);

    assert_none_due(t);
    timed_destroy(t);
}

/* ---- whose queue --------------------------------------------------------- */

/* D-17 O-18 */
TEST(layer_destroys_what_it_wraps_once)
{
    struct bare  *b;
    struct timed *t = wrap_bare(&b);
    atomic_int    destroys = 0;

    b->destroys = &destroys;
    wrap_limits(t, WQ_CONFIG(.limiter = NULL));
    timed_destroy(t);

    assert_int_equal(destroys, 1);
}

/* The inner queue is the caller's still, and works. */
static void
assert_mine(wq_queue *q)
{
    assert_false(wq_shutting_down(q));
    add(q, "foo");
    work_on(q, "foo");
}

/* O-18 O-14 */
TEST(layer_around_nothing_is_refused)
{
    wq_queue *out = NULL;

    assert_err(wq_delaying_wrap(NULL, NULL, &out), WQ_EINVAL);
    assert_err(wq_rate_limiting_wrap(NULL, NULL, &out), WQ_EINVAL);
    assert_null(out);
}

/* O-18 O-02: a layer can do what its inner queue cannot be asked to do
 * differently. */
TEST(layer_with_a_config_it_cannot_keep_is_refused)
{
    const wq_order  order = {.size = 0};
    const wq_config cannot[] = {
        {.size = sizeof(wq_config), .waiting = WQ_WAITING_KEEP},
        {.size = sizeof(wq_config), .retry = WQ_RETRY_ONCE},
        {.size = sizeof(wq_config), .retry = WQ_RETRY_RESPECT},
        {.size = sizeof(wq_config), .real_time = true},
    };
    const wq_config bad[] = {
        {.size = 0},
        {.size = sizeof(wq_config) - 1},
        {.size = sizeof(wq_config), .order = &order},
        {.size = sizeof(wq_config), .waiting = (wq_waiting)7},
        {.size = sizeof(wq_config), .retry = 8},
    };
    wq_queue *inner = NULL, *out = NULL;

    assert_err(wq_create(NULL, &inner), WQ_OK);
    for (size_t i = 0; i < sizeof cannot / sizeof cannot[0]; i++) {
        assert_err(wq_rate_limiting_wrap(inner, &cannot[i], &out), WQ_ENOTSUP);
        assert_err(wq_delaying_wrap(inner, &cannot[i], &out), WQ_ENOTSUP);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_err(wq_delaying_wrap(inner, &bad[i], &out), WQ_EINVAL);
        assert_err(wq_rate_limiting_wrap(inner, &bad[i], &out), WQ_EINVAL);
    }
    assert_err(wq_delaying_wrap(inner, NULL, NULL), WQ_EINVAL);
    assert_err(wq_rate_limiting_wrap(inner, NULL, NULL), WQ_EINVAL);
    assert_null(out);
    assert_mine(inner);
    wq_destroy(inner);
}

static wq_err
order_push(void *self, wq_key key, int priority)
{
    (void)self;
    (void)key;
    (void)priority;
    return WQ_OK;
}

static bool
order_pop(void *self, wq_key *out)
{
    (void)self;
    (void)out;
    return false;
}

static size_t
order_len(void *self)
{
    (void)self;
    return 0;
}

/* O-18 */
TEST(layer_with_an_order_is_refused)
{
    const wq_order order = {.size = sizeof order,
                            .push = order_push,
                            .pop = order_pop,
                            .len = order_len};
    wq_queue      *inner = NULL, *out = NULL;

    assert_err(wq_create(NULL, &inner), WQ_OK);
    assert_err(wq_delaying_wrap(inner, WQ_CONFIG(.order = &order), &out),
               WQ_ENOTSUP);
    assert_err(wq_rate_limiting_wrap(inner, WQ_CONFIG(.order = &order), &out),
               WQ_ENOTSUP);
    assert_null(out);
    assert_mine(inner);
    wq_destroy(inner);
}

/* O-18 D-17 */
TEST(limits_around_a_queue_without_delays_are_refused)
{
    wq_queue *inner = NULL, *out = NULL;

    assert_err(plain_create(PLAIN_BASE, &inner), WQ_OK);
    assert_err(
        wq_rate_limiting_wrap(
            inner, WQ_CONFIG(.limiter = wq_limiter_exponential(MS, S)), &out),
        WQ_ENOTSUP);
    assert_null(out);
    assert_mine(inner);
    wq_destroy(inner);
}

static int64_t
no_delay(void *self, wq_key key)
{
    (void)self, (void)key;
    return 0;
}

static void
count_destroy(void *self)
{
    ++*(int *)self;
}

/* A limiter that counts in *destroys how often it is destroyed. */
static wq_limiter *
counted_limiter(int *destroys)
{
    const wq_limiter_ops ops = {
        .size = sizeof ops, .when = no_delay, .destroy = count_destroy};

    return wq_limiter_create(&ops, destroys);
}

/* O-18 L-24 L-31 */
TEST(limits_that_fail_destroy_the_limiter_of_the_config)
{
    const wq_allocator no_free = {.size = sizeof no_free};
    wq_queue          *bare = NULL, *inner = NULL, *out = NULL;
    int                n = 0;

    assert_err(plain_create(PLAIN_BASE, &bare), WQ_OK);
    assert_err(wq_create(NULL, &inner), WQ_OK);
    const struct {
        wq_queue *inner, **out;
        wq_config config;
        wq_err    err;
    } bad[] = {
        {NULL, &out, {.size = sizeof(wq_config)}, WQ_EINVAL},
        {inner, NULL, {.size = sizeof(wq_config)}, WQ_EINVAL},
        {bare, &out, {.size = sizeof(wq_config)}, WQ_ENOTSUP},
        {inner, &out, {.size = sizeof(wq_config), .ages = true}, WQ_ENOTSUP},
        {inner,
         &out,
         {.size = sizeof(wq_config), .allocator = &no_free},
         WQ_EINVAL},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        wq_config config = bad[i].config;
        config.limiter = counted_limiter(&n);
        assert_err(wq_rate_limiting_wrap(bad[i].inner, &config, bad[i].out),
                   bad[i].err);
        assert_int_equal(n, i + 1);
    }
    assert_err(
        wq_rate_limiting_wrap(
            inner, WQ_CONFIG(.limiter = wq_limiter_exponential(-1, 1)), &out),
        WQ_EINVAL);
    assert_null(out);
    assert_mine(inner);
    wq_destroy(bare);
    wq_destroy(inner);
}

/* O-18: so one config can serve both layers. */
TEST(delays_do_not_look_at_the_limiter_of_the_config)
{
    wq_queue *inner = NULL, *out = NULL;
    int       n = 0;

    assert_err(plain_create(PLAIN_BASE, &inner), WQ_OK);
    wq_limiter *limiter = counted_limiter(&n);
    assert_err(wq_delaying_wrap(
                   inner, WQ_CONFIG(.limiter = limiter, .ages = true), &out),
               WQ_ENOTSUP);
    assert_err(
        wq_delaying_wrap(
            inner, WQ_CONFIG(.limiter = wq_limiter_exponential(-1, 1)), &out),
        WQ_OK);
    assert_int_equal(n, 0);
    wq_limiter_destroy(limiter);
    assert_int_equal(n, 1);
    wq_destroy(out);
}

/* O-18 L-24 */
TEST(limiter_that_has_an_owner_is_refused_to_a_layer)
{
    struct counting mem;
    wq_limiter     *limiter = wq_limiter_exponential(MS, S);
    wq_queue       *owner = NULL, *inner = NULL, *out = NULL;

    counting_init(&mem);
    assert_err(wq_create(WQ_CONFIG(.limiter = limiter), &owner), WQ_OK);
    assert_err(wq_create(NULL, &inner), WQ_OK);
    assert_err(wq_rate_limiting_wrap(
                   inner,
                   WQ_CONFIG(.limiter = limiter, .allocator = &mem.allocator),
                   &out),
               WQ_EINVAL);
    assert_null(out);
    assert_int_equal(mem.bytes, 0);
    assert_mine(inner);
    wq_destroy(inner);
    assert_err(wq_add_rate_limited(owner, wq_str("foo")), WQ_OK);
    wq_destroy(owner);
}

/* O-18: so one config serves both layers. */
TEST(limiter_of_the_config_belongs_to_the_layer_that_uses_it)
{
    struct timed   *t = timed_begin(0);
    struct bare    *b = bare_create(t->clock);
    const wq_config config = {.size = sizeof config,
                              .clock = t->clock,
                              .limiter = wq_limiter_exponential(MS, S),
                              .max_retries = 1};
    wq_queue       *delaying = NULL;

    assert_err(wq_delaying_wrap(&b->base, &config, &delaying), WQ_OK);
    assert_err(wq_rate_limiting_wrap(delaying, &config, &t->q), WQ_OK);

    retry(t, "foo");
    assert_due_in(t, "foo", MS);
    assert_err(wq_add_rate_limited(t->q, wq_str("foo")), WQ_EGIVENUP);
    timed_destroy(t);
}

/* O-18: each allocation of both in turn. */
TEST(layer_that_finds_no_memory_leaves_the_queue_to_the_caller)
{
    struct counting mem;
    struct timed   *t = timed_begin(0);
    struct bare    *b = bare_create(t->clock);
    wq_queue       *delaying = NULL;
    int             n = 0;
    counting_init(&mem);
    wq_config config = {.size = sizeof config,
                        .clock = t->clock,
                        .limiter = counted_limiter(&n),
                        .allocator = &mem.allocator};

    counting_fail(&mem, 1, COUNTING_ONCE);
    assert_err(wq_delaying_wrap(&b->base, &config, &delaying), WQ_ENOMEM);
    assert_null(delaying);
    assert_mine(&b->base);
    assert_err(wq_delaying_wrap(&b->base, &config, &delaying), WQ_OK);
    counting_fail(&mem, 1, COUNTING_ONCE);
    assert_err(wq_rate_limiting_wrap(delaying, &config, &t->q), WQ_ENOMEM);
    assert_null(t->q);
    assert_mine(delaying);
    assert_int_equal(n, 1);
    config.limiter = counted_limiter(&n);
    assert_err(wq_rate_limiting_wrap(delaying, &config, &t->q), WQ_OK);
    counting_heal(&mem);
    assert_true(mem.bytes > 0);
    timed_destroy(t);

    assert_int_equal(n, 2);
    assert_int_equal(mem.bytes, 0);
}

/* O-18 D-13 */
TEST(layer_gives_back_what_a_shutdown_drops)
{
    struct counting mem;
    struct timed   *t = timed_begin(0);
    struct bare    *b = bare_create(t->clock);
    char            key[5000];
    counting_init(&mem);

    assert_err(wq_delaying_wrap(
                   &b->base,
                   WQ_CONFIG(.clock = t->clock, .allocator = &mem.allocator),
                   &t->q),
               WQ_OK);
    memset(key, 'x', sizeof key);
    assert_err(wq_add_after(t->q, (wq_key){key, sizeof key}, S), WQ_OK);
    const size_t before = mem.bytes;
    wq_shutdown(t->q);
    assert_true(mem.bytes + sizeof key <= before);
    timed_destroy(t);
    assert_int_equal(mem.bytes, 0);
}

/* O-18 D-14 */
TEST(delay_refused_by_the_layer_for_lack_of_memory_changes_nothing)
{
    struct counting mem;
    struct timed   *t = timed_begin(0);
    struct bare    *b = bare_create(t->clock);
    counting_init(&mem);

    assert_err(wq_delaying_wrap(
                   &b->base,
                   WQ_CONFIG(.clock = t->clock, .allocator = &mem.allocator),
                   &t->q),
               WQ_OK);
    counting_fail(&mem, 1, COUNTING_FROM_NOW);
    assert_err(wq_add_after(t->q, wq_str("foo"), S), WQ_ENOMEM);
    assert_none_due(t);
    counting_heal(&mem);
    step(t, S);
    assert_none_due(t);
    add_after(t, "foo", S);
    counting_fail(&mem, 1, COUNTING_FROM_NOW);
    step(t, S);
    (void)wq_len(t->q); /* there is no memory to hand it over */
    counting_heal(&mem);
    work_on(t->q, "foo");
    timed_destroy(t);
    assert_int_equal(mem.bytes, 0);
}

/* ---- limits -------------------------------------------------------------- */

/* */
TEST(layer_waits_as_long_as_its_limiter_says)
{
    struct timed *t = *state;

    retry(t, "one");
    assert_due_in(t, "one", MS);
    retry(t, "one");
    assert_due_in(t, "one", 2 * MS);
    assert_int_equal(wq_num_requeues(t->q, wq_str("one")), 2);
    assert_err(wq_forget(t->q, wq_str("one")), WQ_OK);
    assert_int_equal(wq_num_requeues(t->q, wq_str("one")), 0);
    retry(t, "one");
    assert_due_in(t, "one", MS);
}

/* R-02 R-03 */
TEST(layer_counts_although_the_earlier_deadline_stays)
{
    struct timed *t = *state;

    retry(t, "foo");
    retry(t, "foo");
    assert_int_equal(wq_num_requeues(t->q, wq_str("foo")), 2);
    assert_err(wq_forget(t->q, wq_str("foo")), WQ_OK);

    assert_due_in(t, "foo", MS);
    step(t, HOUR);
    assert_none_due(t);
}

/* L-12 L-23 */
TEST(layer_without_a_limiter_of_its_own_has_the_default_one)
{
    struct bare  *b;
    struct timed *t = wrap_bare(&b);

    wrap_limits(t, WQ_CONFIG(.limiter = NULL));
    for (uint64_t i = 0; i < 101; i++)
        assert_err(wq_add_rate_limited(t->q, wq_u64(&i)), WQ_OK);
    step(t, 100 * MS - 1);
    assert_int_equal(wq_len(t->q), 100);
    step(t, 1);
    assert_int_equal(wq_len(t->q), 101);
    timed_destroy(t);
}

struct told {
    int       calls;
    unsigned  retries;
    wq_queue *q;
};

static void
tell(void *ctx, wq_key key, unsigned retries, wq_err why)
{
    struct told *told = ctx;

    assert_err(why, WQ_EGIVENUP);
    told->calls++;
    told->retries = retries;
    (void)!wq_add(told->q, key);
}

/* O-17 O-18 */
TEST(layer_gives_up_after_so_many_retries)
{
    struct bare  *b;
    struct timed *t = wrap_bare(&b);
    struct told   told = {.calls = 0};

    wrap_limits(t, WQ_CONFIG(.limiter = wq_limiter_exponential(MS, S),
                             .max_retries = 1, .on_drop = tell,
                             .drop_ctx = &told));
    told.q = t->q;
    retry(t, "foo");
    assert_due_in(t, "foo", MS);
    assert_err(wq_add_rate_limited(t->q, wq_str("foo")), WQ_EGIVENUP);

    assert_int_equal(told.calls, 1);
    assert_int_equal(told.retries, 1);
    assert_int_equal(wq_num_requeues(t->q, wq_str("foo")), 0);
    work_on(t->q, "foo");
    step(t, HOUR);
    assert_none_due(t);
    timed_destroy(t);
}

/* O-62: a layer has no metrics; the inner queue has. */
TEST(drops_of_a_layer_count_in_the_inner_queue)
{
    struct timed *t = timed_create(WQ_CONFIG(.order = NULL));
    wq_queue     *memory = t->q;
    wq_stats      counts = {.size = sizeof counts};

    assert_err(wq_delaying_wrap(memory, WQ_CONFIG(.clock = t->clock), &t->q),
               WQ_OK);
    wrap_limits(t, WQ_CONFIG(.limiter = wq_limiter_exponential(MS, S),
                             .max_retries = 1));
    retry(t, "foo");
    assert_err(wq_add_rate_limited(t->q, wq_str("foo")), WQ_EGIVENUP);
    assert_err(wq_count_drops(t->q, 2), WQ_OK);

    assert_err(wq_read_stats(memory, &counts), WQ_OK);
    assert_int_equal(counts.drops, 1 + 2);
    timed_destroy(t);
}

/* O-17 O-18 */
TEST(layer_without_memory_to_show_a_key_does_not_give_up)
{
    static char     bytes[WQ_KEY_MAX];
    const wq_key    key = {bytes, sizeof bytes};
    struct counting mem;
    struct bare    *b;
    struct timed   *t = wrap_bare(&b);
    struct told     told = {.calls = 0};

    counting_init(&mem);
    memset(bytes, 'k', sizeof bytes);
    wrap_limits(t, WQ_CONFIG(.limiter = wq_limiter_exponential(MS, S),
                             .allocator = &mem.allocator, .max_retries = 1,
                             .on_drop = tell, .drop_ctx = &told));
    told.q = t->q;
    assert_err(wq_add_rate_limited(t->q, key), WQ_OK);
    counting_fail(&mem, 1, COUNTING_FROM_NOW);
    assert_err(wq_add_rate_limited(t->q, key), WQ_ENOMEM);
    assert_int_equal(told.calls, 0);
    assert_int_equal(wq_num_requeues(t->q, key), 1);

    counting_heal(&mem);
    assert_err(wq_add_rate_limited(t->q, key), WQ_EGIVENUP);
    assert_int_equal(told.calls, 1);
    timed_destroy(t);
    assert_int_equal(mem.bytes, 0);
}

/* R-03 L-30 */
TEST(layer_takes_back_a_retry_that_found_no_memory)
{
    struct counting mem;
    struct timed   *t = timed_begin(0);
    struct bare    *b = bare_create(t->clock);
    counting_init(&mem);

    assert_err(wq_delaying_wrap(
                   &b->base,
                   WQ_CONFIG(.clock = t->clock, .allocator = &mem.allocator),
                   &t->q),
               WQ_OK);
    wrap_limits(t, WQ_CONFIG(.limiter = wq_limiter_exponential(MS, S)));
    counting_fail(&mem, 1, COUNTING_FROM_NOW);
    assert_err(wq_add_rate_limited(t->q, wq_str("foo")), WQ_ENOMEM);
    counting_heal(&mem);

    assert_int_equal(wq_num_requeues(t->q, wq_str("foo")), 0);
    retry(t, "foo");
    assert_due_in(t, "foo", MS);
    timed_destroy(t);
}

/* */
TEST(retry_through_a_layer_after_shutdown_does_not_count)
{
    struct timed *t = *state;

    retry(t, "foo");
    wq_shutdown(t->q);
    assert_err(wq_add_rate_limited(t->q, wq_str("foo")), WQ_ESHUTDOWN);

    assert_int_equal(wq_num_requeues(t->q, wq_str("foo")), 1);
    assert_none_ready(t->q, WQ_ESHUTDOWN);
}

/* R-03 O-17 */
TEST(layer_does_not_give_up_after_shutdown)
{
    struct bare  *b;
    struct timed *t = wrap_bare(&b);

    wrap_limits(t, WQ_CONFIG(.limiter = wq_limiter_exponential(MS, S),
                             .max_retries = 1));
    retry(t, "foo");
    wq_shutdown(t->q);

    assert_err(wq_add_rate_limited(t->q, wq_str("foo")), WQ_ESHUTDOWN);
    assert_int_equal(wq_num_requeues(t->q, wq_str("foo")), 1);
    timed_destroy(t);
}

/* R-02 O-14 */
TEST(layer_refuses_bad_keys)
{
    struct timed *t = *state;

    assert_err(wq_add_rate_limited(t->q, wq_str("")), WQ_EINVAL);
    assert_err(wq_forget(t->q, wq_str("")), WQ_EINVAL);
    assert_int_equal(wq_num_requeues(t->q, wq_str("")), 0);
    step(t, HOUR);
    assert_none_due(t);
}

/* a get through both layers. */
TEST(get_through_both_layers_sleeps_until_a_backoff_ends)
{
    struct timed *t = *state;

    struct worker *w = get_in_time(t, WQ_FOREVER);
    worker_await_blocked(w);
    retry(t, "foo");
    await_sleepers(t, 1);
    step(t, MS);

    assert_err(worker_join(w), WQ_OK);
    assert_key(t->item, "foo");
}

/* ---- many threads -------------------------------------------------------- */

enum { KEYS = 16, PRODUCERS = 2, CONSUMERS = 3, ADDS = 300 };

/* As in test_delay.c: an add is lost if `seen` is behind in the end. */
struct run {
    struct timed *t;
    struct bare  *inner;
    atomic_int    wanted[KEYS];
    atomic_int    seen[KEYS];
};

static int
produce(struct worker *self)
{
    struct run *run = self->arg;
    uint64_t    seed = (uint64_t)(uintptr_t)self;

    for (int i = 0; i < ADDS; i++) {
        const uint64_t key = draw(&seed) % KEYS;
        const int64_t  delay_ns = (int64_t)(draw(&seed) % 20) + 1;

        atomic_fetch_add(&run->wanted[key], 1);
        if (wq_add_after(run->t->q, wq_u64(&key), delay_ns) != WQ_OK)
            return 1;
        if (i % 16 == 0)
            atomic_store(&run->inner->refuse, 1);
    }
    return 0;
}

static int
consume(struct worker *self)
{
    struct run *run = self->arg;
    wq_item    *item;
    wq_err      err;

    while ((err = wq_get(run->t->q, &item)) == WQ_OK) {
        uint64_t key;

        memcpy(&key, item->key.data, sizeof key);
        atomic_store(&run->seen[key], atomic_load(&run->wanted[key]));
        (void)wq_done(run->t->q, item);
    }
    return (int)err;
}

static bool
all_was_seen(const struct run *run)
{
    for (int i = 0; i < KEYS; i++)
        if (atomic_load(&run->seen[i]) != atomic_load(&run->wanted[i]))
            return false;
    return true;
}

/* O-18 D-06: although the inner queue refuses now and then. Time goes on until
 * all was seen: a get tries again after 10 ms. */
TEST(no_delayed_add_is_lost_in_a_layer_while_threads_meet)
{
    struct run     run = {.t = wrap_bare(&run.inner)};
    struct worker *producers[PRODUCERS], *consumers[CONSUMERS];

    for (int i = 0; i < CONSUMERS; i++)
        consumers[i] = worker_start(consume, &run);
    for (int i = 0; i < PRODUCERS; i++)
        producers[i] = worker_start(produce, &run);
    for (size_t left = PRODUCERS; left;) {
        step(run.t, 1);
        if (worker_has_ended(producers[left - 1]))
            assert_int_equal(worker_join(producers[--left]), 0);
    }
    for (int i = 0; i < 5; i++) {
        worker_await_all_blocked(consumers, CONSUMERS);
        step(run.t, 10 * MS);
    }
    worker_await_all_blocked(consumers, CONSUMERS);

    assert_true(all_was_seen(&run));
    wq_shutdown(run.t->q);
    for (int i = 0; i < CONSUMERS; i++)
        assert_err(worker_join(consumers[i]), WQ_ESHUTDOWN);
    timed_destroy(run.t);
}

WQ_TESTS(DELAY_FACTS(with_layer),
         test(plain_queue_alone_knows_neither_delays_nor_limits),
         test(delaying_layer_gives_delays_and_no_limits),
         test(both_layers_give_delays_and_limits),
         test(key_that_is_due_in_a_plain_queue_is_as_one_that_was_added),
         test(verbs_the_inner_queue_lacks_stay_unsupported),
         test(verbs_the_inner_queue_has_go_through),
         test(limits_can_be_put_around_any_queue_with_delays),
         with_layer(delay_after_a_deadline_that_has_passed_is_kept),
         test(layers_have_the_verbs_that_are_listed_and_no_others),
         test(verbs_a_layer_lacks_are_unsupported),
         test(batches_go_through_a_layer_one_by_one),
         with_layer(callers_do_not_notice_that_the_layer_interrupts),
         test(earlier_deadline_is_watched_while_the_keeper_falls_asleep),
         test(interrupt_of_a_get_that_has_its_key_is_remembered),
         test(get_blocked_in_a_layer_that_is_destroyed_gets_no_key),
         test(interrupt_the_layer_had_no_use_for_ends_no_later_get),
         test(get_that_is_about_to_sleep_learns_of_an_earlier_deadline),
         test(get_that_is_about_to_sleep_learns_of_it_even_if_another_leaves),
         with_layer(several_gets_share_what_is_due),
         with_layer(interrupt_is_remembered_by_the_layer),
         with_layer(get_sleeps_when_time_is_below_zero),
         with_layer(get_sleeps_when_the_deadline_is_ages_away),
         test(get_in_a_queue_without_interrupt_learns_of_a_deadline),
         test(get_in_a_queue_without_interrupt_can_be_interrupted),
         test(get_in_a_queue_without_interrupt_gives_up_in_time),
         test(get_in_a_queue_without_interrupt_sleeps_when_time_is_below_zero),
         test(shutdown_wakes_gets_in_any_inner_queue),
         test(destroy_sends_gets_home_from_any_inner_queue),
         test(destroy_waits_for_gets_that_are_on_their_way_out),
         test(refused_key_is_handed_over_by_the_next_who_looks),
         test(refused_keys_are_all_handed_over_in_the_end),
         test(get_that_sleeps_tries_a_refused_key_again),
         test(get_gives_up_in_time_while_a_key_is_refused),
         test(refused_key_may_wait_again),
         test(refused_add_is_told_to_the_caller),
         test(layer_destroys_what_it_wraps_once),
         test(layer_around_nothing_is_refused),
         test(layer_with_a_config_it_cannot_keep_is_refused),
         test(layer_with_an_order_is_refused),
         test(limits_around_a_queue_without_delays_are_refused),
         test(limits_that_fail_destroy_the_limiter_of_the_config),
         test(delays_do_not_look_at_the_limiter_of_the_config),
         test(limiter_that_has_an_owner_is_refused_to_a_layer),
         test(limiter_of_the_config_belongs_to_the_layer_that_uses_it),
         test(layer_that_finds_no_memory_leaves_the_queue_to_the_caller),
         test(layer_gives_back_what_a_shutdown_drops),
         test(delay_refused_by_the_layer_for_lack_of_memory_changes_nothing),
         with_limits(layer_waits_as_long_as_its_limiter_says),
         with_limits(layer_counts_although_the_earlier_deadline_stays),
         test(layer_without_a_limiter_of_its_own_has_the_default_one),
         test(layer_gives_up_after_so_many_retries),
         test(drops_of_a_layer_count_in_the_inner_queue),
         test(layer_without_memory_to_show_a_key_does_not_give_up),
         test(layer_takes_back_a_retry_that_found_no_memory),
         with_limits(retry_through_a_layer_after_shutdown_does_not_count),
         test(layer_does_not_give_up_after_shutdown),
         with_limits(layer_refuses_bad_keys),
         with_limits(get_through_both_layers_sleeps_until_a_backoff_ends),
         test(no_delayed_add_is_lost_in_a_layer_while_threads_meet));
