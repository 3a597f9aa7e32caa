/* SPDX-License-Identifier: MIT */
/* test_layers_verbs.c: how do the layers combine their own state with the verbs
 * of the inner queue?
 *
 * What one thread sees around an in-memory queue, the programs
 * conformance_layers_full_* test. Here the inner queue is mostly a bare one
 * (support/bare_queue.h) that shows some verbs and not others, is full, refuses
 * a call, or stops one.
 */
#include "layered.h"

#include <sched.h>
#include <stdio.h>

#include "waits.h"

/* A bare queue on a fake clock, for `max_len` keys, with the options of adds
 * and the verbs for keys, in a delaying layer. */
static struct timed *
wrap_keys(size_t max_len, struct bare **out)
{
    struct timed *t = timed_begin(0);

    *out = bare_create(WQ_CONFIG(.clock = t->clock, .max_len = max_len));
    bare_show_adds(*out);
    bare_show_keys(*out);
    wrap_delays(t, &(*out)->base, NULL);
    return t;
}

static int
keys_setup(void **state)
{
    static struct scene s;

    s = (struct scene){.gate = GATE_INIT};
    s.t = wrap_keys(0, &s.inner);
    s.inner->gate = &s.gate;
    *state = &s;
    return 0;
}

/* "held" takes the whole capacity, and "due" is due and refused. */
static int
refused_setup(void **state)
{
    static struct scene s;

    s = (struct scene){.gate = GATE_INIT};
    s.t = wrap_keys(1, &s.inner);
    add(s.t->q, "held");
    s.held = take_key(s.t->q, "held");
    add_after(s.t, "due", S);
    step(s.t, S);
    *state = &s;
    return 0;
}

static int
bare_setup(void **state)
{
    static struct scene s;

    s = (struct scene){.gate = GATE_INIT};
    s.t = wrap_bare(&s.inner);
    *state = &s;
    return 0;
}

#define with_keys(name) test_with(name, keys_setup, scene_teardown)
#define with_refused(name) test_with(name, refused_setup, scene_teardown)
#define with_bare(name) test_with(name, bare_setup, scene_teardown)

/* Add one key, and return what the add did. */
static wq_added
add_one(wq_queue *q, const char *key, wq_add_options how)
{
    wq_added what = WQ_ADDED_KEPT;

    how.size = sizeof how;
    how.results = &what;
    assert_err(wq_add_one(q, wq_str(key), &how), WQ_OK);
    return what;
}

/* ---- adds around a queue with few verbs ---------------------------------- */

/* O-18 */
TEST(adds_that_need_no_other_verb_work_around_any_queue)
{
    struct timed *t = ((struct scene *)*state)->t;
    const wq_key  keys[] = {wq_str("a"), wq_str("b")};
    wq_added      what[2];

    assert_err(wq_add_with(t->q, NULL, keys, 1), WQ_OK);
    work_on(t->q, "a");
    assert_err(
        wq_add_with(t->q, WQ_ADD(.after_ns = S, .results = what), keys, 2),
        WQ_OK);
    assert_int_equal(what[0], WQ_ADDED_SCHEDULED);
    assert_int_equal(what[1], WQ_ADDED_SCHEDULED);
    assert_int_equal(add_one(t->q, "a",
                             (wq_add_options){.after_ns = MS,
                                              .waiting = WQ_IF_WAITING_IGNORE}),
                     WQ_ADDED_KEPT);
    assert_err(
        wq_add_one(t->q, keys[1], WQ_ADD(.waiting = WQ_IF_WAITING_MERGE)),
        WQ_OK);
    work_on(t->q, "b");
    assert_err(
        wq_add_one(t->q, keys[0], WQ_ADD(.waiting = WQ_IF_WAITING_IGNORE)),
        WQ_OK);
    assert_none_due(t);
    assert_due_in(t, "a", S);
    assert_none_due(t);

    add_after(t, "a", S);
    assert_err(wq_cancel_after(t->q, keys[0]), WQ_OK);
    assert_err(wq_cancel_after(t->q, keys[0]), WQ_ENOTFOUND);
    step(t, S);
    assert_none_due(t);
}

