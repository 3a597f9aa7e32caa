/* SPDX-License-Identifier: MIT */
/* utf8.c: are these bytes UTF-8? See utf8.h. */
#include "text/utf8.h"

/* A form of characters that are not ASCII. `more` bytes follow the first one.
 * The second byte is within lowest..highest, which excludes overlong forms,
 * surrogates and values above U+10FFFF; later bytes are within 80..BF. */
struct form {
    unsigned char from, to; /* the first byte */
    unsigned char more;
    unsigned char lowest, highest;
};

static const struct form forms[] = {
    {0xc2, 0xdf, 1, 0x80, 0xbf}, {0xe0, 0xe0, 2, 0xa0, 0xbf},
    {0xe1, 0xec, 2, 0x80, 0xbf}, {0xed, 0xed, 2, 0x80, 0x9f},
    {0xee, 0xef, 2, 0x80, 0xbf}, {0xf0, 0xf0, 3, 0x90, 0xbf},
    {0xf1, 0xf3, 3, 0x80, 0xbf}, {0xf4, 0xf4, 3, 0x80, 0x8f},
};

static const struct form *
form_of(unsigned char first)
{
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
        if (first >= forms[i].from && first <= forms[i].to)
            return &forms[i];
    return NULL;
}

size_t
wq__utf8_next(const char *bytes, size_t n, bool *valid)
{
    const unsigned char *b = (const unsigned char *)bytes;

    *valid = b[0] < 0x80;
    if (*valid)
        return 1;
    const struct form *form = form_of(b[0]);
    if (!form)
        return 1;
    if (n < 2 || b[1] < form->lowest || b[1] > form->highest)
        return 1;
    size_t len = 2;
    while (len <= form->more && len < n && (b[len] & 0xc0) == 0x80)
        len++;
    *valid = len == (size_t)form->more + 1;
    return len;
}

bool
wq__utf8_valid(const char *bytes, size_t n)
{
    bool valid = true;

    for (size_t i = 0; i < n && valid;)
        i += wq__utf8_next(bytes + i, n - i, &valid);
    return valid;
}

void
wq__utf8_add(struct wq__text *t, const char *bytes, size_t n)
{
    for (size_t i = 0; i < n;) {
        bool         valid;
        const size_t len = wq__utf8_next(bytes + i, n - i, &valid);
        if (valid)
            wq__text_add(t, bytes + i, len);
        else
            wq__text_str(t, WQ__UTF8_REPLACEMENT);
        i += len;
    }
}
