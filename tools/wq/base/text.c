/* SPDX-License-Identifier: MIT */
/* text.c: how does the command write text? See text.h. */
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* Longer results of text_print() are allocated. */
#define SHORT 256

void
text_print(struct wq__text *text, const char *format, ...)
{
    char    line[SHORT];
    char   *longer = NULL;
    va_list args;

    va_start(args, format);
    int len = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (len >= SHORT) {
        va_start(args, format);
        len = vasprintf(&longer, format, args);
        va_end(args);
    }
    if (len >= 0)
        wq__text_add(text, len < SHORT ? line : longer, (size_t)len);
    else if (!text->err)
        text->err = WQ_ENOMEM;
    if (len >= SHORT)
        free(longer);
}

void
text_clear(struct wq__text *text)
{
    text->len = 0;
    text->err = WQ_OK;
}

char *
text_terminate(struct wq__text *text)
{
    wq__text_char(text, '\0');
    if (text->err)
        return NULL;
    text->len--;
    return text->data;
}

size_t
text_cut(const char *bytes, size_t len, size_t max)
{
    if (len <= max)
        return len;
    for (size_t back = 0; back <= 3 && back < max; back++)
        if ((bytes[max - back] & 0xc0) != 0x80)
            return max - back;
    return max; /* not UTF-8 */
}
