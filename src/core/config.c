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

    return config->waiting >= WQ_WAITING_DROP &&
           config->waiting <= WQ_WAITING_FLUSH_ALL &&
           !(config->retry & ~known) &&
           config->overflow >= WQ_OVERFLOW_REFUSE &&
           config->overflow <= WQ_OVERFLOW_DROP_OLDEST &&
           config->max_ready_ns >= 0 &&
           (config->group || (!config->group_max_held && !config->group_ctx));
}

/* A policy for a bound that is not there is a mistake. */
static bool
is_bound(const wq_config *config)
{
    return config->max_len || config->max_bytes ||
           config->overflow == WQ_OVERFLOW_REFUSE;
}

wq_err
wq__config_read(const wq_config *config, struct wq__config *out)
{
    const wq_config defaults = {.size = sizeof defaults};
    wq_config      *user = &out->user;

    if (!wq__sized_read(config ? config : &defaults, sizeof *user, user) ||
        !has_known_values(user) || !is_bound(user))
        return WQ_EINVAL;
    if (user->order) {
        if (!read_order(user->order, &out->order))
            return WQ_EINVAL;
        user->order = &out->order;
        if (user->overflow == WQ_OVERFLOW_DROP_OLDEST || user->group ||
            user->max_ready_ns || user->max_bytes)
            return WQ_ENOTSUP; /* an order need not know who is the oldest */
    }
    if (user->group_max_held && user->max_ready_ns)
        return WQ_ENOTSUP; /* the oldest key may be of a group that is blocked */
    if (user->allocator) {
        if (!read_allocator(user->allocator, &out->allocator))
            return WQ_EINVAL;
        user->allocator = &out->allocator;
    }
    return WQ_OK;
}

bool
wq__config_asks_for_more_than_layers(const wq_config *config)
{
    return config->order || config->retry ||
           config->waiting != WQ_WAITING_DROP ||
           (config->name && *config->name) || config->metrics || config->ages ||
           config->max_len || config->max_bytes || config->group ||
           config->max_ready_ns || config->real_time;
}
