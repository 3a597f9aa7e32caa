/* SPDX-License-Identifier: MIT */
/* number.h: how are numbers written?
 *
 * Exactly, and independent of the locale: printf() rounds, and writes a decimal
 * comma in some locales.
 */
#ifndef WQ_TEXT_NUMBER_H
#define WQ_TEXT_NUMBER_H

#include "text/text.h"

void wq__text_u64(struct wq__text *t, uint64_t n);
void wq__text_i64(struct wq__text *t, int64_t n);

/* Seconds and nanoseconds, `ns` below 10^9: 0 and 50000 are 0.00005. */
void wq__text_seconds(struct wq__text *t, uint64_t seconds, uint32_t ns);

#endif
