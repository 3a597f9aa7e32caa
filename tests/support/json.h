/* SPDX-License-Identifier: MIT */
/* json.h: is this JSON? RFC 8259, strictly, and in valid UTF-8. */
#ifndef WQ_TEST_JSON_H
#define WQ_TEST_JSON_H

#include <stdbool.h>
#include <stddef.h>

/* One value with nothing but white space around it. */
bool json_is_valid(const char *text, size_t len);

/* The length in bytes of the UTF-8 character at `text`; 0: not UTF-8. Decodes
 * the character and checks the code point, unlike the library, which checks
 * bytes. */
size_t utf8_length(const char *text, size_t len);

#endif
