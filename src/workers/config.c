/* SPDX-License-Identifier: MIT */
/* config.c: reading what the user filled in; see config.h. */
#include "workers/config.h"

#include "config/read.h"
#include "error/error.h"

wq_err
wq__workers_config_read(const char *who, const wq_workers_config *config,
                        struct wq__workers_config *out)
{
    wq_workers_config *user = &out->user;

    if (!config)
        return wq_fail(WQ_EINVAL, "%s: config is NULL", who);
    wq_err err = wq__read_sized(config, "wq_workers_config", "WQ_WORKERS()",
                                sizeof *user, user);
    if (err)
        return err;
    if (!user->handler)
        return wq_fail(WQ_EINVAL, "wq_workers_config.handler is NULL");
    err = wq__check_not_negative("wq_workers_config.item_deadline_ns",
                                 user->item_deadline_ns);
    if (err)
        return err;
    if (user->item_deadline_ns && !user->on_stuck)
        return wq_fail(WQ_EINVAL,
                       "wq_workers_config.item_deadline_ns needs on_stuck");
    return wq__read_allocator(user->allocator, &out->allocator);
}

wq_err
wq__parallel_options_read(const wq_parallel_options   *options,
                          struct wq__parallel_options *out)
{
    const wq_parallel_options defaults = {.size = sizeof defaults};
    wq_parallel_options      *user = &out->user;

    const wq_err err =
        wq__read_sized(options ? options : &defaults, "wq_parallel_options",
                       "WQ_PARALLEL()", sizeof *user, user);
    if (err)
        return err;
    if (!user->chunk)
        user->chunk = 1;
    return wq__read_allocator(user->allocator, &out->allocator);
}
