/* SPDX-License-Identifier: MIT */
/* layered.c: a queue of another author, in real time, inside both layers. */
#include <wq/backend.h>

#include "support/backend.h"
#include "support/plain_queue.h"

static wq_err
open_layered(const wq_config *config, wq_queue **out)
{
    wq_queue *q, *wrapped;

    (void)config;
    wq_err err = plain_create(PLAIN_BASE, &q);
    if (err)
        return err;
    err = wq_delaying_wrap(q, NULL, &wrapped);
    if (!err)
        err = wq_rate_limiting_wrap(wrapped, NULL, out);
    return err;
}

const struct backend backend = {.open = open_layered};
