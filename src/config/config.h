/* SPDX-License-Identifier: MIT */
/* config.h: is this a config a queue can be made of?
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
 * `out` must not be moved afterwards. */
wq_err wq__config_read(const wq_config *config, struct wq__config *out);

/* WQ_ENOTSUP: a field is set that a layer around another queue cannot serve;
 * wq_last_error() names it. */
wq_err wq__config_check_for_layer(const wq_config *config);

/* The limiter of a config that was not checked, for the function that takes it
 * over even if the rest is wrong. NULL: none, or the size leaves no place for
 * one. */
wq_limiter *wq__config_limiter(const wq_config *config);

#endif
