/* SPDX-License-Identifier: MIT */
/* view.c: what can programs and event loops see of a delaying layer?
 *
 * What the inner queue shows, and in addition the deadlines of the layer. The
 * two are read one after the other: together they are not a snapshot.
 */
#include <errno.h>

#include "core/mem.h"
#include "layer/delaying.h"

/* ---- numbers ------------------------------------------------------------ */

wq_err
wq__delaying_len(wq_queue *q, size_t *out)
{
    struct wq__delaying *d = wq__delaying_begin(q);

    (void)wq__delaying_pass_on(d);
    return wq__delaying_end(d,
                            d->layer.inner->backend->len(d->layer.inner, out));
}

wq_err
wq__delaying_depths(wq_queue *q, wq_depth *out, size_t max, size_t *n)
{
    struct wq__delaying *d = wq__delaying_begin(q);

    (void)wq__delaying_pass_on(d);
    return wq__delaying_end(
        d, WQ__CALL(d->layer.inner, depths, (d->layer.inner, out, max, n)));
}

static int64_t
earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* What the layer adds to the stats of the inner queue. */
static wq_stats
read_own(struct wq__delaying *d)
{
    wq_stats own = {.size = sizeof own};

    wq__delaying_enter(d);
    wq__core_stats(&d->core, d->clock->now(d->clock), &own);
    if (!wq__core_idle(&d->core))
        own.next_ns = 0;
    own.waiting = own.known; /* also those that are due */
    own.retries = d->retries;
    own.merged += d->merged;
    own.deferred = d->deferred;
    own.drops += d->drops;
    wq__delaying_leave(d);
    return own;
}

wq_err
wq__delaying_check(wq_queue *q, wq_problem problem, void *ctx)
{
    struct wq__delaying *d = wq__delaying_begin(q);

    wq__delaying_enter(d);
    const char *broken = wq__core_check(&d->core);
    wq__delaying_leave(d);
    if (broken)
        problem(ctx, broken);
    return wq__delaying_end(d, wq_check(d->layer.inner, problem, ctx));
}

/* A key that is deferred leaves the inner queue by a remove. The layer counts
 * it after that, and is read first: so `removed` does not fall below 0. */
static wq_err
read_stats(struct wq__delaying *d, wq_stats *out)
{
    (void)wq__delaying_pass_on(d);
    const wq_stats own = read_own(d);
    const wq_err   err = d->layer.inner->backend->stats(d->layer.inner, out);

    if (err)
        return err;
    out->waiting += own.waiting;
    out->known += own.known;
    out->next_ns = earlier(out->next_ns, own.next_ns);
    out->merged += own.merged;
    out->retries += own.retries;
    out->removed -= own.deferred;
    out->deferred += own.deferred;
    out->drops += own.drops;
    return WQ_OK;
}

wq_err
wq__delaying_stats(wq_queue *q, wq_stats *out)
{
    if (!WQ_HAS_VERB(wq__layer_inner(q), stats))
        return WQ_ENOTSUP;

    struct wq__delaying *d = wq__delaying_begin(q);
    return wq__delaying_end(d, read_stats(d, out));
}

/* ---- keys --------------------------------------------------------------- */

/* All states, as those of the core of a layer: any key in it. */
enum {
    ANY_STATE = WQ_STATE_READY | WQ_STATE_HELD | WQ_STATE_DIRTY |
                WQ_STATE_WAITING | WQ_STATE_BACKOFF
};

/* Add to `info`, which the inner queue filled in, what the core of the layer
 * shows: `own`. */
static void
combine(wq_key_info *info, const wq_key_info *own)
{
    const unsigned due = WQ_STATE_READY | WQ_STATE_HELD;
    const int64_t  wait_ns = own->states & due ? 0 : own->wait_ns;

    if (!own->states)
        return;
    if (!(info->states & (WQ_STATE_READY | WQ_STATE_DIRTY)))
        info->priority = own->priority;
    info->wait_ns =
        info->wait_ns < 0 ? wait_ns : earlier(info->wait_ns, wait_ns);
    info->states |= WQ_STATE_WAITING | (own->states & WQ_STATE_BACKOFF);
}

/* What the core of the layer shows of `key`. */
static wq_key_info
look_up(struct wq__delaying *d, wq_key key)
{
    const uint32_t hash = wq__core_hash(&d->core, key);
    wq_key_info    own = {.size = sizeof own};

    wq__delaying_enter(d);
    wq__core_key_info(&d->core, key, hash, d->clock->now(d->clock), &own);
    wq__delaying_leave(d);
    return own;
}

wq_err
wq__delaying_key_info(wq_queue *q, wq_key key, wq_key_info *out)
{
    if (!WQ_HAS_VERB(wq__layer_inner(q), key_info))
        return WQ_ENOTSUP;

    struct wq__delaying *d = wq__delaying_begin(q);
    wq_key_info          info = *out;

    (void)wq__delaying_pass_on(d);
    const wq_err err =
        d->layer.inner->backend->key_info(d->layer.inner, key, &info);
    if (!err) {
        const wq_key_info own = look_up(d, key);
        combine(&info, &own);
        *out = info;
    }
    return wq__delaying_end(d, err);
}

/* ---- all keys ----------------------------------------------------------- */

/* A walk: first over the keys of the inner queue, which may be out of memory;
 * then over the other keys of the layer, which are copied under the lock and
 * visited without it. */