static void
assert_unsupported(wq_queue *q, const wq_add_options *how, size_t n)
{
    const wq_key keys[] = {wq_str("a"), wq_str("b")};
    const char   begins[] = "wq_add_with: the ";

    (void)wq_fail(WQ_EIO, "an older sentence, which is long enough");
    assert_err(wq_add_with(q, how, keys, n), WQ_ENOTSUP);
    assert_memory_equal(wq_last_error(), begins, strlen(begins));
}

/* O-18: and the sentence says so. */
TEST(adds_that_the_inner_queue_cannot_do_are_unsupported)
{
    struct timed *t = ((struct scene *)*state)->t;
    wq_added      what[2];

    assert_unsupported(t->q, NULL, 2);
    assert_unsupported(t->q, WQ_ADD(.results = what), 1);
    assert_unsupported(t->q, WQ_ADD(.nowait = true), 1);
    assert_unsupported(t->q, WQ_ADD(.max_block_ns = S), 1);
    assert_unsupported(t->q, WQ_ADD(.priority = 1), 1);
    assert_unsupported(t->q, WQ_ADD(.priority = 1, .after_ns = S), 1);
    assert_unsupported(t->q, WQ_ADD(.debounce_ns = S), 1);
    assert_unsupported(
        t->q, WQ_ADD(.after_ns = S, .waiting = WQ_IF_WAITING_MERGE), 1);
    assert_unsupported(
        t->q, WQ_ADD(.after_ns = S, .waiting = WQ_IF_WAITING_REPLACE), 1);
    step(t, HOUR);
    assert_none_due(t);
}

/* O-18: whatever the inner queue can do. */
TEST(adds_that_no_delaying_layer_can_do_are_unsupported)
{
    struct scene *s = *state;
    struct timed *t = s->t;

    assert_unsupported(t->q, WQ_ADD(.throttle_ns = S), 1);
    assert_unsupported(t->q, WQ_ADD(.rate_limited = true), 1);
    assert_unsupported(t->q, WQ_ADD(.debounce_ns = S), 2);
    assert_unsupported(t->q, WQ_ADD(.waiting = WQ_IF_WAITING_MERGE), 2);
    assert_unsupported(
        t->q, WQ_ADD(.after_ns = S, .waiting = WQ_IF_WAITING_IGNORE), 2);
    s->inner->backend.remove = NULL;
    assert_unsupported(
        t->q, WQ_ADD(.after_ns = S, .waiting = WQ_IF_WAITING_REPLACE), 1);
    assert_err(wq_remove(t->q, wq_str("a")), WQ_ENOTSUP);
    step(t, HOUR);
    assert_none_due(t);
}

/* O-18: an older table ends before these verbs, whatever lies behind it. */
TEST(verbs_behind_the_end_of_a_table_are_not_called)
{
    struct scene *s = *state;
    wq_queue     *q = s->t->q;

    s->inner->backend.size = offsetof(wq_backend, remove_wait);
    assert_err(wq_remove_wait(q, wq_str("a"), 0), WQ_ENOTSUP);
    assert_states(q, "a", 0);

    s->inner->backend.size = offsetof(wq_backend, key_info);
    wq_key_info info = {.size = sizeof info};
    assert_err(wq_read_key(q, wq_str("a"), &info), WQ_ENOTSUP);
    assert_int_equal(stats_of(q).known, 0);

    s->inner->backend.size = offsetof(wq_backend, add_with);
    assert_unsupported(q, WQ_ADD(.priority = 1), 1);
    s->inner->backend.size = sizeof s->inner->backend;
}

/* ---- adds to a WAITING key ------------------------------------------------ */

