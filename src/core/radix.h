/* SPDX-License-Identifier: MIT */
/* radix.h: how are many deadlines sorted, without memory and without a bad case?
 *
 * By a radix sort in place, from the most significant bits on: entries are
 * divided into 256 buckets by the eight bits below the highest bit in which they
 * differ, then each bucket in the same way. Few entries are sorted by insertion.
 *
 * Cost: O(n), at most 16 passes, whatever the deadlines are; about 2 if they are
 * spread evenly. Stack: 16 frames of 2 KiB at most.
 */
#ifndef WQ_CORE_RADIX_H
#define WQ_CORE_RADIX_H

#include "core/heap.h"

/* Sort `n` entries by deadline, then by arrival; fewer than 2^32. */
void wq__radix_sort(struct wq__wait *entries, size_t n);

#endif
