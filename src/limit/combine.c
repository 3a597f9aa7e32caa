/* SPDX-License-Identifier: MIT */
/* combine.c: what do several limiters say together?
 *
 * The longest of all, and: no more than so much. Both own what they are made
 * of, as a chain of siblings that never changes: so no lock is needed, and each
 * part is asked without one. Cost: that of the parts.
 */
#include "limit/limiter.h"

#include <stdio.h>

#include "config/read.h"
#include "core/mem.h"
#include "error/error.h"

struct combined {
    wq_limiter  base;
    wq_limiter *first;  /* the parts, owned */
    int64_t     max_ns; /* no more than this */
};

/* ---- taking over --------------------------------------------------------- */

static void
destroy_all(wq_limiter *first)
{
    while (first) {
        wq_limiter *following = first->next;
        wq__limiter_unclaim(first);
        wq_limiter_destroy(first);
        first = following;
    }
}

/* Claim all of them and chain them up: the caller owns the chain, whatever the
 * result. The first that cannot be claimed decides on the error. A part that is
 * named twice can be claimed once only, so nothing is destroyed twice. */
static wq_err
take_over(size_t n, wq_limiter *const *parts, wq_limiter **first)
{
    wq_limiter **end = first;
    wq_err       err = WQ_OK;
    char         where[64];

    *first = NULL;
    for (size_t i = 0; i < n; i++) {
        if (wq__limiter_claim(parts[i])) {
            parts[i]->next = NULL;
            *end = parts[i];
            end = &parts[i]->next;
        } else if (!err) {
            (void)snprintf(where, sizeof where,
                           "wq_limiter_max_of: children[%zu]", i);
            err = wq__limiter_explain(parts[i], where);
        }
    }
    return err;
}

/* ---- verbs --------------------------------------------------------------- */

static int64_t
when(void *self, wq_key key)
{
    struct combined *c = self;
    int64_t          longest = 0;

    for (wq_limiter *part = c->first; part; part = part->next) {
        const int64_t delay = wq_limiter_when(part, key);
        if (delay > longest)
            longest = delay;
    }
    return longest < c->max_ns ? longest : c->max_ns;
}

static void
forget(void *self, wq_key key)
{
    struct combined *c = self;
    for (wq_limiter *part = c->first; part; part = part->next)
        wq_limiter_forget(part, key);
}

static unsigned
num_requeues(void *self, wq_key key)
{
    struct combined *c = self;
    unsigned         most = 0;

    for (wq_limiter *part = c->first; part; part = part->next) {
        const unsigned count = wq_limiter_num_requeues(part, key);
        if (count > most)
            most = count;
    }
    return most;
}

static void
undo(void *self, wq_key key)
{
    struct combined *c = self;
    for (wq_limiter *part = c->first; part; part = part->next)
        wq_limiter_undo(part, key);
}

static void
set_clock(void *self, wq_clock *clock)
{
    struct combined *c = self;
    for (wq_limiter *part = c->first; part; part = part->next)
        wq_limiter_set_clock(part, clock);
}

static void
destroy(void *self)
{
    struct combined *c = self;
    destroy_all(c->first);
}

static const wq_limiter_ops ops = {
    .size = sizeof ops,
    .when = when,
    .forget = forget,
    .num_requeues = num_requeues,
    .destroy = destroy,
    .undo = undo,
    .set_clock = set_clock,
};

/* ---- constructors -------------------------------------------------------- */

/* For the constructor `who`, whose parts, claimed, are those from `first` on:
 * owned in every case. `err`: it has failed already. */
static wq_limiter *
combine(const char *who, const wq_allocator *mem, wq_err err, wq_limiter *first,
        int64_t max_ns)
{
    struct combined *c = err ? NULL : wq__limiter_alloc(mem, sizeof *c, &ops);
    if (!c) {
        destroy_all(first);
        return err ? wq__limiter_failed(err) : wq__limiter_no_memory(who);
    }

    c->first = first;
    c->max_ns = max_ns;
    return &c->base;
}

wq_limiter *
wq__limiter_max_of(const wq_allocator *mem, size_t n,
                   wq_limiter *const *children)
{
    wq_limiter *first;

    if (n > 0 && !children)
        return wq__limiter_failed(
            wq_fail(WQ_EINVAL, "wq_limiter_max_of: children is NULL"));
    const wq_err err = take_over(n, children, &first);
    return combine("wq_limiter_max_of", mem, err, first, WQ_FOREVER);
}

wq_limiter *
wq__limiter_with_max_wait(const wq_allocator *mem, wq_limiter *inner,
                          int64_t max_ns)
{
    if (!wq__limiter_claim(inner))
        return wq__limiter_failed(
            wq__limiter_explain(inner, "wq_limiter_with_max_wait: inner"));
    inner->next = NULL;
    const wq_err err =
        wq__check_not_negative("wq_limiter_with_max_wait: max_ns", max_ns);
    return combine("wq_limiter_with_max_wait", mem, err, inner, max_ns);
}

wq_limiter *
wq_limiter_max_of(size_t n, wq_limiter *const *children)
{
    return wq__limiter_max_of(&wq__mem_default, n, children);
}

wq_limiter *
wq_limiter_with_max_wait(wq_limiter *inner, int64_t max_ns)
{
    return wq__limiter_with_max_wait(&wq__mem_default, inner, max_ns);
}
