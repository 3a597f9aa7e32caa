/* SPDX-License-Identifier: MIT */
/* jsonl.h: what does a line of --input=jsonl say?
 *
 *     {"key":"a","after":"5s","priority":1}
 *     {"key_base64":"/w=="}
 *     "a"
 *
 * "after" is a duration as in options, or a number of seconds. Other members may
 * have any value and are ignored. If a member occurs twice, the last one counts;
 * "key_base64" counts more than "key", as wq__text_key() writes both for a key
 * that is not UTF-8.
 */
#ifndef WQ_TOOL_JSONL_H
#define WQ_TOOL_JSONL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct jsonl {
    char   *key;         /* within the line; not terminated */
    size_t  key_len;     /* of it */
    int64_t after_ns;    /* -1: not given */
    bool    prioritized; /* "priority" was given: */
    int     priority;
};

/* Read one line, and decode it in place. Returns NULL, or what is wrong. */
const char *jsonl_read(char *line, size_t len, struct jsonl *out);

#endif
