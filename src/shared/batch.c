/* SPDX-License-Identifier: MIT */
/* batch.c: how is a batch carried out, and what if that fails?
 *
 * A batch is the operations of all posts that wait. It takes off (launch), and
 * lands with its results; in between the engine may be at work on it. Where the
 * engine can begin a batch while another is under way, two of them fly: the store
 * has the next one at hand when it has done with this one, and meanwhile the
 * threads of the one before wake up and post again. So a crowd of threads is
 * divided by three. It takes WQ__CROWD of them: each batch has a price of its own.
 *
 *     posts ──launch──► flights ──land──► answered
 *
 * Batches land in the order in which they took off. After an error that leaves
 * something in doubt none takes off before all have landed, and the handle has
 * been reconciled with the store.
 *
 * Cost: two lock pairs, and what the engine takes.
 */
#include "shared/batch.h"

#include <stdio.h>
#include <string.h>

#include "core/mem.h"
#include "core/span.h"
#include "error/error.h"
#include "port/time.h"
#include "shared/call.h"
#include "shared/gets.h"
#include "shared/report.h"

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

/* With the lock: cut off what is behind the first `most` posts; it waits on. */
static struct wq__post *
take_off(struct wq__shared *s, size_t most)
{
    struct wq__post *posts = s->posts, **at = &s->posts;

    for (; *at && most; most--, s->posts_len--)
        at = &(*at)->next;
    s->posts = *at;
    *at = NULL;
    if (!s->posts)
        s->last_post = &s->posts;
    return put_stats_last(posts);
}

/* With the lock: the batch gets that many posts, and their operations. */
static void
fill(struct wq__shared *s, struct wq__flight *f, size_t most)
{
    struct wq__op **last = &f->ops;

    f->posts = take_off(s, most);
    for (struct wq__post *p = f->posts; p; p = p->next, f->len++) {
        *last = p->ops;
        while (*last) {
            p->last = *last;
            last = &p->last->next;
            s->operations++;
        }
    }
    f->number = ++s->batches;
    s->last_posts = f->len;
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
answer(struct wq__shared *s, const struct wq__flight *f, wq_err err, bool says,
       bool settles)
{
    s->answered = f->number;
    for (struct wq__post *p = f->posts; p; p = p->next) {
        p->err = p->said = err;
        p->answered = true;
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
call_engine(struct wq__shared *s, const struct wq__flight *f, bool *settles)
{
    struct wq__pulse   pulse = {.ready = 0};
    struct wq__engine *e = s->engine;

    wq__lock_release(&s->lock);
    const int64_t sent_ns = f->begun ? f->sent_ns : time_of_sending(s);
    const int64_t begin_ns = e->ops->settle ? wq__time_now() : 0;
    e->forgetful = false;
    const wq_err  err = wq__engine_run(e, f->ops, &pulse);
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

/* ---- taking off ---------------------------------------------------------- */

/* With the lock: may another batch take off? */
static bool
may_launch(const struct wq__shared *s)
{
    if (!s->posts || !s->flying)
        return s->posts;
    return s->flying < WQ__FLIGHTS && s->flights->begun && s->crowd;
}

/* With the lock: how many posts the next batch takes, at most. Of a crowd, two
 * batches fly while the threads of a third one wake up and post. */
static size_t
share(const struct wq__shared *s)
{
    return s->begins && s->crowd
               ? (s->threads + WQ__FLIGHTS) / (WQ__FLIGHTS + 1)
               : s->posts_len;
}

/* With the lock, which is released meanwhile: nothing flies. Be certain of what
 * the handle holds. */
static wq_err
clear_doubt(struct wq__shared *s)
{
    const unsigned before = wq__fail_count();

    wq__shared_expire(s, time_of_sending(s));
    const wq_err err = s->in_doubt ? reconcile(s) : WQ_OK;
    if (err)
        wq__shared_keep_sentence(s, err, before, s->said);
    return err;
}

/* With the lock: the same, if that takes no call. */
static bool
is_certain(struct wq__shared *s)
{
    wq__shared_expire(s, time_of_sending(s));
    return !s->in_doubt;
}

/* With the lock, which is released meanwhile. */
static void
begin(struct wq__shared *s, struct wq__flight *f)
{
    wq__lock_release(&s->lock);
    f->sent_ns = time_of_sending(s);
    f->begun = wq__engine_begin(s->engine, f->ops);
    wq__lock_take(&s->lock);
    s->begins = f->begun;
}

void
wq__batch_launch(struct wq__shared *s)
{
    while (may_launch(s)) {
        struct wq__flight *f = &s->flights[s->flying];

        if (s->flying && !is_certain(s))
            return;
        *f = (struct wq__flight){.waited = s->flying};
        if (!s->flying)
            f->err = clear_doubt(s);
        fill(s, f, share(s));
        s->flying++;
        if (!f->err && s->crowd)
            begin(s, f);
    }
}

/* ---- landing ------------------------------------------------------------- */

/* With the lock, which is released meanwhile: the store may have forgotten
 * batches that it had answered, and this one has not happened. Others that fly
 * land first: the keys that they have got are known then. Returns their posts. */
static struct wq__post *
run_again(struct wq__shared *s, struct wq__flight *f, wq_err *err,
          bool *settles)
{
    struct wq__post *others = s->flying ? wq__batch_land(s) : NULL;

    f->begun = false;
    *err = reconcile(s);
    if (!*err)
        *err = call_engine(s, f, settles);
    return others;
}

/* With the lock, after a batch that has answered `landed` threads: how many are
 * there? Those that wait, whose batch flies, or that were just answered, who mostly
 * post again. Some are elsewhere for a moment: so less is believed slowly. */
static void
count_threads(struct wq__shared *s, size_t landed)
{
    size_t n = s->posts_len + landed;

    for (size_t i = 0; i < s->flying; i++)
        n += s->flights[i].len;
    s->threads = n > s->threads ? n : s->threads - (s->threads - n + 7) / 8;
    s->crowd = s->engine->ops->begin &&
               s->threads >= (s->crowd ? WQ__CROWD_STILL : WQ__CROWD);
}

static struct wq__post *
join(struct wq__post *posts, struct wq__post *others)
{
    struct wq__post **at = &posts;

    while (*at)
        at = &(*at)->next;
    *at = others;
    return posts;
}

struct wq__post *
wq__batch_land(struct wq__shared *s)
{
    const unsigned    before = wq__fail_count();
    struct wq__flight f = s->flights[0];
    struct wq__post  *others = NULL;
    bool              settles = false;

    if (f.waited && !f.begun) /* the one before may have left a doubt */
        f.err = clear_doubt(s);
    wq_err err = f.err ? f.err : call_engine(s, &f, &settles);
    s->flying--;
    memmove(s->flights, s->flights + 1, s->flying * sizeof *s->flights);
    if (!f.err && err == WQ_EAWAY && s->engine->forgetful)
        others = run_again(s, &f, &err, &settles);
    if (!err && settles && gets_unsettled(f.posts)) {
        err = settle_unanswered(s);
        settles = false;
    }
    const bool says = err || wq__fail_count() != before;
    if (says && !f.err)
        wq__shared_keep_sentence(s, err, before, s->said);
    answer(s, &f, err, says, settles);
    count_threads(s, f.len);
    return join(f.posts, others);
}
