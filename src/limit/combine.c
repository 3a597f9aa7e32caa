/* SPDX-License-Identifier: MIT */
/* combine.c: what do several limiters say together?
 *
 * The longest of all, and: no more than so much. Both own what they are made
 * of, as a chain of siblings that never changes: so no lock is needed, and each
 * part is asked without one. Cost: that of the parts.
 */
#include "limit/limiter.h"

#include <errno.h>

#include "core/mem.h"

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

/* Claim all of them and chain them up. When that fails, those that were claimed
 * are destroyed. A part that is named twice can be claimed once only, so
 * nothing is destroyed twice. */
static bool
take_over(size_t n, wq_limiter *const *parts, wq_limiter **first)
{
    wq_limiter **end = first;
    bool         missing = false, foreign = false;

    *first = NULL;
    for (size_t i = 0; i < n; i++) {
        if (!parts[i]) {
            missing = true;
        } else if (!wq__limiter_claim(parts[i])) {
            foreign = true;
        } else {
            parts[i]->next = NULL;
            *end = parts[i];
            end = &parts[i]->next;
        }
    }
    if (!missing && !foreign)
        return true;

    const int why = errno; /* of the constructor that failed */
    destroy_all(*first);
    errno = foreign || why == 0 ? EINVAL : why;
    return false;
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

static wq_limiter *
combine(const wq_allocator *mem, size_t n, wq_limiter *const *parts,
        int64_t max_ns)
{
    wq_limiter *first;

    if (!take_over(n, parts, &first))
        return NULL;
    if (max_ns < 0) {
        destroy_all(first);
        return wq__limiter_refuse(EINVAL);
    }
    struct combined *c = wq__limiter_alloc(mem, sizeof *c, &ops);
    if (!c) {
        destroy_all(first);
        return wq__limiter_refuse(ENOMEM);
    }

    c->first = first;
    c->max_ns = max_ns;
    return &c->base;
}

wq_limiter *
wq__limiter_max_of(const wq_allocator *mem, size_t n,
                   wq_limiter *const *children)
{
    if (n > 0 && !children)
        return wq__limiter_refuse(EINVAL);
    return combine(mem, n, children, WQ_FOREVER);
}

wq_limiter *
wq__limiter_with_max_wait(const wq_allocator *mem, wq_limiter *inner,
                          int64_t max_ns)
{
    return combine(mem, 1, &inner, max_ns);
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
