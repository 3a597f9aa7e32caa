/* SPDX-License-Identifier: MIT */
/* combine.c: how do operations of many threads reach the engine?
 *
 * In batches (flat combining). A thread posts its operations. If no thread
 * leads, it leads: it takes all that is posted, runs it as one batch (batch.c), and
 * hands the results out; then the thread that has waited longest leads. All others
 * sleep until they have their results. So a call takes two batches at most: the
 * one that runs when it comes, and its own.
 *
 * A leader leads until it has its own results. If it went on with batches of
 * others, its own next call could be in none of them: of two threads each batch
 * would serve one, and their calls would take twice as long
 * (docs/benchmarks/README.md). Only in a crowd, where two batches are under way, it
 * goes on for a few: to wake up the next leader would take longer than that.
 *
 * If several threads posted lately, the leader lets others run for a moment
 * before it takes the list, unless that costs too much (yields.h): once, or, where a
 * batch is a round trip, until most of them have posted.
 *
 * Cost: one lock pair and one sleep for a thread; the batch and two lock pairs
 * for the leader, and one more for each time that it lets others run.
 */
#include <string.h>

#include "error/error.h"
#include "port/relax.h"
#include "port/time.h"
#include "shared/batch.h"
#include "shared/report.h"

/* For so long, in ns, a leader leads batches of a crowd although it has its results:
 * some 30 batches of a server of this machine, or one or two of another. */
enum { LEAD_NS = 2000000 };

/* For so long, in ns, a leader waits for posts: about what a batch costs a server of
 * this machine, whatever is in it. If none came, so many leaders do not wait: where
 * nobody posts, waits take 4 us for each batch on average. Where some post, but never
 * most of them, each batch waits. Twice as long a rest took 4 % from eight
 * threads that all post again, and gained nothing where they do not. */
enum { GATHER_NS = 20000, GATHER_REST = 4 };

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

/* With the lock, which is released meanwhile. */
static void
yield(struct wq__shared *s)
{
    wq__lock_release(&s->lock);
    wq__yield();
    wq__lock_take(&s->lock);
}

/* With the lock: yields have lasted from `begin_ns` until now, while as many had
 * posted as `posted` says when they began. */
static void
note_yields(struct wq__shared *s, int64_t begin_ns, uint64_t posted)
{
    wq__yields_note(&s->yields, begin_ns, wq__time_now(),
                    WQ__YIELDS_FREE * (int64_t)(s->posted - posted + 1));
}

/* Of those that called lately: some are elsewhere for a moment. */
static bool
most_have_posted(const struct wq__shared *s)
{
    return s->posts_len >= s->threads - s->threads / 8;
}

/* With the lock, which is released meanwhile: where a batch is a round trip, one
 * that serves all threads is worth waiting for. Those that were just answered mostly
 * post again at once; if none does, the next leaders do not wait. */
static void
await_posts(struct wq__shared *s)
{
    const uint64_t posted = s->posted;
    const int64_t  begin_ns = wq__time_now();

    if (most_have_posted(s) || !wq__yields_may(&s->yields, begin_ns))
        return;
    if (s->in_vain) {
        s->in_vain--;
        return;
    }
    do
        yield(s);
    while (!most_have_posted(s) && wq__time_now() < begin_ns + GATHER_NS);
    note_yields(s, begin_ns, posted);
    if (s->posted == posted)
        s->in_vain = GATHER_REST;
}

/* With the lock: are other threads about to post? Where that takes one yield, only
 * those count that shared the last batch. */
static bool
expects_posts(const struct wq__shared *s)
{
    return (s->engine->distant ? s->threads : s->last_posts) > 1 && s->gathers;
}

/* With the lock, which is released meanwhile: let others post, if several did so
 * lately, and if that has not cost too much lately. */
static void
gather(struct wq__shared *s)
{
    const uint64_t posted = s->posted;

    if (!expects_posts(s))
        return;
    const int64_t begin_ns = wq__time_now();
    if (!wq__yields_may(&s->yields, begin_ns))
        return;
    yield(s);
    note_yields(s, begin_ns, posted);
    if (s->engine->distant)
        await_posts(s);
}

/* With the lock: this thread leads no longer. Returns the post that leads from
 * now on, which is to be woken; NULL: none waits. */
static struct wq__post *
hand_over(struct wq__shared *s)
{
    struct wq__post *successor = s->flying ? s->flights->posts : s->posts;

    if (successor)
        successor->leads = true;
    else
        s->leading = false;
    return successor;
}

/* With the lock: does this thread, which has led since then, lead on? A callback
 * may use the handle, so losses and changes are reported when another one leads. */
static bool
leads_on(const struct wq__shared *s, const struct wq__post *self,
         int64_t since_ns)
{
    if (!self->answered)
        return true;
    if (!self->ops) /* a look: perhaps of the thread that renews */
        return false;
    return s->crowd && (s->flying || (s->begins && s->posts)) &&
           !s->to_report && !s->reports && wq__time_now() - since_ns < LEAD_NS;
}

/* With the lock; returns without it. */
static void
lead(struct wq__shared *s, struct wq__post *self)
{
    struct wq__post    *answered = NULL;
    const int64_t       since_ns = s->begins ? wq__time_now() : 0;
    bool                saved = false;
    struct wq__sentence said = {.number = 0};

    if (!s->flying)
        gather(s);
    do {
        wq__batch_launch(s);
        if (self->answered && !saved) {
            said = wq__fail_save();
            saved = true;
        }
        if (answered) { /* while the store works */
            wq__shared_leave(s);
            wake_posts(answered, self);
            wq__shared_enter(s);
        }
        answered = wq__batch_land(s);
        wq__shared_settle_first(s);
    } while (leads_on(s, self, since_ns));
    if (saved && wq__fail_count() != said.number)
        wq__fail_restore(&said); /* batches of others have failed since */
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
    s->posts_len++;
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
