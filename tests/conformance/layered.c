/* SPDX-License-Identifier: MIT */
/* layered.c: does a plain queue still conform with both layers around it? */
#include "conformance/suite.h"

#include <wq/backend.h>

#include "support/plain_queue.h"

static wq_err
open_layered(void *ctx, wq_queue **out)
{
    wq_queue *q, *wrapped;

    (void)ctx;
    wq_err err = plain_create(PLAIN_BASE, &q);
    if (err)
        return err;
    err = wq_delaying_wrap(q, NULL, &wrapped);
    if (!err)
        err = wq_rate_limiting_wrap(wrapped, NULL, out);
    return err;
}

const struct suite_backend suite_backend = {.open = open_layered};

SUITE();
