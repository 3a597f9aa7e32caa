/* SPDX-License-Identifier: MIT */
/* combine.c: how do operations of many threads reach the engine?
 *
 * In batches (flat combining). A thread posts its operations. If no thread
 * leads, it leads: it takes all that is posted, runs it as one batch, and hands
 * the results out; then the thread that has waited longest leads. All others
 * sleep until they have their results. So a call takes two batches at most: the
 * one that runs when it comes, and its own.
 *
 * A leader leads one batch only. If it went on with those of others, its own
 * next call could be in none of them: of two threads each batch would serve
 * one, and their calls would take twice as long (docs/benchmarks/README.md).
 *
 * If several threads posted lately, the leader lets others run for a moment
 * before it takes the list, unless that costs too much (gather.h).
 *
 * Cost: one lock pair and one sleep for a thread; the batch and two lock pairs
 * for the leader.
 */
#include <stdio.h>
#include <string.h>

#include "core/mem.h"
#include "core/span.h"
#include "error/error.h"
#include "port/relax.h"
#include "port/time.h"
#include "shared/call.h"
#include "shared/gets.h"
#include "shared/report.h"
#include "shared/shared.h"

struct wq__post {
    struct wq__op    *ops;    /* may be NULL */
    struct wq__op    *last;   /* of these, while they are part of a batch */
    struct wq__post  *next;   /* in `posts`, or in the list of those answered */
    struct wq__parker parker; /* only if its thread waits */
    wq_err            err;    /* out: of the batch */
    wq_err            said;   /* out: the error that the engine spoke of */
    uint64_t unsettled;       /* out: its batch, if it must wait for settle() */
    bool     leads;           /* woken to lead; else it has its results */
};

/* ---- reconciling --------------------------------------------------------- */

/* With the lock: the holds that are lent and not lost. NULL: out of memory. */
static struct wq__known *
list_known(struct wq__shared *s, size_t *n)
{
    struct wq__known *known =
        wq__mem_array(&s->mem, s->holds.lent + 1, sizeof *known);

    *n = 0;
    for (const struct wq__hold *h = s->holds.first; known && h; h = h->next)
        if (h->state != WQ__HOLD_TAKEN && !h->lost)
            known[(*n)++] = (struct wq__known){h->item.key, h->item.fence};
    return known;
}

/* A new session has begun, after `sent_ns`. */
static void
begin_session(struct wq__shared *s, int64_t sent_ns)
{
    wq__shared_lose_all(s);
    s->valid_until_ns = wq__span_add(sent_ns, s->engine->lease_ns);
    s->session++;
}

static int64_t
time_of_sending(struct wq__shared *s)
{
    return s->engine->lease_ns ? s->steady_clock->now(s->steady_clock) : 0;
}

/* With the lock, which is released meanwhile: the handle has given its holds up,
 * but the session lives, because a renewal without a reply has reached the store.
 * Renew it once more: the keys that are got now are certain then. */
static wq_err
make_sure(struct wq__shared *s)
{
    struct wq__engine *e = s->engine;

    wq__lock_release(&s->lock);
    const int64_t sent_ns = time_of_sending(s);
    const wq_err  err = wq__engine_renew(e);
    wq__lock_take(&s->lock);
    if (!err)
        s->valid_until_ns = wq__span_add(sent_ns, e->lease_ns);
    return err == WQ_ELOST ? WQ_OK : err; /* the batch begins a new session */
}

/* With the lock: does the handle know until when its session lives? */
static bool
is_sure(struct wq__shared *s)
{
    return !s->engine->lease_ns || time_of_sending(s) < s->valid_until_ns;
}

/* With the lock, which is released meanwhile. An error means that nothing of
 * the next batch has happened. */
static wq_err
reconcile(struct wq__shared *s)
{
    size_t             n;
    bool               lost = false;
    const size_t       lent = s->holds.lent;
    struct wq__known  *known = list_known(s, &n);
    struct wq__engine *e = s->engine;

    if (!known)
        return WQ_ENOMEM;
    s->in_doubt = false; /* it may become so meanwhile */
    wq__lock_release(&s->lock);
    const int64_t sent_ns = time_of_sending(s);
    wq_err        err = wq__engine_reconcile(e, known, n, &lost);
    wq__lock_take(&s->lock);
    wq__mem_free(&s->mem, known, (lent + 1) * sizeof *known);
    if (!err && lost)
        begin_session(s, sent_ns);
    else if (!err && !is_sure(s))
        err = make_sure(s);
    s->in_doubt |= err != WQ_OK;
    return err == WQ_EIO ? WQ_EAWAY : err;
}

/* ---- a batch ------------------------------------------------------------- */

static bool
reads_stats(const struct wq__post *p)
{
    return p->ops && p->ops->kind == WQ__OP_STATS;
}

