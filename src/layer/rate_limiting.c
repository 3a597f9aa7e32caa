/* SPDX-License-Identifier: MIT */
/* rate_limiting.c: how does a queue that knows delays gain rate limits?
 *
 * wq_rate_limiting_wrap(): asks a limiter how long a key shall wait, and lets
 * the inner queue do the waiting. The other verbs of the table below are the
 * inner queue's.
 */
#include <string.h>

#include <wq/backend.h>
#include <wq/limiter.h>

#include "config/config.h"
#include "core/mem.h"
#include "error/error.h"
#include "layer/calls.h"
#include "limit/retry.h"
#include "port/lock.h"
#include "port/relax.h"

struct limiting {
    wq_queue         base;  /* first: a queue is the beginning of its backend */
    wq_queue        *inner; /* owned */
    wq_allocator     mem;   /* a copy of the config's */
    struct wq__lock  lock;  /* guards the calls of `mem`, for `shared_mem` */
    wq_allocator     shared_mem; /* `mem`, under `lock` */
    struct wq__retry retry;      /* owns the limiter, which guards itself */
    struct wq__calls calls; /* rate-limited adds: other verbs do not touch the
                               layer after the inner queue */
};

static struct limiting *
limiting(wq_queue *q)
{
    return (struct limiting *)(void *)q;
}

static wq_queue *
inner(wq_queue *q)
{
    return limiting(q)->inner;
}

/* An allocator need not be called by two threads at a time (wq.h). */
static void *
allocate_locked(void *ctx, size_t n)
{
    struct limiting *l = ctx;

    wq__lock_take(&l->lock);
    void *p = wq__mem_alloc(&l->mem, n);
    wq__lock_release(&l->lock);
    return p;
}

static void
free_locked(void *ctx, void *p, size_t n)
{
    struct limiting *l = ctx;

    wq__lock_take(&l->lock);
    wq__mem_free(&l->mem, p, n);
    wq__lock_release(&l->lock);
}

/* ---- what it adds ------------------------------------------------------- */

static wq_err
add_rate_limited(struct limiting *l, wq_key key)
{
    int64_t delay_ns;

    if (wq_shutting_down(l->inner))
        return WQ_ESHUTDOWN;
    wq_err err = wq__retry_delay(&l->retry, key, &delay_ns);
    if (err == WQ_EGIVENUP)
        (void)wq_count_drops(l->inner, 1); /* its metrics are all there are */
    if (err)
        return err;
    err = wq_add_after(l->inner, key, delay_ns);
    if (err)
        wq__retry_undo(&l->retry, key);
    return err;
}

static wq_err
limiting_add_rate_limited(wq_queue *q, wq_key key)
{
    struct limiting *l = limiting(q);

    wq__calls_begin(&l->calls);
    const wq_err err = add_rate_limited(l, key);
    wq__calls_end(&l->calls);
    return err;
}

static wq_err
limiting_forget(wq_queue *q, wq_key key)
{
    wq_limiter_forget(limiting(q)->retry.limiter, key);
    return WQ_OK;
}

static wq_err
limiting_num_requeues(wq_queue *q, wq_key key, unsigned *out)
{
    *out = wq_limiter_num_requeues(limiting(q)->retry.limiter, key);
    return WQ_OK;
}

/* ---- passed on ---------------------------------------------------------- */

static wq_err
limiting_add(wq_queue *q, wq_key key)
{
    return wq_add(inner(q), key);
}

static wq_err
limiting_add_after(wq_queue *q, wq_key key, int64_t delay_ns)
{
    return wq_add_after(inner(q), key, delay_ns);
}

static wq_err
limiting_get(wq_queue *q, int64_t timeout_ns, wq_item **out)
{
    return wq_get_within(inner(q), timeout_ns, out);
}

static wq_err
limiting_done(wq_queue *q, wq_item *item)
{
    return wq_done(inner(q), item);
}

static wq_err
limiting_done_key(wq_queue *q, wq_key key)
{
    return wq_done_key(inner(q), key);
}

static wq_err
limiting_count_drops(wq_queue *q, uint64_t n)
{
    return wq_count_drops(inner(q), n);
}

