/* SPDX-License-Identifier: MIT */
/* write.c: how are all bytes written to a file? */
#include "base/write.h"

#include <errno.h>
#include <unistd.h>

bool
write_all(int fd, const void *data, size_t len, size_t *done)
{
    const char *from = data;
    size_t      written = 0;
    ssize_t     n = 1;

    while (written < len && (n > 0 || (n < 0 && errno == EINTR))) {
        n = write(fd, from + written, len - written);
        if (n > 0)
            written += (size_t)n;
    }
    if (done)
        *done = written;
    return written == len;
}
