/* SPDX-License-Identifier: MIT */
/* report.c: how are messages printed? */
#include "base/report.h"

#include <errno.h>
#include <inttypes.h>
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

const char *
report_time(int64_t ns, char text[16])
{
    const int64_t ms = ns < 0 ? 0 : ns / 1000000;
    const int64_t s = ms / 1000;

    if (ms < 1000)
        (void)snprintf(text, 16, "%" PRId64 "ms", ms);
    else if (s < 10)
        (void)snprintf(text, 16, "%" PRId64 ".%" PRId64 "s", s, ms / 100 % 10);
    else if (s < 60)
        (void)snprintf(text, 16, "%" PRId64 "s", s);
    else if (s < 3600)
        (void)snprintf(text, 16, "%" PRId64 "m%02" PRId64 "s", s / 60, s % 60);
    else if (s < 86400)
        (void)snprintf(text, 16, "%" PRId64 "h%02" PRId64 "m", s / 3600,
                       s / 60 % 60);
    else
        (void)snprintf(text, 16, "%" PRId64 "d%02" PRId64 "h", s / 86400,
                       s / 3600 % 24);
    return text;
}
