/* SPDX-License-Identifier: MIT */
/* spread.c: which partition does what in a batch? See spread.h.
 *
 * Every operation is copied for its partition, because the links between the
 * operations of a batch are the shell's. A copy has its result when its partition
 * has run; then the operation gets it.
 *
 * Cost: O(keys) beside the calls; a batch takes as long as its slowest partition.
 */
#include "spread.h"

#include <stdlib.h>

#include "error/error.h"
#include "port/time.h"
#include "shared/op.h"

unsigned
wq__spread_part(wq_key key, unsigned n)
{
    const unsigned char *bytes = key.data;
    uint64_t             h = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < key.len; i++)
        h = (h ^ bytes[i]) * UINT64_C(0x100000001b3);
    /* The low bits of FNV-1a depend on those of the bytes alone. */
    h = (h ^ (h >> 33)) * UINT64_C(0xff51afd7ed558ccd);
    h = (h ^ (h >> 33)) * UINT64_C(0xc4ceb9fe1a85ec53);
    return (unsigned)((h ^ (h >> 33)) % n);
}

/* ---- shares --------------------------------------------------------------- */

static void
begin_shares(struct wq__spread *s)
{
    for (unsigned p = 0; p < s->n; p++) {
        s->share[p] = (struct wq__share){.first = NULL};
        s->share[p].last = &s->share[p].first;
    }
    s->happened = s->in_doubt = s->must_reconcile = false;
}

static void
append(struct wq__spread *s, struct wq__copy *c)
{
    struct wq__share *share = &s->share[c->part];

    c->op.next = NULL;
    *share->last = &c->op;
    share->last = &c->op.next;
    share->runs = true;
}

void
wq__spread_ask(struct wq__spread *s, unsigned p, struct wq__op *ops)
{
    struct wq__share *share = &s->share[p];

    share->first = ops;
    share->runs = true;
    share->err = WQ_OK;
}

/* ---- copies --------------------------------------------------------------- */

static struct wq__copy *
copy_op(struct wq__spread *s, struct wq__op *op, unsigned part)
{
    struct wq__copy *c = &s->copies[s->copies_len++];

    *c = (struct wq__copy){.op = *op, .of = op, .part = part};
    c->op.next = NULL;
    return c;
}

static unsigned
part_of(const struct wq__spread *s, wq_key key)
{
    return wq__spread_part(key, s->n);
}

/* All keys are in one partition. */
static bool
is_undivided(const struct wq__spread *s, const struct wq__op *add)
{
    for (size_t i = 1; i < add->as.add.n; i++)
        if (part_of(s, add->as.add.keys[i]) != part_of(s, add->as.add.keys[0]))
            return false;
    return true;
}

/* One copy for each partition that has keys of it. */
static void
divide(struct wq__spread *s, struct wq__op *op)
{
    for (unsigned p = 0; p < s->n; p++) {
        const size_t from = s->keys_len;

        for (size_t i = 0; i < op->as.add.n; i++)
            if (part_of(s, op->as.add.keys[i]) == p) {
                s->index[s->keys_len] = i;
                s->keys[s->keys_len++] = op->as.add.keys[i];
            }
        if (s->keys_len == from)
            continue;
        struct wq__copy *c = copy_op(s, op, p);
        c->index = s->index + from;
        c->op.as.add.keys = s->keys + from;
        c->op.as.add.n = s->keys_len - from;
        c->op.as.add.added = op->as.add.added ? s->added + from : NULL;
        c->op.as.add.delayed = op->as.add.delayed ? s->delayed + from : NULL;
    }
}

static bool
is_view(const struct wq__op *op)
{
    return wq__view_knows(op);
}

/* One key may be given up: then no further partition is asked. */
static bool
may_give_up(const struct wq__spread *s, const struct wq__op *op)
{
    return op->as.add.how->rate_limited && s->root->rows.terms.max_retries;
}

static void
plan_add(struct wq__spread *s, struct wq__op *op)
{
    const size_t from = s->copies_len;

    if (op->as.add.n == 0) {
        append(s, copy_op(s, op, 0));
        return;
    }
    if (is_undivided(s, op)) {
        append(s, copy_op(s, op, part_of(s, op->as.add.keys[0])));
        return;
    }
    divide(s, op);
    for (size_t i = from; !may_give_up(s, op) && i < s->copies_len; i++)
        append(s, &s->copies[i]);
}

/* A get runs with the finish before it if that is in the same partition; else
 * after it. */
