/* SPDX-License-Identifier: MIT */
/* random.c: the system's random numbers; see random.h. */
#include "port/random.h"

#include <unistd.h>
#if defined(__linux__) || defined(__APPLE__)
#include <sys/random.h>
#endif

wq_err
wq__random(void *out, size_t n)
{
    return getentropy(out, n) == 0 ? WQ_OK : WQ_EIO;
}
