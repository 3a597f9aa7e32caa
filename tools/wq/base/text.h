/* SPDX-License-Identifier: MIT */
/* text.h: how does the command write text?
 *
 * With the library's text room (src/text), which is compiled into the command,
 * and the functions below. A zeroed struct wq__text is an empty text; its `err`
 * is the first error, which can only be "out of memory" here.
 */
#ifndef WQ_TOOL_TEXT_H
#define WQ_TOOL_TEXT_H

#include "text/escape.h"
#include "text/text.h"
#include "text/utf8.h"

/* Add as printf() does. */
void text_print(struct wq__text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Make it empty, without an error; its memory is kept. */
void text_clear(struct wq__text *text);
/* Put a NUL behind the bytes, which is not counted in `len`. Returns the bytes;
 * NULL: out of memory, now or before. */
char *text_terminate(struct wq__text *text);

/* The largest length up to `max` at which the bytes can be cut without splitting
 * a UTF-8 character; `len` if that is not more. */
size_t text_cut(const char *bytes, size_t len, size_t max);

#endif
