/* SPDX-License-Identifier: MIT */
/* reason.c: how is a failure shown on a terminal? See reason.h. */
#include "display/reason.h"

#include <stdio.h>
#include <string.h>

#include "base/short_key.h"

/* A key with fewer columns says nothing. */
#define LEAST_KEY ((size_t)8)

/* Where the text is written. */
struct out {
    char  *text;
    size_t len;
    size_t left; /* columns */
};

static void
put_ascii(struct out *o, const char *text)
{
    const size_t len = strlen(text);

    memcpy(o->text + o->len, text, len);
    o->len += len;
    o->left -= len;
}

static void
put_bytes(struct out *o, const struct printable *s, const char *bytes,
          size_t len, size_t columns)
{
    size_t used;

    o->len += printable_key(s, bytes, len, columns, o->text + o->len, &used);
    o->left -= used;
}

size_t
reason_print(
    const struct printable *s, const struct failure *failure, size_t columns,
    /* It is written to. NOLINTNEXTLINE(readability-non-const-parameter) */
    char *out, size_t *used)
{
    struct out   o = {.text = out, .left = columns};
    char         key[SHORT_KEY_TEXT], reason[FAILURE_REASON];
    char         middle[FAILURE_REASON + 32];
    const size_t key_len = short_key_join(&failure->key, key);

    (void)snprintf(middle, sizeof middle, ": %s (attempt %u)",
                   failure_reason(failure, reason), failure->attempt);
    if (columns < strlen(middle) + LEAST_KEY)
        *middle = '\0';
    size_t for_key = columns - strlen(middle);
    if (failure->line_len && for_key > 2 * LEAST_KEY)
        for_key /= 2; /* the other half is for the line */
    put_bytes(&o, s, key, key_len, for_key);
    put_ascii(&o, middle);
    if (failure->line_len && *middle && o.left > 2 + LEAST_KEY) {
        put_ascii(&o, ": ");
        put_bytes(&o, s, failure->line, failure->line_len, o.left);
    }
    *used = columns - o.left;
    return o.len;
}
