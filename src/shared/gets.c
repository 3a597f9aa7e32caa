/* SPDX-License-Identifier: MIT */
/* gets.c: how does a thread get keys, and wait for them? */
#include "shared/gets.h"

#include "port/thread_mark.h"
#include "shared/finish.h"
#include "shared/report.h"

/* ---- one try ------------------------------------------------------------- */

static struct wq__hold *
hold_of(wq_item *item)
{
    return (struct wq__hold *)(void *)item; /* its first member */
}

/* The engine hands out a key: copy it. Called in the middle of a batch, by the
 * thread that leads. */
static wq_err
take(void *ctx, const struct wq__handed *handed)
{
    struct wq__getting *g = ctx;

    wq__shared_enter(g->s);
    struct wq__hold *hold = wq__holds_take(&g->s->holds, handed);
    wq__lock_release(&g->s->lock);
    if (!hold)
        return WQ_ENOMEM;
    g->out[g->n++] = &hold->item;
    return WQ_OK;
}

void
wq__getting_begin(struct wq__getting *g, struct wq__shared *s, wq_item **out,
                  size_t max, struct wq__op *op)
{
    *g = (struct wq__getting){
        .s = s, .out = out, .holder = wq__thread_mark_serial()};
    *op = (struct wq__op){
        .kind = WQ__OP_GET,
        .as.get = {.max = max, .take = take, .ctx = g},
    };
}

void
wq__getting_end(struct wq__shared *s, struct wq__getting *g, wq_err err)
{
    const int64_t now = s->times ? s->clock->stopwatch(s->clock) : 0;

    for (size_t i = 0; i < g->n; i++) {
        struct wq__hold *hold = hold_of(g->out[i]);

        if (err) {
            wq__holds_end(&s->holds, hold);
            g->out[i] = NULL;
        } else {
            hold->holder = g->holder;
            wq__holds_lend(&s->holds, hold, now);
        }
    }
    if (err)
        g->n = 0;
}

/* Take what is READY. WQ_ENOTFOUND: nothing is. */
static wq_err
try_get(struct wq__shared *s, wq_item **out, size_t max, size_t *n)
{
    struct wq__getting g;
    struct wq__op      op;

    wq__getting_begin(&g, s, out, max, &op);
    (void)wq__shared_run(s, &op);
    if (op.err == WQ_EIO) /* a key may be on loan to nobody: give it back */
        (void)wq__shared_run(s, NULL);
    if (op.err)
        return op.err;
    *n = g.n;
    return g.n ? WQ_OK : WQ_ENOTFOUND;
}

/* ---- waiting ------------------------------------------------------------- */

/* With the lock: may this getter look again without sleeping? */
static bool
has_work(const struct wq__shared *s)
{
    return s->seen.ready > s->woken && !s->paused;
}

/* With the lock: must this getter return, or look again (WQ_OK)? WQ_ENOTFOUND:
 * neither; it may sleep. */
static wq_err
reason_not_to_sleep(struct wq__shared *s, int64_t timeout_ns,
                    int64_t deadline_ns)
{
    if (s->destroying)
        return WQ_ESHUTDOWN;
    if (has_work(s))
        return WQ_OK;
    if (atomic_load_explicit(&s->closed, memory_order_relaxed))
        return WQ_ESHUTDOWN;
    if (timeout_ns == 0 || wq__shared_is_past(s, deadline_ns))
        return WQ_ETIMEDOUT;
    if (s->interrupted) {
        s->interrupted = false;
        return WQ_EINTERRUPTED;
    }
    return WQ_ENOTFOUND;
}

/* With the lock, after a look that found nothing: sleep until there may be a
 * key. WQ_OK: look again. */
static wq_err
await_key(struct wq__shared *s, int64_t timeout_ns, int64_t deadline_ns)
{
    enum wq__wake why;

    do {
        const wq_err err = reason_not_to_sleep(s, timeout_ns, deadline_ns);
        if (err != WQ_ENOTFOUND)
            return err;
        why = wq__shared_sleep(s, &s->getters, deadline_ns);
    } while (why == WQ__WAKE_LISTEN);
    return why == WQ__WAKE_INTERRUPT ? WQ_EINTERRUPTED : WQ_OK;
}

/* With the lock, which is released meanwhile: look at the store, and take what
 * is READY unless the handle is paused. */
static wq_err
look(struct wq__shared *s, wq_item **out, size_t max, size_t *n)
{
    if (s->destroying)
        return WQ_ESHUTDOWN;
    const bool paused = s->paused;
    wq__lock_release(&s->lock);
    const wq_err err =
        paused ? wq__shared_run(s, NULL) : try_get(s, out, max, n);
    wq__shared_enter(s);
    return paused && !err ? WQ_ENOTFOUND : err;
}

/* With the lock: keys that came while the handle is being destroyed go back to
 * the store when its session ends. */
static wq_err
refuse_when_destroying(struct wq__shared *s, wq_item **out, size_t n)
{
    if (!s->destroying)
        return WQ_OK;
    for (size_t i = 0; i < n; i++)
        wq__holds_end(&s->holds, hold_of(out[i]));
    return WQ_ESHUTDOWN;
}

