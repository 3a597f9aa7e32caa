/* SPDX-License-Identifier: MIT */
/* tell.c: how does wq speak to people? */
#include "tell.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Longer messages are cut off: a key in one is short already (tell_key()). */
#define LONGEST 1024

static void (*display_clear)(void *ctx);
static void *display_ctx;

void
tell_display(void (*clear)(void *ctx), void *ctx)
{
    display_clear = clear;
    display_ctx = ctx;
}

void
tell_clear(void)
{
    if (display_clear)
        display_clear(display_ctx);
}

/* Adds to the line; what does not fit is left out. */
__attribute__((format(printf, 3, 0))) static size_t
add(char *line, size_t len, const char *format, va_list args)
{
    const int n = vsnprintf(line + len, LONGEST - 1 - len, format, args);

    if (n < 0)
        return len;
    const size_t end = len + (size_t)n;
    return end < LONGEST - 1 ? end : LONGEST - 2;
}

/* Nobody can be told that stderr does not take it. */
static void
send(char *line, size_t len)
{
    line[len++] = '\n';
    tell_clear();
    const ssize_t sent = write(STDERR_FILENO, line, len);
    (void)sent;
}

void
tell(const char *format, ...)
{
    char    line[LONGEST] = "wq: ";
    va_list args;

    va_start(args, format);
    const size_t len = add(line, strlen(line), format, args);
    va_end(args);
    send(line, len);
}

void
tell_errno(const char *format, ...)
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

/* How many bytes does the UTF-8 character at `s` have? 0: it is none, or one
 * that moves the cursor. */
static size_t
character(const unsigned char *s, size_t len)
{
    if (s[0] >= 0x20 && s[0] < 0x7f)
        return 1;
    const size_t n = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    if (s[0] < 0xc2 || s[0] > 0xf4 || n > len)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    const bool surrogate = s[0] == 0xed && s[1] >= 0xa0;
    const bool overlong = (s[0] == 0xe0 && s[1] < 0xa0) ||
                          (s[0] == 0xf0 && s[1] < 0x90) ||
                          (s[0] == 0xf4 && s[1] > 0x8f);
    const bool control = s[0] == 0xc2 && s[1] < 0xa0;
    return surrogate || overlong || control ? 0 : n;
}

const char *
tell_key(const void *data, size_t len)
{
    enum { SHOWN = 60 };
    static char          texts[4][SHOWN * 4 + 8];
    static unsigned      turn;
    char                *text = texts[turn++ % 4];
    const unsigned char *s = data;
    size_t               at = 0, used = 0;

    while (at < len && at < SHOWN) {
        const size_t n = character(s + at, len - at);
        if (n) {
            (void)memcpy(text + used, s + at, n);
            used += n;
            at += n;
        } else {
            used += (size_t)sprintf(text + used, "\\x%02x", s[at++]);
        }
    }
    (void)memcpy(text + used, "...", 4);
    if (at == len)
        text[used] = '\0';
    return text;
}
