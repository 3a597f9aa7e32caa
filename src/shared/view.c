/* SPDX-License-Identifier: MIT */
/* view.c: what can programs and event loops see of a shared queue? */
#include <errno.h>
#include <string.h>

#include "core/copies.h"
#include "core/mem.h"
#include "shared/call.h"
#include "shared/shared.h"
#include "text/text.h"

/* ---- numbers ------------------------------------------------------------- */

wq_err
wq__shared_len(wq_queue *q, size_t *out)
{
    struct wq__shared *s = wq__shared_of(q);
    const wq_err       err = wq__shared_run(s, NULL);

    if (err)
        return err;
    wq__shared_enter(s);
    *out = s->seen.ready;
    wq__lock_release(&s->lock);
    return WQ_OK;
}

void
wq__shared_add_own_stats(struct wq__shared *s, wq_stats *out)
{
    out->sleeping = s->getters.len;
    out->shutting_down = atomic_load_explicit(&s->closed, memory_order_relaxed);
    out->paused = s->paused;
    out->offered = s->paused ? 0 : out->ready;
    out->adds = s->did.adds;
    out->merged = s->did.merged;
    out->retries = s->retries;
    out->gets = s->did.gets;
    out->dones = s->did.dones;
    out->removed = s->did.removed;
    out->deferred = s->did.deferred;
    out->drops = s->drops + s->did.drops;
    out->lost = s->lost;
    out->expired = s->did.expired;
    out->connects = s->session + 1;
}

wq_err
wq__shared_stats(wq_queue *q, wq_stats *out)
{
    struct wq__op op = {.kind = WQ__OP_STATS, .as.stats = out};

    (void)wq__shared_run(wq__shared_of(q), &op);
    return op.err;
}

wq_err
wq__shared_depths(wq_queue *q, wq_depth *out, size_t max, size_t *n)
{
    struct wq__op op = {.kind = WQ__OP_DEPTHS};

    op.as.depths.out = out;
    op.as.depths.max = max;
    op.as.depths.n = n;
    (void)wq__shared_run(wq__shared_of(q), &op);
    return op.err;
}

wq_err
wq__shared_key_info(wq_queue *q, wq_key key, wq_key_info *out)
{
    struct wq__op op = {
        .kind = WQ__OP_KEY_INFO,
        .as.one = {.key = key, .info = out},
    };

    (void)wq__shared_run(wq__shared_of(q), &op);
    return op.err;
}

const char *
wq__shared_name(wq_queue *q)
{
    return wq__shared_of(q)->name;
}

/* ---- all keys ------------------------------------------------------------ */

static bool
visit_all(const struct wq__copies *b, wq_visit visit, void *ctx)
{
    for (size_t i = 0; i < b->len; i++)
        if (!visit(ctx, b->keys[i], &b->infos[i]))
            return false;
    return true;
}

/* Keys that the store has found are copied, and visited without it. */
static bool
keep(void *ctx, wq_key key, const wq_key_info *info)
{
    struct wq__copies *b = ctx;

    if (!wq__copies_have_space(b))
        return false;
    wq__copies_add(b, key, info);
    return true;
}

wq_err
wq__shared_each(wq_queue *q, unsigned states, wq_visit visit, void *ctx)
{
    struct wq__shared *s = wq__shared_of(q);
    struct wq__copies *b = wq__mem_alloc(&s->mem, sizeof *b);
    struct wq__op      op = {
             .kind = WQ__OP_WALK,
             .as.walk = {.states = states, .found = keep, .ctx = b},
    };
    bool more = true;

    if (!b)
        return WQ_ENOMEM;
    while (more) {
        wq__copies_clear(b);
        (void)wq__shared_run(s, &op);
        more = !op.err && visit_all(b, visit, ctx) && !op.as.walk.ended;
    }
    wq__mem_free(&s->mem, b, sizeof *b);
    return op.err;
}

/* ---- the check ----------------------------------------------------------- */

/* Problems that the store has found are kept one after the other, each with its
 * NUL: the callback hears of them without a lock of the store. */
static void
keep_problem(void *ctx, const char *text)
{
    wq__text_add(ctx, text, strlen(text) + 1);
}

wq_err
wq__shared_check_store(wq_queue *q, wq_problem problem, void *ctx)
{
    struct wq__shared *s = wq__shared_of(q);
    struct wq__text    found;
    struct wq__op      op = {
             .kind = WQ__OP_CHECK,
             .as.check = {.problem = keep_problem, .ctx = &found},
    };

    wq__text_init(&found, &s->mem);
    (void)wq__shared_run(s, &op);
    const wq_err err = op.err ? op.err : found.err;
    for (size_t at = 0; !err && at < found.len;
         at += strlen(found.data + at) + 1)
        problem(ctx, found.data + at);
    wq__text_fini(&found);
    return err;
}

/* ---- event loops --------------------------------------------------------- */

void
wq__shared_stop_watching(struct wq__shared *s)
{
    if (s->watched)
        wq__clock_unwatch(s->clock, &s->watch);
    s->watched = false;
}

int
wq__shared_fd(wq_queue *q)
{
    struct wq__shared *s = wq__shared_of(q);
    struct wq__engine *e = s->engine;

    if (wq__shared_is_foreign(s)) {
        errno = EPERM;
        return -1;
    }
    wq__shared_enter(s);
    const bool first = !s->watched;
    int        theirs = -1;
    wq__lock_release(&s->lock);
    if (first) { /* later batches keep it right */
        (void)wq__shared_run(s, NULL);
        theirs = wq__engine_fd(e);
    }
    wq__shared_enter(s);
    if (!s->watched && !wq__beacon_init(&s->beacon, s->clock->timer)) {
        s->watched = theirs < 0 || !wq__beacon_include(&s->beacon, theirs);
        s->watch.beacon = &s->beacon;
        if (!s->watched)
            wq__beacon_fini(&s->beacon);
    }
    const int cause = errno;
    const int fd = s->watched ? wq__beacon_fd(&s->beacon) : -1;
    wq__shared_leave(s); /* lights the beacon, if there is work */
    errno = cause;
    return fd;
}