/* With the lock, which is released meanwhile, before wq_destroy() may free the
 * handle. */
static void
report_latencies(struct wq__shared *s, wq_item **out, size_t n)
{
    if (!s->sinks_len)
        return;
    wq__lock_release(&s->lock);
    for (size_t i = 0; i < n; i++)
        wq__shared_report_latency(s, hold_of(out[i])->waited_ns);
    wq__shared_enter(s);
}

/* `looked`: the caller has just found nothing. */
static wq_err
get(struct wq__shared *s, wq_item **out, size_t max, int64_t timeout_ns,
    size_t *n, bool looked)
{
    const int64_t deadline_ns = wq__shared_deadline(s, timeout_ns);
    wq_err        err = looked ? WQ_ENOTFOUND : WQ_OK;

    wq__shared_enter(s);
    wq__shared_begin_blocking(s);
    if (!looked)
        err = look(s, out, max, n);
    while (err == WQ_ENOTFOUND) {
        err = await_key(s, timeout_ns, deadline_ns);
        if (!err)
            err = look(s, out, max, n);
    }
    if (!err)
        report_latencies(s, out, *n);
    if (!err)
        err = refuse_when_destroying(s, out, *n);
    wq__shared_end_blocking(s);
    return err;
}

wq_err
wq__shared_get_many(wq_queue *q, wq_item **out, size_t max, int64_t timeout_ns,
                    size_t *n)
{
    struct wq__shared *s = wq__shared_of(q);
    size_t             got = 0;

    if (wq__shared_is_foreign(s))
        return WQ_ESTATE;
    const wq_err err = get(s, out, max, timeout_ns, &got, false);
    if (!err)
        *n = got;
    return err;
}

wq_err
wq__shared_get(wq_queue *q, int64_t timeout_ns, wq_item **out)
{
    wq_item     *item = NULL;
    size_t       n;
    const wq_err err = wq__shared_get_many(q, &item, 1, timeout_ns, &n);

    if (!err)
        *out = item;
    return err;
}

/* ---- resume -------------------------------------------------------------- */

static bool
is_lent(struct wq__shared *s, wq_key key)
{
    wq__shared_enter(s);
    const bool lent = wq__holds_find_key(&s->holds, key, 0);
    wq__lock_release(&s->lock);
    return lent;
}

wq_err
wq__shared_resume_hold(wq_queue *q, int64_t from, wq_key key, wq_item **out)
{
    struct wq__shared *s = wq__shared_of(q);
    struct wq__getting g;
    struct wq__op      op;
    wq_item           *item = NULL;

    if (is_lent(s, key))
        return WQ_ESTATE;
    wq__getting_begin(&g, s, &item, 1, &op);
    op.kind = WQ__OP_RESUME;
    op.as.get.key = key;
    op.as.get.from = from;
    (void)wq__shared_run(s, &op);
    if (!op.err)
        *out = item;
    return op.err;
}

/* ---- next ---------------------------------------------------------------- */

/* May the get be part of the batch that ends the old hold? */
static bool
may_look(struct wq__shared *s)
{
    wq__shared_enter(s);
    const bool may = !s->paused && !s->destroying;
    wq__lock_release(&s->lock);
    return may;
}

/* The finish and the get are one batch. If the get finds nothing, it waits by
 * itself. WQ_ELOST with *item NULL: the key was lost, and the caller decides
 * about the get. */
static wq_err
next(struct wq__shared *s, wq_result result, int64_t timeout_ns, wq_item **item)
{
    struct wq__getting g;
    struct wq__op      op;
    wq_item           *got = NULL;
    size_t             n = 0;

    if (wq__shared_is_foreign(s))
        return WQ_ESTATE;
    const bool looks = may_look(s);
    wq__getting_begin(&g, s, &got, 1, &op);
    op.err = WQ_ESTATE; /* until it is carried out */
    wq_err err = wq__shared_finish_then(s, item, result, looks ? &op : NULL);
    if (*item || err == WQ_ELOST || err == WQ_ESTATE)
        return err;
    if (!op.err && g.n) {
        wq__shared_report_latency(s, hold_of(got)->waited_ns);
        *item = got;
        return WQ_OK;
    }
    err = get(s, &got, 1, timeout_ns, &n, !op.err);
    if (!err)
        *item = got;
    return err;
}

wq_err
wq__shared_next_with(wq_queue *q, wq_result result, int64_t timeout_ns,
                     wq_item **item)
{
    return next(wq__shared_of(q), result, timeout_ns, item);
}

wq_err
wq__shared_next(wq_queue *q, int64_t timeout_ns, wq_item **item)
{
    wq_item *const old = *item;

    if (old) {
        const wq_err err =
            next(wq__shared_of(q), wq__result_end(), timeout_ns, item);
        if (err == WQ_ESTATE) /* the done failed: *item is unchanged */
            *item = old;
        if (err != WQ_ELOST)
            return err;
    }
    return wq__shared_get(q, timeout_ns, item);
}
