/* SPDX-License-Identifier: MIT */
/* escape.h: how are bytes written that others must be able to read back?
 *
 * JSON strings and labels are UTF-8, so bytes that are not UTF-8 become U+FFFD
 * there. Base64 keeps every byte.
 */
#ifndef WQ_TEXT_ESCAPE_H
#define WQ_TEXT_ESCAPE_H

#include "text/text.h"

/* A JSON string, with its quotes. */
void wq__text_json(struct wq__text *t, const char *bytes, size_t n);

/* A key as members of a JSON object, without braces: "key":"...", and if it is
 * not UTF-8 also ,"key_base64":"...". */
void wq__text_key(struct wq__text *t, const void *key, size_t n);

/* The value of a label of Prometheus or OpenMetrics, with its quotes. */
void wq__text_label(struct wq__text *t, const char *bytes, size_t n);

/* Base64 (RFC 4648, section 4: with padding), without quotes. */
void wq__text_base64(struct wq__text *t, const void *bytes, size_t n);

#endif
