/* SPDX-License-Identifier: MIT */
/* json.c: a JSON validator; see json.h. */
#include "support/json.h"

#include <stdint.h>
#include <string.h>

enum { DEPTH_MAX = 100 };

struct reader {
    const char *p, *end;
    int         depth; /* of open brackets */
};

size_t
utf8_length(const char *text, size_t len)
{
    static const uint32_t lowest[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char  *b = (const unsigned char *)text;
    size_t                n = 0;

    if (len == 0)
        return 0;
    while (n < 8 && b[0] & (0x80 >> n))
        n++;
    if (n == 0)
        return 1;
    if (n == 1 || n > 4 || n > len)
        return 0;
    uint32_t code = b[0] & (0x7fU >> n);
    for (size_t i = 1; i < n; i++) {
        if (b[i] >> 6 != 2)
            return 0;
        code = code << 6 | (b[i] & 0x3f);
    }
    const bool is_surrogate = code >= 0xd800 && code <= 0xdfff;
    return code >= lowest[n] && code <= 0x10ffff && !is_surrogate ? n : 0;
}

static void
skip_spaces(struct reader *r)
{
    while (r->p < r->end && *r->p && strchr(" \t\r\n", *r->p))
        r->p++;
}

static bool
take(struct reader *r, char c)
{
    if (r->p == r->end || *r->p != c)
        return false;
    r->p++;
    return true;
}

static bool
take_word(struct reader *r, const char *word)
{
    for (; *word; word++)
        if (!take(r, *word))
            return false;
    return true;
}

static size_t
take_digits(struct reader *r)
{
    const char *begin = r->p;

    while (r->p < r->end && *r->p >= '0' && *r->p <= '9')
        r->p++;
    return (size_t)(r->p - begin);
}

static bool
take_number(struct reader *r)
{
    (void)take(r, '-');
    if (!take(r, '0') && take_digits(r) == 0)
        return false;
    if (take(r, '.') && take_digits(r) == 0)
        return false;
    if (take(r, 'e') || take(r, 'E')) {
        if (!take(r, '+'))
            (void)take(r, '-');
        return take_digits(r) > 0;
    }
    return true;
}

static bool
take_escape(struct reader *r)
{
    if (r->p == r->end)
        return false;
    const char c = *r->p++;
    if (c != 'u')
        return c && strchr("\"\\/bfnrt", c);
    for (int i = 0; i < 4; i++) {
        if (r->p == r->end || !*r->p ||
            !strchr("0123456789abcdefABCDEF", *r->p))
            return false;
        r->p++;
    }
    return true;
}

static bool
take_string(struct reader *r)
{
    if (!take(r, '"'))
        return false;
    while (r->p < r->end && *r->p != '"') {
        if (take(r, '\\')) {
            if (!take_escape(r))
                return false;
            continue;
        }
        const size_t n = utf8_length(r->p, (size_t)(r->end - r->p));
        if (n == 0 || (unsigned char)*r->p < 0x20)
            return false;
        r->p += n;
    }
    return take(r, '"');
}

static bool take_value(struct reader *r);

/* One value between brackets, with its name before it if `named`. */
static bool
take_member(struct reader *r, bool named)
{
    skip_spaces(r);
    if (named) {
        if (!take_string(r))
            return false;
        skip_spaces(r);
        if (!take(r, ':'))
            return false;
    }
    return take_value(r);
}

static bool
take_all(struct reader *r, char close, bool named)
{
    r->p++;
    if (++r->depth > DEPTH_MAX)
        return false;
    skip_spaces(r);
    if (!take(r, close)) {
        do {
            if (!take_member(r, named))
                return false;
        } while (take(r, ','));
        if (!take(r, close))
            return false;
    }
    r->depth--;
    return true;
}

static bool
take_value(struct reader *r)
{
    bool ok;

    skip_spaces(r);
    if (r->p == r->end)
        return false;
    switch (*r->p) {
    case '{':
        ok = take_all(r, '}', true);
        break;
    case '[':
        ok = take_all(r, ']', false);
        break;
    case '"':
        ok = take_string(r);
        break;
    case 't':
        ok = take_word(r, "true");
        break;
    case 'f':
        ok = take_word(r, "false");
        break;
    case 'n':
        ok = take_word(r, "null");
        break;
    default:
        ok = take_number(r);
    }
    skip_spaces(r);
    return ok;
}

bool
json_is_valid(const char *text, size_t len)
{
    struct reader r = {.p = text, .end = text + len};

    return take_value(&r) && r.p == r.end;
}
