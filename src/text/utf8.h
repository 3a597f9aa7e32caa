/* SPDX-License-Identifier: MIT */
/* utf8.h: are these bytes text?
 *
 * Text is UTF-8 as Unicode defines it: no overlong forms, no surrogates,
 * nothing above U+10FFFF. What is none of it is replaced by U+FFFD, one for
 * each longest beginning of a character that was cut off, else one for each
 * byte: what Unicode recommends and browsers do.
 */
#ifndef WQ_TEXT_UTF8_H
#define WQ_TEXT_UTF8_H

#include <stdbool.h>

#include "text/text.h"

/* How many bytes at the beginning belong together; `n` is at least 1. *valid:
 * they are a character; else they are to be replaced. */
size_t wq__utf8_next(const char *bytes, size_t n, bool *valid);

/* Are all of them text? */
bool wq__utf8_valid(const char *bytes, size_t n);

/* The bytes, with replacements. At most three bytes for one. */
void wq__utf8_add(struct wq__text *t, const char *bytes, size_t n);

/* Stands for what is not text: U+FFFD. */
#define WQ__UTF8_REPLACEMENT "\xef\xbf\xbd"

#endif
