/* SPDX-License-Identifier: MIT */
/* rate_limiting.c: how does a queue with delays get rate limits?
 *
 * wq_rate_limiting_wrap(): a limiter decides how long a key waits, and the
 * inner queue delays it. The layer shows the failures that its limiter counts;
 * all else the inner queue does.
 */
#include <stdatomic.h>
#include <string.h>

#include <assert.h>

#include <wq/backend.h>
#include <wq/limiter.h>

#include "core/limited.h"
#include "core/mem.h"
#include "error/error.h"
#include "front/check.h"
#include "layer/calls.h"
#include "layer/forward.h"
#include "layer/layer.h"
#include "limit/locked_mem.h"
#include "limit/retry.h"
#include "port/lock.h"
#include "port/relax.h"

struct limiting {
    struct wq__layer      layer;      /* first */
    wq_allocator          mem;        /* a copy of the config's */
    struct wq__lock       lock;       /* guards the calls of `mem` */
    struct wq__locked_mem locked_mem; /* of `shared_mem` */
    wq_allocator          shared_mem; /* `mem`, under `lock` */
    struct wq__retry      retry; /* owns the limiter, which guards itself */
    /* Rate-limited adds and walks in progress: other verbs do not use the
     * layer after they call the inner queue. */
    struct wq__calls calls;
    /* Rate-limited adds that `inner` did not count as retries; only a count, so
     * relaxed. */
    _Atomic uint64_t retries;
};

static struct limiting *
limiting(wq_queue *q)
{
    return (struct limiting *)(void *)q;
}

/* ---- rate limits -------------------------------------------------------- */

/* Undo the calls of the limiter for the first `n` keys. */
static void
undo(struct limiting *l, const wq_key *keys, size_t n)
{
    for (size_t i = 0; i < n; i++)
        wq__retry_undo(&l->retry, keys[i]);
}

/* Call the limiter for all keys, or undo the calls. */
static wq_err
find_delays(struct limiting *l, const wq_add_options *how, const wq_key *keys,
            int64_t *delays, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const wq_err err = wq__retry_delay(&l->retry, keys[i], &delays[i]);
        if (err) {
            undo(l, keys, i);
            return err;
        }
        delays[i] = wq__limited_shorter(delays[i], how->after_ns);
    }
    return WQ_OK;
}

/* Add one key to an inner queue that is no layer of ours. */
static wq_err
add_after(struct limiting *l, const wq_add_options *options, wq_key key,
          int64_t delay_ns)
{
    wq_queue      *q = l->layer.inner;
    wq_add_options how = *options;
    const bool     plain = !how.priority && !how.waiting && !how.nowait &&
                       !how.max_block_ns && !how.results;

    if (plain)
        return q->backend->add_after(q, key, delay_ns);
    how.rate_limited = false;
    how.after_ns = delay_ns;
    const wq_err err = WQ__CALL(q, add_with, (q, &how, &key, 1));
    if (!err && delay_ns <= 0)
        atomic_fetch_add_explicit(&l->retries, 1, memory_order_relaxed);
    return err;
}

static wq_err
add_limited(struct limiting *l, const wq_add_options *how, const wq_key *keys,
            int64_t *delays, size_t n)
{
    assert(n > 0);
    if (wq_shutting_down(l->layer.inner))
        return WQ_ESHUTDOWN;
    wq_err err = find_delays(l, how, keys, delays, n);
    if (err == WQ_EGIVENUP)
        (void)wq_count_drops(l->layer.inner,
                             1); /* a layer has no metrics of its own */
    if (err)
        return err;
    err = wq__is_delaying(l->layer.inner)
              ? wq__delaying_add_failed(l->layer.inner, how, keys, delays, n)
              : add_after(l, how, *keys, *delays);
    if (err)
        undo(l, keys, n);
    return err;
}

enum { DELAYS_ON_STACK = 16 }; /* keys that can be added without allocating */

static wq_err
add_all_limited(struct limiting *l, const wq_add_options *how,
                const wq_key *keys, size_t n)
{
    int64_t  at_hand[DELAYS_ON_STACK];
    int64_t *delays = n <= DELAYS_ON_STACK
                          ? at_hand
                          : wq__mem_array(&l->shared_mem, n, sizeof *delays);

    if (!delays)
        return WQ_ENOMEM;
    const wq_err err = add_limited(l, how, keys, delays, n);
    if (delays != at_hand)
        wq__mem_free(&l->shared_mem, delays, n * sizeof *delays);
    return err;
}

static wq_err
add_counted(struct limiting *l, const wq_add_options *how, const wq_key *keys,
            size_t n)
{
    wq__calls_begin(&l->calls);
    const wq_err err = add_all_limited(l, how, keys, n);
    wq__calls_end(&l->calls);
    return err;
}

static wq_err
limiting_add_rate_limited(wq_queue *q, wq_key key)
{
    const wq_add_options how = {.size = sizeof how, .rate_limited = true};

    return add_counted(limiting(q), &how, &key, 1);
}

/* The keys of a rate-limited add have different delays. Only a delaying layer
 * can set these in one step. */
