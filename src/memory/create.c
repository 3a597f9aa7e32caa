/* SPDX-License-Identifier: MIT */
/* create.c: how is a queue created and destroyed?
 *
 * wq_create() checks the config and creates an in-memory queue with a random
 * hash key.
 */
#include <string.h>

#include "config/config.h"
#include "core/mem.h"
#include "error/error.h"
#include "limit/secret.h"
#include "memory/gate.h"
#include "memory/report.h"
#include "metrics/default.h"
#include "port/race.h"
#include "port/thread.h"

#define MEMORY_BYTES                                                           \
    wq__mem_padded(sizeof(struct wq__memory), alignof(struct wq__memory))

/* ---- destroying --------------------------------------------------------- */

static void
memory_destroy(wq_queue *q)
{
    struct wq__memory *m = wq__memory_of(q);

    wq__gate_enter(m);
    m->destroying = true;
    wq__memory_review_gets(m);
    wq__gate_evacuate(m, wq__memory_stop_all(m));

    wq__report_close(m); /* sinks may query the queue for the last time */
    wq__memory_stop_watching(m);
    wq__core_fini(&m->core);
    wq__inbox_fini(&m->inbox);
    wq__retry_fini(&m->retry); /* frees memory under the lock */
    wq__lock_fini(&m->lock);
    wq__mem_free_str(&m->mem, m->name);
    wq__race_enable_checking(m, sizeof *m);
    const wq_allocator mem = m->mem;
    wq__mem_free(&mem, m->raw, MEMORY_BYTES);
}

/* ---- creating ----------------------------------------------------------- */

static const wq_backend memory_backend = {
    .size = sizeof memory_backend,
    .name = "memory",
    .destroy = memory_destroy,
    .add = wq__memory_add,
    .get = wq__memory_get,
    .done = wq__memory_done,
    .len = wq__memory_len,
    .shutdown = wq__memory_shutdown,
    .shutting_down = wq__memory_shutting_down,
    .done_key = wq__memory_done_key,
    .drain = wq__memory_drain,
    .interrupt = wq__memory_interrupt,
    .add_after = wq__memory_add_after,
    .add_rate_limited = wq__memory_add_rate_limited,
    .forget = wq__memory_forget,
    .num_requeues = wq__memory_num_requeues,
    .count_drops = wq__memory_count_drops,
    .add_with = wq__memory_add_with,
    .remove = wq__memory_remove,
    .remove_wait = wq__memory_remove_wait,
    .flush = wq__memory_flush,
    .flush_key = wq__memory_flush_key,
    .wait_idle = wq__memory_wait_idle,
    .pause = wq__memory_pause,
    .resume = wq__memory_resume,
    .cancel_after = wq__memory_cancel_after,
    .get_many = wq__memory_get_many,
    .done_many = wq__memory_done_many,
    .next = wq__memory_next,
    .finish = wq__memory_finish,
    .next_with = wq__memory_next_with,
    .fd = wq__memory_fd,
    .stats = wq__memory_stats,
    .depths = wq__memory_depths,
    .key_info = wq__memory_key_info,
    .each = wq__memory_each,
    .check = wq__memory_check,
    .queue_name = wq__memory_name,
};

static void
set_up_core(struct wq__core *core, const wq_config *config)
{
    core->max_len = config->max_len;
    if (config->max_bytes)
        wq__core_bound_bytes(core, config->max_bytes);
    if (config->ages)
        wq__core_keep_ages(core);
    if (config->group)
        wq__core_have_groups(core, config->group_max_held);
    if (config->max_ready_ns)
        wq__core_serve_after(core, config->max_ready_ns);
}

/* Initialise all that cannot fail. `m` is zeroed but for `raw` and `mem`. */
static void
fill_in(struct wq__memory *m, const wq_config *config,
        struct wq__hash_key secret)
{
    m->base.backend = &memory_backend;
    m->clock = config->clock ? config->clock : wq_clock_monotonic();
    m->waiting = config->waiting;
    m->retry_policy = config->retry;
    m->overflow = config->overflow;
    m->on_drop = config->on_drop;
    m->drop_ctx = config->drop_ctx;
    /* Race detectors understand the lock, but not the inbox. */
    m->no_plain_adds = config->max_len || config->max_bytes || config->group;
    m->has_order = config->order != NULL;
    m->has_inbox = !config->order && !m->no_plain_adds && !config->real_time &&
                   !wq__race_is_watched();
    m->group = config->group;
    m->group_ctx = config->group_ctx;
    m->locked_mem = (struct wq__locked_mem){&m->mem, &m->lock};
    m->shared_mem = wq__locked_mem_allocator(&m->locked_mem);
    atomic_init(&m->sinks_len, 0);
    atomic_init(&m->reports_changes, false);
    atomic_init(&m->retries, 0);
    atomic_init(&m->dropped, 0);
    atomic_init(&m->wake_from, WQ__WAKE_NOBODY);
    atomic_init(&m->work_hint, false);
    atomic_init(&m->wait_hint, false);
    atomic_init(&m->in_vain, 0);
    atomic_init(&m->skips, 0);
    atomic_init(&m->closed, false);
    m->real_time = config->real_time;
    m->may_spin = wq__thread_processors() > 1 && !config->real_time;
    wq__spin_init(&m->spin);
    wq__patience_init(&m->patience,
                      wq__clock_is_real(m->clock) && !config->real_time);
    atomic_init(&m->spin_ends_ns, 0);
    atomic_init(&m->getter, NULL);
    wq__core_init(&m->core, secret, config->order, &m->mem);
    m->core.respect = config->retry & WQ_RETRY_RESPECT;
    set_up_core(&m->core, config);
    wq__memory_review_gets(m);
    wq__inbox_init(&m->inbox, &m->mem);
}

