/* SPDX-License-Identifier: MIT */
/* spread_session.c: how does the session of a handle live in all partitions? See
 * spread.h.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "error/error.h"
#include "port/time.h"
#include "spread.h"

/* ---- renewing ------------------------------------------------------------- */

/* Can the renewal be sent at once? To connect may take long. */
static bool
is_linked(struct wq__redis *e)
{
    wq__lock_take(&e->side_lock);
    const bool linked = wq__wire_is_ready(&e->side_wire);
    wq__lock_release(&e->side_lock);
    return linked;
}

/* What must be renewed: all but partitions that are out, and without a hold. */
static bool
must_renew(const struct wq__redis *e)
{
    return !atomic_load(&e->out) || atomic_load(&e->holds);
}

/* Renew those that are connected, at the same time. */
static void
renew_linked(struct wq__spread *s, bool *tried, wq_err *errs)
{
    bool begun[WQ__PARTS_MAX] = {false};

    for (unsigned p = 0; p < s->n; p++) {
        tried[p] = !must_renew(s->part[p]) || is_linked(s->part[p]);
        errs[p] = WQ_OK;
        if (!tried[p] || !must_renew(s->part[p]))
            continue;
        errs[p] = wq__redis_begin_renewal(s->part[p]);
        begun[p] = !errs[p];
    }
    for (unsigned p = 0; p < s->n; p++)
        if (begun[p])
            errs[p] = wq__redis_end_renewal(s->part[p]);
}

/* Then the others, one after the other, while there is time for another
 * renewal. */
static void
renew_others(struct wq__spread *s, const bool *tried, wq_err *errs)
{
    const int64_t until_ns = wq__time_now() + s->base.lease_ns / 4;

    for (unsigned p = 0; p < s->n; p++) {
        if (tried[p])
            continue;
        errs[p] = wq__time_now() < until_ns
                      ? wq__redis_begin_renewal(s->part[p])
                      : WQ_EAWAY;
        if (!errs[p])
            errs[p] = wq__redis_end_renewal(s->part[p]);
    }
}

/* A partition that was not renewed matters if the shell has holds there: see
 * spread.h for the order of these two. */
static bool
matters(struct wq__redis *e)
{
    atomic_store(&e->out, true);
    return atomic_load(&e->holds);
}

wq_err
wq__spread_renew(struct wq__engine *base)
{
    struct wq__spread *s = wq__spread_of(base);
    const int64_t      session = atomic_load(&s->session);
    bool               tried[WQ__PARTS_MAX];
    wq_err             errs[WQ__PARTS_MAX], err = WQ_OK;
    unsigned           renewed = 0;
    size_t             kept = 0;

    if (atomic_load(&s->unreported))
        return WQ_ELOST;
    renew_linked(s, tried, errs);
    renew_others(s, tried, errs);
    for (unsigned p = 0; p < s->n; p++) {
        if (!errs[p] && must_renew(s->part[p])) {
            renewed++;
            kept += atomic_load(&s->part[p]->base.kept);
        }
        if (errs[p] && matters(s->part[p]) && err != WQ_ELOST)
            err = errs[p];
    }
    if (err)
        return err;
    if (atomic_load(&s->unreported) || atomic_load(&s->session) != session)
        return WQ_ELOST;
    atomic_store(&s->base.kept, kept);
    return renewed ? WQ_OK : WQ_EAWAY;
}

/* ---- reconciling ---------------------------------------------------------- */

/* What is known of the partitions while they are reconciled. */
struct review {
    struct wq__known *known; /* of all partitions, in their order; owned */
    size_t            from[WQ__PARTS_MAX + 1]; /* where those of each begin */
    bool              reached[WQ__PARTS_MAX];
    bool              ended[WQ__PARTS_MAX]; /* its session */
    bool              loses;                /* all holds are lost */
};

static size_t
holds_in(const struct review *r, unsigned p)
{
    return r->from[p + 1] - r->from[p];
}

static wq_err
sort_known(const struct wq__spread *s, const struct wq__known *known, size_t n,
           struct review *r)
{
    size_t len = 0;

