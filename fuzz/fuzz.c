/* SPDX-License-Identifier: MIT */
/* fuzz.c: what do the fuzz targets share? See fuzz.h. */
#include "fuzz.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int report_fd = STDERR_FILENO; /* a copy that is not closed */

/* libFuzzer calls it before it closes stderr. */
int /* NOLINTNEXTLINE(readability-non-const-parameter) */
LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    report_fd = dup(STDERR_FILENO);
    return 0;
}

void
fuzz_fail(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)vdprintf(report_fd, format, args);
    va_end(args);
    (void)dprintf(report_fd, "\n");
    abort();
}

char *
fuzz_text(const uint8_t *data, size_t len)
{
    char *text = malloc(len + 1);

    if (!text)
        fuzz_fail("out of memory");
    if (len)
        (void)memcpy(text, data, len);
    text[len] = '\0';
    return text;
}

char *
fuzz_split(char **at, char end)
{
    char *const start = *at;

    if (!start)
        return NULL;
    *at = strchr(start, end);
    if (*at)
        *(*at)++ = '\0';
    return start;
}
