/* SPDX-License-Identifier: MIT */
/* json.h: is this JSON? RFC 8259, strictly, and in valid UTF-8. */
#ifndef WQ_TEST_JSON_H
#define WQ_TEST_JSON_H

#include <stdbool.h>
#include <stddef.h>

/* One value with nothing but white space around it. */
bool json_is_valid(const char *text, size_t len);

/* Is this one character of UTF-8, and of how many bytes? 0: it is not. Decodes
 * it and looks at the number, unlike the library, which looks at the bytes. */
size_t utf8_length(const char *text, size_t len);

#endif
