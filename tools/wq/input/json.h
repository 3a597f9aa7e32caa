/* SPDX-License-Identifier: MIT */
/* json.h: how is a line of JSON read?
 *
 * A reader walks over the bytes of one line and decodes strings in place: a
 * decoded string is never longer than its source. Every function skips leading
 * white space and returns false if something else is there; the reader may then
 * have moved, and the line is to be given up.
 *
 * Accepts what RFC 8259 does, and also control characters and bytes that are
 * not UTF-8 within strings. A lone surrogate (\ud800) is an error.
 */
#ifndef WQ_TOOL_JSON_H
#define WQ_TOOL_JSON_H

#include <stdbool.h>
#include <stddef.h>

struct json {
    char *at;  /* the next byte */
    char *end; /* behind the last one */
};

/* Consume `c` if it is the next byte. */
bool json_take(struct json *json, char c);
/* Is `c` the next byte? */
bool json_next_is(struct json *json, char c);
/* Is nothing left? */
bool json_at_end(struct json *json);
/* A string: *out points to its decoded bytes within the line. They may contain
 * NUL and are not terminated. */
bool json_string(struct json *json, char **out, size_t *len);
/* A number of at most 63 characters. */
bool json_number(struct json *json, double *out);
/* Any value, nested at most 64 deep; it is skipped. */
bool json_skip(struct json *json);

#endif
