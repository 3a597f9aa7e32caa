/* SPDX-License-Identifier: MIT */
/* step.c: how are common operations carried out in one round trip?
 *
 * By step.lua, which knows plain adds, gets, DONE and DROP. It carries out the
 * finishes first, then the adds, then the gets: operations of one batch are of
 * threads that call at the same time, and one thread finishes before it gets.
 */
#include "core/span.h"
#include "error/error.h"
#include "shared/op.h"
#include "store.h"

/* Flags of records that only the core understands: DEBOUNCED, COOLDOWN,
 * THROTTLED; and BACKOFF, if adds respect it. */
enum { COMPLEX = 8 | 32 | 64, BACKOFF = 2 };

/* ---- which ---------------------------------------------------------------- */

static bool
is_plain(const wq_add_options *how)
{
    return !how->rate_limited && how->after_ns <= 0 && !how->debounce_ns &&
           !how->throttle_ns && how->waiting == WQ_IF_WAITING_KEEP;
}

bool
wq__step_knows(const struct wq__redis *e, const struct wq__op *op)
{
    const wq_outcome outcome = op->as.finish.result.outcome;

    switch (op->kind) {
    case WQ__OP_ADD:
        return !e->rows.terms.max_len && is_plain(op->as.add.how);
    case WQ__OP_FINISH:
        return outcome == WQ_RESULT_DONE || outcome == WQ_RESULT_DROP;
    case WQ__OP_GET:
        return true;
    default:
        return false;
    }
}

/* ---- sending -------------------------------------------------------------- */

/* The number of the finish that a get depends on, from 1; 0: none of these. */
static int64_t
number_of(const struct wq__op *ops, const struct wq__op *end,
          const struct wq__op *finish)
{
    int64_t n = 0;

    for (const struct wq__op *op = ops; finish && op != end; op = op->next) {
        n += op->kind == WQ__OP_FINISH;
        if (op == finish)
            return n;
    }
    return 0;
}

static void
count(const struct wq__op *ops, const struct wq__op *end, int64_t n[3])
{
    n[0] = n[1] = n[2] = 0;
    for (const struct wq__op *op = ops; op != end; op = op->next) {
        n[0] += op->kind == WQ__OP_FINISH;
        n[1] += op->kind == WQ__OP_ADD ? (int64_t)op->as.add.n : 0;
        n[2] += op->kind == WQ__OP_GET;
    }
}

static void
put_finish(struct wq__args *a, const struct wq__op *op)
{
    unsigned char fence[7];

    wq__put_be(fence, op->as.finish.fence, sizeof fence);
    wq__args_bytes(a, op->as.finish.key.data, op->as.finish.key.len);
    wq__args_copy(a, fence, sizeof fence);
    wq__args_bytes(
        a, op->as.finish.result.outcome == WQ_RESULT_DONE ? "D" : "d", 1);
}

static void
put_add(struct wq__args *a, const struct wq__op *op)
{
    for (size_t i = 0; i < op->as.add.n; i++) {
        wq__args_bytes(a, op->as.add.keys[i].data, op->as.add.keys[i].len);
        wq__args_int(a, op->as.add.how->priority);
    }
}

/* A get that depends on a finish which is not of this call, and has failed. */
static bool
gets_nothing(const struct wq__op *op, int64_t number)
{
    return !number && wq__op_is_held_back(op);
}

static void
put_get(struct wq__args *a, const struct wq__op *op, int64_t number)
{
    const size_t max = op->as.get.max < 1000000 ? op->as.get.max : 1000000;

    wq__args_int(a, gets_nothing(op, number) ? 0 : (int64_t)max);
    wq__args_int(a, number);
}

static void
put_step(struct wq__redis *e, const struct wq__op *ops,
         const struct wq__op *end, bool awake)
{
    struct wq__args *a = &e->args;
    const bool       respects = e->rows.terms.retry & WQ_RETRY_RESPECT;
    int64_t          n[3];

    count(ops, end, n);
    wq__args_begin(a);
    wq__redis_put_session(a, e->session);
    wq__redis_put_time(e, a);
    wq__args_int(a, respects ? COMPLEX | BACKOFF : COMPLEX);
    wq__args_int(a, awake);
    for (int i = 0; i < 3; i++)
        wq__args_int(a, n[i]);
    for (const struct wq__op *op = ops; op != end; op = op->next)
        if (op->kind == WQ__OP_FINISH)
            put_finish(a, op);
    for (const struct wq__op *op = ops; op != end; op = op->next)
        if (op->kind == WQ__OP_ADD)
            put_add(a, op);
    for (const struct wq__op *op = ops; op != end; op = op->next)
        if (op->kind == WQ__OP_GET)
            put_get(a, op, number_of(ops, end, op->as.get.unless_failed));
}