/* O-18 O-19 O-52: the key is known, so a full queue does not refuse it. */
TEST(deadline_that_an_add_ends_is_due_in_a_full_queue)
{
    const wq_if_waiting policies[] = {WQ_IF_WAITING_MERGE,
                                      WQ_IF_WAITING_REPLACE};

    for (int i = 0; i < 2; i++) {
        struct bare  *b;
        struct timed *t = wrap_keys(1, &b);

        add(t->q, "held");
        wq_item *held = take_key(t->q, "held");
        add_after(t, "foo", HOUR);
        assert_err(wq_add_one_str(t->q, "bar", NULL), WQ_EFULL);
        assert_err(wq_add_one_str(t->q, "foo", WQ_ADD(.waiting = policies[i])),
                   WQ_OK);
        assert_int_equal(info_of(t->q, "foo").wait_ns, 0);
        assert_states(t->q, "foo", WQ_STATE_WAITING);
        finish(t->q, held);
        work_on(t->q, "foo");
        step(t, HOUR);
        assert_none_due(t);
        timed_destroy(t);
    }
}

/* O-18 O-51 O-52 */
TEST(deadline_keeps_its_priority_in_a_full_queue)
{
    struct bare  *b;
    struct timed *t = wrap_keys(1, &b);

    add(t->q, "held");
    wq_item *held = take_key(t->q, "held");
    (void)add_one(t->q, "foo", (wq_add_options){.after_ns = S, .priority = 7});
    assert_int_equal(info_of(t->q, "foo").priority, 7);
    step(t, S);
    assert_int_equal(info_of(t->q, "foo").priority, 7);
    finish(t->q, held);
    work_on_at(t->q, "foo", 7);
    timed_destroy(t);
}

/* O-18: a key that the inner queue rejects for itself goes behind the others,
 * with its priority. */
TEST(key_that_is_rejected_keeps_its_priority)
{
    struct scene *s = *state;
    struct timed *t = s->t;

    s->inner->refused_key = "foo";
    atomic_store(&s->inner->refused_with, WQ_EIO);
    (void)add_one(t->q, "foo", (wq_add_options){.after_ns = S, .priority = -3});
    step(t, S);
    assert_none_due(t);
    atomic_store(&s->inner->refused_with, WQ_OK);
    work_on_at(t->q, "foo", -3);
}

static const wq_add_options replace = {.after_ns = 2 * S,
                                       .waiting = WQ_IF_WAITING_REPLACE};

/* O-18 O-52 O-30 */
TEST(READY_key_is_deferred_to_the_layer)
{
    struct timed *t = ((struct scene *)*state)->t;

    (void)add_one(t->q, "foo", (wq_add_options){.priority = 4});
    assert_int_equal(add_one(t->q, "foo", replace), WQ_ADDED_LATER);
    assert_states(t->q, "foo", WQ_STATE_WAITING);
    const wq_stats stats = stats_of(t->q);
    assert_int_equal(stats.adds, 1);
    assert_int_equal(stats.removed, 0);
    assert_int_equal(stats.deferred, 1);
    assert_int_equal(stats.merged, 1);
    assert_int_equal(stats.retries, 1);
    step(t, 2 * S);
    work_on_at(t->q, "foo", 4);
    assert_none_due(t);
}

/* O-18 O-52: with and without a deadline before. */
TEST(key_that_cannot_be_deferred_stays_as_it_was)
{
    struct scene *s = *state;
    struct timed *t = s->t;

    s->inner->remove_err = WQ_EIO;
    add(t->q, "foo");
    assert_err(
        wq_add_one_str(t->q, "foo",
                       WQ_ADD(.after_ns = S, .waiting = WQ_IF_WAITING_REPLACE)),
        WQ_EIO);
    assert_states(t->q, "foo", WQ_STATE_READY);
    assert_int_equal(stats_of(t->q).retries, 0);

    add_after(t, "foo", HOUR);
    assert_err(
        wq_add_one_str(t->q, "foo",
                       WQ_ADD(.after_ns = S, .waiting = WQ_IF_WAITING_REPLACE)),
        WQ_EIO);
    assert_states(t->q, "foo", WQ_STATE_READY | WQ_STATE_WAITING);
    assert_int_equal(info_of(t->q, "foo").wait_ns, HOUR);
    work_on(t->q, "foo");
    assert_due_in(t, "foo", HOUR);
}

