/* SPDX-License-Identifier: MIT */
/* escape.c: how are bytes escaped? See escape.h. */
#include "text/escape.h"

#include "text/utf8.h"

/* Writes the escape of an ASCII character; false: it needs none. */
typedef bool (*escape)(struct wq__text *t, char c);

static bool
escape_json(struct wq__text *t, char c)
{
    static const char hex_digits[] = "0123456789abcdef";
    static const char by_letter[] = "\"\"\\\\\bb\ff\nn\rr\tt"; /* in pairs */

    /* JSON allows DEL, but terminals act on it. */
    if ((unsigned char)c >= 0x20 && c != '"' && c != '\\' && c != 0x7f)
        return false;
    wq__text_char(t, '\\');
    for (const char *pair = by_letter; *pair; pair += 2)
        if (c == pair[0]) {
            wq__text_char(t, pair[1]);
            return true;
        }
    wq__text_str(t, "u00");
    wq__text_char(t, hex_digits[(unsigned char)c >> 4]);
    wq__text_char(t, hex_digits[(unsigned char)c & 15]);
    return true;
}

static bool
escape_label(struct wq__text *t, char c)
{
    if (c != '"' && c != '\\' && c != '\n')
        return false;
    wq__text_char(t, '\\');
    wq__text_char(t, c == '\n' ? 'n' : c);
    return true;
}

static void
add_quoted(struct wq__text *t, const char *bytes, size_t n, escape escapes)
{
    wq__text_char(t, '"');
    for (size_t i = 0; i < n;) {
        bool         valid;
        const size_t len = wq__utf8_next(bytes + i, n - i, &valid);
        if (!valid)
            wq__text_str(t, WQ__UTF8_REPLACEMENT);
        else if (len > 1 || !escapes(t, bytes[i]))
            wq__text_add(t, bytes + i, len);
        i += len;
    }
    wq__text_char(t, '"');
}

void
wq__text_json(struct wq__text *t, const char *bytes, size_t n)
{
    add_quoted(t, bytes, n, escape_json);
}

void
wq__text_label(struct wq__text *t, const char *bytes, size_t n)
{
    add_quoted(t, bytes, n, escape_label);
}

/* Four digits for the next `n` bytes, of which there are one to three. */
static void
add_quantum(struct wq__text *t, const unsigned char *b, size_t n)
{
    static const char digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned bits = (unsigned)b[0] << 16 |
                          (n > 1 ? (unsigned)b[1] << 8 : 0) |
                          (n > 2 ? (unsigned)b[2] : 0);
    const char four[] = {
        digits[bits >> 18],
        digits[bits >> 12 & 63],
        n > 1 ? digits[bits >> 6 & 63] : '=',
        n > 2 ? digits[bits & 63] : '=',
    };

    wq__text_add(t, four, sizeof four);
}

void
wq__text_base64(struct wq__text *t, const void *bytes, size_t n)
{
    const unsigned char *b = bytes;

    for (size_t i = 0; i < n; i += 3)
        add_quantum(t, b + i, n - i < 3 ? n - i : 3);
}

void
wq__text_key(struct wq__text *t, const void *key, size_t n)
{
    wq__text_str(t, "\"key\":");
    wq__text_json(t, key, n);
    if (wq__utf8_valid(key, n))
        return;
    wq__text_str(t, ",\"key_base64\":\"");
    wq__text_base64(t, key, n);
    wq__text_char(t, '"');
}
