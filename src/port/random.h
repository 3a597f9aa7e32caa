/* SPDX-License-Identifier: MIT */
/* random.h: where do random numbers come from? */
#ifndef WQ_PORT_RANDOM_H
#define WQ_PORT_RANDOM_H

#include <stddef.h>

#include <wq/wq.h>

/* Fill `n` (at most 256) bytes with random numbers. WQ_EIO: the system has
 * none. */
WQ__STORE_API wq_err wq__random(void *out, size_t n);

#endif
