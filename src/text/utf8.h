/* SPDX-License-Identifier: MIT */
/* utf8.h: are these bytes UTF-8?
 *
 * UTF-8 as Unicode defines it: no overlong forms, no surrogates, nothing above
 * U+10FFFF. Other bytes are replaced by U+FFFD: one for the longest beginning of
 * a truncated character, else one for each byte, as Unicode recommends and
 * browsers do.
 */
#ifndef WQ_TEXT_UTF8_H
#define WQ_TEXT_UTF8_H

#include <stdbool.h>

#include "text/text.h"

/* The number of bytes of the character at `bytes`; `n` is at least 1. *valid is
 * false if they are not a character, and must be replaced by one U+FFFD. */
size_t wq__utf8_next(const char *bytes, size_t n, bool *valid);

/* Are all bytes UTF-8? */
bool wq__utf8_valid(const char *bytes, size_t n);

/* Add the bytes, with replacements: at most three bytes for each. */
void wq__utf8_add(struct wq__text *t, const char *bytes, size_t n);

/* U+FFFD. */
#define WQ__UTF8_REPLACEMENT "\xef\xbf\xbd"

#endif