/* O-18 O-52: it was handed out after the layer looked. */
TEST(key_handed_out_meanwhile_gets_the_deadline)
{
    struct scene *s = *state;
    struct timed *t = s->t;

    s->inner->remove_err = WQ_ESTATE;
    add(t->q, "foo");
    assert_int_equal(add_one(t->q, "foo", replace), WQ_ADDED_SCHEDULED);
    assert_int_equal(info_of(t->q, "foo").wait_ns, 2 * S);
    assert_int_equal(stats_of(t->q).deferred, 0);
}

/* O-18 O-52 O-53: the run that is READY covers the add. */
TEST(add_that_joins_a_READY_key_raises_its_priority)
{
    const wq_add_options how[] = {
        {.after_ns = S, .waiting = WQ_IF_WAITING_MERGE}, {.debounce_ns = S}};

    for (int i = 0; i < 2; i++) {
        struct bare   *b;
        struct timed  *t = wrap_keys(0, &b);
        wq_add_options higher = how[i];

        higher.priority = 2;
        add(t->q, "foo");
        assert_int_equal(add_one(t->q, "foo", how[i]), WQ_ADDED_MERGED);
        assert_int_equal(add_one(t->q, "foo", higher), WQ_ADDED_RAISED);
        assert_int_equal(add_one(t->q, "foo", higher), WQ_ADDED_MERGED);
        assert_int_equal(stats_of(t->q).merged, 3);
        work_on(t->q, "foo");
        step(t, S);
        assert_none_due(t);
        timed_destroy(t);
    }
}

/* ---- a key that the inner queue refused ----------------------------------- */

/* O-18 O-19 O-32: it is WAITING, and its deadline is now. */
TEST(refused_key_is_WAITING)
{
    struct scene  *s = *state;
    const wq_stats stats = stats_of(s->t->q);

    assert_int_equal(info_of(s->t->q, "due").wait_ns, 0);
    assert_states(s->t->q, "due", WQ_STATE_WAITING);
    assert_int_equal(stats.waiting, 1);
    assert_int_equal(stats.known, 2);
    assert_int_equal(stats.next_ns, 0);
    finish(s->t->q, s->held);
    work_on(s->t->q, "due");
}

/* O-18 O-19 O-57 O-58 O-84 */
TEST(refused_key_can_be_removed)
{
    struct scene *s = *state;
    wq_queue     *q = s->t->q;

    assert_err(wq_remove_str(q, "due"), WQ_OK);
    assert_err(wq_remove_str(q, "due"), WQ_ENOTFOUND);
    add_after(s->t, "due", S);
    step(s->t, S);
    assert_int_equal(wq_len(q), 0); /* it is refused once more */
    assert_err(wq_cancel_after_str(q, "due"), WQ_OK);
    assert_err(wq_cancel_after_str(q, "due"), WQ_ENOTFOUND);
    add_after(s->t, "due", S);
    step(s->t, S);
    assert_err(wq_remove_wait_str(q, "due", 0), WQ_OK);
    finish(q, s->held);
    assert_none_due(s->t);
}

/* O-18 O-19: a remove may free capacity. */
TEST(removal_makes_way_for_a_refused_key)
{
    struct scene *s = *state;

    finish(s->t->q, s->held);
    work_on(s->t->q, "due");
    add(s->t->q, "ready");
    add_after(s->t, "due", S);
    step(s->t, S);
    assert_err(wq_remove_str(s->t->q, "ready"), WQ_OK);
    assert_states(s->t->q, "due", WQ_STATE_READY);
}