    r->known = malloc((n + 1) * sizeof *r->known);
    if (!r->known)
        return WQ_ENOMEM;
    for (unsigned p = 0; p < s->n; p++) {
        r->from[p] = len;
        for (size_t i = 0; i < n; i++)
            if (wq__spread_part(known[i].key, s->n) == p)
                r->known[len++] = known[i];
    }
    r->from[s->n] = len;
    return WQ_OK;
}

/* The number of partitions is stored again, if the server has lost it. If it
 * cannot be reached now, nobody can open the queue with another one either. */
static wq_err
claim(struct wq__spread *s)
{
    const wq_err err = wq__redis_change_session(s->root, 0, "claim");

    wq__wire_close(&s->root->wire, false);
    return err == WQ_EAWAY || err == WQ_EIO ? WQ_OK : err;
}

/* Can it be reached, and does the session live there? */
static wq_err
visit(struct wq__spread *s, unsigned p, struct review *r)
{
    const int64_t begin_ns = wq__time_now();

    if (r->reached[p])
        return WQ_OK;
    if (s->hangs[p] && begin_ns < s->retry_ns[p])
        return WQ_EAWAY;
    const wq_err err = wq__redis_recheck(s->part[p], &r->ended[p]);
    r->reached[p] = !err;
    if (err)
        wq__spread_put_off(s, p, begin_ns);
    return err;
}

/* If one is there again, the others may be, too: connect now. Unless it is a
 * cluster, all are in one server. */
static wq_err
visit_all(struct wq__spread *s, struct review *r)
{
    wq_err   err = WQ_OK;
    unsigned reached = 0;

    for (unsigned p = 0; p < s->n; p++) {
        const wq_err one = visit(s, p, r);
        err = one ? one : err;
        reached += !one;
    }
    for (unsigned p = 0; reached && p < s->n; p++)
        if (!r->reached[p]) {
            s->part[p]->wire.failures = 0;
            s->hangs[p] &= s->root->target.route.kind == WQ__ROUTE_CLUSTER;
            (void)visit(s, p, r);
        }
    return reached ? WQ_OK : err;
}

/* What has ended meanwhile? */
static wq_err
assess(struct wq__spread *s, struct review *r)
{
    bool ended = false;

    r->loses = atomic_load(&s->unreported);
    for (unsigned p = 0; p < s->n; p++)
        if (r->reached[p] && r->ended[p]) {
            ended = true;
            r->loses |= holds_in(r, p) > 0;
        }
    return ended ? claim(s) : WQ_OK;
}

/* The session lives: keys that the shell does not know are given back. */
static wq_err
keep(struct wq__spread *s, unsigned p, const struct review *r)
{
    struct wq__redis *e = s->part[p];
    const wq_err      err = wq__redis_release(e, e->session, false,
                                              r->known + r->from[p], holds_in(r, p));

    if (err || !atomic_load(&e->out))
        return err;
    return wq__redis_change_session(e, e->session, "renew");
}

static wq_err
bring_in(struct wq__spread *s, unsigned p, const struct review *r)
{
    struct wq__redis *e = s->part[p];
    const int64_t     session = atomic_load(&s->session);
    const bool        anew = r->ended[p] || e->session != session;
    const wq_err      err =
        anew ? wq__redis_rejoin(e, session, r->ended[p]) : keep(s, p, r);

    if (err)
        return err;
    atomic_store(&e->holds, r->loses ? 0 : holds_in(r, p));
    atomic_store(&e->out, false);
    atomic_store(&e->has_news, true);
    s->retry_ns[p] = 0;
    s->hangs[p] = false;
    if (anew)
        wq__redis_session_changed(e);
    return WQ_OK;
}

static wq_err
bring_all_in(struct wq__spread *s, const struct review *r)
{
    wq_err err = WQ_EAWAY;
    size_t in = 0;

    for (unsigned p = 0; p < s->n; p++) {
        const int64_t begin_ns = wq__time_now();
        const wq_err  one = r->reached[p] ? bring_in(s, p, r) : WQ_EAWAY;

        if (one == WQ_ELOST) /* just now: the next time it is noticed first */
            return WQ_EAWAY;
        if (!one) {
            in++;
            continue;
        }
        if (r->loses || !holds_in(r, p))
            atomic_store(&s->part[p]->holds, 0);
        if (r->reached[p])
            wq__spread_put_off(s, p, begin_ns);
        err = one;
    }
    return in ? WQ_OK : err;
}

