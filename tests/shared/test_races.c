/* SPDX-License-Identifier: MIT */
/* test_races.c: what if a call of a handle meets another one at a bad moment?
 *
 * Each test stops a thread inside a call of the engine of handle `a`, lets other
 * threads act, and lets it go on. For that the engine gets a copy of its table of
 * operations, in which a few are replaced (hook_a()). So the moment is always
 * the same, and no test sleeps.
 */
#include "fixture.h"

#include <errno.h>
#include <stdatomic.h>

#include <wq/metrics.h>

#include "shared/engine.h"
#include "support/checkpoint.h"

static struct {
    const struct wq__engine_ops *ops;    /* those of the store */
    struct wq__engine_ops        hooked; /* those that the handle calls */
    struct checkpoint            stop;   /* where threads stop ... */
    atomic_int                   stops;  /* ... so many times from now on */
} hook;

/* Returns the table that engine `a` has from now on, to change it. */
static struct wq__engine_ops *
hook_a(int stops)
{
    hook.ops = f.engines[0]->ops;
    hook.hooked = *hook.ops;
    hook.stop = (struct checkpoint)CHECKPOINT_INIT;
    atomic_store(&hook.stops, stops);
    f.engines[0]->ops = &hook.hooked;
    return &hook.hooked;
}

static bool
is_armed(void)
{
    return atomic_fetch_sub(&hook.stops, 1) > 0;
}

static void
stop_here(void)
{
    if (is_armed())
        checkpoint_pass(&hook.stop);
}

static void
let_go_on(void)
{
    tally_add(&hook.stop.allowed, 1);
}

static wq_err
run_after_a_stop(struct wq__engine *e, struct wq__op *batch,
                 struct wq__pulse *pulse)
{
    stop_here();
    return hook.ops->run(e, batch, pulse);
}

/* Handle `a` again, with the options of the fixture without leases. */
static void
rejoin_a(void)
{
    const struct shared_queue_options options = {.lease_ns = 0};

    leave_with(&f.a);
    f.a = join_with(0, &options, WQ_CONFIG(.ages = true));
}

/* ---- calls in other threads ---------------------------------------------- */

static int
get_from_a(struct worker *self)
{
    wq_item *item;

    (void)self;
    return (int)wq_get(f.a, &item);
}

static int
get_many_from_a(struct worker *self)
{
    wq_item     *items[4];
    size_t       n = 99;
    const wq_err err = wq_get_many(f.a, items, 4, WQ_FOREVER, &n);

    (void)self;
    return (int)(err && n != 99 ? WQ_EINVAL
                                : err); /* written on success only */
}

static int
drain_a(struct worker *self)
{
    (void)self;
    return (int)wq_shutdown_with_drain(f.a);
}

static int
drain_a_at_once(struct worker *self)
{
    (void)self;
    return (int)wq_shutdown_with_drain_within(f.a, 0);
}

static int
await_idle_a(struct worker *self)
{
    (void)self;
    return (int)wq_wait_idle(f.a, WQ_FOREVER);
}

static int
shut_down_a(struct worker *self)
{
    (void)self;
    wq_shutdown(f.a);
    return WQ_OK;
}

static int
interrupt_a(struct worker *self)
{
    (void)self;
    wq_interrupt(f.a);
    return WQ_OK;
}

static int
destroy_a(struct worker *self)
{
    (void)self;
    wq_destroy(f.a);
    return WQ_OK;
}

static int
look_at_a(struct worker *self)
{
    (void)self;
    (void)wq_len(f.a);
    return WQ_OK;
}

/* Does the handle work? In a thread of its own: if not, it may block. */
static int
use_a(struct worker *self)
{
    wq_item *item = NULL;
    wq_err   err = wq_add_str(f.a, "use");

    (void)self;
    if (!err)
        err = wq_get_within(f.a, 0, &item);
    return (int)(err ? err : wq_done(f.a, item));
}

/* ---- a sleeper that is woken to listen ----------------------------------- */

static void
wait_and_stop(struct wq__engine *e, int64_t until_ns)
{
    hook.ops->wait(e, until_ns);
    stop_here();
}

