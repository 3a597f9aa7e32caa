/* SPDX-License-Identifier: MIT */
/* limiter.c: whom do the verbs of a limiter ask, and who may own one?
 *
 * The checks all kinds share, then one indirect call. Costs nothing to speak
 * of; relies on the kinds to lock what they count.
 */
#include "limit/limiter.h"

#include <errno.h>
#include <string.h>

#include "core/mem.h"
#include "port/random.h"

/* As a queue would take it. */
static bool
is_sound(const wq_limiter *l, wq_key key)
{
    return l && key.data && key.len > 0 && key.len <= WQ_KEY_MAX;
}

int64_t
wq_limiter_when(wq_limiter *l, wq_key key)
{
    if (!is_sound(l, key))
        return WQ_FOREVER;
    const int64_t delay_ns = l->ops->when(l, key);
    return delay_ns > 0 ? delay_ns : 0;
}

void
wq_limiter_forget(wq_limiter *l, wq_key key)
{
    if (is_sound(l, key))
        l->ops->forget(l, key);
}

unsigned
wq_limiter_num_requeues(wq_limiter *l, wq_key key)
{
    return is_sound(l, key) ? l->ops->num_requeues(l, key) : 0;
}

void
wq_limiter_undo(wq_limiter *l, wq_key key)
{
    if (is_sound(l, key))
        l->ops->undo(l, key);
}

void
wq_limiter_set_clock(wq_limiter *l, wq_clock *clock)
{
    if (l)
        l->ops->set_clock(l, clock);
}

void
wq_limiter_destroy(wq_limiter *l)
{
    if (!l || atomic_load_explicit(&l->owned, memory_order_relaxed))
        return;
    l->ops->destroy(l);
    wq__limiter_free(l);
}

bool
wq__limiter_claim(wq_limiter *l)
{
    return !atomic_exchange_explicit(&l->owned, true, memory_order_relaxed);
}

void
wq__limiter_unclaim(wq_limiter *l)
{
    atomic_store_explicit(&l->owned, false, memory_order_relaxed);
}

void *
wq__limiter_alloc(const wq_allocator *mem, size_t bytes,
                  const wq_limiter_ops *ops)
{
    wq_limiter *l = wq__mem_alloc(mem, bytes);
    if (!l)
        return wq__limiter_refuse(ENOMEM);

    memset(l, 0, bytes);
    l->ops = ops;
    l->bytes = bytes;
    l->mem = *mem;
    atomic_init(&l->owned, false);
    return l;
}

void
wq__limiter_free(wq_limiter *l)
{
    const wq_allocator mem = l->mem;
    wq__mem_free(&mem, l, l->bytes);
}

void *
wq__limiter_refuse(int why)
{
    errno = why;
    return NULL;
}

bool
wq__limiter_secret(struct wq__hash_key *secret)
{
    uint64_t random[2];

    if (wq__random(random, sizeof random)) {
        errno = EIO;
        return false;
    }
    *secret = wq__hash_key_of(random);
    return true;
}

void
wq__limiter_ignore_key(void *self, wq_key key)
{
    (void)self;
    (void)key;
}

void
wq__limiter_ignore_clock(void *self, wq_clock *clock)
{
    (void)self;
    (void)clock;
}

unsigned
wq__limiter_no_requeues(void *self, wq_key key)
{
    (void)self;
    (void)key;
    return 0;
}
