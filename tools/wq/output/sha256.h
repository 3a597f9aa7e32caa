/* SPDX-License-Identifier: MIT */
/* sha256.h: what is the SHA-256 of some bytes? */
#ifndef WQ_TOOL_SHA256_H
#define WQ_TOOL_SHA256_H

#include <stddef.h>

/* Write it as 64 hexadecimal digits and a NUL, as sha256sum prints it: scripts
 * can compute the name of a long key in --results. */
void sha256_hex(const void *data, size_t len, char out[65]);

#endif
