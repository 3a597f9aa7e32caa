/* SPDX-License-Identifier: MIT */
/* store_sessions.c: which sessions live, and what becomes of their holds?
 *
 * Cost: O(most holds at one time) for each session that ends, and for each hold
 * that is given back.
 */
#include "support/store_inside.h"

#include "core/inside.h"
#include "core/mem.h"
#include "core/same.h"
#include "core/span.h"

/* ---- sessions ------------------------------------------------------------ */

void
store_begin_session(struct memory_engine *e, int64_t now)
{
    struct memory_store  *store = e->store;
    struct store_session *s = e->session;
    const int64_t         lease_ns = e->base.lease_ns;

    s->number = ++store->last_session;
    s->until_ns = lease_ns ? wq__span_add(now, lease_ns) : WQ_FOREVER;
    s->next = store->sessions;
    store->sessions = s;
    e->lives = true;
    store->news |= lease_ns != 0; /* others may have to wake up at its end */
}

void
store_end_session(struct memory_store *store, struct store_session *s)
{
    struct store_session **at = &store->sessions;

    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    store->has_ended_holds = true;
    if (s->owner)
        s->owner->lives = false;
    else
        wq__mem_free(&store->mem, s, sizeof *s);
}

void
store_end_expired(struct memory_store *store, int64_t now)
{
    struct store_session *next;

    for (struct store_session *s = store->sessions; s; s = next) {
        next = s->next;
        if (s->until_ns != WQ_FOREVER && s->until_ns <= now)
            store_end_session(store, s);
    }
}

bool
store_is_live(const struct memory_store *store, uint32_t number)
{
    const struct store_session *s = store->sessions;

    while (s && s->number != number)
        s = s->next;
    return s;
}

int64_t
store_next_ns(const struct memory_engine *e, int64_t now)
{
    const struct memory_store *store = e->store;
    int64_t                    next = wq__core_first_deadline(&store->core);

    if (store->has_ended_holds)
        return now;
    for (const struct store_session *s = store->sessions; s; s = s->next)
        if (s != e->session && s->until_ns < next)
            next = s->until_ns;
    return next;
}

/* ---- holds --------------------------------------------------------------- */

struct wq__loan *
store_find_hold(struct memory_engine *e, wq_key key, uint64_t fence)
{
    const struct wq__core *c = &e->store->core;
    const wq__ref ref = wq__index_find(&c->index, key, wq__core_hash(c, key));
    if (!ref || !(wq__core_rec(c, ref)->flags & WQ__HELD))
        return NULL;

    struct wq__loan *loan = wq__loans_at(&c->loans, wq__core_rec(c, ref)->next);
    return e->lives && loan->holder == e->session->number &&
                   loan->item.fence == fence
               ? loan
               : NULL;
}

static bool
is_known(const struct wq__loan *loan, const struct wq__known *known, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (known[i].fence == loan->item.fence &&
            wq__same_key(known[i].key, loan->item.key))
            return true;
    return false;
}

void
store_release(struct memory_engine *e, const struct wq__known *known, size_t n)
{
    struct wq__loans *loans = &e->store->core.loans;

    for (uint32_t i = WQ__LOANS_FIRST; i < loans->fresh; i++) {
        struct wq__loan *loan = wq__loans_at(loans, i);

        if (!loan->rec || loan->holder != e->session->number ||
            is_known(loan, known, n))
            continue;
        loan->holder = 0;
        e->store->has_ended_holds = true;
    }
}

size_t
store_holders(const struct memory_store *store)
{
    size_t n = 0;

    for (const struct store_session *s = store->sessions; s; s = s->next)
        n += wq__core_holds_any(&store->core, s->number);
    return n;
}

/* The first hold, in the order of hand-out, that is to be given back; or
 * NULL. */
static struct wq__loan *
first_ended(const struct memory_store *store)
{
    const struct wq__loans *loans = &store->core.loans;
    struct wq__loan        *first = NULL;

    for (uint32_t i = WQ__LOANS_FIRST; i < loans->fresh; i++) {
        struct wq__loan *loan = wq__loans_at(loans, i);

        if (loan->rec && !store_is_live(store, loan->holder) &&
            (!first || loan->item.fence < first->item.fence))
            first = loan;
    }
    return first;
}

size_t
store_give_back(struct memory_engine *e, int64_t now)
{
    struct memory_store   *store = e->store;
    const struct wq__loan *loan;
    size_t                 expired = 0;

    if (!store->has_ended_holds)
        return 0;
    for (size_t n = 0; (loan = first_ended(store)); n++) {
        const uint32_t holder = loan->holder;

        if (store->give_back_at_most && n == store->give_back_at_most)
            return expired;
        if (holder ? store_expire(store, loan, e->terms.max_expiries, now)
                   : store_return(store, loan, now))
            return expired; /* out of memory: another batch goes on */
        expired += holder && holder != e->session->number;
    }
    store->has_ended_holds = false;
    return expired;
}