/* O-18 O-19 O-61: the done of a next may free capacity. */
TEST(next_makes_way_for_a_refused_key)
{
    struct scene *s = *state;
    wq_item      *item = s->held;

    assert_err(wq_next(s->t->q, S, &item), WQ_OK);
    assert_key(item, "due");
    finish(s->t->q, item);
}

/* O-19 O-30: a refused key that a shutdown drops is a drop. */
TEST(refused_key_that_is_dropped_is_counted)
{
    struct scene *s = *state;

    wq_shutdown(s->t->q);
    assert_int_equal(stats_of(s->t->q).drops, 1);
    assert_int_equal(stats_of(s->t->q).waiting, 0);
    finish(s->t->q, s->held);
    assert_none_ready(s->t->q, WQ_ESHUTDOWN);
}

/* ---- removal -------------------------------------------------------------- */

/* O-18 O-57 */
TEST(failed_removal_leaves_the_deadline)
{
    struct scene *s = *state;

    s->inner->remove_err = WQ_ENOMEM;
    add_after(s->t, "foo", S);
    assert_err(wq_remove_str(s->t->q, "foo"), WQ_ENOMEM);
    s->inner->remove_err = WQ_OK;
    assert_err(wq_remove_str(s->t->q, "foo"), WQ_OK);
    step(s->t, S);
    assert_none_due(s->t);
}

/* O-18 O-84: also a delay that its worker sets while the call waits. */
TEST(remove_wait_removes_deadlines_until_the_done)
{
    struct scene *s = *state;
    struct timed *t = s->t;
    struct wait   w;

    add(t->q, "foo");
    wq_item *item = take_key(t->q, "foo");
    add_after(t, "foo", S);
    assert_err(wq_remove_wait_str(t->q, "foo", 0), WQ_ESTATE);
    assert_states(t->q, "foo", WQ_STATE_HELD | WQ_STATE_WAITING);

    begin_wait(&w, FOR_REMOVAL, t->q, "foo");
    assert_states(t->q, "foo", WQ_STATE_HELD);
    add_after(t, "foo", S);
    finish(t->q, item);
    assert_err(end_of(&w), WQ_OK);
    step(t, S);
    assert_none_due(t);
}

/* O-18 O-84: it must not run when the caller has freed what it names. */
TEST(remove_wait_waits_for_a_key_on_its_way)
{
    struct scene *s = *state;
    struct timed *t = s->t;
    struct wait   w;

    add_after(t, "foo", S);
    step(t, S);
    gate_arm(&s->gate, GATE_AFTER_ADD);
    struct worker *getter = get_in_time(t, 0);
    gate_await(&s->gate); /* it is in the inner queue, and still in the layer */
    start_wait(&w, FOR_REMOVAL, t->q, "foo", WQ_FOREVER);
    while (wq_len(s->inner->memory) > 0)
        (void)sched_yield();
    assert_false(worker_has_ended(w.worker));
    gate_open(&s->gate);
    assert_err(worker_join(getter), WQ_ETIMEDOUT);
    assert_err(end_of(&w), WQ_OK);
    assert_none_due(t);
}

/* ---- destroy -------------------------------------------------------------- */

/* O-03 O-18 O-81 O-82 O-83 O-84 */
TEST(destroy_ends_the_waits_in_both_layers)
{
    for (int kind = 0; kind < WAIT_KINDS; kind++) {
        struct timed *t = timed_create(WQ_CONFIG(.order = NULL));
        struct wait   w;

        wrap_delays(t, t->q, NULL);
        wrap_limits(t, WQ_CONFIG(.limiter = NULL));
        add(t->q, "foo");
        (void)take_key(t->q, "foo");
        begin_wait(&w, (enum wait_for)kind, t->q, "foo");
        struct worker *last = worker_destroy(t->q);
        assert_err(end_of(&w), WQ_EINTERRUPTED);
        assert_int_equal(worker_join(last), 0);
        t->q = NULL;
        timed_destroy(t);
    }
}