static wq_err
reconcile(struct wq__spread *s, struct review *r)
{
    wq_err err = visit_all(s, r);

    if (!err)
        err = assess(s, r);
    if (!err && r->loses) {
        int64_t id;
        atomic_store(&s->unreported, true);
        err = wq__redis_new_id(&id);
        if (!err)
            atomic_store(&s->session, id);
    }
    return err ? err : bring_all_in(s, r);
}

wq_err
wq__spread_reconcile(struct wq__engine *base, const struct wq__known *known,
                     size_t n, bool *lost)
{
    struct wq__spread *s = wq__spread_of(base);
    struct review      r = {.known = NULL};
    wq_err             err = sort_known(s, known, n, &r);

    if (!err)
        err = reconcile(s, &r);
    free(r.known);
    if (err)
        return err == WQ_EINVAL ? WQ_EAWAY : err;
    s->reconcile_next = false;
    atomic_store(&s->unreported, false);
    *lost = r.loses;
    return WQ_OK;
}

/* ---- sleeping ------------------------------------------------------------- */

void
wq__spread_wait(struct wq__engine *base, int64_t until_ns)
{
    struct wq__spread *s = wq__spread_of(base);

    wq__redis_wait_on(s->part, s->n, until_ns);
}

void
wq__spread_kick(struct wq__engine *base)
{
    wq__redis_kick(&wq__spread_of(base)->part[0]->base);
}

int
wq__spread_fd(struct wq__engine *base)
{
    struct wq__spread *s = wq__spread_of(base);
    struct epoll_event event = {.events = EPOLLIN};

    if (s->news_fd < 0)
        s->news_fd = epoll_create1(EPOLL_CLOEXEC);
    if (s->news_fd < 0)
        return -1;
    for (unsigned p = 0; p < s->n; p++)
        (void)epoll_ctl(s->news_fd, EPOLL_CTL_ADD,
                        wq__redis_fd(&s->part[p]->base), &event);
    return s->news_fd;
}

/* ---- life ----------------------------------------------------------------- */

static void
free_spread(struct wq__spread *s)
{
    if (s->news_fd >= 0)
        (void)close(s->news_fd);
    free(s->copies);
    free(s->keys);
    free(s->index);
    free(s->added);
    free(s->delayed);
    free(s);
}

void
wq__spread_close(struct wq__engine *base, bool forked)
{
    struct wq__spread *s = wq__spread_of(base);

    for (unsigned p = 0; p < s->n; p++)
        wq__redis_close(s->part[p], forked);
    wq__redis_free(s->root, forked);
    free_spread(s);
}

wq_err
wq__spread_open(struct wq__redis *root, struct wq__redis *const *parts,
                int64_t session, struct wq__engine **out)
{
    struct wq__spread *s = calloc(1, sizeof *s);

    if (!s)
        return wq_fail(WQ_ENOMEM, "wq_redis_open: out of memory");
    s->base = (struct wq__engine){.ops = &wq__spread_ops,
                                  .clock = parts[0]->base.clock,
                                  .steady_clock = parts[0]->base.steady_clock,
                                  .distant = true,
                                  .lease_ns = root->base.lease_ns};
    s->n = root->parts;
    s->root = root;
    memcpy(s->part, parts, s->n * sizeof *parts);
    for (unsigned p = 0; p < s->n; p++) {
        s->seen[p].next_ns = WQ_FOREVER;
        s->part[p]->wire.yields = &root->yields; /* it ends after them */
        if (atomic_load(&s->part[p]->out))
            wq__spread_put_off(s, p, wq__time_now() - s->part[p]->tried_ns);
    }
    s->news_fd = -1;
    atomic_init(&s->session, session);
    *out = &s->base;
    return WQ_OK;
}
