/* SPDX-License-Identifier: MIT */
/* view.c: what can programs and event loops see of a shared queue? */
#include <errno.h>
#include <string.h>

#include "core/copies.h"
#include "core/mem.h"
#include "shared/call.h"
#include "shared/shared.h"

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

/* Problems that the store has found, one after the other, each with its NUL:
 * the callback hears of them without a lock of the store. */
struct problems {
    const wq_allocator *mem;
    char               *text;
    size_t              len, cap;
    bool                no_memory;
};

static bool
make_space(struct problems *p, size_t n)
{
    const size_t cap = 2 * (p->cap + n);

    if (n <= p->cap - p->len)
        return true;
    char *more = wq__mem_alloc(p->mem, cap);
    if (!more)
        return false;
    if (p->text) {
        memcpy(more, p->text, p->len);
        wq__mem_free(p->mem, p->text, p->cap);
    }
    p->text = more;
    p->cap = cap;
    return true;
}

static void
keep_problem(void *ctx, const char *text)
{
    struct problems *p = ctx;
    const size_t     n = strlen(text) + 1;

    if (!make_space(p, n)) {
        p->no_memory = true;
        return;
    }
    memcpy(p->text + p->len, text, n);
    p->len += n;
}

wq_err
wq__shared_check_store(wq_queue *q, wq_problem problem, void *ctx)
{
    struct wq__shared *s = wq__shared_of(q);
    struct problems    p = {.mem = &s->mem};
    struct wq__op      op = {
             .kind = WQ__OP_CHECK,
             .as.check = {.problem = keep_problem, .ctx = &p},
    };

    (void)wq__shared_run(s, &op);
    const wq_err err = op.err ? op.err : p.no_memory ? WQ_ENOMEM : WQ_OK;
    for (size_t at = 0; !err && at < p.len; at += strlen(p.text + at) + 1)
        problem(ctx, p.text + at);
    if (p.text)
        wq__mem_free(p.mem, p.text, p.cap);
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
