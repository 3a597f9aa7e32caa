/* SPDX-License-Identifier: MIT */
/* last.c: why did the last call of this thread fail?
 *
 * One buffer per thread. Does not allocate; no function is a cancellation
 * point.
 */
#include "error/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

static _Thread_local struct wq__sentence last;

/* The length of a UTF-8 character that begins with `lead`. */
static size_t
character_bytes(unsigned char lead)
{
    return lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
}

/* Remove the character at the end of `s`, of `len` bytes, if it is cut off in
 * its middle. */
static void
drop_cut_character(char *s, size_t len)
{
    size_t lead = len - 1;

    while (lead > 0 && ((unsigned char)s[lead] & 0xC0) == 0x80)
        lead--;
    if (len - lead < character_bytes((unsigned char)s[lead]))
        s[lead] = '\0';
}

wq_err
wq_fail(wq_err err, const char *format, ...)
{
    const int cause = errno;
    char      text[WQ__SENTENCE_BYTES]; /* the arguments may include `last` */
    va_list   args;

    va_start(args, format);
    const int len = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (len < 0)
        (void)snprintf(text, sizeof text, "%s", wq_strerror(err));
    else if ((size_t)len >= sizeof text)
        drop_cut_character(text, sizeof text - 1);
    memcpy(last.text, text, sizeof text);
    last.number++;
    errno = cause;
    return err;
}

const char *
wq_last_error(void)
{
    return last.text;
}

unsigned
wq__fail_count(void)
{
    return last.number;
}

struct wq__sentence
wq__fail_save(void)
{
    return last;
}

void
wq__fail_restore(const struct wq__sentence *saved)
{
    if (last.number == saved->number)
        return;
    memcpy(last.text, saved->text, sizeof last.text);
    last.number++; /* the number belonged to the callback's sentence */
}
