/* SPDX-License-Identifier: MIT */
/* json.c: how is a line of JSON read? See json.h. */
#include "input/json.h"

#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH 64

/* ------------------------------------------------------------ characters -- */

static void
skip_space(struct json *json)
{
    while (json->at < json->end && *json->at && strchr(" \t\r\n", *json->at))
        json->at++;
}

bool
json_at_end(struct json *json)
{
    skip_space(json);
    return json->at == json->end;
}

bool
json_next_is(struct json *json, char c)
{
    return !json_at_end(json) && *json->at == c;
}

bool
json_take(struct json *json, char c)
{
    if (!json_next_is(json, c))
        return false;
    json->at++;
    return true;
}

/* Exactly this word, without white space before it. */
static bool
take_word(struct json *json, const char *word)
{
    const size_t len = strlen(word);

    if ((size_t)(json->end - json->at) < len ||
        memcmp(json->at, word, len) != 0)
        return false;
    json->at += len;
    return true;
}

/* --------------------------------------------------------------- strings -- */

/* The four hexadecimal digits of a \u escape. */
static bool
read_hex(struct json *json, unsigned *out)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    unsigned          value = 0;

    if (json->end - json->at < 4)
        return false;
    for (int i = 0; i < 4; i++) {
        const char  c = *json->at++;
        const char *digit = c ? strchr(digits, c) : NULL;
        if (!digit)
            return false;
        value = value << 4 | ((unsigned)(digit - digits) & 15);
    }
    *out = value;
    return true;
}

/* A character above U+FFFF is written as two escapes, a high and a low
 * surrogate. */
static bool
read_unicode(struct json *json, unsigned *out)
{
    unsigned high, low;

    if (!read_hex(json, &high))
        return false;
    *out = high;
    if (high < 0xd800 || high > 0xdfff)
        return true;
    if (high > 0xdbff || !take_word(json, "\\u") || !read_hex(json, &low) ||
        low < 0xdc00 || low > 0xdfff)
        return false;
    *out = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
    return true;
}

/* Writes the character as UTF-8; returns the end of it. */
static char *
put_unicode(char *to, unsigned c)
{
    const int more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const unsigned char first[] = {0, 0xc0, 0xe0, 0xf0};

    *to++ = (char)(first[more] | c >> 6 * more);
    for (int i = more - 1; i >= 0; i--)
        *to++ = (char)(0x80 | (c >> 6 * i & 63));
    return to;
}

/* The rest of an escape, after the backslash. */
static bool
read_escape(struct json *json, char **to)
{
    static const char names[] = "\"\\/bfnrt";
    static const char bytes[] = "\"\\/\b\f\n\r\t";
    unsigned          c;

    if (json->at == json->end)
        return false;
    const char  name = *json->at++;
    const char *known = name ? strchr(names, name) : NULL;
    if (known) {
        *(*to)++ = bytes[known - names];
        return true;
    }
    if (name != 'u' || !read_unicode(json, &c))
        return false;
    *to = put_unicode(*to, c);
    return true;
}

bool
json_string(struct json *json, char **out, size_t *len)
{
    if (!json_take(json, '"'))
        return false;
    char *const start = json->at;
    char       *to = start;
    while (json->at < json->end) {
        const char c = *json->at++;
        if (c == '"') {
            *out = start;
            *len = (size_t)(to - start);
            return true;
        }
        if (c != '\\')
            *to++ = c;
        else if (!read_escape(json, &to))
            return false;
    }
    return false;
}

/* --------------------------------------------------------------- numbers -- */

static bool
skip_digits(const char **s)
{
    const size_t n = strspn(*s, "0123456789");

    *s += n;
    return n > 0;
}

/* The end of the JSON number at `s`; NULL: there is none. */
static const char *
number_end(const char *s)
{
    s += *s == '-';
    if (s[0] == '0' && s[1] >= '0' && s[1] <= '9')
        return NULL;
    if (!skip_digits(&s) || (*s == '.' && (s++, !skip_digits(&s))))
        return NULL;
    if (*s == 'e' || *s == 'E') {
        s += s[1] == '+' || s[1] == '-' ? 2 : 1;
        if (!skip_digits(&s))
            return NULL;
    }
    return s;
}

/* strtod() accepts more than JSON (0x10, inf), so number_end() checks the
 * shape. The program never calls setlocale(): the decimal point is a point. */
bool
json_number(struct json *json, double *out)
{
    char   text[64];
    size_t len = 0;

    if (json_at_end(json))
        return false;
    while (json->at + len < json->end && json->at[len] &&
           strchr("+-.0123456789eE", json->at[len])) {
        if (len == sizeof text - 1)
            return false;
        text[len] = json->at[len];
        len++;
    }
    text[len] = '\0';
    const char *end = number_end(text);
    if (!end)
        return false;
    json->at += end - text;
    text[end - text] = '\0';
    *out = strtod(text, NULL);
    return true;
}

/* -------------------------------------------------------------- skipping -- */

static bool skip_value(struct json *json, int depth);

/* The members of an object or the elements of an array, after its bracket. */
static bool
skip_all(struct json *json, char end, int depth)
{
    char  *name;
    size_t len;

    if (json_take(json, end))
        return true;
    do {
        if (end == '}' &&
            (!json_string(json, &name, &len) || !json_take(json, ':')))
            return false;
        if (!skip_value(json, depth + 1))
            return false;
    } while (json_take(json, ','));
    return json_take(json, end);
}

/* Recursive; MAX_DEPTH limits the recursion. */
static bool
skip_value(struct json *json, int depth)
{
    char  *string;
    size_t len;
    double number;

    if (depth > MAX_DEPTH || json_at_end(json))
        return false;
    if (*json->at == '"')
        return json_string(json, &string, &len);
    if (json_take(json, '{'))
        return skip_all(json, '}', depth);
    if (json_take(json, '['))
        return skip_all(json, ']', depth);
    return take_word(json, "true") || take_word(json, "false") ||
           take_word(json, "null") || json_number(json, &number);
}

bool
json_skip(struct json *json)
{
    return skip_value(json, 0);
}
