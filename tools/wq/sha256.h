/* SPDX-License-Identifier: MIT */
/* sha256.h: what name do bytes have that are too long to be one? */
#ifndef WQ_TOOL_SHA256_H
#define WQ_TOOL_SHA256_H

#include <stddef.h>

/* The SHA-256 of the bytes as 64 hexadecimal digits and a NUL: what sha256sum
 * prints for them, so that a script finds the name, too. */
void sha256_hex(const void *data, size_t len, char out[65]);

#endif