/* Posts that read stats come last: then they see all that the batch did, and
 * stats and counts are of the same moment. */
static struct wq__post *
put_stats_last(struct wq__post *posts)
{
    struct wq__post *others = NULL, **last_other = &others;
    struct wq__post *stats = NULL, **last_stats = &stats;

    for (struct wq__post *p = posts; p; p = p->next) {
        struct wq__post ***last = reads_stats(p) ? &last_stats : &last_other;
        **last = p;
        *last = &p->next;
    }
    *last_stats = NULL;
    *last_other = stats;
    return others;
}

/* With the lock: take all posts; *ops is the list of their operations. */
static struct wq__post *
take_posts(struct wq__shared *s, struct wq__op **ops)
{
    struct wq__post *posts = put_stats_last(s->posts);
    struct wq__op  **last = ops;

    s->last_posts = 0;
    for (struct wq__post *p = posts; p; p = p->next, s->last_posts++) {
        *last = p->ops;
        while (*last) {
            p->last = *last;
            last = &p->last->next;
            s->operations++;
        }
    }
    s->posts = NULL;
    s->last_post = &s->posts;
    s->batches++;
    return posts;
}

/* With the lock: what the batch did. */
static void
note_pulse(struct wq__shared *s, const struct wq__pulse *pulse, int64_t sent_ns)
{
    s->seen = *pulse;
    wq__did_add(&s->did, &pulse->did);
    if (pulse->session_lost)
        begin_session(s, sent_ns);
    if (pulse->settles)
        s->to_settle = pulse->settles;
}

/* An engine with several stores may reach some, and not others. */
static bool
is_of_store(wq_err err)
{
    return err == WQ_EAWAY || err == WQ_EIO;
}

/* With the lock: each post gets its operations back, with their results. `says`:
 * the engine has said why some of them failed. `settles`: not all of them are
 * durable. */
static void
answer(struct wq__shared *s, struct wq__post *posts, wq_err err, bool says,
       bool settles)
{
    s->answered = s->batches;
    for (struct wq__post *p = posts; p; p = p->next) {
        p->err = p->said = err;
        if (p->last)
            p->last->next = NULL;
        for (struct wq__op *op = p->ops; op; op = op->next) {
            if (err)
                op->err = err;
            else if (says && is_of_store(op->err))
                p->said = op->err;
            if (settles && op->unsettled)
                p->unsettled = s->owed = s->answered;
            if (op->kind == WQ__OP_GET || op->kind == WQ__OP_RESUME)
                wq__getting_end(s, op->as.get.ctx, op->err);
            if (op->kind == WQ__OP_STATS && !op->err)
                wq__shared_add_own_stats(s, op->as.stats);
        }
    }
}

void
wq__shared_keep_sentence(struct wq__shared *s, wq_err err, unsigned before,
                         char said[WQ__SENTENCE_BYTES])
{
    if (wq__fail_count() == before)
        (void)wq_fail(err, "%s: %s", s->engine->ops->name, wq_strerror(err));
    (void)snprintf(said, WQ__SENTENCE_BYTES, "%s", wq_last_error());
}

/* With the lock, which is released meanwhile. */
static wq_err
call_engine(struct wq__shared *s, struct wq__op *ops, bool *settles)
{
    struct wq__pulse   pulse = {.ready = 0};
    struct wq__engine *e = s->engine;

    wq__lock_release(&s->lock);
    const int64_t sent_ns = time_of_sending(s);
    const int64_t begin_ns = e->ops->settle ? wq__time_now() : 0;
    e->forgetful = false;
    const wq_err  err = wq__engine_run(e, ops, &pulse);
    const int64_t took_ns = e->ops->settle ? wq__time_now() - begin_ns : 0;
    wq__lock_take(&s->lock);
    s->batch_ns = took_ns;
    if (!err)
        note_pulse(s, &pulse, sent_ns);
    *settles = !err && pulse.settles;
    s->in_doubt |= err && (err != WQ_EAWAY || e->forgetful);
    return err;
}

/* Does a call get a key in the same step in which it ends another one, and is that
 * end unsettled? */
static bool
gets_unsettled(const struct wq__post *posts)
{
    for (const struct wq__post *p = posts; p; p = p->next) {
        bool unsettled = false, gets = false;

        for (const struct wq__op *op = p->ops; op; op = op->next) {
            unsettled |= op->unsettled;
            gets |= op->kind == WQ__OP_GET;
            if (op == p->last)
                break;
        }
        if (unsettled && gets)
            return true;
    }
    return false;
}

/* With the lock, which is released meanwhile: settle a batch before it is
 * answered. If that fails, the keys that it has handed out are nobody's yet. */
