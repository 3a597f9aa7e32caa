/* SPDX-License-Identifier: MIT */
/* last.c: what is known of this thread's last failure?
 *
 * One buffer for each thread. Allocates nothing and is no cancellation point.
 */
#include "error/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

enum { SENTENCE_BYTES = 256 }; /* longer ones are cut; wq.h promises it */

static _Thread_local struct {
    char     sentence[SENTENCE_BYTES]; /* "" until the first failure */
    unsigned count;                    /* of sentences set */
} last;

/* How many bytes a UTF-8 character has that begins with `lead`. */
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
    char      text[SENTENCE_BYTES]; /* `last` may be among the arguments */
    va_list   args;

    va_start(args, format);
    const int len = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (len < 0)
        (void)snprintf(text, sizeof text, "%s", wq_strerror(err));
    else if ((size_t)len >= sizeof text)
        drop_cut_character(text, sizeof text - 1);
    memcpy(last.sentence, text, sizeof text);
    last.count++;
    errno = cause;
    return err;
}

const char *
wq_last_error(void)
{
    return last.sentence;
}

unsigned
wq__fail_count(void)
{
    return last.count;
}
