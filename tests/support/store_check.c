/* SPDX-License-Identifier: MIT */
/* store_check.c: do all invariants of the memory store hold? */
#include "support/store_inside.h"

#include "core/inside.h"

static const char *
check_sessions(const struct memory_store *store)
{
    size_t engines = 0;

    for (const struct store_session *s = store->sessions; s; s = s->next) {
        if (!s->number || s->number > store->last_session)
            return "a session has a number that none was given";
        if (s->owner && (!s->owner->lives || s->owner->session != s))
            return "a session that lives has an engine that has lost it";
        for (const struct store_session *o = s->next; o; o = o->next)
            if (o->number == s->number)
                return "two sessions have the same number";
    }
    for (const struct memory_engine *e = store->engines; e; e = e->next) {
        engines++;
        if (e->lives != store_is_live(store, e->session->number))
            return "an engine is wrong about the life of its session";
    }
    if (store->refs != engines && store->refs != engines + 1)
        return "the number of references is wrong";
    return NULL;
}

static const char *
check_holds(const struct memory_store *store)
{
    const struct wq__loans *loans = &store->core.loans;
    size_t                  live = 0;

    for (uint32_t i = WQ__LOANS_FIRST; i < loans->fresh; i++) {
        const struct wq__loan *loan = wq__loans_at(loans, i);

        if (!loan->rec)
            continue;
        live++;
        if (loan->holder > store->last_session)
            return "a HELD key has a holder that never was a session";
        if (!store_is_live(store, loan->holder) && !store->has_ended_holds)
            return "a hold of an ended session was forgotten";
        if (loan->item.fence > store->core.fence)
            return "a fence is higher than the last one";
        for (uint32_t k = WQ__LOANS_FIRST; k < i; k++)
            if (wq__loans_at(loans, k)->rec &&
                wq__loans_at(loans, k)->item.fence == loan->item.fence)
                return "two holds have the same fence";
    }
    return live == loans->live ? NULL : "the number of HELD keys is wrong";
}

const char *
store_check(const struct memory_store *store)
{
    const char *broken = wq__core_check(&store->core);

    if (!broken)
        broken = check_sessions(store);
    if (!broken)
        broken = check_holds(store);
    return broken ? broken : store_check_dead(store);
}

const char *
memory_store_check(struct memory_store *store)
{
    wq__lock_take(&store->lock);
    const char *broken = store_check(store);
    wq__lock_release(&store->lock);
    return broken;
}