/* How a sleeper ends. */
struct end {
    const char *name;
    int (*sleep)(struct worker *self);
    int (*stop)(
        struct worker *self); /* called when the sleeper is on no list */
    wq_err stopped;           /* what it returns */
    wq_err slept;             /* what the sleeper returns */
    bool   destroys;          /* it returns when the sleeper has returned */
};

static const struct end ends[] = {
    {"get, shutdown", get_from_a, shut_down_a, WQ_OK, WQ_ESHUTDOWN, false},
    {"get, drain", get_from_a, drain_a_at_once, WQ_ETIMEDOUT, WQ_ESHUTDOWN,
     false},
    {"get, interrupt", get_from_a, interrupt_a, WQ_OK, WQ_EINTERRUPTED, false},
    {"get, destroy", get_from_a, destroy_a, WQ_OK, WQ_ESHUTDOWN, true},
    {"drain, shutdown", drain_a, shut_down_a, WQ_OK, WQ_EINTERRUPTED, false},
    {"drain, destroy", drain_a, destroy_a, WQ_OK, WQ_EINTERRUPTED, true},
    {"wait_idle, destroy", await_idle_a, destroy_a, WQ_OK, WQ_EINTERRUPTED,
     true},
};

/* A deadline that comes up is earlier than the one that the sleeper listens
 * for. Works after a shutdown, too. Another key stays HELD. */
static void
wake_to_listen(wq_item *held)
{
    assert_err(wq_finish(f.a, held, wq_result_after(100)), WQ_OK);
}

/* Begin to sleep; *held is for wake_to_listen(). */
static struct worker *
begin_to_sleep(int (*sleep)(struct worker *self), wq_item **held)
{
    add(f.a, "held");
    add(f.a, "later");
    (void)take_key(f.a, "held");
    *held = take_key(f.a, "later");
    struct worker *sleeper = worker_start(sleep, NULL);
    worker_await_blocked(sleeper);
    return sleeper;
}

/* `stops`: the sleeper goes on when the other call has acted; else whichever
 * comes first. */
static void
end_sleeper(const struct end *row, bool stops)
{
    wq_item *later;

    hook_a(0)->wait = wait_and_stop;
    struct worker *sleeper = begin_to_sleep(row->sleep, &later);
    atomic_store(&hook.stops, stops);
    wake_to_listen(later);
    if (stops)
        tally_await(&hook.stop.begun, 1);
    struct worker *w = worker_start(row->stop, NULL);
    if (!row->destroys)
        assert_err(worker_join(w), row->stopped);
    else if (stops)
        worker_await_blocked(w);
    let_go_on();
    assert_err(worker_join(sleeper), row->slept);
    if (row->destroys) {
        assert_err(worker_join(w), row->stopped);
        f.a = NULL;
    }
}

/* S-05 S-06 S-07 */
TEST(sleeper_that_is_woken_to_listen_notices_the_end)
{
    enum { ROUNDS = 10 };

    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        for (int round = 0; round < ROUNDS; round++) {
            if (round == 0)
                print_message("%s\n", ends[i].name);
            end_sleeper(&ends[i], round == 0);
            rejoin_a();
            assert_err(wq_remove_str(f.b, "held"), WQ_OK);
            assert_err(wq_remove_str(f.b, "later"), WQ_OK);
        }
}

/* O-08: the interrupt is used up by the get that was woken to listen. */
TEST(interrupt_of_a_woken_listener_ends_no_later_get)
{
    wq_item *later;

    hook_a(0)->wait = wait_and_stop;
    struct worker *first = begin_to_sleep(get_from_a, &later);
    atomic_store(&hook.stops, 1);
    wake_to_listen(later);
    tally_await(&hook.stop.begun, 1);
    wq_interrupt(f.a);
    let_go_on();
    assert_err(worker_join(first), WQ_EINTERRUPTED);

    struct worker *second = worker_start(get_from_a, NULL);
    worker_await_blocked(second);
    wq_interrupt(f.a);
    assert_err(worker_join(second), WQ_EINTERRUPTED);
}

