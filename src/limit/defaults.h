/* SPDX-License-Identifier: MIT */
/* defaults.h: what are the numbers of the default limiters? Those of client-
 * go. */
#ifndef WQ_LIMIT_DEFAULTS_H
#define WQ_LIMIT_DEFAULTS_H

#include <stdint.h>

#define WQ__DEFAULT_BASE_NS INT64_C(5000000)      /* 5 ms */
#define WQ__DEFAULT_ITEM_BASE_NS INT64_C(1000000) /* 1 ms, without a bucket */
#define WQ__DEFAULT_MAX_NS INT64_C(1000000000000) /* 1000 s */
#define WQ__DEFAULT_FACTOR 2.0
#define WQ__DEFAULT_PER_SECOND 10.0 /* all keys together */
#define WQ__DEFAULT_BURST 100U

#endif
