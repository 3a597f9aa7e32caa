/* SPDX-License-Identifier: MIT */
/* read.h: how is a struct read that the user filled in, and what is wrong?
 *
 * core/sized.h with a sentence for wq_last_error(). Cost: O(size).
 */
#ifndef WQ_CONFIG_READ_H
#define WQ_CONFIG_READ_H

#include <wq/wq.h>

/* Read `from`, which is a `type` and not NULL, into `out` of `known` bytes. The
 * sentence of WQ_EINVAL names `macro` ("WQ_CONFIG()"), which fills in the size;
 * NULL: there is none. */
wq_err wq__read_sized(const void *from, const char *type, const char *macro,
                      size_t known, void *out);

/* An allocator with both functions. NULL: `out` becomes malloc and free. */
wq_err wq__read_allocator(const wq_allocator *from, wq_allocator *out);

/* A field or argument, named by `what`, that must not be negative. */
wq_err wq__check_not_negative(const char *what, int64_t value);

/* A rate, named by `what`, that must be a finite number. */
wq_err wq__check_finite(const char *what, double rate);

#endif