/* O-03 O-18: it uses the layer after it has left the inner queue. */
TEST(destroy_waits_for_a_remove_wait_that_leaves)
{
    struct gate   g = GATE_INIT;
    struct bare  *b;
    struct timed *t = wrap_keys(0, &b);
    struct wait   w;

    b->gate = &g;
    add(t->q, "foo");
    wq_item *item = take_key(t->q, "foo");
    begin_wait(&w, FOR_REMOVAL, t->q, "foo");
    gate_arm(&g, GATE_AFTER_WAIT);
    finish(t->q, item);
    gate_await(&g);
    struct worker *last = worker_destroy(t->q);
    for (int i = 0; i < 100; i++)
        (void)sched_yield();
    assert_false(worker_has_ended(last));
    gate_open(&g);
    assert_err(end_of(&w), WQ_OK);
    assert_int_equal(worker_join(last), 0);
    t->q = NULL;
    timed_destroy(t);
}

/* ---- walks ---------------------------------------------------------------- */

struct visits {
    wq_queue *q;
    size_t    n;
    size_t    max;      /* visits until the walk ends */
    unsigned  states;   /* of all visited keys, or'ed */
    bool      removing; /* remove each key */
    wq_err    err;      /* of the last removal */
};

static bool
note_visit(void *ctx, wq_key key, const wq_key_info *info)
{
    struct visits *v = ctx;

    v->n++;
    v->states |= info->states;
    if (((const char *)key.data)[key.len] != '\0')
        v->err = WQ_EINVAL;
    if (v->removing)
        v->err = wq_remove(v->q, key);
    return v->n < v->max;
}

static struct visits
walk(wq_queue *q, unsigned states, size_t max, bool removing)
{
    struct visits v = {.q = q, .max = max, .removing = removing};

    assert_err(wq_each(q, states, note_visit, &v), WQ_OK);
    assert_err(v.err, WQ_OK);
    return v;
}

/* Keys of the layer, of the inner queue and of both, `n` of each. */
static void
add_of_each_kind(struct timed *t, int n)
{
    for (int i = 0; i < n; i++) {
        char name[3][16];

        for (int k = 0; k < 3; k++)
            (void)snprintf(name[k], sizeof name[k], "%c%d", 'a' + k, i);
        add_after(t, name[0], HOUR);
        add(t->q, name[1]);
        add(t->q, name[2]);
        add_after(t, name[2], HOUR);
    }
}

/* O-18 O-33: more than the layer copies at a time. */
TEST(walk_visits_each_key_once)
{
    enum { N = 700 };
    struct timed *t = ((struct scene *)*state)->t;

    add_of_each_kind(t, N);
    assert_int_equal(walk(t->q, 0, SIZE_MAX, false).n, 3 * N);
    assert_int_equal(walk(t->q, WQ_STATE_READY, SIZE_MAX, false).n, 2 * N);
    assert_int_equal(walk(t->q, WQ_STATE_WAITING, SIZE_MAX, false).n, 2 * N);
    assert_int_equal(walk(t->q, WQ_STATE_HELD, SIZE_MAX, false).n, 0);
    assert_int_equal(stats_of(t->q).waiting, 2 * N);
    assert_int_equal(walk(t->q, 0, SIZE_MAX, true).n, 3 * N);
    assert_int_equal(stats_of(t->q).known, 0);
}

/* O-18 O-33: among the keys of the inner queue, and of the layer. */
TEST(visit_ends_a_walk_anywhere)
{
    struct timed *t = ((struct scene *)*state)->t;

    add_of_each_kind(t, 2);
    for (size_t max = 1; max <= 6; max++)
        assert_int_equal(walk(t->q, 0, max, false).n, max);
}

/* O-18 O-33 */
TEST(walk_over_a_failing_queue_visits_no_key)
{
    struct scene *s = *state;
    struct visits v = {.max = SIZE_MAX};

    add_after(s->t, "foo", S);
    s->inner->backend.key_info = NULL;
    assert_err(wq_each(s->t->q, 0, note_visit, &v), WQ_ENOTSUP);
    assert_int_equal(v.n, 0);
}