/* ---- replies -------------------------------------------------------------- */

void
wq__redis_read_pulse(const redisReply *from, struct wq__pulse *pulse)
{
    const bool has_due = wq__reply_at(from, 3)->type == REDIS_REPLY_INTEGER;
    const bool has_end = wq__reply_at(from, 5)->type == REDIS_REPLY_INTEGER;
    int64_t    due_us = wq__reply_int(from, 3), end_us = wq__reply_int(from, 5);

    pulse->ready = (size_t)wq__reply_int(from, 0);
    pulse->held = (size_t)wq__reply_int(from, 1);
    pulse->dirty = (size_t)wq__reply_int(from, 2);
    pulse->next_ns = WQ_FOREVER;
    if (has_due && due_us < INT64_MAX / 1000)
        pulse->next_ns = due_us * 1000 + wq__reply_int(from, 4);
    if (has_end && end_us > INT64_MIN / 1000 && end_us < INT64_MAX / 1000 &&
        end_us * 1000 < pulse->next_ns)
        pulse->next_ns = end_us * 1000;
}

static wq_added
added_of(char what)
{
    return what == 'n'   ? WQ_ADDED_NEW
           : what == 'm' ? WQ_ADDED_MERGED
           : what == 'd' ? WQ_ADDED_DIRTY
           : what == 'r' ? WQ_ADDED_RAISED
                         : WQ_ADDED_DEAD;
}

static void
read_adds(struct wq__op *op, const char *results, struct wq__did *did)
{
    op->err = WQ_OK;
    for (size_t i = 0; i < op->as.add.n; i++) {
        const wq_added what = added_of(results[i]);
        if (op->as.add.added)
            op->as.add.added[i] = what;
        if (op->as.add.delayed)
            op->as.add.delayed[i] = -1;
        did->adds += what == WQ_ADDED_NEW || what == WQ_ADDED_DIRTY;
        did->merged += what == WQ_ADDED_MERGED || what == WQ_ADDED_RAISED;
    }
}

/* The i-th key that was handed out; its record is as it was before. */
static wq_err
read_handed(struct wq__redis *e, const redisReply *reply, size_t i,
            struct wq__handed *out)
{
    const redisReply *list = wq__reply_at(reply, 7);
    const wq_key      record = wq__reply_bytes(list, 2 * i + 1);
    struct wq__row    row;

    if (!wq__reply_bytes(list, 2 * i).len || !record.len ||
        !wq__record_unpack(record.data, record.len, &row))
        return wq__redis_fail_reply(e);
    *out = (struct wq__handed){
        .key = wq__reply_bytes(list, 2 * i),
        .priority = row.image.priority,
        .fence = (uint64_t)wq__reply_int(reply, 8) + i,
        .requeues = wq__row_requeues(&e->rows, &row),
        .waited_ns = wq__span_between(row.image.since_ns, e->rows.now_ns),
    };
    return WQ_OK;
}

/* Divide the keys among the gets, in order. */
static wq_err
read_gets(struct wq__redis *e, const redisReply *reply, struct wq__op *ops,
          const struct wq__op *end, struct wq__did *did)
{
    const size_t n = wq__reply_at(reply, 7)->elements / 2;
    size_t       at = 0;

    for (struct wq__op *op = ops; op != end; op = op->next) {
        if (op->kind != WQ__OP_GET)
            continue;
        op->err = WQ_OK;
        op->as.get.n = 0;
        if (wq__op_is_held_back(op))
            continue;
        size_t mine = n - at < op->as.get.max ? n - at : op->as.get.max;
        for (; mine; mine--, at++) {
            struct wq__handed handed;
            wq_err            err = read_handed(e, reply, at, &handed);
            if (!err)
                err = wq__redis_hand_over(op, &handed);
            if (err)
                return err;
        }
    }
    did->gets += n;
    return WQ_OK;
}

