/* SPDX-License-Identifier: MIT */
/* slow_engine.c: an engine around the engine of the memory store; see
 * slow_engine.h. */
#include "slow_engine.h"

#include <stdlib.h>
#include <time.h>

#include "bench.h"
#include "config/config.h"
#include "port/time.h"
#include "shared/shared.h"
#include "support/memory_store.h"

struct slow_engine {
    struct wq__engine  base;
    struct wq__engine *inner; /* owned */
    enum slow_how      how;
    int64_t            call_ns;
};

static struct slow_engine *
slow_of(struct wq__engine *e)
{
    return (struct slow_engine *)(void *)e; /* `base` is the first member */
}

/* The thread sleeps until a moment, so that what the call itself takes is
 * part of the time. */
static void
pass_time(const struct slow_engine *e, int64_t until_ns)
{
    const struct timespec until = wq__time_spec(until_ns);

    if (e->how == SLOW_SLEEPS)
        (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
    while (wq__time_now() < until_ns)
        ;
}

static wq_err
slow_run(struct wq__engine *base, struct wq__op *batch, struct wq__pulse *pulse)
{
    struct slow_engine *e = slow_of(base);
    const int64_t       begin_ns = e->call_ns ? wq__time_now() : 0;
    const wq_err        err = e->inner->ops->run(e->inner, batch, pulse);

    if (e->call_ns)
        pass_time(e, begin_ns + e->call_ns);
    return err;
}

static wq_err
slow_reconcile(struct wq__engine *base, const struct wq__known *known, size_t n,
               bool *lost)
{
    struct slow_engine *e = slow_of(base);

    return e->inner->ops->reconcile(e->inner, known, n, lost);
}

static void
slow_wait(struct wq__engine *base, int64_t until_ns)
{
    struct slow_engine *e = slow_of(base);

    e->inner->ops->wait(e->inner, until_ns);
}

static void
slow_kick(struct wq__engine *base)
{
    struct slow_engine *e = slow_of(base);

    e->inner->ops->kick(e->inner);
}

static void
slow_close(struct wq__engine *base, bool forked)
{
    struct slow_engine *e = slow_of(base);

    e->inner->ops->close(e->inner, forked);
    free(e);
}

static const struct wq__engine_ops ops = {
    .run = slow_run,
    .reconcile = slow_reconcile,
    .wait = slow_wait,
    .kick = slow_kick,
    .close = slow_close,
    .name = "slow",
};

wq_queue *
slow_queue_open(enum slow_how how, int64_t call_ns)
{
    struct wq__config    config;
    struct wq__terms     terms;
    wq_queue            *q;
    struct slow_engine  *e = malloc(sizeof *e);
    struct memory_store *store = memory_store_create(NULL);

    must(store != NULL, "memory_store_create");
    if (!e) {
        must(false, "malloc");
        return NULL;
    }
    must(!wq__config_read(NULL, &config), "wq__config_read");
    must(!wq__shared_check(&config.user, &terms), "wq__shared_check");
    *e = (struct slow_engine){.how = how, .call_ns = call_ns};
    must(!memory_store_engine(store, &terms, 0, &e->inner),
         "memory_store_engine");
    memory_store_destroy(store); /* it ends with the engine */
    e->base = *e->inner;
    e->base.ops = &ops;
    const struct wq__shared_options options = {.config = &config.user};
    must(!wq__shared_create(&e->base, &options, &q), "wq__shared_create");
    return q;
}
