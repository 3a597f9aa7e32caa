/* SPDX-License-Identifier: MIT */
/* config.h: is this config of a pool valid?
 *
 * A checked copy of what the user filled in, with the defaults filled in.
 */
#ifndef WQ_WORKERS_CONFIG_H
#define WQ_WORKERS_CONFIG_H

#include <wq/workers.h>

struct wq__workers_config {
    wq_workers_config user; /* do not use its `allocator` */
    wq_allocator      allocator;
};

struct wq__parallel_options {
    wq_parallel_options user; /* `chunk` is not 0; do not use `allocator` */
    wq_allocator        allocator;
};

/* For the function `who`. WQ_EINVAL: config is NULL, a size is wrong, a
 * function is missing, or a time is negative; wq_last_error() names the field.
 */
wq_err wq__workers_config_read(const char *who, const wq_workers_config *config,
                               struct wq__workers_config *out);

/* The same for wq_parallelize(); NULL: all defaults. */
wq_err wq__parallel_options_read(const wq_parallel_options   *options,
                                 struct wq__parallel_options *out);

#endif