/* O-18 O-34 */
TEST(dump_of_a_layer_names_the_inner_queue)
{
    struct timed *t = timed_create(WQ_CONFIG(.name = "pods"));
    char          text[2000] = "";
    FILE         *file = fmemopen(text, sizeof text, "w");

    wrap_delays(t, t->q, NULL);
    wrap_limits(t, WQ_CONFIG(.limiter = wq_limiter_exponential(S, S)));
    assert_err(wq_add_rate_limited(t->q, wq_str("foo")), WQ_OK);
    assert_err(wq_dump(t->q, wq_write_file, file), WQ_OK);
    assert_int_equal(fclose(file), 0);
    assert_non_null(strstr(text, "\"queue\":\"pods\""));
    assert_non_null(strstr(text, "\"key\":\"foo\",\"states\":"
                                 "[\"WAITING\",\"BACKOFF\"]"));
    assert_non_null(strstr(text, "\"requeues\":1"));
    timed_destroy(t);
}

/* ---- get and done --------------------------------------------------------- */

static int
run_get_many(struct worker *self)
{
    struct timed *t = self->arg;
    wq_item      *items[3];
    size_t        n = 0;
    const wq_err  err = wq_get_many(t->q, items, 3, WQ_FOREVER, &n);

    return err ? -1 : wq_done_many(t->q, items, n) ? -2 : (int)n;
}

/* O-18 O-59 O-60: with and without the verbs in the inner queue. */
TEST(batch_that_sleeps_takes_all_keys_that_are_due)
{
    struct timed *both[] = {timed_create(WQ_CONFIG(.order = NULL)), NULL};
    struct bare  *b;

    wrap_delays(both[0], both[0]->q, NULL);
    both[1] = wrap_bare(&b);
    for (int i = 0; i < 2; i++) {
        struct timed *t = both[i];

        add_after(t, "a", S);
        add_after(t, "b", S);
        struct worker *w = worker_start(run_get_many, t);
        await_sleepers(t, 1);
        worker_await_blocked(w);
        step(t, S);
        assert_int_equal(worker_join(w), 2);
        assert_none_due(t);
        timed_destroy(t);
    }
}

/* O-18 O-61: an inner queue without the verb. */
TEST(next_works_around_any_queue)
{
    struct scene *s = *state;
    struct timed *t = s->t;
    wq_item      *item = NULL;

    add(t->q, "a");
    add_after(t, "b", S);
    assert_err(wq_next(t->q, 0, &item), WQ_OK);
    assert_key(item, "a");
    wq_item *const a = item;
    step(t, S);
    assert_err(wq_next(t->q, WQ_FOREVER, &item), WQ_OK);
    assert_key(item, "b");
    finish(t->q, item);
    wq_item *again = a;
    assert_err(wq_next(t->q, 0, &again), WQ_ESTATE);
    assert_ptr_equal(again, a);

    add(t->q, "c");
    item = take_key(t->q, "c");
    assert_err(wq_next(t->q, 0, &item), WQ_ETIMEDOUT);
    assert_null(item);
}

/* ---- the rate-limiting layer ---------------------------------------------- */

static wq_limiter *
no_delay(struct probe *probe)
{
    return wq_limiter_create(&probe_ops, probe);
}

