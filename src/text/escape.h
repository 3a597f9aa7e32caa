/* SPDX-License-Identifier: MIT */
/* escape.h: how are bytes written that others must be able to read back?
 *
 * Bytes that are not UTF-8 become U+FFFD: both formats are UTF-8.
 */
#ifndef WQ_TEXT_ESCAPE_H
#define WQ_TEXT_ESCAPE_H

#include "text/text.h"

/* A JSON string, with its quotes. */
void wq__text_json(struct wq__text *t, const char *bytes, size_t n);

/* The value of a label of Prometheus or OpenMetrics, with its quotes. */
void wq__text_label(struct wq__text *t, const char *bytes, size_t n);

/* Two digits a byte. */
void wq__text_hex(struct wq__text *t, const void *bytes, size_t n);

#endif
