/* SPDX-License-Identifier: MIT */
/* memory.c: does the in-memory backend conform? */
#include "conformance/suite.h"

static wq_err
open_memory(void *ctx, wq_queue **out)
{
    (void)ctx;
    return wq_create(NULL, out);
}

const struct suite_backend suite_backend = {.open = open_memory};

SUITE();