/* ---- a doubt during a reconcile ------------------------------------------ */

static wq_item *in_doubt;

/* The holds are lost while reconcile() is under way, which names them as known. */
static wq_err
reconcile_and_lose(struct wq__engine *e, const struct wq__known *known,
                   size_t n, bool *lost)
{
    const wq_err err = hook.ops->reconcile(e, known, n, lost);

    if (is_armed()) {
        pass(LEASE / 2);
        if (n != 1 || wq_hold_left(f.a, in_doubt) != 0)
            return WQ_EINVAL;
    }
    return err;
}

/* Another call reconciles while a renewal is under way. */
static wq_err
renew_and_reconcile(struct wq__engine *e)
{
    const wq_err err = hook.ops->renew(e);

    hook.hooked.renew = hook.ops->renew;
    return wq_add_str(f.a, "x") ? WQ_EINVAL : err;
}

/* S-02 S-03: the store keeps the key for a handle that has given it up. */
TEST(doubt_during_a_reconcile_is_not_forgotten)
{
    add(f.a, "k");
    in_doubt = take_key(f.a, "k");
    pass(LEASE - LEASE / 4);
    plan_at(0, STORE_EIO_BEFORE, 1, STORE_RUN);
    assert_err(wq_add_str(f.a, "x"), WQ_EIO);

    struct wq__engine_ops *ops = hook_a(1);
    ops->reconcile = reconcile_and_lose;
    ops->renew = renew_and_reconcile;
    assert_err(wq_renew(f.a), WQ_OK);
    assert_int_equal(count_lost_of("k", in_doubt->fence), 1);
    assert_int_equal(states(f.b, "k"), WQ_STATE_HELD);
    (void)wq_len(f.a); /* the next call gives it back */
    assert_int_equal(states(f.b, "k"), WQ_STATE_READY);
    assert_err(wq_done(f.a, in_doubt), WQ_ELOST);
    work_on(f.b, "x");
    work_on(f.b, "k");
}

/* ---- the engine's own lock ----------------------------------------------- */

static struct checkpoint fd_stop;
static wq_err (*take_of_the_shell)(void *ctx, const struct wq__handed *handed);

/* The store has its lock here. */
static wq_err
take_after_a_stop(void *ctx, const struct wq__handed *handed)
{
    stop_here();
    return take_of_the_shell(ctx, handed);
}

static wq_err
run_with_a_stop_in_take(struct wq__engine *e, struct wq__op *batch,
                        struct wq__pulse *pulse)
{
    for (struct wq__op *op = batch; op; op = op->next)
        if (op->kind == WQ__OP_GET) {
            take_of_the_shell = op->as.get.take;
            op->as.get.take = take_after_a_stop;
        }
    return hook.ops->run(e, batch, pulse);
}

/* It takes the lock of the store. */
static int
fd_after_a_stop(struct wq__engine *e)
{
    checkpoint_pass(&fd_stop);
    return hook.ops->fd(e);
}

static int
watch_a(struct worker *self)
{
    (void)self;
    return wq_fd(f.a) >= 0 || errno == ENOSYS;
}

/* O-70: fd() of the engine waits for a get that waits for the shell's lock. */
TEST(descriptor_can_be_made_during_a_get)
{
    add(f.b, "k");
    fd_stop = (struct checkpoint)CHECKPOINT_INIT;
    struct wq__engine_ops *ops = hook_a(1);
    ops->run = run_with_a_stop_in_take;
    ops->fd = fd_after_a_stop;
    struct worker *watcher = worker_start(watch_a, NULL);
    tally_await(&fd_stop.begun, 1);
    struct worker *getter = worker_start(get_from_a, NULL);
    tally_await(&hook.stop.begun, 1);
    tally_add(&fd_stop.allowed, 1);
    worker_await_blocked(watcher);
    let_go_on();
    assert_err(worker_join(getter), WQ_OK);
    assert_true(worker_join(watcher));
}

/* ---- a get beside a destroy ---------------------------------------------- */

