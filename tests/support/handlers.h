/* SPDX-License-Identifier: MIT */
/* handlers.h: which handlers of workers do several tests need? */
#ifndef WQ_TEST_HANDLERS_H
#define WQ_TEST_HANDLERS_H

#include <wq/workers.h>

/* Does nothing, and succeeds. */
static inline wq_result
handle_done(void *ctx, const wq_item *item)
{
    (void)ctx;
    (void)item;
    return wq_result_done();
}

#endif
