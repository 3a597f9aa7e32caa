/* SPDX-License-Identifier: MIT */
/* config.h: is this config of a queue valid?
 *
 * A checked copy of what the user filled in, with the structs it points to.
 */
#ifndef WQ_CONFIG_CONFIG_H
#define WQ_CONFIG_CONFIG_H

#include <wq/wq.h>

struct wq__config {
    wq_config    user; /* its `order` and `allocator` point here, or are NULL */
    wq_order     order;
    wq_allocator allocator;
};

/* NULL: all defaults. WQ_EINVAL, WQ_ENOTSUP: wq_last_error() names the field.
 * Do not move `out` afterwards. */
wq_err wq__config_read(const wq_config *config, struct wq__config *out);

/* A field that some queues do not support. */
struct wq__unsupported {
    bool        is_set;
    const char *name;
};

/* WQ_ENOTSUP: one of the `n` fields is set; wq_last_error() says that `what`,
 * a kind of queue, does not support it. */
wq_err wq__config_refuse(const struct wq__unsupported *fields, size_t n,
                         const char *what);

/* WQ_ENOTSUP: a field is set that a layer around another queue does not
 * support; wq_last_error() names it. */
wq_err wq__config_check_for_layer(const wq_config *config);

/* The limiter of a config that was not checked, for a function that takes it
 * over even if the rest is wrong. NULL: none, or the config is too short to
 * have one. */
WQ__STORE_API wq_limiter *wq__config_limiter(const wq_config *config);

#endif