/* A get of handle a stops; meanwhile the handle is destroyed. */
static void
destroy_during(int (*get)(struct worker *))
{
    struct worker *getter = worker_start(get, NULL);

    tally_await(&hook.stop.begun, 1);
    struct worker *destroyer = worker_start(destroy_a, NULL);
    worker_await_blocked(destroyer);
    let_go_on();
    assert_err(worker_join(getter), WQ_ESHUTDOWN);
    assert_err(worker_join(destroyer), WQ_OK);
    f.a = NULL;
}

/* O-03 S-07 */
TEST(get_that_succeeds_during_a_destroy_gives_its_key_back)
{
    int (*const gets[])(struct worker *) = {get_from_a, get_many_from_a};

    for (size_t i = 0; i < sizeof gets / sizeof *gets; i++) {
        add(f.b, "k");
        hook_a(1)->run = run_after_a_stop;
        destroy_during(gets[i]);
        assert_int_equal(states(f.b, "k"), WQ_STATE_READY);
        assert_int_equal(wq_num_requeues_str(f.b, "k"), 0);
        work_on(f.b, "k");
        rejoin_a();
    }
}

static wq_err
open_sink(void *ctx, wq_queue *q, const char *name, void **handle)
{
    (void)ctx;
    (void)q;
    (void)name;
    *handle = &hook;
    return WQ_OK;
}

static void
report_after_a_stop(void *handle, int64_t ns)
{
    (void)handle;
    (void)ns;
    stop_here();
}

/* O-03: the sinks belong to the handle. */
TEST(destroy_waits_until_a_get_has_reported)
{
    const struct shared_queue_options options = {.lease_ns = 0};
    const wq_metrics                  sink = {
                         .size = sizeof sink, .open = open_sink, .latency = report_after_a_stop};

    leave_with(&f.a);
    f.a = join_with(0, &options, WQ_CONFIG(.name = "q", .metrics = &sink));
    add(f.b, "k");
    (void)hook_a(1);
    destroy_during(get_from_a);
    work_on(f.b, "k");
}

/* ---- cancellation inside the engine -------------------------------------- */

static void
be_cancelled(void)
{
    if (!is_armed())
        return;
    (void)pthread_cancel(pthread_self());
    pthread_testcancel(); /* engines do I/O, which is a cancellation point */
}

static wq_err
cancelled_run(struct wq__engine *e, struct wq__op *batch,
              struct wq__pulse *pulse)
{
    be_cancelled();
    return hook.ops->run(e, batch, pulse);
}

static wq_err
cancelled_renew(struct wq__engine *e)
{
    be_cancelled();
    return hook.ops->renew(e);
}

static wq_err
cancelled_reconcile(struct wq__engine *e, const struct wq__known *known,
                    size_t n, bool *lost)
{
    be_cancelled();
    return hook.ops->reconcile(e, known, n, lost);
}

static void
cancelled_wait(struct wq__engine *e, int64_t until_ns)
{
    be_cancelled();
    hook.ops->wait(e, until_ns);
}

static void
cancelled_kick(struct wq__engine *e)
{
    be_cancelled();
    hook.ops->kick(e);
}

static int
cancelled_fd(struct wq__engine *e)
{
    be_cancelled();
    return hook.ops->fd(e);
}

static void
cancelled_close(struct wq__engine *e, bool forked)
{
    be_cancelled();
    hook.ops->close(e, forked);
}

static int
add_to_a(struct worker *self)
{
    (void)self;
    return (int)wq_add_str(f.a, "x");
}

static int
renew_a(struct worker *self)
{
    (void)self;
    return (int)wq_renew(f.a);
}

static void
begin_cancelling(void)
{
    struct wq__engine_ops *ops = hook_a(0);

    ops->run = cancelled_run;
    ops->renew = cancelled_renew;
    ops->reconcile = cancelled_reconcile;
    ops->wait = cancelled_wait;
    ops->kick = cancelled_kick;
    ops->fd = cancelled_fd;
    ops->close = cancelled_close;
}