struct walk {
    struct wq__delaying *d;
    unsigned             states; /* to visit */
    wq_visit             visit;
    void                *ctx;
    bool                 over;  /* a visit ended it */
    wq__ref              place; /* in the core of the layer */
    struct wq__copies    own;   /* the next keys of the layer */
};

/* With the lock: copy the next keys. False: there are no more. */
static bool
copy_some(struct walk *w)
{
    struct wq__delaying *d = w->d;

    return wq__core_copy_some(&d->core, &w->place, ANY_STATE,
                              d->clock->now(d->clock), &w->own);
}

static bool
visit_if_wanted(struct walk *w, wq_key key, const wq_key_info *info)
{
    if (info->states & w->states)
        w->over = !w->visit(w->ctx, key, info);
    return !w->over;
}

/* A key of the inner queue. */
static bool
visit_inner_key(void *walk, wq_key key, const wq_key_info *info)
{
    struct walk      *w = walk;
    wq_key_info       both = *info;
    const wq_key_info own = look_up(w->d, key);

    combine(&both, &own);
    return visit_if_wanted(w, key, &both);
}

/* A key of the layer: visit it unless it is one of the inner queue's, too. */
static void
visit_own_key(struct walk *w, wq_key key, const wq_key_info *own)
{
    wq_queue   *inner = w->d->layer.inner;
    wq_key_info info = {.size = sizeof info};

    if (inner->backend->key_info(inner, key, &info) == WQ_OK && info.states)
        return;
    info.ready_ns = info.held_ns = info.wait_ns = -1;
    combine(&info, own);
    (void)visit_if_wanted(w, key, &info);
}

static void
visit_own(struct walk *w)
{
    bool more = true;

    while (!w->over && more) {
        wq__delaying_enter(w->d);
        more = copy_some(w);
        wq__delaying_leave(w->d);
        for (size_t i = 0; !w->over && i < w->own.len; i++)
            visit_own_key(w, w->own.keys[i], &w->own.infos[i]);
    }
}

/* A key may have a state of its own in the layer, so all keys of the inner
 * queue are looked at. */
static wq_err
walk_all(struct walk *w)
{
    wq_queue *inner = w->d->layer.inner;

    (void)wq__delaying_pass_on(w->d);
    const wq_err err =
        inner->backend->each(inner, ANY_STATE, visit_inner_key, w);
    if (!err)
        visit_own(w);
    return err;
}

static struct walk *
alloc_walk(struct wq__delaying *d)
{
    wq__delaying_enter(d);
    struct walk *w = wq__mem_alloc(&d->mem, sizeof *w);
    wq__delaying_leave(d);
    return w;
}

static void
free_walk(struct wq__delaying *d, struct walk *w)
{
    wq__delaying_enter(d);
    wq__mem_free(&d->mem, w, sizeof *w);
    wq__delaying_leave(d);
}

static wq_err
visit_each(struct wq__delaying *d, unsigned states, wq_visit visit, void *ctx)
{
    struct walk *w = alloc_walk(d);

    if (!w)
        return WQ_ENOMEM;
    w->d = d;
    w->states = states;
    w->visit = visit;
    w->ctx = ctx;
    w->over = false;
    w->place = 0;
    const wq_err err = walk_all(w);
    free_walk(d, w);
    return err;
}

wq_err
wq__delaying_each(wq_queue *q, unsigned states, wq_visit visit, void *ctx)
{
    const wq_queue *inner = wq__layer_inner(q);
    if (!WQ_HAS_VERB(inner, each) || !WQ_HAS_VERB(inner, key_info))
        return WQ_ENOTSUP;

    struct wq__delaying *d = wq__delaying_begin(q);
    return wq__delaying_end(d, visit_each(d, states, visit, ctx));
}

/* ---- event loops -------------------------------------------------------- */

/* Is it open? */
static bool
has_fd(struct wq__delaying *d)
{
    wq__delaying_enter(d);
    const bool open = d->watch.beacon;
    wq__delaying_leave(d);
    return open;
}

/* With the lock: make a beacon that is readable when `inner_fd` is. */
static wq_err
open_beacon(struct wq__delaying *d, int inner_fd)
{
    if (d->watch.beacon) /* another thread was faster */
        return WQ_OK;
    wq_err err = wq__beacon_init(&d->beacon, d->clock->timer);
    if (!err)
        err = wq__beacon_include(&d->beacon, inner_fd);
    if (!err)
        d->watch.beacon = &d->beacon;
    else
        wq__beacon_fini(&d->beacon);
    return err;
}

static int
open_fd(struct wq__delaying *d)
{
    wq_queue *inner = d->layer.inner;

    if (has_fd(d))
        return wq__beacon_fd(&d->beacon);
    (void)wq__delaying_pass_on(d);
    const int inner_fd = inner->backend->fd(inner);
    if (inner_fd < 0)
        return -1;
    wq__delaying_enter(d);
    const wq_err err = open_beacon(d, inner_fd);
    const int    cause = errno;
    wq__delaying_leave(d); /* sets the beacon to the next deadline */
    errno = cause;
    return err ? -1 : wq__beacon_fd(&d->beacon);
}

int
wq__delaying_fd(wq_queue *q)
{
    if (!WQ_HAS_VERB(wq__layer_inner(q), fd)) {
        errno = ENOSYS;
        return -1;
    }
    struct wq__delaying *d = wq__delaying_begin(q);
    const int            fd = open_fd(d);

    (void)wq__delaying_end(d, WQ_OK);
    return fd;
}

void
wq__delaying_close_fd(struct wq__delaying *d)
{
    if (d->watch.beacon)
        wq__clock_unwatch(d->clock, &d->watch);
}