/* O-18 O-30 O-51: around a queue that is no layer. */
TEST(limits_around_a_queue_with_options_keep_the_options)
{
    struct timed *t = timed_create(WQ_CONFIG(.order = NULL));
    struct probe  probe = {.delay_ns = 0};
    const wq_key  keys[] = {wq_str("a"), wq_str("b")};

    wrap_limits(t, WQ_CONFIG(.limiter = no_delay(&probe)));
    assert_int_equal(
        add_one(t->q, "foo",
                (wq_add_options){.rate_limited = true, .priority = 3}),
        WQ_ADDED_NEW);
    assert_int_equal(stats_of(t->q).retries, 1);
    assert_err(wq_add_rate_limited(t->q, wq_str("foo")), WQ_OK);
    assert_int_equal(stats_of(t->q).retries, 2);
    work_on_at(t->q, "foo", 3);

    probe.delay_ns = S;
    assert_int_equal(
        add_one(t->q, "foo",
                (wq_add_options){.rate_limited = true, .after_ns = MS}),
        WQ_ADDED_SCHEDULED);
    assert_int_equal(stats_of(t->q).retries, 3);
    assert_due_in(t, "foo", MS);
    assert_unsupported(t->q, WQ_ADD(.rate_limited = true), 2);
    assert_err(wq_add_with(t->q, WQ_ADD(.priority = 1), keys, 2), WQ_OK);
    timed_destroy(t);
}

/* O-18 R-03: the limiter does not count an add that the inner queue cannot
 * do. */
TEST(limited_add_that_fails_is_undone)
{
    struct scene *s = *state;
    struct timed *t = s->t;
    const wq_key  keys[] = {wq_str("a"), wq_str("b")};
    wq_added      what[2];

    wrap_limits(t, WQ_CONFIG(.limiter = wq_limiter_exponential(S, HOUR)));
    assert_err(
        wq_add_with(t->q, WQ_ADD(.rate_limited = true, .priority = 1), keys, 2),
        WQ_ENOTSUP);
    assert_int_equal(wq_num_requeues(t->q, keys[0]), 0);
    assert_int_equal(wq_num_requeues(t->q, keys[1]), 0);
    assert_err(wq_add_with(t->q, WQ_ADD(.rate_limited = true, .results = what),
                           keys, 2),
               WQ_OK);
    assert_int_equal(what[1], WQ_ADDED_SCHEDULED);
    assert_int_equal(wq_num_requeues(t->q, keys[1]), 1);
    step(t, S);
    work_on(t->q, "a");
    work_on(t->q, "b");
}

WQ_TESTS(with_bare(adds_that_need_no_other_verb_work_around_any_queue),
         with_bare(adds_that_the_inner_queue_cannot_do_are_unsupported),
         with_keys(adds_that_no_delaying_layer_can_do_are_unsupported),
         with_keys(verbs_behind_the_end_of_a_table_are_not_called),
         test(deadline_that_an_add_ends_is_due_in_a_full_queue),
         test(deadline_keeps_its_priority_in_a_full_queue),
         with_keys(key_that_is_rejected_keeps_its_priority),
         with_keys(READY_key_is_deferred_to_the_layer),
         with_keys(key_that_cannot_be_deferred_stays_as_it_was),
         with_keys(key_handed_out_meanwhile_gets_the_deadline),
         test(add_that_joins_a_READY_key_raises_its_priority),
         with_refused(refused_key_is_WAITING),
         with_refused(refused_key_can_be_removed),
         with_refused(removal_makes_way_for_a_refused_key),
         with_refused(next_makes_way_for_a_refused_key),
         with_refused(refused_key_that_is_dropped_is_counted),
         with_keys(failed_removal_leaves_the_deadline),
         with_keys(remove_wait_removes_deadlines_until_the_done),
         with_keys(remove_wait_waits_for_a_key_on_its_way),
         test(destroy_ends_the_waits_in_both_layers),
         test(destroy_waits_for_a_remove_wait_that_leaves),
         with_keys(walk_visits_each_key_once),
         with_keys(visit_ends_a_walk_anywhere),
         with_keys(walk_over_a_failing_queue_visits_no_key),
         test(dump_of_a_layer_names_the_inner_queue),
         test(batch_that_sleeps_takes_all_keys_that_are_due),
         with_bare(next_works_around_any_queue),
         test(limits_around_a_queue_with_options_keep_the_options),
         with_bare(limited_add_that_fails_is_undone));