static wq_err
limiting_add_with(wq_queue *q, const wq_add_options *how, const wq_key *keys,
                  size_t n)
{
    if (!how->rate_limited)
        return WQ__CALL(wq__layer_inner(q), add_with,
                        (wq__layer_inner(q), how, keys, n));
    if (n > 1 && !wq__is_delaying(wq__layer_inner(q)))
        return wq_fail(WQ_ENOTSUP, "wq_add_with: the rate-limiting layer takes "
                                   "one key with rate_limited unless it is "
                                   "around a delaying layer");
    return add_counted(limiting(q), how, keys, n);
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

/* ---- what can be seen --------------------------------------------------- */

static wq_err
limiting_stats(wq_queue *q, wq_stats *out)
{
    const uint64_t retries =
        atomic_load_explicit(&limiting(q)->retries, memory_order_relaxed);
    const wq_err err =
        WQ__CALL(wq__layer_inner(q), stats, (wq__layer_inner(q), out));

    if (!err)
        out->retries += retries;
    return err;
}

static wq_err
limiting_key_info(wq_queue *q, wq_key key, wq_key_info *out)
{
    const unsigned requeues =
        wq_limiter_num_requeues(limiting(q)->retry.limiter, key);
    const wq_err err =
        WQ__CALL(wq__layer_inner(q), key_info, (wq__layer_inner(q), key, out));

    if (!err)
        out->requeues = requeues;
    return err;
}

struct walk {
    wq_limiter *limiter;
    wq_visit    visit;
    void       *ctx;
};

static bool
visit_with_requeues(void *walk, wq_key key, const wq_key_info *info)
{
    const struct walk *w = walk;
    wq_key_info        mine = *info;

    mine.requeues = wq_limiter_num_requeues(w->limiter, key);
    return w->visit(w->ctx, key, &mine);
}

static wq_err
limiting_each(wq_queue *q, unsigned states, wq_visit visit, void *ctx)
{
    struct limiting *l = limiting(q);
    struct walk      w = {l->retry.limiter, visit, ctx};

    wq__calls_begin(&l->calls);
    const wq_err err =
        WQ__CALL(l->layer.inner, each,
                 (l->layer.inner, states, visit_with_requeues, &w));
    wq__calls_end(&l->calls);
    return err;
}

/* ---- life --------------------------------------------------------------- */

static void
limiting_destroy(wq_queue *q)
{
    struct limiting *l = limiting(q);

    wq_destroy(l->layer.inner); /* makes blocked calls return */
    for (unsigned round = 0; wq__calls_in_progress(&l->calls); round++)
        wq__relax(round);
    wq__retry_fini(&l->retry);
    wq__lock_fini(&l->lock);
    const wq_allocator mem = l->mem;
    wq__mem_free(&mem, l, sizeof *l);
}

static const wq_backend limiting_backend = {
    .size = sizeof limiting_backend,
    .name = "rate-limiting",
    .destroy = limiting_destroy,
    .add = wq__forward_add,
    .get = wq__forward_get,
    .done = wq__forward_done,
    .len = wq__forward_len,
    .shutdown = wq__forward_shutdown,
    .shutting_down = wq__forward_shutting_down,
    .done_key = wq__forward_done_key,
    .drain = wq__forward_drain,
    .interrupt = wq__forward_interrupt,
    .add_after = wq__forward_add_after,
    .add_rate_limited = limiting_add_rate_limited,
    .forget = limiting_forget,
    .num_requeues = limiting_num_requeues,
    .count_drops = wq__forward_count_drops,
    .add_with = limiting_add_with,
    .remove = wq__forward_remove,
    .cancel_after = wq__forward_cancel_after,
    .get_many = wq__forward_get_many,
    .done_many = wq__forward_done_many,
    .next = wq__forward_next,
    .fd = wq__forward_fd,
    .stats = limiting_stats,
    .depths = wq__forward_depths,
    .key_info = limiting_key_info,
    .each = limiting_each,
    .queue_name = wq__forward_queue_name,
    .remove_wait = wq__forward_remove_wait,
    .flush = wq__forward_flush,
    .flush_key = wq__forward_flush_key,
    .wait_idle = wq__forward_wait_idle,
    .hold_left = wq__forward_hold_left,
    .renew = wq__forward_renew,
    .revive = wq__forward_revive,
    .check = wq__forward_check,
    .pause = wq__forward_pause,
    .resume = wq__forward_resume,
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
    l->layer.base.backend = &limiting_backend;
    l->layer.inner = around;
    l->mem = mem;
    l->locked_mem = (struct wq__locked_mem){&l->mem, &l->lock};
    l->shared_mem = wq__locked_mem_allocator(&l->locked_mem);
    wq__calls_init(&l->calls);
    wq__lock_init(&l->lock);
    const wq_err err =
        wq__retry_init(&l->retry, config, config->clock, &l->shared_mem);
    if (err) {
        wq__lock_fini(&l->lock);
        wq__mem_free(&mem, l, sizeof *l);
        return err;
    }
    *out = &l->layer.base;
    return WQ_OK;
}

static wq_err
check_and_wrap(wq_queue *around, const wq_config *config, wq_queue **out)
{
    struct wq__config checked;

    const wq_err err =
        wq__layer_check("wq_rate_limiting_wrap", around, config, out, &checked);
    if (err)
        return err;
    if (!WQ_HAS_VERB(around, add_after))
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
