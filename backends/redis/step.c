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

/* How much of each kind there is in a call. */
struct tally {
    size_t finishes, adds; /* keys */
    size_t wanted;         /* keys that gets want */
    bool   prioritized;    /* an add has a priority */
};

/* How many keys a get wants; more than a million would keep the server for too
 * long. */
static size_t
wanted_by(const struct wq__op *get)
{
    return get->as.get.max < 1000000 ? get->as.get.max : 1000000;
}

/* How many keys the get after a finish wants, if it depends on that. */
static size_t
wanted_after(const struct wq__op *finish, const struct wq__op *end)
{
    const struct wq__op *get = finish->next;

    return get != end && get->kind == WQ__OP_GET &&
                   get->as.get.unless_failed == finish
               ? wanted_by(get)
               : 0;
}

static struct tally
count(const struct wq__op *ops, const struct wq__op *end)
{
    const struct wq__op *finish = NULL; /* the operation before */
    struct tally         n = {0};

    for (const struct wq__op *op = ops; op != end; op = op->next) {
        if (op->kind == WQ__OP_FINISH) {
            n.finishes++;
        } else if (op->kind == WQ__OP_ADD) {
            n.adds += op->as.add.n;
            n.prioritized |= op->as.add.how->priority != 0;
        } else if ((finish && op->as.get.unless_failed == finish) ||
                   !wq__op_is_held_back(op)) {
            n.wanted += wanted_by(op);
        }
        finish = op->kind == WQ__OP_FINISH ? op : NULL;
    }
    return n;
}

static void
put_priorities(struct wq__args *a, const struct wq__op *ops,
               const struct wq__op *end, const struct tally *n)
{
    unsigned char *to = wq__args_space(a, n->prioritized ? 4 * n->adds : 0);

    for (const struct wq__op *op = ops; to && op != end; op = op->next)
        for (size_t i = 0; op->kind == WQ__OP_ADD && i < op->as.add.n; i++) {
            wq__put_be(to, (uint32_t)op->as.add.how->priority, 4);
            to += 4;
        }
}

static void
put_outcomes(struct wq__args *a, const struct wq__op *ops,
             const struct wq__op *end, size_t finishes)
{
    unsigned char *to = wq__args_space(a, 5 * finishes);

    for (const struct wq__op *op = ops; to && op != end; op = op->next)
        if (op->kind == WQ__OP_FINISH) {
            *to++ = op->as.finish.result.outcome == WQ_RESULT_DONE ? 'D' : 'd';
            wq__put_be(to, wanted_after(op, end), 4);
            to += 4;
        }
}

static void
put_keys(struct wq__args *a, const struct wq__op *ops, const struct wq__op *end)
{
    for (const struct wq__op *op = ops; op != end; op = op->next)
        if (op->kind == WQ__OP_FINISH)
            wq__args_bytes(a, op->as.finish.key.data, op->as.finish.key.len);
    for (const struct wq__op *op = ops; op != end; op = op->next)
        for (size_t i = 0; op->kind == WQ__OP_ADD && i < op->as.add.n; i++)
            wq__args_bytes(a, op->as.add.keys[i].data, op->as.add.keys[i].len);
}

/* As they are in the record of a key that is HELD. */
static void
put_fence(struct wq__args *a, uint64_t fence, int64_t session)
{
    unsigned char bytes[7 + WQ__SID_BYTES];

    wq__put_be(bytes, fence, 7);
    wq__put_be(bytes + 7, (uint64_t)session, WQ__SID_BYTES);
    wq__args_copy(a, bytes, sizeof bytes);
}

static void
put_step(struct wq__redis *e, const struct wq__op *ops,
         const struct wq__op *end)
{
    struct wq__args   *a = &e->args;
    const bool         respects = e->rows.terms.retry & WQ_RETRY_RESPECT;
    const struct tally n = count(ops, end);

    wq__args_begin(a);
    wq__redis_put_session(a, e->session);
    wq__redis_put_time(e, a);
    wq__args_int(a, respects ? COMPLEX | BACKOFF : COMPLEX);
    wq__args_int(a, e->awake);
    wq__args_int(a, (int64_t)n.finishes);
    wq__args_int(a, (int64_t)n.adds);
    wq__args_int(a, (int64_t)n.wanted);
    put_priorities(a, ops, end, &n);
    put_outcomes(a, ops, end, n.finishes);
    put_keys(a, ops, end);
    for (const struct wq__op *op = ops; op != end; op = op->next)
        if (op->kind == WQ__OP_FINISH)
            put_fence(a, op->as.finish.fence, e->session);
}

