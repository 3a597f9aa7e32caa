/* SPDX-License-Identifier: MIT */
/* write.h: how are all bytes written to a file? */
#ifndef WQ_TOOL_WRITE_H
#define WQ_TOOL_WRITE_H

#include <stdbool.h>
#include <stddef.h>

/* Write until all is written or an error occurs; then false, and errno says
 * why. *done, if not NULL, is the number of bytes written. */
bool write_all(int fd, const void *data, size_t len, size_t *done);

#endif
