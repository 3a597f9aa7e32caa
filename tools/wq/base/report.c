/* SPDX-License-Identifier: MIT */
/* report.c: how are messages printed? */
#include "base/report.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"

/* Longer messages are truncated; report_key() keeps keys short. */
#define LONGEST 1024

static void (*display_callback)(void *ctx);
static void *display_ctx;

void
display_set(void (*hide)(void *ctx), void *ctx)
{
    display_callback = hide;
    display_ctx = ctx;
}

void
display_hide(void)
{
    if (display_callback)
        display_callback(display_ctx);
}

/* Appends to the line as much as fits; returns its length. */
__attribute__((format(printf, 3, 0))) static size_t
add(char *line, size_t len, const char *format, va_list args)
{
    const int n = vsnprintf(line + len, LONGEST - 1 - len, format, args);

    if (n < 0)
        return len;
    const size_t end = len + (size_t)n;
    return end < LONGEST - 1 ? end : LONGEST - 2;
}

/* An error of stderr cannot be reported. */
static void
send(char *line, size_t len)
{
    line[len++] = '\n';
    display_hide();
    const ssize_t sent = write(STDERR_FILENO, line, len);
    (void)sent;
}

void
report(const char *format, ...)
{
    char    line[LONGEST] = "wq: ";
    va_list args;

    va_start(args, format);
    const size_t len = add(line, strlen(line), format, args);
    va_end(args);
    send(line, len);
}

void
report_errno(const char *format, ...)
{
    const int err = errno;
    char      line[LONGEST] = "wq: ";
    va_list   args;

    va_start(args, format);
    size_t len = add(line, strlen(line), format, args);
    va_end(args);
    const int n =
        snprintf(line + len, LONGEST - 1 - len, ": %s", strerror(err));
    if (n > 0 && len + (size_t)n < LONGEST - 1)
        len += (size_t)n;
    send(line, len);
    errno = err;
}

/* The number of bytes of the UTF-8 character at `s`; 0: it is none, or a control
 * character. */
static size_t
printable(const char *s, size_t len)
{
    const unsigned char first = (unsigned char)s[0];
    bool                valid;
    const size_t        n = wq__utf8_next(s, len, &valid);
    const bool          control = first < 0x20 || first == 0x7f ||
                         (first == 0xc2 && (unsigned char)s[1] < 0xa0);

    return valid && !control ? n : 0;
}

const char *
report_key(const void *data, size_t len)
{
    enum { SHOWN = 60 };
    static char     texts[4][SHOWN * 4 + 8];
    static unsigned turn;
    char           *text = texts[turn++ % 4];
    const char     *s = data;
    size_t          at = 0, used = 0;

    while (at < len && at < SHOWN) {
        const size_t n = printable(s + at, len - at);
        if (n) {
            (void)memcpy(text + used, s + at, n);
            used += n;
            at += n;
        } else {
            used +=
                (size_t)sprintf(text + used, "\\x%02x", (unsigned char)s[at++]);
        }
    }
    (void)memcpy(text + used, "...", 4);
    if (at == len)
        text[used] = '\0';
    return text;
}
