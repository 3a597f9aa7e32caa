/* SPDX-License-Identifier: MIT */
/* settle.c: when does a thread return whose operations must be durable?
 *
 * A batch is answered as soon as it has run, and the next one runs; a thread whose
 * operations need more, such as a sync of the disk, waits here. One of these
 * threads settles for all batches that have run so far. Those that come meanwhile
 * wait for it, and the first of them settles next, for all of them. So a thread
 * waits for two settles at most: the one that is under way when it comes, and its
 * own.
 *
 * That is worth while if a settle takes longer than a batch: then those that have
 * nothing to wait for go on. If a batch of all threads takes longer, it is better
 * to have large batches: the thread that led the batch settles it before the next
 * one begins (wq__shared_settle_first()).
 *
 * A settle that fails is the error of all that it was for, and is not repeated
 * for them: a disk that has lost what it could not write reports it once.
 *
 * Cost: one lock pair and one sleep for a thread; two lock pairs for the one that
 * settles.
 */
#include "port/park.h"
#include "port/time.h"
#include "shared/call.h"
#include "shared/shared.h"

struct wq__unsettled {
    uint64_t              batch; /* the number of its batch */
    struct wq__unsettled *next;
    struct wq__parker     parker; /* only if its thread waits for another one */
    wq_err                err;    /* out */
    bool                  leads;  /* woken to settle; else it has its result */
};

/* With the lock: a settle for batches up to `batch` has ended, before which
 * `before` sentences were set in this thread. */
static void
note_end(struct wq__shared *s, uint64_t batch, wq_err err, unsigned before)
{
    if (!err) {
        s->settled = batch;
        return;
    }
    wq__shared_keep_sentence(s, err, before, s->unsure_said);
    if (s->settled >= s->unsure_to)
        s->unsure_from = s->settled + 1;
    s->unsure_to = batch;
}

/* With the lock: has a settle failed for this batch? Its thread may come so late
 * that a later one has succeeded. */
static bool
is_unsure(const struct wq__shared *s, uint64_t batch)
{
    return batch >= s->unsure_from && batch <= s->unsure_to;
}

/* With the lock: take those off the list that a settle up to `batch` was for. */
static struct wq__unsettled *
take_answered(struct wq__shared *s, uint64_t batch, wq_err err)
{
    struct wq__unsettled  *answered = NULL, **last = &answered;
    struct wq__unsettled **at = &s->unsettled;

    s->unsettled_len = 0;
    while (*at) {
        struct wq__unsettled *u = *at;

        if (u->batch > batch) {
            s->unsettled_len++;
            at = &u->next;
            continue;
        }
        *at = u->next;
        u->err = err;
        *last = u;
        last = &u->next;
    }
    *last = NULL;
    s->last_unsettled = at;
    return answered;
}

/* With the lock: the thread that settles from now on, which is to be woken; NULL:
 * none waits. */
static struct wq__unsettled *
hand_over(struct wq__shared *s)
{
    struct wq__unsettled *successor = s->unsettled;

    if (successor)
        successor->leads = true;
    else
        s->settling = false;
    return successor;
}

static void
wake_others(struct wq__unsettled *list, const struct wq__unsettled *self)
{
    while (list) {
        struct wq__unsettled *next = list->next; /* it ends when it is woken */
        if (list != self)
            wq__unpark(&list->parker);
        list = next;
    }
}

/* With the lock; returns without it. `self` may be NULL. */
static void
lead(struct wq__shared *s, const struct wq__unsettled *self)
{
    const uint64_t number = s->to_settle, batch = s->answered;
    const unsigned before = wq__fail_count();

    s->settling = true;
    wq__lock_release(&s->lock);
    const int64_t begin_ns = wq__time_now();
    const wq_err  err = wq__engine_settle(s->engine, number);
    const int64_t took_ns = wq__time_now() - begin_ns;
    wq__shared_enter(s);
    s->settle_ns = took_ns;
    note_end(s, batch, err, before);
    struct wq__unsettled *answered = take_answered(s, batch, err);
    struct wq__unsettled *successor = hand_over(s);
    wq__lock_release(&s->lock);
    if (successor)
        wq__unpark(&successor->parker);
    wake_others(answered, self);
}

/* With the lock; returns without it. */
static void
follow(struct wq__shared *s, struct wq__unsettled *self)
{
    wq__parker_init(&self->parker); /* the one that settles finds it there */
    wq__lock_release(&s->lock);
    while (!wq__park(&self->parker, WQ_FOREVER))
        ;
    if (self->leads) {
        wq__shared_enter(s);
        lead(s, self);
    } else if (self->err) {
        (void)wq__shared_repeat_sentence(s, self->err, s->unsure_said);
    }
    wq__parker_fini(&self->parker);
}

wq_err
wq__shared_settle(struct wq__shared *s, uint64_t batch)
{
    struct wq__unsettled self = {.batch = batch};

    wq__shared_enter(s);
    const bool unsure = is_unsure(s, batch);
    if (unsure || s->settled >= batch) {
        wq__lock_release(&s->lock);
        return unsure ? wq__shared_repeat_sentence(s, WQ_EIO, s->unsure_said)
                      : WQ_OK;
    }
    *s->last_unsettled = &self;
    s->last_unsettled = &self.next;
    s->unsettled_len++;
    if (s->settling)
        follow(s, &self);
    else
        lead(s, &self);
    return self.err;
}

/* With the lock: how long a batch of all threads would take that were in the last
 * one, or wait here. */
static int64_t
time_of_all(const struct wq__shared *s)
{
    const int64_t posts = s->last_posts ? (int64_t)s->last_posts : 1;

    return s->batch_ns / posts * (posts + (int64_t)s->unsettled_len);
}

void
wq__shared_settle_first(struct wq__shared *s)
{
    if (s->settling || s->owed != s->answered || s->settle_ns > time_of_all(s))
        return;
    lead(s, NULL);
    wq__shared_enter(s);
}