/* The next call of the engine is cancelled: that of `call`. */
static int
cancel_in(int (*call)(struct worker *self))
{
    atomic_store(&hook.stops, 1);
    const int result = worker_join(worker_start(call, NULL));
    assert_int_equal(atomic_load(&hook.stops) <= 0, 1); /* it was there */
    return result;
}

/* O-73 */
TEST(thread_cancelled_in_the_engine_returns_first)
{
    begin_cancelling();
    print_message("run\n");
    assert_err(cancel_in(add_to_a), WQ_OK);
    work_on(f.b, "x");
    assert_err(worker_join(worker_start(use_a, NULL)), WQ_OK);

    print_message("renew\n");
    assert_err(cancel_in(renew_a), WQ_OK);
    assert_err(worker_join(worker_start(use_a, NULL)), WQ_OK);

    print_message("reconcile\n");
    plan_at(0, STORE_EIO_BEFORE, 1, STORE_RUN);
    assert_err(wq_add_str(f.a, "x"), WQ_EIO);
    assert_err(cancel_in(add_to_a), WQ_OK);
    work_on(f.b, "x");
    assert_err(worker_join(worker_start(use_a, NULL)), WQ_OK);

    print_message("fd\n");
    hook.hooked.run = hook.ops->run;
    assert_true(cancel_in(watch_a));
    assert_err(worker_join(worker_start(use_a, NULL)), WQ_OK);
}

/* O-73 */
TEST(thread_cancelled_while_it_listens_returns_first)
{
    wq_item *item = NULL;

    begin_cancelling();
    hook.hooked.run = hook.ops->run;
    atomic_store(&hook.stops, 1);
    struct worker *listener = worker_get(f.a, &item);
    worker_await_blocked(listener);
    assert_int_equal(atomic_load(&hook.stops), 0);
    add(f.b, "k");
    assert_err(worker_join(listener), WQ_OK);
    assert_err(wq_done(f.a, item), WQ_OK);

    print_message("kick\n");
    listener = worker_get(f.a, NULL);
    worker_await_blocked(listener);
    assert_err(cancel_in(interrupt_a), WQ_OK);
    assert_err(worker_join(listener), WQ_EINTERRUPTED);
    assert_err(worker_join(worker_start(use_a, NULL)), WQ_OK);
}

/* O-73 S-07 */
TEST(thread_cancelled_in_a_destroy_returns_first)
{
    add(f.a, "k");
    (void)take_key(f.a, "k");
    begin_cancelling();
    assert_err(cancel_in(destroy_a), WQ_OK);
    f.a = NULL;
    work_on(f.b, "k");
}

/* ---- losses -------------------------------------------------------------- */

/* S-06: one drain listens, the other one sleeps. */
TEST(lost_loan_does_not_block_a_drain)
{
    wq_item             *lost = hold(f.a, "k");
    struct worker *const drains[] = {worker_drain(f.a), worker_drain(f.a)};

    worker_await_all_blocked(drains, 2);
    memory_store_end_session(f.engines[0]);
    work_on(f.b, "k");
    assert_err(worker_join(drains[0]), WQ_OK);
    assert_err(worker_join(drains[1]), WQ_OK);
    assert_err(wq_shutdown_with_drain_within(f.a, 0), WQ_OK);
    assert_err(wq_done(f.a, lost), WQ_ELOST);
}

/* S-06: the thread that listens waits for something else, and listens on. */
TEST(lost_loan_wakes_a_drain_beside_a_wait)
{
    wq_item *lost = hold(f.a, "k");
    wq_item *busy = hold(f.b, "x");

    struct worker *idle = worker_start(await_idle_a, NULL);
    worker_await_blocked(idle);
    struct worker *drain = worker_drain(f.a);
    worker_await_blocked(drain);
    memory_store_end_session(f.engines[0]);
    work_on(f.c, "k");
    assert_err(worker_join(drain), WQ_OK);
    assert_err(wq_done(f.b, busy), WQ_OK);
    assert_err(worker_join(idle), WQ_OK);
    assert_err(wq_done(f.a, lost), WQ_ELOST);
}

