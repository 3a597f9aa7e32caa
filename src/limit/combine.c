/* SPDX-License-Identifier: MIT */
/* combine.c: how are limiters combined?
 *
 * wq_limiter_max_of() takes the longest delay of its parts,
 * wq_limiter_with_max_wait() caps a delay. Both own their parts, in a list that
 * never changes: so no lock is needed. Cost: that of the parts.
 */
#include "limit/limiter.h"

#include <stdio.h>

#include "config/read.h"
#include "core/mem.h"
#include "error/error.h"
#include "limit/spec.h"

struct combined {
    wq_limiter  base;
    wq_limiter *first;  /* the list of parts, owned */
    int64_t     max_ns; /* the longest delay */
};

/* ---- claiming the parts -------------------------------------------------- */

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

/* Claim all parts and link them: the caller owns the list, also after an error.
 * The error is that of the first part that cannot be claimed. A part that is
 * named twice can be claimed only once, so none is destroyed twice. */
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

/* The largest of what `verb` says of the parts. */
static int64_t
largest(const struct combined *c, int64_t (*verb)(wq_limiter *, wq_key),
        wq_key                 key)
{
    int64_t most = 0;

    for (wq_limiter *part = c->first; part; part = part->next) {
        const int64_t its = verb(part, key);
        most = its > most ? its : most;
    }
    return most;
}

static void
call_each(const struct combined *c, void (*verb)(wq_limiter *, wq_key),
          wq_key                 key)
{
    for (wq_limiter *part = c->first; part; part = part->next)
        verb(part, key);
}

static int64_t
combined_when(void *self, wq_key key)
{
    const struct combined *c = self;
    const int64_t          longest = largest(c, wq_limiter_when, key);

    return longest < c->max_ns ? longest : c->max_ns;
}

static void
combined_forget(void *self, wq_key key)
{
    call_each(self, wq_limiter_forget, key);
}

static int64_t
count_requeues(wq_limiter *part, wq_key key)
{
    return wq_limiter_num_requeues(part, key);
}

static unsigned
combined_num_requeues(void *self, wq_key key)
{
    return (unsigned)largest(self, count_requeues, key);
}

static void
combined_undo(void *self, wq_key key)
{
    call_each(self, wq_limiter_undo, key);
}

static void
combined_set_clock(void *self, wq_clock *clock)
{
    struct combined *c = self;
    for (wq_limiter *part = c->first; part; part = part->next)
        wq_limiter_set_clock(part, clock);
}

static void
combined_destroy(void *self)
{
    struct combined *c = self;
    destroy_all(c->first);
}

static const wq_limiter_ops ops = WQ__LIMITER_OPS(combined);

/* ---- description --------------------------------------------------------- */

/* Describe the longest delay of all parts. */
static void
describe(struct combined *c)
{
    wq_limiter *l = &c->base;

    for (const wq_limiter *part = c->first; part && !l->no_spec;
         part = part->next)
        l->no_spec = part->no_spec ? part->no_spec
                                   : wq__spec_join(&l->spec, &part->spec);
}

/* ---- constructors -------------------------------------------------------- */

/* For the constructor `who`: combine the claimed parts from `first` on, which
 * are taken over in every case. `err`: the constructor has failed already. */
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
    describe(c);
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
    wq_limiter *l =
        combine("wq_limiter_with_max_wait", mem, err, inner, max_ns);
    if (!l->err)
        wq__spec_cap(&l->spec, max_ns);
    return l;
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
