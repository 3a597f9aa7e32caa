/* SPDX-License-Identifier: MIT */
/* test_waiting.c: how do threads, and event loops, that wait at one handle learn
 * what happens at the others? */
#include "shared/fixture.h"

#include <stdatomic.h>

#include "shared/readable.h"

/* ---- waiting ------------------------------------------------------------- */

static int
wait_idle(struct worker *self)
{
    return (int)wq_wait_idle(self->arg, WQ_FOREVER);
}

/* S-01: of the whole store. */
TEST(wait_idle_waits_for_other_handles)
{
    add(f.a, "k");
    wq_item       *theirs = take_key(f.b, "k");
    struct worker *w = worker_start(wait_idle, f.a);

    worker_await_blocked(w);
    add(f.b, "k");
    assert_err(wq_done(f.b, theirs), WQ_OK);
    worker_await_blocked(w);
    work_on(f.b, "k");
    assert_err(worker_join(w), WQ_OK);

    add(f.a, "k");
    theirs = take_key(f.b, "k");
    w = worker_start(wait_idle, f.a);
    worker_await_blocked(w);
    assert_err(wq_remove_str(f.b, "k"), WQ_ESTATE);
    leave_with(&f.b); /* READY again */
    worker_await_blocked(w);
    assert_err(wq_remove_str(f.c, "k"), WQ_OK);
    assert_err(worker_join(w), WQ_OK);
}

/* S-01: it does not listen to the store itself. */
TEST(wait_idle_is_woken_by_its_own_handle)
{
    wq_item       *mine = hold(f.a, "k");
    struct worker *listener = worker_get(f.a, NULL);

    worker_await_blocked(listener);
    struct worker *w = worker_start(wait_idle, f.a);
    worker_await_blocked(w);
    assert_err(wq_done(f.a, mine), WQ_OK);
    assert_err(worker_join(w), WQ_OK);
    wq_interrupt(f.a);
    assert_err(worker_join(listener), WQ_EINTERRUPTED);
}

/* S-01: no wake-up is lost: the key of another handle reaches a sleeper. */
TEST(key_of_another_handle_wakes_one_sleeper)
{
    enum { N = 4 };
    struct worker *w[N];
    wq_item       *items[N] = {NULL};

    for (int i = 0; i < N; i++)
        w[i] = worker_get(i % 2 ? f.a : f.b, &items[i]);
    worker_await_all_blocked(w, N);
    for (int left = N; left > 0; left--) {
        char key[] = {(char)('0' + left), '\0'};
        add(f.c, key);
        const size_t i = worker_await_any_ended(w, (size_t)left);
        assert_err(worker_join(w[i]), WQ_OK);
        w[i] = w[left - 1];
        worker_await_all_blocked(w, (size_t)left - 1);
    }
    assert_int_equal(stats_of(f.c).held, N);
}

/* S-01: several keys in one step wake as many. */
TEST(keys_of_another_handle_wake_all_sleepers)
{
    enum { N = 4 };
    const wq_key keys[N] = {wq_str("1"), wq_str("2"), wq_str("3"), wq_str("4")};
    struct worker *w[N];
    wq_item       *items[N] = {NULL};

    for (int i = 0; i < N; i++)
        w[i] = worker_get(f.a, &items[i]);
    worker_await_all_blocked(w, N);
    assert_err(wq_add_with(f.b, NULL, keys, N), WQ_OK);
    for (int i = 0; i < N; i++) {
        assert_err(worker_join(w[i]), WQ_OK);
        assert_err(wq_done(f.a, items[i]), WQ_OK);
    }
}

static int
get_for_100(struct worker *self)
{
    return (int)wq_get_within(f.a, 100, self->arg);
}

/* S-01: the one that listens to the store leaves: another one listens. */
TEST(listener_that_times_out_hands_over)
{
    wq_item       *first = NULL, *second = NULL;
    struct worker *listener = worker_start(get_for_100, &first);

    worker_await_blocked(listener);
    struct worker *other = worker_get(f.a, &second);
    worker_await_blocked(other);
    await_sleepers(1);
    pass(100);
    assert_err(worker_join(listener), WQ_ETIMEDOUT);
    expect_sleeps_until_add(other, f.a, &second);
}

/* S-01: a drain, an idle wait and a get take turns as listeners. */
TEST(listener_of_another_kind_takes_over)
{
    wq_item       *held = hold(f.b, "k");
    wq_item       *item = NULL;
    struct worker *idler = worker_start(wait_idle, f.a);

    worker_await_blocked(idler);
    struct worker *getter = worker_get(f.a, &item);
    worker_await_blocked(getter);
    assert_err(wq_done(f.b, held), WQ_OK);
    assert_err(worker_join(idler), WQ_OK); /* it was the listener */
    expect_sleeps_until_add(getter, f.a, &item);
}

/* S-01: a sleeper hears of an earlier deadline that another handle sets. */
TEST(deadline_of_another_handle_wakes_a_sleeper)
{
    wq_item *item = NULL;

    assert_err(wq_add_after_str(f.a, "late", 1000), WQ_OK);
    struct worker *w = worker_get(f.a, &item);
    await_sleepers(1);
    worker_await_blocked(w);
    assert_err(wq_add_after_str(f.b, "soon", 10), WQ_OK);
    worker_await_blocked(w);
    await_sleepers(1);
    pass(10);
    assert_err(worker_join(w), WQ_OK);
    assert_memory_equal(item->key.data, "soon", 5);
}

