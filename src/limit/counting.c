/* SPDX-License-Identifier: MIT */
/* counting.c: limiters that count failures; see counting.h. */
#include "limit/counting.h"

static struct wq__failures *
failures(void *self)
{
    struct wq__counting *limiter = self;
    return &limiter->failures;
}

void
wq__counting_forget(void *self, wq_key key)
{
    wq__failures_forget(failures(self), key);
}

unsigned
wq__counting_num_requeues(void *self, wq_key key)
{
    return wq__failures_count(failures(self), key);
}

void
wq__counting_undo(void *self, wq_key key)
{
    wq__failures_undo(failures(self), key);
}

void
wq__counting_set_clock(void *self, wq_clock *clock)
{
    wq__failures_set_clock(failures(self), clock);
}

void
wq__counting_destroy(void *self)
{
    wq__failures_fini(failures(self));
}
