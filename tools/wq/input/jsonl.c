/* SPDX-License-Identifier: MIT */
/* jsonl.c: what does a line of --input=jsonl say? */
#include "input/jsonl.h"

#include <limits.h>
#include <string.h>

#include "input/json.h"
#include "options/values.h"

/* Decodes in place. Padding may be missing, but the unused bits of the last
 * digit must be 0, so that a key has only one spelling. */
static bool
decode_base64(char *s, size_t *len)
{
    static const char digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t   n = *len, out = 0;
    unsigned bits = 0, have = 0;

    if (n % 4 == 0 && n > 0 && s[n - 1] == '=')
        n -= s[n - 2] == '=' ? 2 : 1;
    if (n % 4 == 1)
        return false;
    for (size_t i = 0; i < n; i++) {
        const char *digit = s[i] ? strchr(digits, s[i]) : NULL;
        if (!digit)
            return false;
        bits = bits << 6 | (unsigned)(digit - digits);
        if ((have += 6) >= 8) {
            have -= 8;
            s[out++] = (char)(bits >> have & 0xff);
            bits &= (1U << have) - 1;
        }
    }
    *len = out;
    return bits == 0;
}

static bool
read_after(struct json *json, int64_t *out_ns)
{
    char   text[64];
    char  *string;
    size_t len;
    double seconds;

    if (json_next_is(json, '"')) {
        if (!json_string(json, &string, &len) || len >= sizeof text)
            return false;
        (void)memcpy(text, string, len);
        text[len] = '\0';
        return strlen(text) == len && value_duration(text, out_ns);
    }
    if (!json_number(json, &seconds) || !(seconds >= 0) || seconds > 9.2e9)
        return false;
    *out_ns = (int64_t)(seconds * 1e9);
    return true;
}

static bool
read_priority(struct json *json, struct jsonl *out)
{
    double number;

    if (!json_number(json, &number) || number < INT_MIN || number > INT_MAX ||
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

/* `exact`: "key_base64" was seen. */
static const char *
read_member(struct json *json, struct jsonl *out, bool *exact)
{
    char  *name, *value;
    size_t name_len, len;

    if (!json_string(json, &name, &name_len) || !json_take(json, ':'))
        return "not JSON: expected a name and a value";
    if (is(name, name_len, "key") || is(name, name_len, "key_base64")) {
        const bool encoded = name_len > strlen("key");
        if (!json_string(json, &value, &len))
            return "\"key\" and \"key_base64\" must be strings";
        if (encoded && !decode_base64(value, &len))
            return "\"key_base64\" is not base64";
        if (encoded || !*exact) {
            out->key = value;
            out->key_len = len;
        }
        *exact |= encoded;
        return NULL;
    }
    if (is(name, name_len, "after"))
        return read_after(json, &out->after_ns)
                   ? NULL
                   : "\"after\" must be a duration (\"5s\") or seconds (5)";
    if (is(name, name_len, "priority"))
        return read_priority(json, out) ? NULL
                                        : "\"priority\" must be an integer";
    return json_skip(json) ? NULL : "not JSON: expected a value";
}

static const char *
read_members(struct json *json, struct jsonl *out)
{
    const char *wrong;
    bool        exact = false;

    if (json_take(json, '}'))
        return NULL;
    do {
        if ((wrong = read_member(json, out, &exact)))
            return wrong;
    } while (json_take(json, ','));
    return json_take(json, '}') ? NULL : "not JSON: expected , or }";
}

/* Written to by the reader. */
const char * /* NOLINTNEXTLINE(readability-non-const-parameter) */
jsonl_read(char *line, size_t len, struct jsonl *out)
{
    struct jsonl read = {.after_ns = -1};
    struct json  json = {.at = line, .end = line + len};
    const char  *wrong;

    if (json_take(&json, '{')) {
        if ((wrong = read_members(&json, &read)))
            return wrong;
    } else if (!json_string(&json, &read.key, &read.key_len)) {
        return "not JSON: expected an object or a string";
    }
    if (!json_at_end(&json))
        return "not JSON: expected the end of the line";
    if (!read.key)
        return "has no \"key\"";
    *out = read;
    return NULL;
}