static void
plan_get(struct wq__spread *s, struct wq__op *op)
{
    const struct wq__copy *before =
        s->copies_len ? &s->copies[s->copies_len - 1] : NULL;
    const struct wq__op *finish = op->as.get.unless_failed;
    const unsigned       home = wq__spread_home(s);

    op->err = WQ_OK;
    op->as.get.n = 0;
    if (finish && (!before || before->of != finish || before->part != home))
        return;
    struct wq__copy *c = copy_op(s, op, home);
    if (finish)
        c->op.as.get.unless_failed = &before->op;
    append(s, c);
}

static void
plan_op(struct wq__spread *s, struct wq__op *op)
{
    switch (op->kind) {
    case WQ__OP_ADD:
        plan_add(s, op);
        break;
    case WQ__OP_GET:
        plan_get(s, op);
        break;
    case WQ__OP_RESUME:
        append(s, copy_op(s, op, part_of(s, op->as.get.key)));
        break;
    case WQ__OP_FINISH:
        append(s, copy_op(s, op, part_of(s, op->as.finish.key)));
        break;
    case WQ__OP_STATS:
    case WQ__OP_DEPTHS:
    case WQ__OP_WALK:
    case WQ__OP_CHECK:
        break;
    default:
        append(s, copy_op(s, op, part_of(s, op->as.one.key)));
    }
}

static bool
grow(void *at, size_t size, size_t n)
{
    void **array = at;
    void  *more = realloc(*array, n * size);

    if (more)
        *array = more;
    return more;
}

/* Memory for all copies: they do not move then. */
static wq_err
reserve(struct wq__spread *s, const struct wq__op *batch)
{
    size_t copies = 0, keys = 0;

    for (const struct wq__op *op = batch; op; op = op->next) {
        const size_t n = op->kind == WQ__OP_ADD ? op->as.add.n : 1;
        copies += n < s->n ? n + 1 : s->n;
        keys += op->kind == WQ__OP_ADD && n > 1 ? n : 0;
    }
    if (copies > s->copies_cap) {
        if (!grow(&s->copies, sizeof *s->copies, copies))
            return WQ_ENOMEM;
        s->copies_cap = copies;
    }
    if (keys > s->keys_cap) {
        if (!grow(&s->keys, sizeof *s->keys, keys) ||
            !grow(&s->index, sizeof *s->index, keys) ||
            !grow(&s->added, sizeof *s->added, keys) ||
            !grow(&s->delayed, sizeof *s->delayed, keys))
            return WQ_ENOMEM;
        s->keys_cap = keys;
    }
    return WQ_OK;
}

/* The clock is that of the first partition's server. */
static int64_t
time_here(const struct wq__spread *s, unsigned p, int64_t at_ns)
{
    if (at_ns == WQ_FOREVER || !s->part[p]->own_clock)
        return at_ns;
    return at_ns + wq__offset_clock_get(&s->part[0]->clock.base) -
           wq__offset_clock_get(&s->part[p]->clock.base);
}

/* It is time to find out whether a partition that is out can be reached again:
 * else its keys would wait until the others have none. */
static bool
may_be_back(const struct wq__spread *s, unsigned p)
{
    return atomic_load(&s->part[p]->out) && wq__time_now() >= s->retry_ns[p];
}

/* Partitions that have something to do beside operations: deadlines have passed,
 * or the server counts the session as asleep, and nobody is. */
static void
plan_looks(struct wq__spread *s, bool all)
{
    const int64_t now_ns = s->base.clock->now(s->base.clock);

    for (unsigned p = 0; p < s->n; p++) {
        struct wq__redis *e = s->part[p];
        const bool        asleep = atomic_load(&e->listed) &&
                            !atomic_load(&e->waiting) &&
                            !atomic_load(&e->watched);

        const int64_t next_ns = time_here(s, p, s->seen[p].next_ns);

        if (all || may_be_back(s, p) ||
            (!atomic_load(&e->out) && (next_ns <= now_ns || asleep)))
            s->share[p].runs = true;
    }
}

static wq_err
plan(struct wq__spread *s, struct wq__op *batch)
{
    const wq_err err = reserve(s, batch);
    bool         all = !batch;

    if (err)
        return err;
    begin_shares(s);
    s->copies_len = s->keys_len = 0;
    for (struct wq__op *op = batch; op; op = op->next) {
        plan_op(s, op);
        all |= is_view(op);
    }
    plan_looks(s, all);
    return WQ_OK;
}

/* ---- running -------------------------------------------------------------- */

void
wq__spread_put_out(struct wq__spread *s, unsigned p)
{
    atomic_store(&s->part[p]->out, true);
    s->seen[p] =
        (struct wq__pulse){.held = s->seen[p].held, .next_ns = WQ_FOREVER};
}