static bool
is_as_expected(const redisReply *reply, const int64_t n[3])
{
    return wq__reply_is(reply, "OK") && wq__reply_bytes(reply, 1).len == 8 &&
           wq__reply_bytes(reply, 5).len == (size_t)n[0] &&
           wq__reply_bytes(reply, 6).len == (size_t)n[1] &&
           wq__reply_at(reply, 7)->type == REDIS_REPLY_ARRAY;
}

static wq_err
read_results(struct wq__redis *e, const redisReply *reply, struct wq__op *ops,
             const struct wq__op *end, struct wq__pulse *pulse)
{
    const char *finished = wq__reply_bytes(reply, 5).data;
    const char *added = wq__reply_bytes(reply, 6).data;
    int64_t     n[3];

    count(ops, end, n);
    if (!is_as_expected(reply, n))
        return wq__redis_fail_reply(e);
    for (struct wq__op *op = ops; op != end; op = op->next) {
        if (op->kind == WQ__OP_FINISH) {
            op->err = *finished++ == 'o' ? WQ_OK : WQ_ELOST;
            pulse->did.dones += op->err == WQ_OK;
        } else if (op->kind == WQ__OP_ADD) {
            read_adds(op, added, &pulse->did);
            added += op->as.add.n;
        }
    }
    wq__redis_read_pulse(wq__reply_at(reply, 4), pulse);
    return read_gets(e, reply, ops, end, &pulse->did);
}

/* The next READY key is one that only the core understands: gets that want more
 * go the long way. What the batch did before has happened: so an error is
 * WQ_EIO. */
static wq_err
get_the_long_way(struct wq__redis *e, struct wq__op *ops,
                 const struct wq__op *end, struct wq__pulse *pulse)
{
    wq_err err = WQ_OK;
    bool   lost = false;

    for (struct wq__op *op = ops; op != end && !err && !lost; op = op->next) {
        if (op->kind != WQ__OP_GET || op->as.get.n == op->as.get.max)
            continue;
        struct wq__op more = *op;
        more.as.get.max -= op->as.get.n;
        err = wq__redis_long_way(e, &more, more.next, pulse, &lost);
        op->as.get.n += more.as.get.n;
        if (!op->as.get.n)
            op->err = more.err;
    }
    return lost || err ? WQ_EIO : WQ_OK;
}

static enum wq__way
way_of(const redisReply *reply)
{
    return wq__reply_is(reply, "LONG")   ? WQ__WAY_LONG
           : wq__reply_is(reply, "LOST") ? WQ__WAY_LOST
           : wq__reply_is(reply, "MORE") ? WQ__WAY_MORE
                                         : WQ__WAY_DONE;
}

wq_err
wq__step_run(struct wq__redis *e, struct wq__op *ops, const struct wq__op *end,
             struct wq__pulse *pulse, enum wq__way *way)
{
    wq_err err = WQ_OK;

    for (*way = WQ__WAY_MORE; !err && *way == WQ__WAY_MORE;) {
        redisReply *reply = NULL;
        const bool  awake = e->awake;

        put_step(e, ops, end, awake);
        err = wq__redis_call(e, WQ__SCRIPT_STEP, &reply);
        if (err)
            return err;
        *way = way_of(reply);
        pulse->did.adds += (uint64_t)wq__reply_int(reply, 2);
        pulse->did.merged += (uint64_t)wq__reply_int(reply, 3);
        if (*way == WQ__WAY_DONE) {
            err = read_results(e, reply, ops, end, pulse);
            if (!err && wq__reply_int(reply, 9))
                err = get_the_long_way(e, ops, end, pulse);
        }
        freeReplyObject(reply);
    }
    return err;
}

/* ---- handing over --------------------------------------------------------- */

/* If the shell has no memory for a key, the reconciliation after WQ_EIO gives it
 * back. */
wq_err
wq__redis_hand_over(struct wq__op *op, const struct wq__handed *handed)
{
    if (op->as.get.take && op->as.get.take(op->as.get.ctx, handed))
        return wq_fail(WQ_EIO, "redis: out of memory for a key that was got");
    op->as.get.n++;
    return WQ_OK;
}
