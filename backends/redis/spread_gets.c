/* SPDX-License-Identifier: MIT */
/* spread_gets.c: from which partition do gets take keys? See spread.h.
 *
 * From one, as long as it has some: then a finish and the get after it are one
 * round trip. After BURST keys in a row it is the turn of the next partition,
 * also if it seems to be empty: so each is asked after BURST * N keys at the
 * latest, whatever this handle knows of it. A get that does not find what it wants
 * asks partitions that have READY keys, as far as is known, and then looks at all
 * others, at the same time: only then there is nothing.
 */
#include "spread.h"

#include "shared/op.h"

enum { BURST = 16 };

static bool
is_out(const struct wq__spread *s, unsigned p)
{
    return atomic_load(&s->part[p]->out);
}

static unsigned
after(const struct wq__spread *s, unsigned p)
{
    return p + 1 < s->n ? p + 1 : 0;
}

unsigned
wq__spread_home(struct wq__spread *s)
{
    for (unsigned i = 0; i < s->n && is_out(s, s->home); i++) {
        s->home = after(s, s->home);
        s->streak = 0;
    }
    if (s->streak == 0 && !s->seen[s->home].ready)
        for (unsigned p = 0; p < s->n; p++) /* woken by this one */
            if (atomic_load(&s->part[p]->has_news) && !is_out(s, p))
                s->home = p;
    return s->home;
}

/* ---- more ----------------------------------------------------------------- */

static size_t
wanted_by(const struct wq__op *op)
{
    return op->kind != WQ__OP_GET || wq__op_is_held_back(op) ||
                   (op->err && op->err != WQ_EAWAY)
               ? 0
               : op->as.get.max - op->as.get.n;
}

static size_t
wanted(const struct wq__op *batch)
{
    size_t n = 0;

    for (; batch; batch = batch->next)
        if (n < SIZE_MAX - wanted_by(batch))
            n += wanted_by(batch);
    return n;
}

static bool
may_ask(const struct wq__spread *s, unsigned p)
{
    return !s->share[p].asked && !s->share[p].err && !is_out(s, p);
}

/* A partition that has READY keys, as far as is known, and was not asked for
 * more; the one whose turn it is comes first, whatever is known. n: none. */
static unsigned
find_ready(const struct wq__spread *s)
{
    unsigned p = s->home;

    if (may_ask(s, p) && (s->seen[p].ready || !s->share[p].fresh))
        return p;
    p = s->turn;
    for (unsigned i = 0; i < s->n; i++, p = after(s, p))
        if (s->seen[p].ready && may_ask(s, p))
            return p;
    return s->n;
}

/* Copies of the gets that want more. They replace those of the shares, whose
 * results are given. */
static struct wq__op *
copy_gets(struct wq__spread *s, struct wq__op *batch)
{
    struct wq__op *first = NULL, **last = &first;

    s->copies_len = 0;
    for (struct wq__op *op = batch; op; op = op->next) {
        if (!wanted_by(op))
            continue;
        struct wq__copy *c = &s->copies[s->copies_len++];
        *c = (struct wq__copy){.op = *op, .of = op};
        c->op.as.get.max = wanted_by(op);
        c->op.as.get.n = 0;
        c->op.as.get.unless_failed = NULL; /* it has not */
        c->op.next = NULL;
        *last = &c->op;
        last = &c->op.next;
    }
    return first;
}

static wq_err
take_from(struct wq__spread *s, unsigned p, struct wq__op *batch)
{
    s->share[p].asked = true;
    wq__spread_ask(s, p, copy_gets(s, batch));
    const wq_err err = wq__spread_run_shares(s);
    for (size_t i = 0; !err && i < s->copies_len; i++) {
        struct wq__op *op = s->copies[i].of;
        op->as.get.n += s->copies[i].op.as.get.n;
        if (!op->as.get.n || !s->copies[i].op.err)
            op->err = s->copies[i].op.err;
    }
    return err;
}

/* Look at the partitions that have not answered in this batch. False: there are
 * none. */
static bool
look_at_others(struct wq__spread *s, wq_err *err)
{
    bool any = false;

    for (unsigned p = 0; p < s->n; p++)
        if (!s->share[p].fresh && !s->share[p].err) {
            wq__spread_ask(s, p, NULL);
            any = true;
        }
    *err = any ? wq__spread_run_shares(s) : WQ_OK;
    return any;
}

/* ---- turns ---------------------------------------------------------------- */

static void
take_turns(struct wq__spread *s, unsigned from, size_t n)
{
    if (from != s->home)
        s->streak = 0;
    s->home = from;
    s->streak += n;
    if (s->streak >= BURST || !s->seen[from].ready) {
        s->turn = after(s, s->turn);
        s->home = s->turn;
        s->streak = 0;
    }
}

static size_t
handed_out(const struct wq__op *batch)
{
    size_t n = 0;

    for (; batch; batch = batch->next)
        n += batch->kind == WQ__OP_GET ? batch->as.get.n : 0;
    return n;
}

/* A get that found nothing, because a partition is away, says so. */
static void
settle_errors(const struct wq__spread *s, struct wq__op *batch)
{
    bool away = false;

    for (unsigned p = 0; p < s->n; p++)
        away |= s->share[p].err || is_out(s, p);
    for (struct wq__op *op = batch; op; op = op->next)
        if (op->kind == WQ__OP_GET && (!op->err || op->err == WQ_EAWAY))
            op->err = !op->as.get.n && away && !wq__op_is_held_back(op)
                          ? WQ_EAWAY
                          : WQ_OK;
}

static bool
has_gets(const struct wq__op *batch)
{
    while (batch && batch->kind != WQ__OP_GET)
        batch = batch->next;
    return batch;
}

wq_err
wq__spread_get_more(struct wq__spread *s, struct wq__op *batch)
{
    size_t   got = handed_out(batch), n = got;
    unsigned from = s->home, p;
    wq_err   err = WQ_OK;

    if (!has_gets(batch))
        return WQ_OK;
    while (!err && wanted(batch)) {
        p = find_ready(s);
        if (p == s->n && look_at_others(s, &err))
            continue;
        if (p == s->n)
            break;
        err = take_from(s, p, batch);
        const size_t now = handed_out(batch);
        if (now > got) {
            from = p;
            n = now - got;
            got = now;
        }
    }
    if (err)
        return err;
    settle_errors(s, batch);
    if (got)
        take_turns(s, from, n);
    return WQ_OK;
}
