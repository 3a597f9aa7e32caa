/* SPDX-License-Identifier: MIT */
/* lease.c: how are holds renewed, and what if they are lost?
 *
 * A handle renews all its holds together, because the store knows them by its
 * session. The holds are certain until `valid_until_ns`: the moment at which
 * the last successful renewal was sent, plus the lease. The store counts from a
 * later moment, the arrival of that renewal, so it does not give a key to
 * another handle before that. When that moment passes without a renewal, the
 * holds are lost for this handle, whatever the store thinks: the next batch
 * gives back what the store still keeps for it.
 *
 * One thread, wq-lease, renews after a third of the lease, so that two renewals
 * may fail. Programs that opened the queue without it call wq_renew(). It may wait
 * for the store, also until after that moment. So if on_lost() is to be called
 * there is a second thread, wq-expiry, which calls no store: it sleeps until then.
 */
#include "core/span.h"
#include "error/error.h"
#include "shared/call.h"
#include "shared/report.h"
#include "shared/shared.h"

/* ---- losing -------------------------------------------------------------- */

void
wq__shared_lose(struct wq__shared *s, struct wq__hold *hold)
{
    if (hold->lost)
        return;
    wq__holds_lose(&s->holds, hold);
    s->lost++;
    s->to_report = true;
}

void
wq__shared_lose_all(struct wq__shared *s)
{
    for (struct wq__hold *h = s->holds.first; h; h = h->next)
        if (h->state != WQ__HOLD_TAKEN)
            wq__shared_lose(s, h);
}

void
wq__shared_expire(struct wq__shared *s, int64_t now)
{
    if (!s->engine->lease_ns || now < s->valid_until_ns)
        return;
    wq__shared_lose_all(s);
    s->in_doubt = true; /* the store may still keep them for us */
}

/* With the lock: a hold that is to be reported, or NULL. */
static struct wq__hold *
find_unreported(struct wq__shared *s)
{
    for (struct wq__hold *h = s->holds.first; h; h = h->next)
        if (h->state != WQ__HOLD_TAKEN && h->lost && !h->reported)
            return h;
    s->to_report = false;
    return NULL;
}

/* A hold that ends while it is reported stays until then, for its key. */
void
wq__shared_end_hold(struct wq__shared *s, struct wq__hold *hold)
{
    if (hold->reporting)
        hold->ends = true;
    else
        wq__holds_end(&s->holds, hold);
}

void
wq__shared_report_lost(struct wq__shared *s)
{
    struct wq__hold *h;

    wq__shared_enter(s);
    while (s->to_report && (h = find_unreported(s)) != NULL) {
        h->reported = true;
        if (!s->on_lost)
            continue;
        h->reporting = true;
        wq__lock_release(&s->lock);
        s->on_lost(s->lost_ctx, h->item.key, h->item.fence);
        wq__shared_enter(s);
        h->reporting = false;
        if (h->ends)
            wq__holds_end(&s->holds, h);
    }
    wq__shared_leave(s);
}

/* ---- renewing ------------------------------------------------------------ */

int64_t
wq__shared_hold_left(wq_queue *q, const wq_item *item)
{
    struct wq__shared *s = wq__shared_of(q);
    int64_t            left = WQ_FOREVER;

    if (wq__shared_is_foreign(s))
        return 0;
    const int64_t now =
        s->engine->lease_ns ? s->steady_clock->now(s->steady_clock) : 0;
    wq__shared_enter(s);
    wq__shared_expire(s, now);
    if (s->engine->lease_ns)
        left = wq__span_sub(s->valid_until_ns, now);
    const struct wq__hold *hold = wq__holds_find(&s->holds, item);
    if (!hold || hold->lost || left < 0)
        left = 0;
    wq__shared_leave(s);
    return left;
}

static wq_err
renew(struct wq__shared *s)
{
    struct wq__engine *e = s->engine;

    wq__shared_enter(s);
    const uint64_t session = s->session;
    wq__lock_release(&s->lock);
    const int64_t sent_ns = s->steady_clock->now(s->steady_clock);
    wq_err        err = wq__engine_renew(e);
    const int64_t now = s->steady_clock->now(s->steady_clock);

    wq__shared_enter(s);
    /* Holds that this handle has given up are not renewed: reconcile() makes
     * sure of the session again. */
    if (!err && sent_ns < s->valid_until_ns) {
        const int64_t until = wq__span_add(sent_ns, e->lease_ns);
        if (until > s->valid_until_ns)
            s->valid_until_ns = until;
    }
    /* A get whose call has failed long ago may have arrived since, or one is
     * under way: then it is a look too many. */
    if (!err && atomic_load(&e->kept) > s->holds.lent)
        s->in_doubt = true;
    if (err == WQ_ELOST && s->session != session)
        err = WQ_OK; /* that one has ended; a new one has begun meanwhile */
    if (err == WQ_ELOST)
        s->valid_until_ns = INT64_MIN;
    wq__shared_expire(s, now);
    if (!err && now >= s->valid_until_ns)
        err = WQ_ELOST;
    wq__shared_leave(s);
    wq__shared_report_lost(s);
    return err;
}