void
wq__spread_put_off(struct wq__spread *s, unsigned p, int64_t begin_ns)
{
    const int64_t took_ns = wq__time_now() - begin_ns;

    wq__spread_put_out(s, p);
    s->hangs[p] = took_ns > WQ_MS(100);
    s->retry_ns[p] =
        begin_ns + (s->hangs[p] ? 11 * took_ns : took_ns + WQ_MS(100));
}

/* Connect, if need be. */
static bool
reach(struct wq__spread *s, unsigned p)
{
    const int64_t begin_ns = wq__time_now();

    if (begin_ns < s->retry_ns[p]) {
        char at[160];
        wq__route_print(&s->part[p]->wire, at, sizeof at);
        (void)wq_fail(WQ_EAWAY,
                      "redis: partition %u of the queue, in %s, cannot be "
                      "reached",
                      p, at);
        return false;
    }
    if (!wq__wire_open(&s->part[p]->wire))
        return true;
    wq__spread_put_off(s, p, begin_ns);
    return false;
}

/* Before anything is sent: can the partition be reached, and over the connection
 * that it had? */
static void
prepare(struct wq__spread *s, unsigned p)
{
    struct wq__redis *e = s->part[p];
    const bool        reached = reach(s, p);

    if (reached && !atomic_load(&e->out) && e->wire.connects == e->wire.only)
        return;
    wq__spread_put_out(s, p);
    s->share[p].err = WQ_EAWAY;
    s->must_reconcile |= reached;
    atomic_store(&e->away, !reached);
    wq__redis_skip(e);
}

static void
fail_ops(struct wq__op *ops, wq_err err)
{
    for (struct wq__op *op = ops; op; op = op->next)
        op->err = err;
}

/* Keys that the shell has from now on, and no longer. True: it has got some. */
static bool
count_holds(struct wq__redis *e, const struct wq__op *ops)
{
    size_t got = 0, ended = 0;

    for (const struct wq__op *op = ops; op; op = op->next) {
        got += op->kind == WQ__OP_GET ? op->as.get.n : 0;
        got += op->kind == WQ__OP_RESUME && !op->err;
        ended += op->kind == WQ__OP_FINISH && wq__op_has_ended(op->err);
    }
    const size_t before = atomic_load(&e->holds) + got;
    atomic_store(&e->holds, before > ended ? before - ended : 0);
    return got;
}

/* Have the operations changed anything? */
static bool
has_changed(const struct wq__op *ops)
{
    while (ops && ops->kind == WQ__OP_GET && !ops->as.get.n)
        ops = ops->next;
    return ops;
}

static void
judge(struct wq__spread *s, unsigned p)
{
    struct wq__share *share = &s->share[p];
    struct wq__redis *e = s->part[p];

    if (!share->err) {
        s->seen[p] = share->pulse;
        share->fresh = true;
        s->happened |= has_changed(share->first);
        wq__did_add(&s->did, &share->pulse.did);
        if (count_holds(e, share->first)) /* has renew() given it up? */
            s->in_doubt |= atomic_load(&e->out);
        return;
    }
    const bool forgotten = e->base.forgetful || share->err == WQ_ELOST;
    if (share->err == WQ_ELOST)
        share->err = WQ_EAWAY;
    fail_ops(share->first, share->err);
    if (share->err == WQ_EAWAY && !forgotten)
        return;
    wq__spread_put_out(s, p);
    if (share->err == WQ_EAWAY)
        s->must_reconcile = true;
    else
        s->in_doubt = true;
}

/* What the batch returns. Operations of a partition that is out have not
 * happened, and are WQ_EAWAY: if others have, the next batch reconciles. */
static wq_err
verdict(struct wq__spread *s)
{
    if (s->in_doubt)
        return WQ_EIO;
    if (!s->must_reconcile || s->happened)
        return WQ_OK;
    s->base.forgetful = true;
    return WQ_EAWAY;
}

wq_err
wq__spread_run_shares(struct wq__spread *s)
{
    for (unsigned p = 0; p < s->n; p++)
        if (s->share[p].runs)
            prepare(s, p);
    if (s->must_reconcile && !s->happened)
        return verdict(s);
    for (unsigned p = 0; p < s->n; p++)
        if (s->share[p].runs && !s->share[p].err)
            wq__redis_begin_run(s->part[p], s->share[p].first, true);
    for (unsigned p = 0; p < s->n; p++) {
        struct wq__share *share = &s->share[p];

        if (!share->runs)
            continue;
        if (!share->err) {
            atomic_store(&s->part[p]->has_news, false);
            share->err =
                wq__redis_end_run(s->part[p], share->first, &share->pulse);
            judge(s, p);
        } else {
            fail_ops(share->first, share->err);
        }
    }
    for (unsigned p = 0; p < s->n; p++)
        s->share[p].runs = false;
    return verdict(s);
}

/* ---- results -------------------------------------------------------------- */

