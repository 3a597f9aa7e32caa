/* SPDX-License-Identifier: MIT */
/* json.c: how are keys written and read as JSON?
 *
 * Both ways cost a pass over the bytes. Reading happens in place: what a string
 * stands for is never longer than the string as it is written, so that it fits
 * where it was read from.
 */
#include "json.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "values.h"

/* ------------------------------------------------------- text that grows -- */

void
text_fini(struct text *text)
{
    free(text->data);
    *text = (struct text){0};
}

void
text_clear(struct text *text)
{
    text->len = 0;
    text->failed = false;
}

/* Makes room for `len` bytes more, and a NUL. */
static bool
reserve(struct text *text, size_t len)
{
    if (text->failed)
        return false;
    if (len < text->room - text->len) /* room is 0 only if len is, too */
        return true;

    size_t room = text->room ? text->room : 256;
    while (room <= text->len + len && room <= SIZE_MAX / 2)
        room *= 2;
    char *data = room > text->len + len ? realloc(text->data, room) : NULL;
    if (!data) {
        text->failed = true;
        return false;
    }
    text->data = data;
    text->room = room;
    return true;
}

void
text_add(struct text *text, const void *data, size_t len)
{
    if (!reserve(text, len))
        return;
    if (len > 0)
        (void)memcpy(text->data + text->len, data, len);
    text->len += len;
    text->data[text->len] = '\0';
}

void
text_print(struct text *text, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    const int len = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (len < 0) {
        text->failed = true;
        return;
    }
    if (!reserve(text, (size_t)len))
        return;
    va_start(args, format);
    (void)vsnprintf(text->data + text->len, (size_t)len + 1, format, args);
    va_end(args);
    text->len += (size_t)len;
}

/* ----------------------------------------------------------------- UTF-8 -- */

/* Of the bytes that may follow the first of a character, the second is the one
 * that tells overlong forms, surrogates and what is beyond U+10FFFF. */
static bool
second_fits(unsigned char first, unsigned char second)
{
    switch (first) {
    case 0xe0:
        return second >= 0xa0;
    case 0xed:
        return second < 0xa0;
    case 0xf0:
        return second >= 0x90;
    case 0xf4:
        return second < 0x90;
    default:
        return true;
    }
}

/* How many bytes has the character at `s`? 0: it is none. */
static size_t
character(const unsigned char *s, size_t len)
{
    if (s[0] < 0x80)
        return 1;
    const size_t n = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    if (s[0] < 0xc2 || s[0] > 0xf4 || n > len || !second_fits(s[0], s[1]))
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    return n;
}

bool
json_is_utf8(const void *data, size_t len)
{
    const unsigned char *s = data;
    size_t               n;

    for (; len > 0; s += n, len -= n)
        if ((n = character(s, len)) == 0)
            return false;
    return true;
}

/* --------------------------------------------------------------- writing -- */

/* What stands for the byte in a string; "": itself. */
static const char *
escape(unsigned char byte, char hex[8])
{
    switch (byte) {
    case '"':
        return "\\\"";
    case '\\':
        return "\\\\";
    case '\n':
        return "\\n";
    case '\t':
        return "\\t";
    case '\r':
        return "\\r";
    default:
        /* DEL is allowed, but no friend of terminals. */
        if (byte >= 0x20 && byte != 0x7f)
            return "";
        (void)snprintf(hex, 8, "\\u%04x", byte);
        return hex;
    }
}

void
json_string(struct text *text, const void *data, size_t len)
{
    const unsigned char *s = data;
    size_t               plain = 0; /* bytes before `at` not written yet */
    size_t               at = 0;
    char                 hex[8];

    text_add(text, "\"", 1);
    while (at < len) {
        const size_t n = character(s + at, len - at);
        const char  *other = n == 0 ? "\xef\xbf\xbd" : escape(s[at], hex);
        if (*other) {
            text_add(text, s + at - plain, plain);
            text_add(text, other, strlen(other));
            plain = 0;
        } else {
            plain += n;
        }
        at += n ? n : 1;
    }
    if (plain > 0)
        text_add(text, s + at - plain, plain);
    text_add(text, "\"", 1);
}