wq_err
wq__shared_begin_session(struct wq__shared *s)
{
    struct wq__engine *e = s->engine;
    const int64_t      sent_ns = s->steady_clock->now(s->steady_clock);
    const wq_err       err = wq__engine_renew(e);

    s->valid_until_ns = wq__span_add(sent_ns, e->lease_ns);
    if (err == WQ_ELOST) /* the process was stopped, or the store is slow */
        return wq_fail(WQ_EAWAY,
                       "%s: the lease ended while the queue was opened: open "
                       "it again, or with a longer lease",
                       e->ops->name);
    return err;
}

wq_err
wq__shared_renew(wq_queue *q)
{
    struct wq__shared *s = wq__shared_of(q);

    if (wq__shared_is_foreign(s))
        return WQ_ESTATE;
    return s->engine->lease_ns ? renew(s) : WQ_OK;
}

/* ---- the threads ---------------------------------------------------------- */

/* When the holds must be renewed next, after an attempt at `now`. */
static int64_t
next_renewal(const struct wq__shared *s, wq_err err, int64_t now)
{
    const int64_t lease_ns = s->engine->lease_ns;

    if (err == WQ_OK)
        return wq__span_add(now, lease_ns / 3);
    return wq__span_add(now, lease_ns / 12 + 1); /* soon: time runs out */
}

/* With the lock, which is released meanwhile: the thread sleeps until `until_ns`,
 * or until it must end. */
static void
sleep_until(struct wq__shared *s, struct wq__lease_thread *t, int64_t until_ns)
{
    wq__parker_init(&t->parker);
    t->sleeps = true;
    wq__lock_release(&s->lock);
    const bool woken =
        s->steady_clock->park(s->steady_clock, &t->parker, until_ns);
    wq__shared_enter(s);
    if (!woken && !t->sleeps) { /* about to be woken */
        wq__lock_release(&s->lock);
        while (!wq__park(&t->parker, WQ_FOREVER))
            ;
        wq__shared_enter(s);
    }
    t->sleeps = false;
    wq__parker_fini(&t->parker);
}

/* If the store may keep keys for this handle that no thread has, a renewal would
 * keep them there: reconcile first. A handle that is not used has no other
 * thread for this; a thread that leads does it with its next batch, and may wait
 * for the store now for longer than the lease. */
static void
give_back_unknown(struct wq__shared *s)
{
    wq__shared_enter(s);
    const bool mine = s->in_doubt && !s->leading;
    wq__lock_release(&s->lock);
    if (mine)
        (void)wq__shared_run(s, NULL);
}

static void
keep_renewing(void *arg)
{
    struct wq__shared *s = arg;

    wq__shared_enter(s);
    /* Counted from the opening, whenever this thread begins to run. */
    int64_t at_ns =
        next_renewal(s, WQ_OK, s->valid_until_ns - s->engine->lease_ns);
    while (!s->lease_ends) {
        sleep_until(s, &s->renewer, at_ns);
        if (s->lease_ends)
            break;
        wq__lock_release(&s->lock);
        const int64_t now = s->steady_clock->now(s->steady_clock);
        if (now >= at_ns) {
            give_back_unknown(s);
            at_ns = next_renewal(s, renew(s), now);
        }
        wq__shared_enter(s);
    }
    wq__lock_release(&s->lock);
}

/* Another session may begin at any time, and end before the one that is watched:
 * so the thread looks after a third of the lease at the latest. */
static void
keep_watch(void *arg)
{
    struct wq__shared *s = arg;

    wq__shared_enter(s);
    while (!s->lease_ends) {
        const int64_t now = s->steady_clock->now(s->steady_clock);
        int64_t       until_ns = wq__span_add(now, s->engine->lease_ns / 3);

        if (now >= s->valid_until_ns) {
            wq__shared_expire(s, now);
            wq__shared_leave(s);
            wq__shared_report_lost(s);
            wq__shared_enter(s);
        } else if (s->valid_until_ns < until_ns) {
            until_ns = s->valid_until_ns;
        }
        if (!s->lease_ends)
            sleep_until(s, &s->watcher, until_ns);
    }
    wq__lock_release(&s->lock);
}

static wq_err
start(struct wq__shared *s, struct wq__lease_thread *t, void (*run)(void *arg),
      const char *name)
{
    const wq_err err = wq__thread_start(&t->thread, run, s, name);

    t->exists = !err;
    return err;
}

wq_err
wq__shared_start_lease(struct wq__shared *s)
{
    wq_err err = start(s, &s->renewer, keep_renewing, "wq-lease");

    if (!err && s->on_lost)
        err = start(s, &s->watcher, keep_watch, "wq-expiry");
    return err;
}

/* With the lock, which is released. */
static void
end(struct wq__shared *s, struct wq__lease_thread *t)
{
    const bool sleeps = t->sleeps;

    t->sleeps = false;
    wq__lock_release(&s->lock);
    if (sleeps)
        wq__unpark(&t->parker);
    if (t->exists)
        wq__thread_join(&t->thread);
    t->exists = false;
}

void
wq__shared_end_lease(struct wq__shared *s)
{
    wq__shared_enter(s);
    s->lease_ends = true;
    end(s, &s->renewer);
    wq__shared_enter(s);
    end(s, &s->watcher);
}
