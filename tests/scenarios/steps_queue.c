/* SPDX-License-Identifier: MIT */
/* steps_queue.c: the steps that wait, stop the queue, and move its clock. */
#include "scenarios/step.h"

#include "support/worker.h"

/* ---- waits --------------------------------------------------------------- */

/* needs WORD...: says what the scenario relies on; a backend may lack it. */
void
do_needs(struct call *c)
{
    if (!argument(c, 1))
        wrong(c, "needs what?");
}

void
do_flush(struct call *c)
{
    int64_t timeout_ns;

    if (read_timeout(c, 1, &timeout_ns))
        (void)report(c, wq_flush(c->q, timeout_ns));
}

void
do_wait_idle(struct call *c)
{
    int64_t timeout_ns;

    if (read_timeout(c, 1, &timeout_ns))
        (void)report(c, wq_wait_idle(c->q, timeout_ns));
}

static void
wait_for_key(struct call *c, wq_err (*verb)(wq_queue *, wq_key, int64_t))
{
    int64_t     timeout_ns;
    struct keys k;

    if (read_timeout(c, 2, &timeout_ns) && need_key(c, 1, &k))
        (void)report(c, verb(c->q, k.key, timeout_ns));
}

void
do_flush_key(struct call *c)
{
    wait_for_key(c, wq_flush_key);
}

void
do_remove_wait(struct call *c)
{
    wait_for_key(c, wq_remove_wait);
}

/* drain [TIMEOUT] */
void
do_drain(struct call *c)
{
    int64_t timeout_ns;

    if (!read_timeout(c, 1, &timeout_ns))
        return;
    (void)report(c, timeout_ns == WQ_FOREVER
                        ? wq_shutdown_with_drain(c->q)
                        : wq_shutdown_with_drain_within(c->q, timeout_ns));
}

/* ---- the queue ----------------------------------------------------------- */

void
do_pause(struct call *c)
{
    (void)report(c, wq_pause(c->q));
}

void
do_resume(struct call *c)
{
    (void)report(c, wq_resume(c->q));
}

void
do_shutdown(struct call *c)
{
    wq_shutdown(c->q);
}

void
do_shutting_down(struct call *c)
{
    set_result(c, "%s", wq_shutting_down(c->q) ? "yes" : "no");
}

void
do_interrupt(struct call *c)
{
    wq_interrupt(c->q);
}

void
do_destroy(struct call *c)
{
    if (c->q == c->run->other)
        c->run->other = NULL;
    else
        c->run->is_destroyed = true;
    c->run->lost_counts = true;
    wq_destroy(c->q);
}

/* create CONFIG...: make another queue, and destroy it */
void
do_create(struct call *c)
{
    wq_config   config;
    wq_queue   *q = NULL;
    const char *bad = read_config(c->run, &c->words, 1, &config);

    if (bad) {
        wrong(c, "'%s' is not a config word", bad);
        return;
    }
    const wq_err err = backend.open(&config, &q);
    if (err ? q != NULL : !q)
        wrong(c, "%s, and a wrong queue", error_word(err));
    else
        (void)report(c, err);
    wq_destroy(q);
}

/* ---- time ---------------------------------------------------------------- */

static void
let_pass(const struct call *c, int64_t ns)
{
    if (backend.pass)
        backend.pass(c->run->clock, ns);
    else
        wq_clock_fake_step(c->run->clock, ns);
}

void
do_pass(struct call *c)
{
    int64_t by_ns;

    if (need_duration(c, 1, &by_ns))
        let_pass(c, by_ns);
}

void
do_set_clock(struct call *c)
{
    int64_t now_ns;

    if (need_duration(c, 1, &now_ns))
        wq_clock_fake_set(c->run->clock, now_ns);
}

/* sleepers -> N: threads that sleep until a deadline on the fake clock */
void
do_sleepers(struct call *c)
{
    set_result(c, "%zu", wq_clock_fake_waiters(c->run->clock));
}

/* due KEY DELAY: nothing is READY until one nanosecond before DELAY has passed,
 * then KEY is, and it is worked on */
void
do_due(struct call *c)
{
    int64_t delay_ns;

    if (!need_duration(c, 2, &delay_ns))
        return;
    let_pass(c, delay_ns - 1);
    do_none(c);
    if (c->failed) {
        append(c, "(one nanosecond too early)");
        return;
    }
    let_pass(c, 1);
    work(c, keys_of(c->words.at + 1, 1), NULL);
}

/* ---- the other way in ---------------------------------------------------- */

/* another_getter: afterwards adds of this thread go to the inbox, because
 * another thread took the last keys out. The queue must have no READY keys. */
void
do_another_getter(struct call *c)
{
    for (int i = 0; i < 3; i++)
        if (report(c, wq_add_str(c->q, "for_another_getter")) ||
            report(c, (wq_err)worker_join(worker_work(c->q))))
            return;
}
