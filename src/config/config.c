/* SPDX-License-Identifier: MIT */
/* config.c: checking a config; see config.h. Each check is a statement with a
 * sentence of its own. */
#include "config/config.h"

#include "config/read.h"
#include "core/sized.h"
#include "error/error.h"

static wq_err
check_values(const wq_config *c)
{
    const unsigned known =
        WQ_RETRY_ONCE | WQ_RETRY_FAILURES_ONLY | WQ_RETRY_RESPECT;

    if ((int)c->waiting < WQ_WAITING_DROP || c->waiting > WQ_WAITING_LEAVE)
        return wq_fail(WQ_EINVAL, "wq_config.waiting is %d: not a wq_waiting",
                       (int)c->waiting);
    if (c->retry & ~known)
        return wq_fail(WQ_EINVAL,
                       "wq_config.retry is 0x%x: has bits that are not in "
                       "enum wq_retry",
                       c->retry);
    if ((int)c->overflow < WQ_OVERFLOW_REFUSE ||
        c->overflow > WQ_OVERFLOW_DROP_OLDEST)
        return wq_fail(WQ_EINVAL, "wq_config.overflow is %d: not a wq_overflow",
                       (int)c->overflow);
    return wq__check_not_negative("wq_config.max_ready_ns", c->max_ready_ns);
}

/* An order of the user need not know the oldest key, or the group of a key. */
static wq_err
check_order(const wq_config *c)
{
    if (!c->order)
        return WQ_OK;
    if (c->overflow == WQ_OVERFLOW_DROP_OLDEST)
        return wq_fail(WQ_ENOTSUP, "wq_config.overflow is "
                                   "WQ_OVERFLOW_DROP_OLDEST, which cannot be "
                                   "combined with order");
    if (c->max_bytes)
        return wq_fail(WQ_ENOTSUP,
                       "wq_config.max_bytes cannot be combined with order");
    if (c->group)
        return wq_fail(WQ_ENOTSUP,
                       "wq_config.group cannot be combined with order");
    if (c->max_ready_ns)
        return wq_fail(WQ_ENOTSUP,
                       "wq_config.max_ready_ns cannot be combined with order");
    return WQ_OK;
}

/* Fields that need others, or exclude others. */
static wq_err
check_combinations(const wq_config *c)
{
    if (c->overflow != WQ_OVERFLOW_REFUSE && !c->max_len && !c->max_bytes)
        return wq_fail(WQ_EINVAL,
                       "wq_config.overflow needs max_len or max_bytes");
    if (c->group_max_held && !c->group)
        return wq_fail(WQ_EINVAL, "wq_config.group_max_held needs group");
    if (c->group_max_held &&
        c->max_ready_ns) /* the oldest key may be of a blocked group */
        return wq_fail(WQ_ENOTSUP, "wq_config.max_ready_ns cannot be combined "
                                   "with group_max_held");
    return check_order(c);
}

static wq_err
read_order(const wq_order *from, wq_order *out)
{
    const wq_err err = wq__read_sized(from, "wq_order", NULL, sizeof *out, out);

    if (err)
        return err;
    if (!out->push)
        return wq_fail(WQ_EINVAL, "wq_order.push is NULL");
    if (!out->pop)
        return wq_fail(WQ_EINVAL, "wq_order.pop is NULL");
    if (!out->len)
        return wq_fail(WQ_EINVAL, "wq_order.len is NULL");
    return WQ_OK;
}

/* Copy the structs that `user`, which is part of `out`, points to. */
static wq_err
read_parts(wq_config *user, struct wq__config *out)
{
    wq_err err = WQ_OK;

    if (user->order) {
        err = read_order(user->order, &out->order);
        user->order = &out->order;
    }
    if (user->allocator && !err) {
        err = wq__read_allocator(user->allocator, &out->allocator);
        user->allocator = &out->allocator;
    }
    return err;
}

wq_err
wq__config_read(const wq_config *config, struct wq__config *out)
{
    const wq_config defaults = {.size = sizeof defaults};
    wq_config      *user = &out->user;

    wq_err err = wq__read_sized(config ? config : &defaults, "wq_config",
                                "WQ_CONFIG()", sizeof *user, user);
    if (!err)
        err = check_values(user);
    if (!err)
        err = read_parts(user, out);
    if (!err)
        err = check_combinations(user);
    return err;
}

wq_err
wq__config_refuse(const struct wq__unsupported *fields, size_t n,
                  const char *what)
{
    for (size_t i = 0; i < n; i++)
        if (fields[i].is_set)
            return wq_fail(WQ_ENOTSUP, "wq_config.%s is not supported by %s",
                           fields[i].name, what);
    return WQ_OK;
}

wq_err
wq__config_check_for_layer(const wq_config *c)
{
    const struct wq__unsupported fields[] = {
        {c->order, "order"},         {c->waiting != WQ_WAITING_DROP, "waiting"},
        {c->retry, "retry"},         {c->name && *c->name, "name"},
        {c->metrics, "metrics"},     {c->ages, "ages"},
        {c->max_len, "max_len"},     {c->real_time, "real_time"},
        {c->group, "group"},         {c->max_ready_ns, "max_ready_ns"},
        {c->max_bytes, "max_bytes"},
    };

    return wq__config_refuse(fields, sizeof fields / sizeof *fields, "a layer");
}

wq_limiter *
wq__config_limiter(const wq_config *config)
{
    const size_t end = offsetof(wq_config, limiter) + sizeof config->limiter;

    return config && config->size >= end && config->size <= WQ__SIZED_MAX
               ? config->limiter
               : NULL;
}