static wq_err
settle_unanswered(struct wq__shared *s)
{
    const uint64_t number = s->to_settle;

    wq__lock_release(&s->lock);
    const wq_err err = wq__engine_settle(s->engine, number);
    wq__lock_take(&s->lock);
    s->in_doubt |= err != WQ_OK;
    return err;
}

/* With the lock, which is released meanwhile: run one batch. Returns the posts
 * that have their results. */
static struct wq__post *
run_batch(struct wq__shared *s)
{
    const unsigned before = wq__fail_count();
    struct wq__op *ops = NULL;
    bool           settles = false;

    wq__shared_expire(s, time_of_sending(s));
    wq_err           err = s->in_doubt ? reconcile(s) : WQ_OK;
    struct wq__post *posts = take_posts(s, &ops);

    if (!err)
        err = call_engine(s, ops, &settles);
    if (err == WQ_EAWAY && s->engine->forgetful) {
        err = reconcile(s);
        if (!err)
            err = call_engine(s, ops, &settles);
    }
    if (!err && settles && gets_unsettled(posts)) {
        err = settle_unanswered(s);
        settles = false;
    }
    const bool says = err || wq__fail_count() != before;
    if (says)
        wq__shared_keep_sentence(s, err, before, s->said);
    answer(s, posts, err, says, settles);
    return posts;
}

/* ---- leading ------------------------------------------------------------- */

static void
wake_posts(struct wq__post *list, const struct wq__post *self)
{
    while (list) {
        struct wq__post *next = list->next; /* the post ends when it is woken */
        if (list != self)
            wq__unpark(&list->parker);
        list = next;
    }
}

/* With the lock: let others post, if there were several lately, and if that has
 * not cost too much lately. */
static void
gather(struct wq__shared *s)
{
    const uint64_t posted = s->posted;

    if (s->last_posts < 2 || !s->gathers)
        return;
    const int64_t begin_ns = wq__time_now();
    if (!wq__gather_may(&s->gather, begin_ns))
        return;
    wq__lock_release(&s->lock);
    wq__yield();
    wq__lock_take(&s->lock);
    wq__gather_note(&s->gather, begin_ns, wq__time_now(),
                    (size_t)(s->posted - posted));
}

/* With the lock: this thread leads no longer. Returns the post that leads from
 * now on, which is to be woken; NULL: none waits. */
static struct wq__post *
hand_over(struct wq__shared *s)
{
    struct wq__post *successor = s->posts;

    if (successor)
        successor->leads = true;
    else
        s->leading = false;
    return successor;
}

/* With the lock; returns without it. A callback may use the handle, so losses
 * are reported when another thread leads. */
static void
lead(struct wq__shared *s, struct wq__post *self)
{
    gather(s);
    struct wq__post *answered = run_batch(s);
    wq__shared_settle_first(s);
    struct wq__post *successor = hand_over(s);
    const bool       report = s->to_report;

    wq__shared_leave(s);
    if (successor)
        wq__unpark(&successor->parker);
    wake_posts(answered, self);
    if (report)
        wq__shared_report_lost(s);
    wq__shared_report_changes(s);
}

wq_err
wq__shared_repeat_sentence(struct wq__shared *s, wq_err err,
                           const char said[WQ__SENTENCE_BYTES])
{
    char copy[WQ__SENTENCE_BYTES];

    wq__shared_enter(s);
    memcpy(copy, said, sizeof copy);
    wq__lock_release(&s->lock);
    return wq_fail(err, "%s", copy);
}

/* The thread has its results; those that must be durable hold when they are. */
static wq_err
settle(struct wq__shared *s, const struct wq__post *self)
{
    if (self->err || !self->unsettled)
        return self->err;
    const wq_err err = wq__shared_settle(s, self->unsettled);
    for (struct wq__op *op = self->ops; err && op; op = op->next)
        if (op->unsettled)
            op->err = err;
    return err;
}

static wq_err
refuse(struct wq__op *ops, wq_err err)
{
    for (; ops; ops = ops->next)
        ops->err = err;
    return err;
}

wq_err
wq__shared_run(struct wq__shared *s, struct wq__op *ops)
{
    struct wq__post self = {.ops = ops};

    if (wq__shared_is_foreign(s))
        return refuse(ops, WQ_ESTATE);
    wq__shared_enter(s);
    *s->last_post = &self;
    s->last_post = &self.next;
    s->posted++;
    if (!s->leading) {
        s->leading = true;
        lead(s, &self);
        return settle(s, &self);
    }
    wq__parker_init(&self.parker); /* the leader finds it there */
    wq__lock_release(&s->lock);
    while (!wq__park(&self.parker, WQ_FOREVER))
        ;
    if (self.leads) {
        wq__shared_enter(s);
        lead(s, &self);
    } else if (self.said) {
        (void)wq__shared_repeat_sentence(s, self.said, s->said);
    }
    wq__parker_fini(&self.parker);
    return settle(s, &self);
}
