/* SPDX-License-Identifier: MIT */
/* config.c: checking a config; see config.h. */
#include "core/config.h"

#include "core/sized.h"

static bool
read_order(const wq_order *from, wq_order *out)
{
    return wq__sized_read(from, sizeof *out, out) && out->push && out->pop &&
           out->len;
}

static bool
read_allocator(const wq_allocator *from, wq_allocator *out)
{
    return wq__sized_read(from, sizeof *out, out) && out->alloc && out->free;
}

static bool
has_known_values(const wq_config *config)
{
    const unsigned known =
        WQ_RETRY_ONCE | WQ_RETRY_FAILURES_ONLY | WQ_RETRY_RESPECT;

    return (config->waiting == WQ_WAITING_DROP ||
            config->waiting == WQ_WAITING_KEEP) &&
           !(config->retry & ~known);
}

wq_err
wq__config_read(const wq_config *config, struct wq__config *out)
{
    const wq_config defaults = {.size = sizeof defaults};
    wq_config      *user = &out->user;

    if (!wq__sized_read(config ? config : &defaults, sizeof *user, user) ||
        !has_known_values(user))
        return WQ_EINVAL;
    if (user->order) {
        if (!read_order(user->order, &out->order))
            return WQ_EINVAL;
        user->order = &out->order;
    }
    if (user->allocator) {
        if (!read_allocator(user->allocator, &out->allocator))
            return WQ_EINVAL;
        user->allocator = &out->allocator;
    }
    return WQ_OK;
}
