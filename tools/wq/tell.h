/* SPDX-License-Identifier: MIT */
/* tell.h: how does wq speak to people?
 *
 * Messages go to stderr, begin with "wq: " and are one line. A progress display
 * that is on the terminal is taken away first (it puts itself back when it is
 * drawn next), and so it must be by everybody who writes to the terminal.
 */
#ifndef WQ_TOOL_TELL_H
#define WQ_TOOL_TELL_H

#include <stddef.h>

/* "wq: " and the message and a newline, in one write(). */
void tell(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same, then ": " and what errno says. */
void tell_errno(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Somebody is about to write to stdout or stderr, which may be the terminal
 * the display is on. Cheap when there is none. */
void tell_clear(void);
/* clear(ctx) takes a display away; NULL: there is none (any more). */
void tell_display(void (*clear)(void *ctx), void *ctx);

/* The key as a part of a message: control characters and bytes that are not
 * UTF-8 as \xHH, cut off after some 60 bytes with "...". Four buffers take
 * turns. */
const char *tell_key(const void *data, size_t len);

#endif