/* ---- replies -------------------------------------------------------------- */

void
wq__redis_read_pulse(const redisReply *reply, size_t at,
                     struct wq__pulse *pulse)
{
    enum { DUE = 3, END = 5 };
    const bool has_due =
        wq__reply_at(reply, at + DUE)->type == REDIS_REPLY_INTEGER;
    const bool has_end =
        wq__reply_at(reply, at + END)->type == REDIS_REPLY_INTEGER;
    const int64_t due_us = wq__reply_int(reply, at + DUE);
    const int64_t end_us = wq__reply_int(reply, at + END);

    pulse->ready = (size_t)wq__reply_int(reply, at);
    pulse->held = (size_t)wq__reply_int(reply, at + 1);
    pulse->dirty = (size_t)wq__reply_int(reply, at + 2);
    pulse->next_ns = WQ_FOREVER;
    if (has_due && due_us < INT64_MAX / 1000)
        pulse->next_ns = due_us * 1000 + wq__reply_int(reply, at + DUE + 1);
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

/* `results`: empty, if all are new. */
static void
read_adds(struct wq__op *op, wq_key results, size_t from, struct wq__did *did)
{
    const char *const chars = results.data;

    op->err = WQ_OK;
    for (size_t i = 0; i < op->as.add.n; i++) {
        const wq_added what =
            results.len ? added_of(chars[from + i]) : WQ_ADDED_NEW;
        if (op->as.add.added)
            op->as.add.added[i] = what;
        if (op->as.add.delayed)
            op->as.add.delayed[i] = -1;
        did->adds += what == WQ_ADDED_NEW || what == WQ_ADDED_DIRTY;
        did->merged += what == WQ_ADDED_MERGED || what == WQ_ADDED_RAISED;
    }
}

/* Places in a reply; see step.lua. */
enum { PULSE = 4, FENCE = 10, LONG = 11, FINISHED = 12, ADDED, HANDED };

/* Keys that were handed out, one after the other. */
struct hand_outs {
    struct wq__redis *e;
    const redisReply *reply;
    size_t            at;    /* the next one */
    uint64_t          fence; /* of it */
};

/* A member of the ready order, and, unless it is a plain one, its record as it
 * was before; see head.lua. */
static wq_err
read_handed(struct hand_outs *h, struct wq__handed *out)
{
    enum { SEQ = 7, SINCE = 8, PLAIN = SEQ + 1 + SINCE };
    const wq_key               member = wq__reply_bytes(h->reply, h->at++);
    const unsigned char *const bytes = member.data;
    const bool                 plain = member.len > SEQ && !bytes[SEQ];
    const size_t               before = plain ? PLAIN : SEQ + 1;
    struct wq__row             row = {.id = 1};

    if (member.len <= before)
        return wq__redis_fail_reply(h->e);
    if (plain) {
        row.image.since_ns = (int64_t)wq__get_be(bytes + SEQ + 1, SINCE);
    } else {
        const wq_key record = wq__reply_bytes(h->reply, h->at++);
        if (!record.len || !wq__record_unpack(record.data, record.len, &row))
            return wq__redis_fail_reply(h->e);
    }
    *out = (struct wq__handed){
        .key = {bytes + before, member.len - before},
        .priority = row.image.priority,
        .fence = h->fence++,
        .requeues = wq__row_requeues(&h->e->rows, &row),
        .waited_ns = wq__span_between(row.image.since_ns, h->e->rows.now_ns),
    };
    return WQ_OK;
}

/* Divide the keys among the gets, in order. */
static wq_err
read_gets(struct wq__redis *e, const redisReply *reply, struct wq__op *ops,
          const struct wq__op *end, struct wq__did *did)
{
    struct hand_outs h = {.e = e,
                          .reply = reply,
                          .at = HANDED,
                          .fence = (uint64_t)wq__reply_int(reply, FENCE)};

    for (struct wq__op *op = ops; op != end; op = op->next) {
        if (op->kind != WQ__OP_GET)
            continue;
        op->err = WQ_OK;
        op->as.get.n = 0;
        if (wq__op_is_held_back(op))
            continue;
        while (op->as.get.n < op->as.get.max && h.at < reply->elements) {
            struct wq__handed handed;
            wq_err            err = read_handed(&h, &handed);
            if (!err)
                err = wq__redis_hand_over(op, &handed);
            if (err)
                return err;
            did->gets++;
        }
    }
    return WQ_OK;
}

/* One result for each, or none: all are as usual. */
static bool
are_results(wq_key results, size_t n)
{
    return !results.len || results.len == n;
}

static bool
is_as_expected(const redisReply *reply, struct tally n)
{
    return wq__reply_is(reply, "OK") && wq__reply_bytes(reply, 1).len == 8 &&
           reply->elements >= HANDED &&
           are_results(wq__reply_bytes(reply, FINISHED), n.finishes) &&
           are_results(wq__reply_bytes(reply, ADDED), n.adds);
}

static wq_err
read_results(struct wq__redis *e, const redisReply *reply, struct wq__op *ops,
             const struct wq__op *end, struct wq__pulse *pulse)
{
    const wq_key finished = wq__reply_bytes(reply, FINISHED);
    const wq_key added = wq__reply_bytes(reply, ADDED);
    size_t       finishes = 0, adds = 0;

    if (!is_as_expected(reply, count(ops, end)))
        return wq__redis_fail_reply(e);
    for (struct wq__op *op = ops; op != end; op = op->next) {
        if (op->kind == WQ__OP_FINISH) {
            const bool lost =
                finished.len && ((const char *)finished.data)[finishes] != 'o';
            finishes++;
            op->err = lost ? WQ_ELOST : WQ_OK;
            pulse->did.dones += !lost;
        } else if (op->kind == WQ__OP_ADD) {
            read_adds(op, added, adds, &pulse->did);
            adds += op->as.add.n;
        }
    }
    wq__redis_read_pulse(reply, PULSE, pulse);
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

static void
exchange(struct wq__args *a, struct wq__args *b)
{
    const struct wq__args was = *a;

    *a = *b;
    *b = was;
}

/* The arguments are kept: a server that has forgotten the script gets them once
 * more. */
wq_err
wq__step_send_ahead(struct wq__redis *e, const struct wq__op *ops,
                    const struct wq__op *end)
{
    const size_t i = e->wire.n_ahead;

    put_step(e, ops, end);
    const wq_err err = wq__redis_send_ahead(e, WQ__SCRIPT_STEP);
    if (e->wire.n_ahead > i) {
        exchange(&e->args, &e->ahead[i]);
        e->sessions[i] = atomic_load(&e->session);
    }
    return err;
}

/* Returns the session in which it was sent. */
static int64_t
resume(struct wq__redis *e)
{
    const int64_t session = e->sessions[0];

    exchange(&e->args, &e->ahead[0]);
    for (size_t i = 1; i < WQ__WIRE_AHEAD; i++) {
        exchange(&e->ahead[i - 1], &e->ahead[i]);
        e->sessions[i - 1] = e->sessions[i];
    }
    wq__wire_resume(&e->wire);
    return session;
}

/* A batch of a session that the handle has given up since: what it got has been
 * given back. */
static bool
is_of_former(const struct wq__redis *e, int64_t session)
{
    return session != atomic_load(&e->session) || atomic_load(&e->unreported);
}

wq_err
wq__step_run(struct wq__redis *e, struct wq__op *ops, const struct wq__op *end,
             struct wq__pulse *pulse, enum wq__way *way)
{
    wq_err err = WQ_OK;

    for (*way = WQ__WAY_MORE; !err && *way == WQ__WAY_MORE;) {
        redisReply *reply = NULL;
        const bool  begun = e->begun;
        int64_t     session = 0;

        if (begun)
            session = resume(e);
        else
            put_step(e, ops, end);
        e->begun = false;
        err = wq__redis_call(e, WQ__SCRIPT_STEP, &reply);
        if (err)
            return err;
        *way = way_of(reply);
        pulse->did.adds += (uint64_t)wq__reply_int(reply, 2);
        pulse->did.merged += (uint64_t)wq__reply_int(reply, 3);
        if (*way == WQ__WAY_DONE && begun && is_of_former(e, session)) {
            err = wq_fail(WQ_EIO, "redis: the lease has ended in a batch");
        } else if (*way == WQ__WAY_DONE) {
            err = read_results(e, reply, ops, end, pulse);
            if (!err && wq__reply_int(reply, LONG))
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
