/* SPDX-License-Identifier: MIT */
/* config.c: reading what the user filled in; see config.h. */
#include "workers/config.h"

#include "core/mem.h"

static wq_err
read_allocator(const wq_allocator *from, wq_allocator *out)
{
    if (!from)
        from = &wq__mem_default;
    if (!wq__sized_read(from, sizeof *out, out) || !out->alloc || !out->free)
        return WQ_EINVAL;
    return WQ_OK;
}

wq_err
wq__workers_config_read(const wq_workers_config   *config,
                        struct wq__workers_config *out)
{
    wq_workers_config *user = &out->user;

    if (!config || !wq__sized_read(config, sizeof *user, user))
        return WQ_EINVAL;
    if (!user->handler || user->item_deadline_ns < 0)
        return WQ_EINVAL;
    if (user->item_deadline_ns && !user->on_stuck)
        return WQ_EINVAL;
    return read_allocator(user->allocator, &out->allocator);
}

wq_err
wq__parallel_options_read(const wq_parallel_options   *options,
                          struct wq__parallel_options *out)
{
    const wq_parallel_options defaults = {.size = sizeof defaults};
    wq_parallel_options      *user = &out->user;

    if (!wq__sized_read(options ? options : &defaults, sizeof *user, user))
        return WQ_EINVAL;
    if (!user->chunk)
        user->chunk = 1;
    return read_allocator(user->allocator, &out->allocator);
}
