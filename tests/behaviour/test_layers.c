/* SPDX-License-Identifier: MIT */
/* test_layers.c: what do the layers of backend.h add to a queue that has no
 * delays, and what do they leave as it was?
 *
 * Two inner queues are wrapped here: a bare one, on a fake clock and with gates
 * (support/bare_queue.h), and a plain one (support/plain_queue.h), which another
 * author might have written, and which sleeps in real time. Delays and retries
 * themselves are tested by the programs conformance_layers_*.
 */
#include "layered.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>

#include "support/look.h"
#include "support/plain_queue.h"

/* A delaying layer on a fake clock around a plain queue. */
static struct timed *
wrap_plain(enum plain_verbs verbs)
{
    struct timed *t = timed_begin(0);
    wq_queue     *inner = NULL;

    assert_err(plain_create(verbs, &inner), WQ_OK);
    wrap_delays(t, inner, NULL);
    return t;
}

static int
plain_setup(void **state)
{
    *state = wrap_plain(PLAIN_REQUIRED);
    return 0;
}

#define with_plain(name) test_with(name, plain_setup, timed_teardown)

/* ---- what a backend alone can do ----------------------------------------- */

/* O-18 */
TEST(plain_queue_alone_has_neither_delays_nor_limits)
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

/* O-18 R-01 */
TEST(each_layer_adds_its_verbs)
{
    struct timed *t = *state;

    add_after(t, "foo", S);
    assert_err(wq_add_rate_limited(t->q, wq_str("foo")), WQ_ENOTSUP);
    assert_err(wq_forget(t->q, wq_str("foo")), WQ_ENOTSUP);
    assert_due_in(t, "foo", S);

    wrap_limits(t, WQ_CONFIG(.limiter = wq_limiter_exponential(MS, S)));
    add_after(t, "foo", S);
    assert_due_in(t, "foo", S);
    assert_err(wq_add_rate_limited(t->q, wq_str("foo")), WQ_OK);
    assert_due_in(t, "foo", MS);
    add(t->q, "foo");
    work_on(t->q, "foo");
}

/* O-18 D-10 */
TEST(due_key_behaves_as_an_added_one)
{
    struct timed *t = *state;

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
}

