/* SPDX-License-Identifier: MIT */
/* probe.c: a limiter that counts its calls; see probe.h. */
#include "support/probe.h"

/* The probe that is called with this key. */
static struct probe *
probe_of(void *self, wq_key key)
{
    struct probe *p = self;

    p->key_len = key.len;
    return p;
}

static int64_t
probe_when(void *self, wq_key key)
{
    struct probe *p = probe_of(self, key);
    wq_queue     *q = p->calls;

    p->whens++;
    if (q) {
        p->calls = NULL;
        (void)wq_len(q);
        (void)!wq_add_rate_limited(q, key);
    }
    return p->delay_ns;
}

static void
probe_forget(void *self, wq_key key)
{
    probe_of(self, key)->forgets++;
}

static unsigned
probe_num_requeues(void *self, wq_key key)
{
    const struct probe *p = probe_of(self, key);

    return (unsigned)(p->whens - p->undos);
}

static void
probe_undo(void *self, wq_key key)
{
    probe_of(self, key)->undos++;
}

static void
probe_destroy(void *self)
{
    ((struct probe *)self)->destroys++;
}

static void
probe_set_clock(void *self, wq_clock *clock)
{
    ((struct probe *)self)->clock = clock;
}

wq_err
probe_open(struct probe *p, const char *url, wq_queue **out)
{
    *p = (struct probe){.delay_ns = 1};
    return wq_open(url, WQ_CONFIG(.limiter = wq_limiter_create(&probe_ops, p)),
                   out);
}

const wq_limiter_ops probe_ops = {
    .size = sizeof probe_ops,
    .when = probe_when,
    .forget = probe_forget,
    .num_requeues = probe_num_requeues,
    .destroy = probe_destroy,
    .undo = probe_undo,
    .set_clock = probe_set_clock,
};
