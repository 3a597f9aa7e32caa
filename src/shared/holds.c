/* SPDX-License-Identifier: MIT */
/* holds.c: the keys that this handle holds; see holds.h. */
#include "shared/holds.h"

#include <string.h>

#include "core/mem.h"
#include "core/same.h"

void
wq__holds_init(struct wq__holds *h, const wq_allocator *mem)
{
    *h = (struct wq__holds){.mem = mem};
}

void
wq__holds_fini(struct wq__holds *h)
{
    for (size_t i = 0; i < h->len; i++) {
        if (h->at[i]->bytes)
            wq__mem_free(h->mem, h->at[i]->bytes, h->at[i]->cap);
        wq__mem_free(h->mem, h->at[i], sizeof *h->at[i]);
    }
    if (h->at)
        wq__mem_free(h->mem, h->at, h->cap * sizeof *h->at);
    wq__holds_init(h, h->mem);
}

/* ---- memory -------------------------------------------------------------- */

static bool
grow(struct wq__holds *h)
{
    const size_t      cap = h->cap ? 2 * h->cap : 16;
    struct wq__hold **more = wq__mem_array(h->mem, cap, sizeof *more);

    if (!more)
        return false;
    if (h->at) {
        memcpy(more, h->at, h->len * sizeof *more);
        wq__mem_free(h->mem, h->at, h->cap * sizeof *h->at);
    }
    h->at = more;
    h->cap = cap;
    return true;
}

/* One more hold, with a number. NULL: out of memory. */
static struct wq__hold *
make(struct wq__holds *h)
{
    if (h->len == h->cap && !grow(h))
        return NULL;
    struct wq__hold *hold = wq__mem_alloc(h->mem, sizeof *hold);
    if (!hold)
        return NULL;
    *hold = (struct wq__hold){.item.loan = (uint32_t)h->len};
    h->at[h->len++] = hold;
    return hold;
}

/* Space for a key of `len` bytes and its NUL. The memory of a long key is not
 * kept for a short one. */
static bool
reserve(const struct wq__holds *h, struct wq__hold *hold, size_t len)
{
    enum { KEPT = 1024 };

    if (hold->cap > len && (hold->cap <= KEPT || hold->cap / 4 <= len))
        return true;
    char *bytes = wq__mem_alloc(h->mem, len + 1);
    if (!bytes)
        return false;
    if (hold->bytes)
        wq__mem_free(h->mem, hold->bytes, hold->cap);
    hold->bytes = bytes;
    hold->cap = len + 1;
    return true;
}

/* ---- lists --------------------------------------------------------------- */

static void
enter(struct wq__holds *h, struct wq__hold *hold)
{
    hold->prev = NULL;
    hold->next = h->first;
    if (h->first)
        h->first->prev = hold;
    h->first = hold;
}

static void
leave(struct wq__holds *h, struct wq__hold *hold)
{
    *(hold->prev ? &hold->prev->next : &h->first) = hold->next;
    if (hold->next)
        hold->next->prev = hold->prev;
}

static void
enter_ended(struct wq__holds *h, struct wq__hold *hold)
{
    hold->state = WQ__HOLD_ENDED;
    hold->next = NULL;
    *(h->ended ? &h->newest->next : &h->ended) = hold;
    h->newest = hold;
}

/* A new one is used before those that have ended. */
static void
enter_new(struct wq__holds *h, struct wq__hold *hold)
{
    hold->state = WQ__HOLD_ENDED;
    hold->next = h->ended;
    if (!h->ended)
        h->newest = hold;
    h->ended = hold;
}

/* ---- interface ----------------------------------------------------------- */

struct wq__hold *
wq__holds_take(struct wq__holds *h, const struct wq__handed *handed)
{
    enum { FEW = 8 }; /* so many take turns, even if one is in use at a time */
    const size_t len = handed->key.len;

    if (!h->ended || h->len < FEW) {
        struct wq__hold *more = make(h);
        if (more)
            enter_new(h, more);
    }
    struct wq__hold *hold = h->ended;
    if (!hold || !reserve(h, hold, len))
        return NULL;

    h->ended = hold->next;
    memcpy(hold->bytes, handed->key.data, len);
    hold->bytes[len] = '\0';
    hold->item.key = (wq_key){hold->bytes, len};
    hold->item.priority = handed->priority;
    hold->item.fence = handed->fence;
    hold->waited_ns = handed->waited_ns;
    hold->lost = hold->reported = hold->ends = hold->in_doubt = false;
    hold->state = WQ__HOLD_TAKEN;
    enter(h, hold);
    return hold;
}

void
wq__holds_lend(struct wq__holds *h, struct wq__hold *hold, int64_t now)
{
    hold->state = WQ__HOLD_LENT;
    hold->got_ns = now;
    h->lent++;
}

void
wq__holds_lose(struct wq__holds *h, struct wq__hold *hold)
{
    hold->lost = true;
    h->lost++;
}

void
wq__holds_end(struct wq__holds *h, struct wq__hold *hold)
{
    if (hold->state != WQ__HOLD_TAKEN)
        h->lent--;
    h->lost -= hold->lost;
    leave(h, hold);
    enter_ended(h, hold);
}

struct wq__hold *
wq__holds_find(const struct wq__holds *h, const wq_item *item)
{
    if (item->loan >= h->len)
        return NULL;
    struct wq__hold *hold = h->at[item->loan];
    return &hold->item == item && (hold->state == WQ__HOLD_LENT ||
                                   hold->state == WQ__HOLD_ENDING)
               ? hold
               : NULL;
}

/* Is `a` more likely than `b` the hold that the thread `holder` means? */
static bool
is_meant(const struct wq__hold *a, const struct wq__hold *b, uint32_t holder)
{
    const bool own = a->holder == holder;

    if (!b || own != (b->holder == holder))
        return !b || own;
    return a->item.fence < b->item.fence;
}

struct wq__hold *
wq__holds_find_key(const struct wq__holds *h, wq_key key, uint32_t holder)
{
    struct wq__hold *best = NULL;

    for (struct wq__hold *hold = h->first; hold; hold = hold->next)
        if (hold->state == WQ__HOLD_LENT && wq__same_key(hold->item.key, key) &&
            is_meant(hold, best, holder))
            best = hold;
    return best;
}

bool
wq__holds_any_of(const struct wq__holds *h, uint32_t holder)
{
    for (const struct wq__hold *hold = h->first; hold; hold = hold->next)
        if (hold->state != WQ__HOLD_TAKEN && hold->holder == holder)
            return true;
    return false;
}