static const char base64_digits[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static void
base64(struct text *text, const unsigned char *s, size_t len)
{
    for (size_t at = 0; at < len; at += 3) {
        const size_t   n = len - at < 3 ? len - at : 3;
        const unsigned bits = (unsigned)s[at] << 16 |
                              (n > 1 ? (unsigned)s[at + 1] << 8 : 0) |
                              (n > 2 ? s[at + 2] : 0);
        const char digits[4] = {
            base64_digits[bits >> 18],
            base64_digits[bits >> 12 & 63],
            n > 1 ? base64_digits[bits >> 6 & 63] : '=',
            n > 2 ? base64_digits[bits & 63] : '=',
        };
        text_add(text, digits, sizeof digits);
    }
}

void
json_key(struct text *text, const void *data, size_t len)
{
    text_print(text, "\"key\":");
    json_string(text, data, len);
    if (json_is_utf8(data, len))
        return;
    text_print(text, ",\"key_base64\":\"");
    base64(text, data, len);
    text_print(text, "\"");
}

/* --------------------------------------------------------------- reading -- */

/* Values may be nested so deep where they are skipped. */
#define DEEPEST 64

/* What is left of the line. */
struct reader {
    char *at;
    char *end;
};

static bool
is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static void
skip_space(struct reader *r)
{
    while (r->at < r->end && is_space(*r->at))
        r->at++;
}

/* Is `c` next? Then it is taken. */
static bool
take(struct reader *r, char c)
{
    skip_space(r);
    if (r->at == r->end || *r->at != c)
        return false;
    r->at++;
    return true;
}

static bool
take_word(struct reader *r, const char *word)
{
    const size_t len = strlen(word);

    if ((size_t)(r->end - r->at) < len || memcmp(r->at, word, len) != 0)
        return false;
    r->at += len;
    return true;
}

static int
hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The four digits behind \u. */
static bool
read_hex(struct reader *r, unsigned *out)
{
    unsigned value = 0;

    if (r->end - r->at < 4)
        return false;
    for (int i = 0; i < 4; i++) {
        const int digit = hex_digit(r->at[i]);
        if (digit < 0)
            return false;
        value = value << 4 | (unsigned)digit;
    }
    r->at += 4;
    *out = value;
    return true;
}

/* A character beyond U+FFFF is written as two, a high and a low surrogate. One
 * without the other is no character. */
static bool
read_unicode(struct reader *r, unsigned *out)
{
    unsigned high, low;

    if (!read_hex(r, &high))
        return false;
    *out = high;
    if (high < 0xd800 || high > 0xdfff)
        return true;
    if (high > 0xdbff || !take_word(r, "\\u") || !read_hex(r, &low) ||
        low < 0xdc00 || low > 0xdfff)
        return false;
    *out = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
    return true;
}

static char *
put_unicode(char *to, unsigned c)
{
    if (c < 0x80) {
        *to++ = (char)c;
    } else if (c < 0x800) {
        *to++ = (char)(0xc0 | c >> 6);
        *to++ = (char)(0x80 | (c & 63));
    } else if (c < 0x10000) {
        *to++ = (char)(0xe0 | c >> 12);
        *to++ = (char)(0x80 | (c >> 6 & 63));
        *to++ = (char)(0x80 | (c & 63));
    } else {
        *to++ = (char)(0xf0 | c >> 18);
        *to++ = (char)(0x80 | (c >> 12 & 63));
        *to++ = (char)(0x80 | (c >> 6 & 63));
        *to++ = (char)(0x80 | (c & 63));
    }
    return to;
}

/* What is behind a backslash. */
static bool
read_escape(struct reader *r, char **to)
{
    static const char names[] = "\"\\/bfnrt";
    static const char bytes[] = "\"\\/\b\f\n\r\t";
    unsigned          c;

    if (r->at == r->end)
        return false;
    const char  name = *r->at++;
    const char *known = name ? strchr(names, name) : NULL;
    if (known) {
        *(*to)++ = bytes[known - names];
        return true;
    }
    if (name != 'u' || !read_unicode(r, &c))
        return false;
    *to = put_unicode(*to, c);
    return true;
}

/* A string, which *out and *len become; false: it is none, or a broken one. */
static bool
read_string(struct reader *r, char **out, size_t *len)
{
    if (!take(r, '"'))
        return false;
    char *const start = r->at;
    char       *to = start;
    while (r->at < r->end) {
        const char c = *r->at++;
        if (c == '"') {
            *out = start;
            *len = (size_t)(to - start);
            return true;
        }
        if (c != '\\')
            *to++ = c;
        else if (!read_escape(r, &to))
            return false;
    }
    return false;
}

static size_t
count_digits(struct reader *r)
{
    const char *start = r->at;

    while (r->at < r->end && *r->at >= '0' && *r->at <= '9')
        r->at++;
    return (size_t)(r->at - start);
}

/* strtod() takes more than JSON allows (0x10, inf), and looks at the locale. So
 * the shape is checked here; the locale is "C", since nobody sets it. */
static bool
read_number(struct reader *r, double *out)
{
    char text[64];

    skip_space(r);
    const char *start = r->at;
    (void)take_word(r, "-");
    const char   first = r->at < r->end ? *r->at : '\0';
    const size_t digits = count_digits(r);
    if (digits == 0 || (first == '0' && digits > 1))
        return false;
    if (take_word(r, ".") && count_digits(r) == 0)
        return false;
    if (take_word(r, "e") || take_word(r, "E")) {
        if (!take_word(r, "+"))
            (void)take_word(r, "-");
        if (count_digits(r) == 0)
            return false;
    }
    const size_t len = (size_t)(r->at - start);
    if (len >= sizeof text)
        return false;
    (void)memcpy(text, start, len);
    text[len] = '\0';
    *out = strtod(text, NULL);
    return true;
}

static bool skip_value(struct reader *r, int depth);

/* The members of an object or the elements of an array, behind its bracket. */
static bool
skip_all(struct reader *r, char end, int depth)
{
    char  *name;
    size_t len;

    if (take(r, end))
        return true;
    do {
        if (end == '}' && (!read_string(r, &name, &len) || !take(r, ':')))
            return false;
        if (!skip_value(r, depth + 1))
            return false;
    } while (take(r, ','));
    return take(r, end);
}

/* Calls itself for what is nested; DEEPEST ends that. */
static bool
skip_value(struct reader *r, int depth)
{
    char  *string;
    size_t len;
    double number;

    if (depth > DEEPEST)
        return false;
    skip_space(r);
    if (r->at == r->end)
        return false;
    if (*r->at == '"')
        return read_string(r, &string, &len);
    if (take(r, '{'))
        return skip_all(r, '}', depth);
    if (take(r, '['))
        return skip_all(r, ']', depth);
    return take_word(r, "true") || take_word(r, "false") ||
           take_word(r, "null") || read_number(r, &number);
}

/* Decodes in place. Padding may be left out; bits that would be lost may not
 * be there, so that a key has one way to be written. */
static bool
unbase64(char *s, size_t *len)
{
    size_t   n = *len, out = 0;
    unsigned bits = 0, have = 0;

    if (n % 4 == 0 && n > 0 && s[n - 1] == '=')
        n -= s[n - 2] == '=' ? 2 : 1;
    if (n % 4 == 1)
        return false;
    for (size_t i = 0; i < n; i++) {
        const char *digit = s[i] ? strchr(base64_digits, s[i]) : NULL;
        if (!digit)
            return false;
        bits = bits << 6 | (unsigned)(digit - base64_digits);
        if ((have += 6) >= 8) {
            have -= 8;
            s[out++] = (char)(bits >> have & 0xff);
            bits &= (1U << have) - 1;
        }
    }
    *len = out;
    return bits == 0;
}

/* A duration as the options have it, or a number of seconds. */
static bool
read_after(struct reader *r, int64_t *out_ns)
{
    char   text[64];
    char  *string;
    size_t len;
    double seconds;

    skip_space(r);
    if (r->at < r->end && *r->at == '"') {
        if (!read_string(r, &string, &len) || len >= sizeof text)
            return false;
        (void)memcpy(text, string, len);
        text[len] = '\0';
        return strlen(text) == len && value_duration(text, out_ns);
    }
    if (!read_number(r, &seconds) || !(seconds >= 0) || seconds > 9.2e9)
        return false;
    *out_ns = (int64_t)(seconds * 1e9);
    return true;
}

static bool
read_priority(struct reader *r, struct json_line *out)
{
    double number;

    if (!read_number(r, &number) || number < INT_MIN || number > INT_MAX ||
        number != (double)(int)number)
        return false;
    out->prioritized = true;
    out->priority = (int)number;
    return true;
}

static bool
is(const char *name, size_t len, const char *what)
{
    return len == strlen(what) && memcmp(name, what, len) == 0;
}

/* One member. `exact`: key_base64 was seen, and counts more than key: that is
 * how json_key() writes one that is not UTF-8. */
static const char *
read_member(struct reader *r, struct json_line *out, bool *exact)
{
    char  *name, *value;
    size_t name_len, len;

    if (!read_string(r, &name, &name_len) || !take(r, ':'))
        return "not JSON: a name and a value are expected";
    if (is(name, name_len, "key") || is(name, name_len, "key_base64")) {
        const bool encoded = name_len > strlen("key");
        if (!read_string(r, &value, &len))
            return "\"key\" and \"key_base64\" must be strings";
        if (encoded && !unbase64(value, &len))
            return "\"key_base64\" is not base64";
        if (encoded || !*exact) {
            out->key = value;
            out->key_len = len;
        }
        *exact |= encoded;
        return NULL;
    }
    if (is(name, name_len, "after"))
        return read_after(r, &out->after_ns)
                   ? NULL
                   : "\"after\" must be a duration (\"5s\") or seconds (5)";
    if (is(name, name_len, "priority"))
        return read_priority(r, out) ? NULL
                                     : "\"priority\" must be a whole number";
    return skip_value(r, 0) ? NULL : "not JSON: a value is expected";
}

static const char *
read_members(struct reader *r, struct json_line *out)
{
    const char *wrong;
    bool        exact = false;

    if (take(r, '}'))
        return NULL;
    do {
        if ((wrong = read_member(r, out, &exact)))
            return wrong;
    } while (take(r, ','));
    return take(r, '}') ? NULL : "not JSON: , or } is expected";
}

/* It is written to, by way of the reader. */
const char * /* NOLINTNEXTLINE(readability-non-const-parameter) */
json_read_line(char *text, size_t len, struct json_line *out)
{
    struct json_line line = {.after_ns = -1};
    struct reader    r;
    const char      *wrong;

    r.at = text;
    r.end = text + len;
    if (take(&r, '{')) {
        if ((wrong = read_members(&r, &line)))
            return wrong;
    } else if (!read_string(&r, &line.key, &line.key_len)) {
        return "not JSON: an object or a string is expected";
    }
    skip_space(&r);
    if (r.at != r.end)
        return "not JSON: there is more behind it";
    if (!line.key)
        return "has no \"key\"";
    *out = line;
    return NULL;
}
