/* SPDX-License-Identifier: MIT */
/* limiter.c: what do all limiters share?
 *
 * The checks of arguments, then one indirect call; ownership; failed limiters.
 * Each kind of limiter locks what it counts.
 */
#include "limit/limiter.h"

#include <string.h>

#include "core/mem.h"
#include "error/error.h"

/* Several failed limiters for each error, used in turn, so that a limiter that
 * failed a moment ago differs from the one before it. */
#define FOUR(e)                                                                \
    {.err = e}, {.err = e}, {.err = e},                                        \
    {                                                                          \
        .err = e                                                               \
    }
#define SIXTEEN(e) FOUR(e), FOUR(e), FOUR(e), FOUR(e)
enum { TURNS = 16 };
static const wq_limiter failed_einval[TURNS] = {SIXTEEN(WQ_EINVAL)};
static const wq_limiter failed_enomem[TURNS] = {SIXTEEN(WQ_ENOMEM)};
static const wq_limiter failed_eio[TURNS] = {SIXTEEN(WQ_EIO)};
#undef SIXTEEN
#undef FOUR

static atomic_uint turn; /* relaxed: only its own value matters */

/* The last failed limiter of this thread, and the number of the sentence that
 * explains it; NULL: none has failed. */
static _Thread_local struct {
    const wq_limiter *limiter;
    unsigned          sentence;
} explained;

wq_err
wq_limiter_error(const wq_limiter *l)
{
    return l ? l->err : WQ_EINVAL;
}

/* Can the limiter be used, and would a queue accept the key? */
static bool
is_sound(const wq_limiter *l, wq_key key)
{
    return l && !l->err && key.data && key.len > 0 && key.len <= WQ_KEY_MAX;
}

int64_t
wq_limiter_when(wq_limiter *l, wq_key key)
{
    if (!is_sound(l, key))
        return WQ_FOREVER;
    const int64_t delay_ns = l->ops.when(l->self, key);
    return delay_ns > 0 ? delay_ns : 0;
}

void
wq_limiter_forget(wq_limiter *l, wq_key key)
{
    if (is_sound(l, key))
        l->ops.forget(l->self, key);
}

unsigned
wq_limiter_num_requeues(wq_limiter *l, wq_key key)
{
    return is_sound(l, key) ? l->ops.num_requeues(l->self, key) : 0;
}

void
wq_limiter_undo(wq_limiter *l, wq_key key)
{
    if (is_sound(l, key))
        l->ops.undo(l->self, key);
}

void
wq_limiter_set_clock(wq_limiter *l, wq_clock *clock)
{
    if (!wq_limiter_error(l))
        l->ops.set_clock(l->self, clock);
}

void
wq_limiter_destroy(wq_limiter *l)
{
    if (wq_limiter_error(l) ||
        atomic_load_explicit(&l->owned, memory_order_relaxed))
        return;
    const struct wq__sentence saved = wq__fail_save();
    l->ops.destroy(l->self); /* may be user code, and set a sentence */
    wq__fail_restore(&saved);
    wq__limiter_free(l);
}

bool
wq__limiter_claim(wq_limiter *l)
{
    return !wq_limiter_error(l) &&
           !atomic_exchange_explicit(&l->owned, true, memory_order_relaxed);
}

wq_err
wq__limiter_explain(const wq_limiter *l, const char *where)
{
    if (!l)
        return wq_fail(WQ_EINVAL, "%s is NULL", where);
    if (!l->err)
        return wq_fail(WQ_EINVAL, "%s has an owner already", where);
    if (explained.limiter == l && explained.sentence == wq__fail_count())
        return wq_fail(l->err, "%s: %s", where, wq_last_error());
    return wq_fail(l->err, "%s is a failed limiter: %s", where,
                   wq_strerror(l->err));
}

void
wq__limiter_unclaim(wq_limiter *l)
{
    atomic_store_explicit(&l->owned, false, memory_order_relaxed);
}

/* ---- functions that a limiter does not need ------------------------------ */

static void
ignore(void *self)
{
    (void)self;
}

static void
ignore_key(void *self, wq_key key)
{
    (void)self;
    (void)key;
}

static void
ignore_clock(void *self, wq_clock *clock)
{
    (void)self;
    (void)clock;
}

static unsigned
no_requeues(void *self, wq_key key)
{
    (void)self;
    (void)key;
    return 0;
}

static void
fill_gaps(wq_limiter_ops *ops)
{
    if (!ops->forget)
        ops->forget = ignore_key;
    if (!ops->num_requeues)
        ops->num_requeues = no_requeues;
    if (!ops->destroy)
        ops->destroy = ignore;
    if (!ops->undo)
        ops->undo = ignore_key;
    if (!ops->set_clock)
        ops->set_clock = ignore_clock;
}

/* ---- making limiters ----------------------------------------------------- */

void *
wq__limiter_alloc(const wq_allocator *mem, size_t bytes,
                  const wq_limiter_ops *ops)
{
    wq_limiter *l = wq__mem_alloc(mem, bytes);
    if (!l)
        return NULL;

    memset(l, 0, bytes);
    l->ops = *ops;
    fill_gaps(&l->ops);
    l->self = l;
    l->bytes = bytes;
    l->mem = *mem;
    l->spec.size = sizeof l->spec;
    atomic_init(&l->owned, false);
    return l;
}

void
wq__limiter_free(wq_limiter *l)
{
    const wq_allocator mem = l->mem;
    wq__mem_free(&mem, l, l->bytes);
}

wq_limiter *
wq__limiter_failed(wq_err err)
{
    const unsigned mine =
        atomic_fetch_add_explicit(&turn, 1, memory_order_relaxed) % TURNS;
    const wq_limiter *all = err == WQ_ENOMEM ? failed_enomem
                            : err == WQ_EIO  ? failed_eio
                                             : failed_einval;

    explained.limiter = &all[mine];
    explained.sentence = wq__fail_count();
    return (wq_limiter *)&all[mine];
}

wq_limiter *
wq__limiter_no_memory(const char *who)
{
    return wq__limiter_failed(wq_fail(WQ_ENOMEM, "%s: out of memory", who));
}

wq_limiter *
wq__limiter_no_random(const char *who)
{
    return wq__limiter_failed(
        wq_fail(WQ_EIO, "%s: the system gave no random numbers", who));
}