/* O-18 */
TEST(verbs_the_inner_queue_lacks_stay_unsupported)
{
    struct timed *t = *state;

    wrap_limits(t, WQ_CONFIG(.limiter = NULL));
    add(t->q, "foo");
    wq_item *item = take_key(t->q, "foo");

    assert_err(wq_done_key(t->q, wq_str("foo")), WQ_ENOTSUP);
    assert_err(wq_shutdown_with_drain_within(t->q, 0), WQ_ENOTSUP);
    assert_false(wq_shutting_down(t->q));
    finish(t->q, item);
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
    assert_err(wq_add_rate_limited(t->q, wq_str("foo")), WQ_OK);
    assert_due_in(t, "foo", MS);
    assert_err(wq_add_rate_limited(t->q, wq_str("foo")), WQ_OK);
    assert_due_in(t, "foo", 2 * MS);
    timed_destroy(t);
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
    VERB(count_drops, true, true),   VERB(add_with, true, true),
    VERB(remove, true, true),        VERB(cancel_after, true, true),
    VERB(get_many, true, true),      VERB(done_many, true, true),
    VERB(next, true, true),          VERB(fd, true, true),
    VERB(stats, true, true),         VERB(depths, true, true),
    VERB(key_info, true, true),      VERB(each, true, true),
    VERB(queue_name, true, true),    VERB(remove_wait, true, true),
    VERB(flush, true, true),         VERB(flush_key, true, true),
    VERB(wait_idle, true, true),     VERB(pause, true, true),
    VERB(resume, true, true),        VERB(finish, false, false),
    VERB(next_with, false, false),   VERB(hold_left, true, true),
    VERB(renew, true, true),         VERB(revive, true, true),
    VERB(check, true, true),
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
    struct timed *t = timed_create(WQ_CONFIG(.order = NULL));

    wrap_delays(t, t->q, NULL);
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

static void
assert_lacks_verbs(wq_queue *q)
{
    const wq_key key = wq_str("foo");
    wq_depth     depth;
    size_t       n;
    wq_stats     counts = {.size = sizeof counts};
    wq_key_info  info = {.size = sizeof info};

    assert_err(wq_remove(q, key), WQ_ENOTSUP);
    assert_err(wq_remove_wait(q, key, 0), WQ_ENOTSUP);
    assert_err(wq_flush(q, 0), WQ_ENOTSUP);
    assert_err(wq_flush_key(q, key, 0), WQ_ENOTSUP);
    assert_err(wq_wait_idle(q, 0), WQ_ENOTSUP);
    assert_err(wq_pause(q), WQ_ENOTSUP);
    assert_err(wq_resume(q), WQ_ENOTSUP);
    assert_err(wq_count_drops(q, 1), WQ_ENOTSUP);
    assert_err(wq_read_stats(q, &counts), WQ_ENOTSUP);
    assert_err(wq_read_depths(q, &depth, 1, &n), WQ_ENOTSUP);
    assert_err(wq_read_key(q, key, &info), WQ_ENOTSUP);
    assert_err(wq_each(q, 0, count_visit, NULL), WQ_ENOTSUP);
    assert_err(wq_revive(q, key), WQ_ENOTSUP);
    assert_err(wq_dump(q, wq_write_file, stderr), WQ_ENOTSUP);
    assert_null(q->backend->queue_name(q));
    errno = 0;
    assert_int_equal(wq_fd(q), -1);
    assert_int_equal(errno, ENOSYS);
}

/* O-18: an inner queue that has only the required verbs. */
TEST(verbs_that_need_the_inner_queue_are_unsupported)
{
    struct timed *t = *state;

    assert_lacks_verbs(t->q);
    wrap_limits(t, WQ_CONFIG(.limiter = NULL));
    assert_lacks_verbs(t->q);
    assert_none_due(t);
}

/* O-18: although the inner queue has them. */
TEST(delaying_layer_has_no_rate_limits)
{
    struct timed *t = wrap_memory();

    assert_err(wq_add_rate_limited(t->q, wq_str("foo")), WQ_ENOTSUP);
    assert_err(wq_forget(t->q, wq_str("foo")), WQ_ENOTSUP);
    assert_int_equal(wq_num_requeues(t->q, wq_str("foo")), 0);
    assert_none_due(t);
    timed_destroy(t);
}

/* O-18 S-14: by the verbs that a layer has. */
TEST(items_of_a_layer_can_be_finished)
{
    struct timed *t = wrap_memory();
    wq_item      *item = NULL;

    wrap_limits(t, WQ_CONFIG(.limiter = wq_limiter_exponential(MS, S)));
    add(t->q, "foo");
    assert_err(wq_next_with(t->q, wq_result_done(), 0, &item), WQ_OK);
    assert_int_equal(wq_hold_left(t->q, item), WQ_FOREVER);
    assert_err(wq_renew(t->q), WQ_OK);
    assert_err(wq_finish(t->q, item, wq_result_retry()), WQ_OK);
    assert_int_equal(wq_num_requeues(t->q, wq_str("foo")), 1);
    step(t, MS);
    item = take_key(t->q, "foo");
    assert_err(wq_finish(t->q, item, wq_result_after(S)), WQ_OK);
    assert_int_equal(wq_num_requeues(t->q, wq_str("foo")), 0);
    step(t, S);
    item = take_key(t->q, "foo");
    assert_err(wq_next_with(t->q, wq_result_back(), 0, &item), WQ_OK);
    assert_key(item, "foo");
    assert_err(wq_finish(t->q, item, wq_result_bury()), WQ_EDROPPED);
    assert_err(wq_finish(t->q, item, wq_result_done()), WQ_ESTATE);
    assert_none_due(t);
    timed_destroy(t);
}

/* ---- a get that sleeps in the inner queue -------------------------------- */

static int
scene_setup(void **state)
{
    static struct scene s;

    s = (struct scene){.gate = GATE_INIT};
    s.t = wrap_bare(&s.inner);
    s.inner->gate = &s.gate;
    *state = &s;
    return 0;
}

#define with_bare(name) test_with(name, scene_setup, scene_teardown)

/* A get in another thread, which stops when it is about to sleep. */
static struct worker *
get_up_to_gate(struct scene *s)
{
    gate_arm(&s->gate, GATE_BEFORE_GET);
    struct worker *w = get_in_time(s->t, WQ_FOREVER);
    gate_await(&s->gate);
    return w;
}

/* A get that sleeps returns with this key. */
static void
assert_gets(struct timed *t, struct worker *w, const char *key)
{
    assert_err(worker_join(w), WQ_OK);
    assert_key(t->item, key);
}

/* O-18 D-03: the timekeeper is about to sleep, another get sleeps, and a
 * deadline comes up that is earlier than the one the timekeeper read. */
TEST(earlier_deadline_is_watched_while_the_timekeeper_falls_asleep)
{
    struct scene *s = *state;
    struct timed *t = s->t;
    wq_item      *other_item = NULL;

    struct worker *timekeeper = get_in_time(t, WQ_FOREVER);
    worker_await_blocked(timekeeper);
    gate_arm(&s->gate, GATE_BEFORE_GET);
    add_after(t, "late", HOUR);
    gate_await(&s->gate);
    struct worker *other = worker_get(t->q, &other_item);
    worker_await_blocked(other);
    add_after(t, "soon", MS);
    await_sleepers(t, 1); /* the other one knows */
    gate_open(&s->gate);
    await_sleepers(t, 2);
    step(t, MS);

    struct worker *both[] = {timekeeper, other}; /* either may take it */
    const size_t   who = worker_await_any_ended(both, 2);
    assert_err(worker_join(both[who]), WQ_OK);
    assert_key(who == 0 ? t->item : other_item, "soon");
    worker_await_blocked(both[1 - who]); /* C-08: not just before it sleeps */
    step(t, HOUR);
    assert_err(worker_join(both[1 - who]), WQ_OK);
}

/* O-18 O-08: no get sleeps that could be interrupted. */
TEST(interrupt_of_a_get_that_has_its_key_is_remembered)
{
    struct scene *s = *state;
    struct timed *t = s->t;

    gate_arm(&s->gate, GATE_AFTER_GET);
    struct worker *w = get_in_time(t, WQ_FOREVER);
    worker_await_blocked(w);
    add(t->q, "foo");
    gate_await(&s->gate);
    wq_interrupt(t->q);
    gate_open(&s->gate);
    assert_gets(t, w, "foo");
    finish(t->q, t->item);

    assert_err(worker_join(get_in_time(t, WQ_FOREVER)), WQ_EINTERRUPTED);
}

static int
destroy_layer(struct worker *self)
{
    wq_destroy(self->arg);
    return 0;
}

/* O-18 O-03: even if keys remain. */
TEST(get_blocked_in_a_destroyed_layer_gets_no_key)
{
    struct scene *s = *state;
    struct timed *t = s->t;

    struct worker *w = get_up_to_gate(s);
    add(t->q, "foo");
    struct worker *end = worker_start(destroy_layer, t->q);
    while (!wq_shutting_down(s->inner->memory))
        (void)sched_yield();
    gate_open(&s->gate);

    assert_err(worker_join(w), WQ_ESHUTDOWN);
    assert_int_equal(worker_join(end), 0);
    t->q = NULL;
}

/* O-18: the layer interrupts a sleeper that has left meanwhile. */
TEST(interrupt_of_the_layer_ends_no_later_get)
{
    struct scene *s = *state;
    struct timed *t = s->t;

    struct worker *w = get_up_to_gate(s);
    add(t->q, "now");
    add_after(t, "later", S);
    gate_open(&s->gate);
    assert_gets(t, w, "now");
    finish(t->q, t->item);

    w = get_in_time(t, WQ_FOREVER);
    await_sleepers(t, 1);
    worker_await_blocked(w);
    step(t, S);
    assert_gets(t, w, "later");
}

/* O-18 D-03: the deadline comes up after the get has looked at the deadlines,
 * and before it sleeps. */
TEST(get_about_to_sleep_notices_an_earlier_deadline)
{
    struct scene *s = *state;
    struct timed *t = s->t;

    struct worker *w = get_up_to_gate(s);
    add_after(t, "foo", S);
    gate_open(&s->gate);
    await_sleepers(t, 1);
    step(t, S);
    assert_gets(t, w, "foo");
}

/* O-18 D-03: the same, while another get sleeps already: the interrupt ends the
 * sleep of that one, which then leaves with a key. */
TEST(get_about_to_sleep_notices_it_although_another_leaves)
{
    struct scene *s = *state;
    struct timed *t = s->t;
    wq_item      *first_item = NULL;

    struct worker *first = worker_get(t->q, &first_item);
    worker_await_blocked(first);
    struct worker *second = get_up_to_gate(s);
    add_after(t, "foo", S);
    await_sleepers(t, 1); /* the first one knows */
    add(t->q, "now");
    assert_err(worker_join(first), WQ_OK);
    assert_key(first_item, "now");
    gate_open(&s->gate);
    worker_await_blocked(second);
    step(t, S);
    assert_gets(t, second, "foo");
}

/* ---- an inner queue that cannot be interrupted --------------------------- */

/* O-18: the layer looks every 10 ms, in real time as the plain queue. */
TEST(get_in_a_queue_without_interrupt_notices_a_deadline)
{
    struct timed *t = *state;

    struct worker *w = get_in_time(t, WQ_FOREVER);
    worker_await_blocked(w);
    add_after(t, "foo", HOUR);
    step(t, HOUR);
    assert_gets(t, w, "foo");
}

/* O-18 O-08 */
TEST(get_in_a_queue_without_interrupt_can_be_interrupted)
{
    struct timed *t = *state;
    wq_item      *item = NULL;

    struct worker *w = get_in_time(t, WQ_FOREVER);
    worker_await_blocked(w);
    wq_interrupt(t->q);
    assert_err(worker_join(w), WQ_EINTERRUPTED);

    add(t->q, "foo");
    work_on(t->q, "foo");
    wq_interrupt(t->q);
    assert_err(wq_get(t->q, &item), WQ_EINTERRUPTED);
}

/* O-18 O-05 */
TEST(get_in_a_queue_without_interrupt_times_out)
{
    struct timed *t = *state;

    struct worker *w = get_in_time(t, HOUR);
    worker_await_blocked(w);
    step(t, HOUR);
    assert_err(worker_join(w), WQ_ETIMEDOUT);
}

/* O-18: no int64_t can hold the time until the end of time. */
TEST(get_in_a_queue_without_interrupt_sleeps_below_zero)
{
    struct timed *t = *state;

    wq_clock_fake_set(t->clock, -HOUR);
    struct worker *w = get_in_time(t, WQ_FOREVER);
    worker_await_blocked(w);
    add(t->q, "foo");
    assert_gets(t, w, "foo");
}

/* O-18 Q-19 O-03 */
TEST(shutdown_and_destroy_end_gets_in_any_inner_queue)
{
    enum { GETTERS = 3 };

    for (int verbs = PLAIN_REQUIRED; verbs <= PLAIN_BASE; verbs++)
        for (int destroys = 0; destroys < 2; destroys++) {
            struct timed  *t = wrap_plain((enum plain_verbs)verbs);
            struct worker *all[GETTERS];

            if (destroys) {
                wrap_limits(t, WQ_CONFIG(.limiter = NULL));
                add_after(t, "foo", HOUR);
            }
            for (int i = 0; i < GETTERS; i++)
                all[i] = worker_get(t->q, NULL);
            worker_await_all_blocked(all, GETTERS);
            if (destroys)
                timed_destroy(t);
            else
                wq_shutdown(t->q);
            for (int i = 0; i < GETTERS; i++)
                assert_err(worker_join(all[i]), WQ_ESHUTDOWN);
            if (!destroys)
                timed_destroy(t);
        }
}

/* ---- an inner queue that refuses ----------------------------------------- */

/* O-18 D-11 */
TEST(next_call_offers_a_refused_key_again)
{
    struct scene *s = *state;
    struct timed *t = s->t;

    add_after(t, "foo", S);
    step(t, S);
    atomic_store(&s->inner->refuse_next, 2);
    assert_none_due(t); /* two calls */
    assert_int_equal(atomic_load(&s->inner->adds), 2);
    add_after(t, "foo", S); /* and it may wait again */

    work_on(t->q, "foo");
    assert_due_in(t, "foo", S);
    step(t, HOUR);
    assert_none_due(t);
}

/* O-18 D-05 */
TEST(refused_keys_are_all_handed_over_in_the_end)
{
    struct scene *s = *state;
    struct timed *t = s->t;
    unsigned      seen = 0;

    for (char key[] = "a"; key[0] < 'a' + 8; key[0]++)
        add_after(t, key, S);
    step(t, S);
    for (int i = 0; i < 20; i++) {
        atomic_store(&s->inner->refuse_next, 1);
        (void)wq_len(t->q);
    }
    atomic_store(&s->inner->refuse_next, 0);

    assert_int_equal(wq_len(t->q), 8);
    for (int i = 0; i < 8; i++) {
        wq_item *item = take(t->q);
        seen |= 1U << (*(const char *)item->key.data - 'a');
        finish(t->q, item);
    }
    assert_int_equal(seen, 255);
}

/* O-18: 10 ms later. */
TEST(get_that_sleeps_offers_a_refused_key_again)
{
    struct scene *s = *state;
    struct timed *t = s->t;

    add_after(t, "foo", S);
    struct worker *w = get_in_time(t, WQ_FOREVER);
    await_sleepers(t, 1);
    worker_await_blocked(w);
    atomic_store(&s->inner->refuse_next, 1);
    step(t, S);
    worker_await_blocked(w);
    assert_int_equal(atomic_load(&s->inner->refuse_next), 0);
    await_sleepers(t, 1);
    step(t, 10 * MS);
    assert_gets(t, w, "foo");
}

/* O-18 O-05 */
TEST(get_times_out_while_a_key_is_refused)
{
    struct scene *s = *state;
    struct timed *t = s->t;

    add_after(t, "foo", 1);
    step(t, 1);
    atomic_store(&s->inner->refuse_next, INT32_MAX);
    struct worker *w = get_in_time(t, MS);
    await_sleepers(t, 1);
    step(t, MS);
    assert_err(worker_join(w), WQ_ETIMEDOUT);

    atomic_store(&s->inner->refuse_next, 0);
    work_on(t->q, "foo");
}

/* O-18 */
TEST(refused_add_is_reported_to_the_caller)
{
    struct scene *s = *state;
    struct timed *t = s->t;

    atomic_store(&s->inner->refuse_next, 1);
    assert_err(wq_add_str(t->q, "foo"), WQ_ENOMEM);
    atomic_store(&s->inner->refuse_next, 1);
    assert_err(wq_add_after(t->q, wq_str("foo"), 0), WQ_ENOMEM);
    assert_none_due(t);
}

WQ_TESTS(
    test(plain_queue_alone_has_neither_delays_nor_limits),
    with_plain(each_layer_adds_its_verbs),
    with_plain(due_key_behaves_as_an_added_one),
    with_plain(verbs_the_inner_queue_lacks_stay_unsupported),
    test(verbs_the_inner_queue_has_go_through),
    test(limits_can_be_put_around_any_queue_with_delays),
    test(layers_have_the_verbs_that_are_listed_and_no_others),
    with_plain(verbs_that_need_the_inner_queue_are_unsupported),
    test(delaying_layer_has_no_rate_limits),
    test(items_of_a_layer_can_be_finished),
    with_bare(earlier_deadline_is_watched_while_the_timekeeper_falls_asleep),
    with_bare(interrupt_of_a_get_that_has_its_key_is_remembered),
    with_bare(get_blocked_in_a_destroyed_layer_gets_no_key),
    with_bare(interrupt_of_the_layer_ends_no_later_get),
    with_bare(get_about_to_sleep_notices_an_earlier_deadline),
    with_bare(get_about_to_sleep_notices_it_although_another_leaves),
    with_plain(get_in_a_queue_without_interrupt_notices_a_deadline),
    with_plain(get_in_a_queue_without_interrupt_can_be_interrupted),
    with_plain(get_in_a_queue_without_interrupt_times_out),
    with_plain(get_in_a_queue_without_interrupt_sleeps_below_zero),
    test(shutdown_and_destroy_end_gets_in_any_inner_queue),
    with_bare(next_call_offers_a_refused_key_again),
    with_bare(refused_keys_are_all_handed_over_in_the_end),
    with_bare(get_that_sleeps_offers_a_refused_key_again),
    with_bare(get_times_out_while_a_key_is_refused),
    with_bare(refused_add_is_reported_to_the_caller));