/* A thread is taken off the list of sleepers to listen again, and something
 * happens before it runs: in the kick of its engine. */
static struct {
    const struct wq__engine_ops *ops;
    struct wq__engine_ops        hooked;
    void (*act)(wq_queue *q);
    atomic_bool armed; /* the next kick acts */
} between;

static void
act_and_kick(struct wq__engine *e)
{
    if (atomic_exchange(&between.armed, false))
        between.act(f.a);
    between.ops->kick(e);
}

/* A get of handle a that sleeps as the listener, and `act` while it is woken. */
static struct worker *
act_while_the_listener_is_woken(void (*act)(wq_queue *q))
{
    between.ops = f.engines[0]->ops;
    between.hooked = *between.ops;
    between.hooked.kick = act_and_kick;
    between.act = act;
    f.engines[0]->ops = &between.hooked;
    struct worker *w = worker_get(f.a, NULL);
    worker_await_blocked(w);
    atomic_store(&between.armed, true);
    /* An earlier deadline: the listener must sleep again. */
    assert_err(wq_add_after_str(f.a, "k", 10), WQ_OK);
    assert_false(atomic_load(&between.armed));
    return w;
}

/* S-05 */
TEST(listener_that_is_woken_to_listen_sees_a_shutdown)
{
    struct worker *w = act_while_the_listener_is_woken(wq_shutdown);

    assert_err(worker_join(w), WQ_ESHUTDOWN);
}

/* S-01 */
TEST(listener_that_is_woken_to_listen_sees_an_interrupt)
{
    struct worker *w = act_while_the_listener_is_woken(wq_interrupt);

    assert_err(worker_join(w), WQ_EINTERRUPTED);
}

/* ---- event loops --------------------------------------------------------- */

#if defined(__linux__) && !defined(WQ_PORT_POSIX)
/* S-01 */
TEST(descriptor_shows_the_keys_of_another_handle)
{
    assert_false(is_readable(f.a));
    add(f.b, "k");
    assert_true(is_readable(f.a));
    wq_item *item = take_key(f.a, "k");
    assert_false(is_readable(f.a));
    add(f.b, "k");
    assert_err(wq_done(f.a, item), WQ_OK);
    assert_true(is_readable(f.a));
    work_on(f.b, "k");
    assert_none_ready(f.a);
    assert_false(is_readable(f.a));

    assert_err(wq_add_after_str(f.b, "later", 10), WQ_OK);
    assert_none_ready(f.a); /* it may be readable before */
    assert_false(is_readable(f.a));
    pass(10);
    assert_true(is_readable(f.a));
    work_on(f.a, "later");
    assert_none_ready(f.a);
    assert_false(is_readable(f.a));
    wq_shutdown(f.b);
    assert_false(is_readable(f.a));
    wq_shutdown(f.a);
    assert_true(is_readable(f.a));
}

/* S-01: a get that finds nothing makes it unreadable: no loop spins. */
TEST(descriptor_of_a_paused_handle_does_not_stay_readable)
{
    assert_false(is_readable(f.a));
    assert_err(wq_pause(f.a), WQ_OK);
    add(f.b, "k");
    assert_err(wq_get_within(f.a, 0, &(wq_item *){NULL}), WQ_ETIMEDOUT);
    assert_false(is_readable(f.a));
    assert_err(wq_resume(f.a), WQ_OK);
    assert_true(is_readable(f.a));
    work_on(f.a, "k");
}
static int
resume(struct worker *self)
{
    return (int)wq_resume(self->arg);
}

static int
use_handle_and_get_fd(struct wq__engine *e)
{
    e->ops = between.ops;
    assert_err(worker_join(worker_start(resume, f.a)), WQ_OK);
    return e->ops->fd(e);
}

/* S-01: an engine may have a lock of its own, and calls the handle with it. */
TEST(engine_is_asked_for_its_descriptor_without_a_lock)
{
    between.ops = f.engines[0]->ops;
    between.hooked = *between.ops;
    between.hooked.fd = use_handle_and_get_fd;
    f.engines[0]->ops = &between.hooked;
    assert_false(is_readable(f.a));
    assert_ptr_equal(f.engines[0]->ops, between.ops);
}
#define DESCRIPTOR_TESTS                                                       \
    , with_handles(engine_is_asked_for_its_descriptor_without_a_lock),         \
        with_handles(descriptor_shows_the_keys_of_another_handle),             \
        with_handles(descriptor_of_a_paused_handle_does_not_stay_readable)
#else
#define DESCRIPTOR_TESTS /* there is no wq_fd() */
#endif

WQ_TESTS(with_handles(wait_idle_waits_for_other_handles),
         with_handles(wait_idle_is_woken_by_its_own_handle),
         with_handles(key_of_another_handle_wakes_one_sleeper),
         with_handles(keys_of_another_handle_wake_all_sleepers),
         with_handles(listener_that_times_out_hands_over),
         with_handles(listener_of_another_kind_takes_over),
         with_handles(deadline_of_another_handle_wakes_a_sleeper),
         with_handles(listener_that_is_woken_to_listen_sees_a_shutdown),
         with_handles(listener_that_is_woken_to_listen_sees_an_interrupt)
             DESCRIPTOR_TESTS);
