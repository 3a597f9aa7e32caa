/* SPDX-License-Identifier: MIT */
/* must.c: assertions of children; see must.h. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "support/must.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void
must_die(const char *file, int line, const char *what)
{
    (void)fprintf(stderr, "%s:%d: process %ld: not true: %s (%s)\n", file, line,
                  (long)getpid(), what, strerror(errno));
    (void)fflush(NULL);
    _exit(1);
}

void *
must_share(unsigned long size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    MUST(p != MAP_FAILED);
    return p;
}
