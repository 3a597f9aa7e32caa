/* SPDX-License-Identifier: MIT */
/* report.h: how are messages printed?
 *
 * On stderr, as one line that begins with "wq: ". A progress display on the
 * terminal is hidden first; it is drawn again at its next interval. All code that
 * writes to stdout or stderr must hide it.
 */
#ifndef WQ_TOOL_REPORT_H
#define WQ_TOOL_REPORT_H

#include <stddef.h>
#include <stdint.h>

/* "wq: " and the message and a newline, in one write(). */
void report(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Likewise, followed by ": " and strerror(errno). Keeps errno. */
void report_errno(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

/* Hide the display before writing to stdout or stderr. Cheap if there is none. */
void display_hide(void);
/* hide(ctx) hides the display; NULL: there is none. */
void display_set(void (*hide)(void *ctx), void *ctx);

/* The key for a message: control characters and bytes that are not UTF-8 as
 * \xHH; "..." after about 60 bytes. The result is valid until the fourth call
 * after it. */
const char *report_key(const void *data, size_t len);
/* A time for people: 850ms, 4.2s, 38s, 3m07s, 2h05m, 4d03h: at most six columns.
 * Returns `text`. */
const char *report_time(int64_t ns, char text[16]);

#endif
