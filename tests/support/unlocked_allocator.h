/* SPDX-License-Identifier: MIT */
/* unlocked_allocator.h: does a queue call its allocator under its lock only?
 *
 * That is promised, so an allocator need not be thread-safe. This one counts in
 * a plain variable: a call without the lock is a race, which detectors report.
 */
#ifndef WQ_TEST_UNLOCKED_ALLOCATOR_H
#define WQ_TEST_UNLOCKED_ALLOCATOR_H

#include <stdlib.h>

#include <wq/wq.h>

static size_t
    unlocked_bytes; /* allocated and not freed; not atomic on purpose */

static inline void *
unlocked_alloc(void *ctx, size_t n)
{
    (void)ctx;
    unlocked_bytes += n;
    return malloc(n);
}

static inline void
unlocked_free(void *ctx, void *p, size_t n)
{
    (void)ctx;
    unlocked_bytes -= n;
    free(p);
}

static const wq_allocator unlocked_allocator = {
    .size = sizeof unlocked_allocator,
    .alloc = unlocked_alloc,
    .free = unlocked_free,
};

#endif