static wq_err
limiting_len(wq_queue *q, size_t *out)
{
    return inner(q)->backend->len(inner(q), out);
}

static void
limiting_shutdown(wq_queue *q)
{
    wq_shutdown(inner(q));
}

static wq_err
limiting_drain(wq_queue *q, int64_t timeout_ns)
{
    return wq_shutdown_with_drain_within(inner(q), timeout_ns);
}

static bool
limiting_shutting_down(const wq_queue *q)
{
    return wq_shutting_down(inner((wq_queue *)q));
}

static void
limiting_interrupt(wq_queue *q)
{
    wq_interrupt(inner(q));
}

/* ---- life --------------------------------------------------------------- */

static void
limiting_destroy(wq_queue *q)
{
    struct limiting *l = limiting(q);

    wq_destroy(l->inner); /* sends blocked calls home */
    for (unsigned round = 0; wq__calls_in_progress(&l->calls); round++)
        wq__relax(round);
    wq__retry_fini(&l->retry);
    wq__lock_fini(&l->lock);
    const wq_allocator mem = l->mem;
    wq__mem_free(&mem, l, sizeof *l);
}

static const wq_backend limiting_backend = {
    .size = sizeof(wq_backend),
    .name = "rate-limiting",
    .destroy = limiting_destroy,
    .add = limiting_add,
    .get = limiting_get,
    .done = limiting_done,
    .len = limiting_len,
    .shutdown = limiting_shutdown,
    .shutting_down = limiting_shutting_down,
    .done_key = limiting_done_key,
    .drain = limiting_drain,
    .interrupt = limiting_interrupt,
    .add_after = limiting_add_after,
    .add_rate_limited = limiting_add_rate_limited,
    .forget = limiting_forget,
    .num_requeues = limiting_num_requeues,
    .count_drops = limiting_count_drops,
};

static wq_err
wrap(wq_queue *around, const wq_config *config, wq_queue **out)
{
    const wq_allocator mem =
        config->allocator ? *config->allocator : wq__mem_default;
    struct limiting *l = wq__mem_alloc(&mem, sizeof *l);
    if (!l)
        return wq_fail(WQ_ENOMEM, "wq_rate_limiting_wrap: out of memory");

    memset(l, 0, sizeof *l);
    l->base.backend = &limiting_backend;
    l->inner = around;
    l->mem = mem;
    l->shared_mem = (wq_allocator){
        .size = sizeof l->shared_mem,
        .ctx = l,
        .alloc = allocate_locked,
        .free = free_locked,
    };
    wq__calls_init(&l->calls);
    wq__lock_init(&l->lock);
    const wq_err err =
        wq__retry_init(&l->retry, config, config->clock, &l->shared_mem);
    if (err) {
        wq__lock_fini(&l->lock);
        wq__mem_free(&mem, l, sizeof *l);
        return err;
    }
    *out = &l->base;
    return WQ_OK;
}

/* What the inner queue knows of a key cannot be asked from outside: so a layer
 * supports only some fields of a config. */
static wq_err
check_and_wrap(wq_queue *around, const wq_config *config, wq_queue **out)
{
    struct wq__config checked;

    if (!around)
        return wq_fail(WQ_EINVAL, "wq_rate_limiting_wrap: inner is NULL");
    if (!out)
        return wq_fail(WQ_EINVAL, "wq_rate_limiting_wrap: out is NULL");
    wq_err err = wq__config_read(config, &checked);
    if (!err)
        err = wq__config_check_for_layer(&checked.user);
    if (err)
        return err;
    if (!around->backend->add_after)
        return wq_fail(WQ_ENOTSUP, "wq_rate_limiting_wrap: inner has no delays:"
                                   " use wq_delaying_wrap() first");
    return wrap(around, &checked.user, out);
}

wq_err
wq_rate_limiting_wrap(wq_queue *around, const wq_config *config, wq_queue **out)
{
    wq_limiter  *limiter = wq__config_limiter(config);
    const wq_err err = check_and_wrap(around, config, out);

    if (err)
        wq_limiter_destroy(limiter); /* unless it has another owner */
    return err;
}