/* A part of a divided add: the keys get what is known of them. An error stays;
 * if other partitions have added theirs, it may be repeated. */
static void
give_part(struct wq__copy *c, bool first)
{
    struct wq__op *op = c->of;
    const wq_err   before = first ? c->op.err : op->err;
    const wq_err   err = c->op.err;

    for (size_t i = 0; !err && i < c->op.as.add.n; i++) {
        if (op->as.add.added)
            op->as.add.added[c->index[i]] = c->op.as.add.added[i];
        if (op->as.add.delayed)
            op->as.add.delayed[c->index[i]] = c->op.as.add.delayed[i];
    }
    if (err == WQ_EGIVENUP) {
        op->as.add.given_up = c->index[c->op.as.add.given_up];
        op->as.add.retries = c->op.as.add.retries;
        op->err = err;
    } else if (before == WQ_EGIVENUP) {
        op->err = before;
    } else {
        op->err = !err == !before ? before : WQ_EIO;
    }
}

static void
give(struct wq__copy *c, bool first)
{
    struct wq__op *op = c->of, *next = op->next;

    if (c->index) {
        give_part(c, first);
    } else if (op->kind == WQ__OP_GET) {
        op->err = c->op.err;
        op->as.get.n = c->op.as.get.n;
    } else {
        *op = c->op;
        op->next = next;
    }
}

static bool
is_of_same(const struct wq__spread *s, size_t i)
{
    return i && s->copies[i - 1].of == s->copies[i].of;
}

static void
give_results(struct wq__spread *s)
{
    for (size_t i = 0; i < s->copies_len; i++)
        if (!s->copies[i].skipped)
            give(&s->copies[i], !is_of_same(s, i));
}

/* Divided adds of keys that may be given up: one partition after the other, until
 * one has failed. */
static wq_err
run_cautiously(struct wq__spread *s)
{
    wq_err err = WQ_OK;

    for (size_t i = 0; i < s->copies_len && !err; i++) {
        struct wq__copy *c = &s->copies[i];

        if (!c->index || !may_give_up(s, &c->op))
            continue;
        c->skipped = is_of_same(s, i) &&
                     (s->copies[i - 1].skipped || s->copies[i - 1].op.err);
        if (c->skipped)
            continue;
        wq__spread_ask(s, c->part, &c->op);
        err = wq__spread_run_shares(s);
    }
    return err;
}

/* ---- the engine ----------------------------------------------------------- */

static void
sum_up(struct wq__spread *s, struct wq__pulse *pulse)
{
    *pulse = (struct wq__pulse){.did = s->did, .next_ns = WQ_FOREVER};
    s->did = (struct wq__did){.adds = 0};
    for (unsigned p = 0; p < s->n; p++) {
        const int64_t next_ns = time_here(s, p, s->seen[p].next_ns);

        pulse->ready += s->seen[p].ready;
        pulse->held += s->seen[p].held;
        pulse->dirty += s->seen[p].dirty;
        if (next_ns < pulse->next_ns)
            pulse->next_ns = next_ns;
    }
}

/* A look at all partitions is one only if all answer. */
static wq_err
error_of_look(const struct wq__spread *s, const struct wq__op *batch)
{
    for (unsigned p = 0; !batch && p < s->n; p++)
        if (s->share[p].err)
            return s->share[p].err;
    return WQ_OK;
}

static wq_err
run_looks(struct wq__spread *s, struct wq__op *batch)
{
    wq_err err = WQ_OK;

    for (struct wq__op *op = batch; op && !err; op = op->next)
        if (is_view(op))
            err = wq__spread_look(s, op);
    return err;
}

static wq_err
spread_run(struct wq__engine *base, struct wq__op *batch,
           struct wq__pulse *pulse)
{
    struct wq__spread *s = wq__spread_of(base);
    wq_err             err = plan(s, batch);

    if (err)
        return err;
    s->must_reconcile = atomic_load(&s->unreported) || s->reconcile_next;
    err = wq__spread_run_shares(s);
    if (!err)
        err = error_of_look(s, batch);
    if (!err)
        err = run_cautiously(s);
    if (err)
        return err;
    give_results(s);
    err = wq__spread_get_more(s, batch);
    if (!err)
        err = run_looks(s, batch);
    s->reconcile_next = s->must_reconcile;
    if (!err)
        sum_up(s, pulse);
    return err;
}

const struct wq__engine_ops wq__spread_ops = {
    .name = "redis",
    .run = spread_run,
    .renew = wq__spread_renew,
    .reconcile = wq__spread_reconcile,
    .wait = wq__spread_wait,
    .kick = wq__spread_kick,
    .fd = wq__spread_fd,
    .close = wq__spread_close,
};
