/* SPDX-License-Identifier: MIT */
/* create.c: how is a handle of a shared queue created? */
#include <string.h>

#include "config/config.h"
#include "core/mem.h"
#include "core/span.h"
#include "error/error.h"
#include "metrics/default.h"
#include "port/fork.h"
#include "shared/call.h"
#include "shared/report.h"
#include "shared/shared.h"

bool
wq__shared_is_foreign(const struct wq__shared *s)
{
    return s->forks != wq__forks;
}

/* ---- the config ---------------------------------------------------------- */

static wq_err
check_fields(const wq_config *c)
{
    const struct wq__unsupported fields[] = {
        {c->order, "order"},
        {c->allocator, "allocator"},
        {c->group, "group"},
        {c->max_ready_ns, "max_ready_ns"},
        {c->real_time, "real_time"},
        {c->max_bytes, "max_bytes"},
        {c->overflow != WQ_OVERFLOW_REFUSE, "overflow"},
        {c->waiting != WQ_WAITING_DROP && c->waiting != WQ_WAITING_LEAVE,
         "waiting"},
    };

    return wq__config_refuse(fields, sizeof fields / sizeof *fields,
                             "a shared queue");
}

static wq_err
describe_default(wq_limiter_spec *out)
{
    wq_limiter  *limiter = wq_limiter_default();
    const wq_err err = wq_limiter_describe(limiter, out);

    wq_limiter_destroy(limiter);
    return err;
}

wq_err
wq__shared_check(const wq_config *config, struct wq__terms *terms)
{
    wq_metrics        process_wide;
    const wq_metrics *metrics = config->metrics;
    const char *name = config->name && *config->name ? config->name : NULL;
    wq_err      err = check_fields(config);

    if (!err)
        err = wq__metrics_choose(name, &metrics, &process_wide);
    if (err)
        return err;
    *terms = (struct wq__terms){
        .limiter = {.size = sizeof terms->limiter},
        .retry = config->retry,
        .max_retries = config->max_retries,
        .max_len = config->max_len,
        .ages = config->ages || metrics,
    };
    return config->limiter
               ? wq_limiter_describe(config->limiter, &terms->limiter)
               : describe_default(&terms->limiter);
}

/* ---- creating ------------------------------------------------------------ */

const wq_backend wq__shared_backend = {
    .size = sizeof wq__shared_backend,
    .name = "shared",
    .destroy = wq__shared_destroy,
    .add = wq__shared_add,
    .get = wq__shared_get,
    .done = wq__shared_done,
    .len = wq__shared_len,
    .shutdown = wq__shared_shutdown,
    .shutting_down = wq__shared_shutting_down,
    .done_key = wq__shared_done_key,
    .drain = wq__shared_drain,
    .interrupt = wq__shared_interrupt,
    .add_after = wq__shared_add_after,
    .add_rate_limited = wq__shared_add_rate_limited,
    .forget = wq__shared_forget,
    .num_requeues = wq__shared_num_requeues,
    .count_drops = wq__shared_count_drops,
    .add_with = wq__shared_add_with,
    .remove = wq__shared_remove,
    .cancel_after = wq__shared_cancel_after,
    .get_many = wq__shared_get_many,
    .done_many = wq__shared_done_many,
    .next = wq__shared_next,
    .fd = wq__shared_fd,
    .stats = wq__shared_stats,
    .depths = wq__shared_depths,
    .key_info = wq__shared_key_info,
    .each = wq__shared_each,
    .queue_name = wq__shared_name,
    .wait_idle = wq__shared_wait_idle,
    .pause = wq__shared_pause,
    .resume = wq__shared_resume,
    .finish = wq__shared_finish,
    .next_with = wq__shared_next_with,
    .hold_left = wq__shared_hold_left,
    .renew = wq__shared_renew,
    .revive = wq__shared_revive,
    .check = wq__shared_check_store,
};

static void
fill_in(struct wq__shared *s, struct wq__engine *engine,
        const struct wq__shared_options *options)
{
    const wq_config *config = options->config;

    s->base.backend = options->backend ? options->backend : &wq__shared_backend;
    s->engine = engine;
    s->clock = engine->clock;
    s->steady_clock = engine->steady_clock ? engine->steady_clock : s->clock;
    s->on_drop = config->on_drop;
    s->drop_ctx = config->drop_ctx;
    s->on_lost = config->on_lost;
    s->lost_ctx = config->lost_ctx;
    s->forks = wq__fork_begin();
    atomic_init(&s->closed, false);
    wq__lock_init(&s->lock);
    s->last_post = &s->posts;
    s->last_unsettled = &s->unsettled;
    s->gathers = true;
    s->seen.next_ns = WQ_FOREVER;
    wq__holds_init(&s->holds, &s->mem);
}

static wq_err
copy_name(struct wq__shared *s, const char *name)
{
    if (!name || !*name)
        return WQ_OK;
    s->name = wq__mem_str(&s->mem, name);
    return s->name ? WQ_OK : wq_fail(WQ_ENOMEM, "wq_open: out of memory");
}

static wq_err
open_metrics(struct wq__shared *s, const wq_config *config)
{
    wq_metrics        process_wide;
    const wq_metrics *metrics = config->metrics;

    const wq_err err = wq__metrics_choose(s->name, &metrics, &process_wide);
    s->times = !err && metrics;
    return s->times ? wq__shared_report_open(s, metrics) : err;
}

/* The first renewal tells how long the holds are certain. */
static wq_err
begin_lease(struct wq__shared *s, bool manual)
{
    if (!s->engine->lease_ns)
        return WQ_OK;
    const wq_err err = wq__shared_begin_session(s);
    if (err || manual)
        return err;
    return wq__shared_start_lease(s);
}

wq_err
wq__shared_create(struct wq__engine               *engine,
                  const struct wq__shared_options *options, wq_queue **out)
{
    const wq_allocator mem = options->mem ? *options->mem : wq__mem_default;
    struct wq__shared *s = wq__mem_alloc(&mem, sizeof *s);

    if (!s)
        return wq_fail(WQ_ENOMEM, "wq_open: out of memory");
    memset(s, 0, sizeof *s);
    s->mem = mem;
    fill_in(s, engine, options);
    wq_err err = copy_name(s, options->config->name);
    if (!err)
        err = begin_lease(s, options->manual_renew);
    if (!err)
        err = open_metrics(s, options->config);
    if (err) {
        wq__shared_end_lease(s);
        wq__shared_free(s);
        return err;
    }
    *out = &s->base;
    return WQ_OK;
}

wq_err
wq__shared_open(const wq_config *config, bool manual_renew,
                wq__engine_opener *open, void *ctx, wq_queue **out)
{
    struct wq__config  checked;
    struct wq__terms   terms;
    struct wq__engine *engine = NULL;
    wq_err             err = wq__config_read(config, &checked);

    if (!err)
        err = wq__shared_check(&checked.user, &terms);
    if (!err)
        err = open(ctx, &terms, checked.user.clock, &engine);
    if (err)
        return err;
    const struct wq__shared_options options = {.config = &checked.user,
                                               .manual_renew = manual_renew};
    err = wq__shared_create(engine, &options, out);
    if (err)
        wq__engine_close(engine, false);
    return err;
}
