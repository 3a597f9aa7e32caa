/* SPDX-License-Identifier: MIT */
/* finish.c: how does a hold end?
 *
 * A finish is one operation of the store: it compares the fence, does what the
 * result says, and ends the hold, or it does nothing. wq_done() is a finish
 * with the result DROP, which only ends the hold.
 *
 *   answer               the loan
 *   WQ_OK, WQ_EGIVENUP   has ended
 *   WQ_ELOST             has ended. If an earlier finish of it was not answered,
 *                        that one has happened: only a finish of its own ends a
 *                        hold of a session that lives. Then the answer is WQ_OK
 *   WQ_EIO               goes on; from now on it is in doubt
 *   others               goes on
 *
 * A hold that was lost has ended in the store: there is nothing to ask.
 */
#include "shared/finish.h"

#include "core/mem.h"
#include "core/span.h"
#include "port/thread_mark.h"
#include "shared/report.h"

/* One item of a finish. */
struct ending {
    struct wq__op    op;
    struct wq__hold *hold;  /* NULL: it is not on loan */
    bool             drops; /* the key is dropped, if the hold ends */
    wq_err           err;
};

/* With the lock: begin to end `hold`; NULL, or ENDING: it is not on loan. */
static void
begin(struct wq__hold *hold, wq_result result, struct ending *e)
{
    *e = (struct ending){.err = WQ_ESTATE};
    if (!hold || hold->state == WQ__HOLD_ENDING)
        return;
    hold->state = WQ__HOLD_ENDING;
    e->hold = hold;
    e->drops = result.outcome == WQ_RESULT_DROP;
    e->err = hold->lost ? WQ_ELOST : WQ_OK;
    if (result.outcome == WQ__OUTCOME_END)
        result.outcome = WQ_RESULT_DROP;
    e->op = (struct wq__op){
        .kind = WQ__OP_FINISH,
        .as.finish = {.key = hold->item.key,
                      .fence = hold->item.fence,
                      .result = result,
                      .delayed = -1},
    };
}

/* With the lock: holds that are not certain any more are lost first. */
static void
expire(struct wq__shared *s)
{
    if (s->engine->lease_ns)
        wq__shared_expire(s, s->steady_clock->now(s->steady_clock));
}

/* Begin all of them. `results` NULL: each with the result `all`. wq_done_many()
 * ends all or none: if one is not on loan, or is there twice, this returns false,
 * and nothing has begun. */
static bool
begin_all(struct wq__shared *s, wq_item *const *items, const wq_result *results,
          wq_result all, struct ending *endings, size_t n)
{
    const bool all_or_none = !results && all.outcome == WQ__OUTCOME_END;
    bool       lent = true;

    wq__shared_enter(s);
    expire(s);
    for (size_t i = 0; i < n; i++) {
        begin(wq__holds_find(&s->holds, items[i]), results ? results[i] : all,
              &endings[i]);
        lent &= endings[i].hold != NULL;
    }
    for (size_t i = 0; all_or_none && !lent && i < n; i++)
        if (endings[i].hold)
            endings[i].hold->state = WQ__HOLD_LENT;
    wq__lock_release(&s->lock);
    return lent || !all_or_none;
}

/* After this answer the item is not on loan any more. */
static bool
has_ended(wq_err err)
{
    return err == WQ_OK || err == WQ_EGIVENUP || err == WQ_ELOST ||
           err == WQ_ESTATE;
}

/* With the lock: what the answer means for the loan. True: it has ended. */
static bool
judge(struct wq__shared *s, struct ending *e)
{
    struct wq__hold *hold = e->hold;

    if (!e->err) { /* the store was asked */
        e->err = e->op.err;
        if (e->err == WQ_ELOST && hold->in_doubt && !hold->lost)
            e->err = WQ_OK;
        else if (hold->lost && e->err != WQ_OK && e->err != WQ_EGIVENUP)
            e->err = WQ_ELOST;
    }
    if (e->err == WQ_ELOST)
        wq__shared_lose(s, hold);
    if (has_ended(e->err))
        return true;
    hold->state = WQ__HOLD_LENT;
    hold->in_doubt |= e->err == WQ_EIO;
    return false;
}

/* Will the key run again after a delay? Unknown outcomes are retries. */
static bool
is_retry(const struct ending *e)
{
    const wq_result result = e->op.as.finish.result;

    if (e->err != WQ_OK)
        return false;
    switch (result.outcome) {
    case WQ_RESULT_DONE:
    case WQ_RESULT_DROP:
    case WQ_RESULT_BACK:
    case WQ_RESULT_BURY:
        return false;
    case WQ_RESULT_AFTER:
        return result.after_ns > 0;
    case WQ_RESULT_RETRY:
    default:
        return true;
    }
}

/* With the lock: is there a callback or a sink to call? */
static bool
is_reported(const struct wq__shared *s, const struct ending *e)
{
    return s->sinks_len || s->to_report || e->err == WQ_EGIVENUP;
}

/* Without the lock, before the hold ends: callbacks read its key, and what a
 * drain waits for is reported when it returns. */
