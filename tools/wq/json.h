/* SPDX-License-Identifier: MIT */
/* json.h: how are keys written and read as JSON?
 *
 * A key is bytes. One that is UTF-8 is written as "key":"..."; another one with
 * U+FFFD for what is not, and all its bytes in "key_base64":"...".
 */
#ifndef WQ_TOOL_JSON_H
#define WQ_TOOL_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Text that grows. Zero is an empty one. When there is no memory `failed` is
 * set, and nothing is added any more. */
struct text {
    char  *data; /* terminated, if not NULL */
    size_t len, room;
    bool   failed;
};

void text_fini(struct text *text);  /* frees; it is an empty one again */
void text_clear(struct text *text); /* empty, but keeps its room */
void text_add(struct text *text, const void *data, size_t len);
void text_print(struct text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* "...", quoted and escaped; bytes that are not UTF-8 become U+FFFD. */
void json_string(struct text *text, const void *data, size_t len);
/* "key":"..." and, where needed, ,"key_base64":"...". No comma before. */
void json_key(struct text *text, const void *data, size_t len);
/* Is it UTF-8 (no surrogates, nothing overlong)? */
bool json_is_utf8(const void *data, size_t len);

/* What a line of --input=jsonl says. */
struct json_line {
    char   *key; /* in `text` of the call, which it overwrites */
    size_t  key_len;
    int64_t after_ns; /* -1: not said */
    bool    prioritized;
    int     priority; /* if so */
};

/* Read one flat object: {"key":"a","after":"5s","priority":1}, also with
 * "key_base64" instead of "key", "after" as a number of seconds. Members it
 * does not know may have any value, and are left out. A line may also be just a
 * string: "a". Returns NULL, or what is wrong with it. Overwrites `text`. */
const char *json_read_line(char *text, size_t len, struct json_line *out);

#endif
