/* SPDX-License-Identifier: MIT */
/* read.h: how is a struct read that the user filled in, and what is wrong with
 * it?
 *
 * core/sized.h with a sentence for wq_last_error(). Cost: O(size).
 */
#ifndef WQ_CONFIG_READ_H
#define WQ_CONFIG_READ_H

#include <wq/wq.h>

/* Read `from`, which is a `type` and not NULL, into `out` of `known` bytes. The
 * sentence of WQ_EINVAL names `macro` ("WQ_CONFIG()"), which fills in the size;
 * NULL: there is none. */
WQ__STORE_API wq_err wq__read_sized(const void *from, const char *type,
                                    const char *macro, size_t known, void *out);

/* Read an allocator, which must have both functions. NULL: malloc() and
 * free(). */
wq_err wq__read_allocator(const wq_allocator *from, wq_allocator *out);

/* WQ_EINVAL: the field or argument `what` is negative. */
wq_err wq__check_not_negative(const char *what, int64_t value);

/* WQ_EINVAL: the rate `what` is not a finite number. */
wq_err wq__check_finite(const char *what, double rate);

#endif