static wq_err
no_memory(void)
{
    return wq_fail(WQ_ENOMEM, "wq_create: out of memory");
}

static wq_err
init_lock(struct wq__memory *m)
{
    if (m->real_time) {
        const wq_err err = wq__lock_init_inheriting(&m->lock);
        if (err == WQ_ENOTSUP)
            return wq_fail(err, "wq_config.real_time: the system has no "
                                "priority inheritance");
        return err ? no_memory() : WQ_OK;
    }
    wq__lock_init(&m->lock);
    return WQ_OK;
}

static wq_err
copy_name(struct wq__memory *m, const char *name)
{
    if (!name || !*name)
        return WQ_OK;
    m->name = wq__mem_str(&m->mem, name);
    return m->name ? WQ_OK : no_memory();
}

/* Metrics need a name, a sink and ages. Sinks are opened last, when the queue
 * is complete: they may query it. */
static wq_err
open_metrics(struct wq__memory *m, const wq_config *config)
{
    wq_metrics        process_wide;
    const wq_metrics *metrics = config->metrics;

    const wq_err err = wq__metrics_choose(m->name, &metrics, &process_wide);
    if (err || !metrics)
        return err;
    wq__core_keep_ages(&m->core);
    return wq__report_open(m, metrics);
}

wq_err
wq__memory_create(const wq_config *config, struct wq__hash_key secret,
                  wq_queue **out)
{
    const wq_allocator mem =
        config->allocator ? *config->allocator : wq__mem_default;
    void *raw = wq__mem_alloc(&mem, MEMORY_BYTES);
    if (!raw)
        return no_memory();

    struct wq__memory *m = wq__mem_align(raw, alignof(struct wq__memory));
    memset(m, 0, sizeof *m);
    wq__race_disable_checking(m, sizeof *m);
    m->raw = raw;
    m->mem = mem;
    fill_in(m, config, secret);
    wq_err err = init_lock(m);
    if (err)
        goto fail_lock;
    err = copy_name(m, config->name);
    if (err)
        goto fail_name;
    err = wq__retry_init(&m->retry, config, m->clock, &m->shared_mem);
    if (err)
        goto fail_retry;
    err = open_metrics(m, config);
    if (err)
        goto fail_metrics;
    *out = &m->base;
    return WQ_OK;

fail_metrics:
    wq__memory_stop_watching(m); /* an open sink may have called wq_fd() */
    wq__retry_abandon(&m->retry, config);
fail_retry:
    wq__mem_free_str(&m->mem, m->name);
fail_name:
    wq__lock_fini(&m->lock);
fail_lock:
    wq__core_fini(&m->core);
    wq__inbox_fini(&m->inbox); /* sinks may have used the queue */
    wq__race_enable_checking(m, sizeof *m);
    wq__mem_free(&mem, raw, MEMORY_BYTES);
    return err;
}

static wq_err
create(const wq_config *config, wq_queue **out)
{
    struct wq__config   checked;
    struct wq__hash_key secret;

    if (!out)
        return wq_fail(WQ_EINVAL, "wq_create: out is NULL");
    const wq_err err = wq__config_read(config, &checked);
    if (err)
        return err;
    if (checked.user.waiting == WQ_WAITING_LEAVE)
        return wq_fail(WQ_ENOTSUP, "wq_config.waiting is WQ_WAITING_LEAVE, "
                                   "which only shared queues support");
    if (!wq__secret_new(&secret))
        return wq_fail(WQ_EIO, "wq_create: the system gave no random numbers");
    return wq__memory_create(&checked.user, secret, out);
}

wq_err
wq_create(const wq_config *config, wq_queue **out)
{
    wq_limiter  *limiter = wq__config_limiter(config);
    const wq_err err = create(config, out);

    if (err)
        wq_limiter_destroy(limiter); /* unless it has another owner */
    return err;
}