static void
report(struct wq__shared *s, const struct ending *e, int64_t now)
{
    if (e->err == WQ_EGIVENUP && s->on_drop)
        s->on_drop(s->drop_ctx, e->hold->item.key, e->op.as.finish.retries,
                   WQ_EGIVENUP);
    wq__shared_report_lost(s);
    if (is_retry(e) && e->op.as.finish.delayed >= 0)
        wq__shared_report_limited(s, e->op.as.finish.delayed);
    if (e->err != WQ_ELOST)
        wq__shared_report_work(s, wq__span_between(e->hold->got_ns, now));
}

static void
end(struct wq__shared *s, struct ending *e)
{
    const int64_t now = wq__shared_stamp(s);

    wq__shared_enter(s);
    const bool ended = e->hold && judge(s, e);
    s->retries += ended && is_retry(e);
    s->drops += ended && e->drops && e->err == WQ_OK;
    if (ended && is_reported(s, e)) {
        wq__lock_release(&s->lock);
        report(s, e, now);
        wq__shared_enter(s);
    }
    if (ended)
        wq__shared_end_hold(s, e->hold);
    wq__shared_leave(s);
    if (ended)
        wq__shared_report_changes(s);
}

/* The operations of those that the store is asked about, and then `then`, which
 * may be NULL. */
static struct wq__op *
link_ops(struct ending *endings, size_t n, struct wq__op *then)
{
    struct wq__op *first = NULL, **last = &first;

    for (size_t i = 0; i < n; i++)
        if (!endings[i].err) {
            *last = &endings[i].op;
            last = &endings[i].op.next;
        }
    *last = then;
    return first;
}

/* Carry out what has begun. Returns the first error. */
static wq_err
conclude(struct wq__shared *s, struct ending *endings, size_t n,
         struct wq__op *then)
{
    struct wq__op *ops = link_ops(endings, n, then);
    wq_err         first = WQ_OK;

    if (ops)
        (void)wq__shared_run(s, ops);
    for (size_t i = 0; i < n; i++) {
        end(s, &endings[i]);
        if (!first)
            first = endings[i].err;
    }
    return first;
}

wq_err
wq__shared_finish_then(struct wq__shared *s, wq_item **item, wq_result result,
                       struct wq__op *then)
{
    struct ending one;

    (void)begin_all(s, item, &result, result, &one, 1);
    if (then)
        then->as.get.unless_failed = &one.op;
    const wq_err err = conclude(s, &one, 1, one.err ? NULL : then);
    if (has_ended(err))
        *item = NULL;
    return err;
}

/* ---- several ------------------------------------------------------------- */

enum { AT_HAND = 8 }; /* on the stack: some 1.5 KiB */

static wq_err
fail_all(wq_err *errs, size_t n, wq_err err)
{
    for (size_t i = 0; errs && i < n; i++)
        errs[i] = err;
    return err;
}

/* `results` and `errs` may be NULL. */
static wq_err
finish_all(struct wq__shared *s, wq_item **items, const wq_result *results,
           wq_result all, wq_err *errs, struct ending *endings, size_t n)
{
    if (!begin_all(s, items, results, all, endings, n))
        return WQ_ESTATE;
    const wq_err err = conclude(s, endings, n, NULL);
    for (size_t i = 0; i < n; i++) {
        if (errs)
            errs[i] = endings[i].err;
        if (has_ended(endings[i].err))
            items[i] = NULL;
    }
    return err;
}

static wq_err
finish_many(struct wq__shared *s, wq_item **items, const wq_result *results,
            wq_result all, wq_err *errs, size_t n)
{
    struct ending  at_hand[AT_HAND];
    struct ending *endings = at_hand;

    if (wq__shared_is_foreign(s))
        return fail_all(errs, n, WQ_ESTATE);
    if (n > AT_HAND)
        endings = wq__mem_array(&s->mem, n, sizeof *endings);
    if (!endings)
        return fail_all(errs, n, WQ_ENOMEM);
    const wq_err err = finish_all(s, items, results, all, errs, endings, n);
    if (endings != at_hand)
        wq__mem_free(&s->mem, endings, n * sizeof *endings);
    return err;
}

wq_err
wq__shared_finish(wq_queue *q, wq_item **items, const wq_result *results,
                  wq_err *errs, size_t n)
{
    return finish_many(wq__shared_of(q), items, results, wq_result_done(), errs,
                       n);
}

/* ---- done ---------------------------------------------------------------- */

wq_err
wq__shared_done(wq_queue *q, wq_item *item)
{
    struct wq__shared *s = wq__shared_of(q);

    if (wq__shared_is_foreign(s))
        return WQ_ESTATE;
    return wq__shared_finish_then(s, &item, wq__result_end(), NULL);
}

wq_err
wq__shared_done_many(wq_queue *q, wq_item **items, size_t n)
{
    return finish_many(wq__shared_of(q), items, NULL, wq__result_end(), NULL,
                       n);
}

wq_err
wq__shared_done_key(wq_queue *q, wq_key key)
{
    struct wq__shared *s = wq__shared_of(q);
    struct ending      one;

    if (wq__shared_is_foreign(s))
        return WQ_ESTATE;
    const uint32_t self = wq__thread_mark_serial();
    wq__shared_enter(s);
    expire(s);
    begin(wq__holds_find_key(&s->holds, key, self), wq__result_end(), &one);
    wq__lock_release(&s->lock);
    return conclude(s, &one, 1, NULL);
}
