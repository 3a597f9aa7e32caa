/* SPDX-License-Identifier: MIT */
/* config.h: is this a config a queue can be made of?
 *
 * A checked copy of what the user filled in, with the structs it points to.
 */
#ifndef WQ_CORE_CONFIG_H
#define WQ_CORE_CONFIG_H

#include <wq/wq.h>

struct wq__config {
    wq_config    user; /* its `order` and `allocator` point here, or are NULL */
    wq_order     order;
    wq_allocator allocator;
};

/* NULL: all defaults. WQ_EINVAL: a size is wrong, a function is missing, a
 * value is not one of those it can be. `out` must not be moved afterwards. */
wq_err wq__config_read(const wq_config *config, struct wq__config *out);

/* Does it ask for what a layer around another queue cannot do? */
bool wq__config_asks_for_more_than_layers(const wq_config *config);

#endif