static struct {
    struct tally returned; /* calls of the same batch */
    atomic_int   waited;   /* callbacks that saw one return */
} same_batch;

static void
await_the_other_call(void *ctx, wq_key key, uint64_t fence)
{
    (void)ctx;
    (void)key;
    (void)fence;
    if (tally_reaches(&same_batch.returned, 1))
        atomic_fetch_add(&same_batch.waited, 1);
}

static int
add_and_report_return(struct worker *self)
{
    const int result = add_to_a(self);

    tally_add(&same_batch.returned, 1);
    return result;
}

/* S-03: the leader calls on_lost() when the others have their results. */
TEST(callback_of_a_loss_delays_no_call_of_its_batch)
{
    const struct shared_queue_options options = {.lease_ns = LEASE,
                                                 .manual_renew = true};

    same_batch.returned = (struct tally)TALLY_INIT;
    atomic_store(&same_batch.waited, 0);
    leave_with(&f.a);
    assert_err(shared_queue_join(
                   f.store, &options,
                   WQ_CONFIG(.clock = f.clock, .on_lost = await_the_other_call),
                   &f.engines[0], &f.a),
               WQ_OK);
    wq_item *lost = hold(f.a, "k");

    hook_a(1)->run = run_after_a_stop;
    struct worker *before = worker_start(look_at_a, NULL);
    tally_await(&hook.stop.begun, 1);
    struct worker *leader = worker_start(look_at_a, NULL);
    worker_await_blocked(leader);
    struct worker *other = worker_start(add_and_report_return, NULL);
    worker_await_blocked(other);
    plan_at(0, STORE_END_SESSION, 2, STORE_RUN);
    let_go_on();
    assert_err(worker_join(before), WQ_OK);
    assert_err(worker_join(leader), WQ_OK);
    assert_err(worker_join(other), WQ_OK);
    assert_int_equal(atomic_load(&same_batch.waited), 1);
    assert_err(wq_done(f.a, lost), WQ_ELOST);
}

/* ---- batches ------------------------------------------------------------- */

/* S-14 */
TEST(finish_of_many_is_one_call_of_the_engine)
{
    enum { N = 20 };
    wq_item  *items[2 * N];
    wq_result results[N];
    wq_err    errs[N];
    size_t    n = 0;
    char      key[12];

    for (int i = 0; i < 2 * N; i++) {
        (void)snprintf(key, sizeof key, "%d", i);
        add(f.a, key);
    }
    assert_err(wq_get_many(f.a, items, 2 * N, 0, &n), WQ_OK);
    assert_int_equal(n, 2 * N);
    for (int i = 0; i < N; i++)
        results[i] = wq_result_done();

    unsigned calls = memory_store_calls(f.store);
    assert_err(wq_finish_many(f.a, items, NULL, NULL, N), WQ_OK);
    assert_int_equal(memory_store_calls(f.store) - calls, 1);
    calls = memory_store_calls(f.store);
    assert_err(wq_finish_many(f.a, items + N, results, errs, N), WQ_OK);
    assert_int_equal(memory_store_calls(f.store) - calls, 1);
    assert_int_equal(stats_of(f.b).known, 0);
}

WQ_TESTS(with_handles(sleeper_that_is_woken_to_listen_notices_the_end),
         with_handles(interrupt_of_a_woken_listener_ends_no_later_get),
         with_leases(doubt_during_a_reconcile_is_not_forgotten),
         with_handles(descriptor_can_be_made_during_a_get),
         with_handles(get_that_succeeds_during_a_destroy_gives_its_key_back),
         with_handles(destroy_waits_until_a_get_has_reported),
         with_leases(thread_cancelled_in_the_engine_returns_first),
         with_handles(thread_cancelled_while_it_listens_returns_first),
         with_handles(thread_cancelled_in_a_destroy_returns_first),
         with_leases(lost_loan_does_not_block_a_drain),
         with_leases(lost_loan_wakes_a_drain_beside_a_wait),
         with_leases(callback_of_a_loss_delays_no_call_of_its_batch),
         with_handles(finish_of_many_is_one_call_of_the_engine));
