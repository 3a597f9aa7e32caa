/* SPDX-License-Identifier: MIT */
/* replicas.c: have the server's replicas what a batch has changed?
 *
 * The server copies its changes to replicas later. With replicas=N every script
 * that may keep a promise is followed by WAIT, in the same packet: the server
 * answers when N replicas have confirmed all that this connection has written.
 * If they do not in time, the batch is WQ_EIO: it has happened in the server, but
 * another server that takes its place may not know.
 *
 * A call may promise something that another connection has written: an add of a
 * key that is READY, the repetition of a finish. WAIT knows only what its own
 * connection wrote, so each of them writes a field that nobody reads first. A
 * server whose memory is full refuses that: then adds are not confirmed.
 *
 * A get is confirmed if it has handed out a key, else two could hold it after a
 * failover; and so is a renewal, on its own connection: a holder that is cut off
 * with a primary that others have replaced loses its certainty. Looks are not.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "error/error.h"
#include "store.h"

/* ---- on a wire ------------------------------------------------------------ */

void
wq__confirm_add(struct wq__wire *w)
{
    struct wq__confirm *c = w->confirm;
    char                replicas[16], ms[24];

    c->acks = 0;
    c->problem[0] = '\0';
    (void)snprintf(replicas, sizeof replicas, "%u", c->replicas);
    (void)snprintf(ms, sizeof ms, "%" PRId64,
                   (c->timeout_ns - 1) / 1000000 + 1);
    wq__wire_add_words(w, (const char *[]){"HSET", c->touched, "touch", ""}, 4);
    wq__wire_add_words(w, (const char *[]){"WAIT", replicas, ms}, 3);
}

wq_err
wq__confirm_receive(struct wq__wire *w, int64_t deadline_ns)
{
    struct wq__confirm *c = w->confirm;

    for (int i = 0; i < 2; i++) {
        redisReply  *reply = NULL;
        const wq_err err = wq__wire_receive(w, deadline_ns, &reply);

        if (err)
            return err;
        if (wq__reply_is_error(reply, NULL) && (i || c->must_touch))
            (void)snprintf(c->problem, sizeof c->problem, "%s", reply->str);
        if (i && reply->type == REDIS_REPLY_INTEGER && reply->integer > 0)
            c->acks = (unsigned)reply->integer;
        freeReplyObject(reply);
    }
    return WQ_OK;
}

/* ---- batches -------------------------------------------------------------- */

static bool
promises(const struct wq__op *op)
{
    switch (op->kind) {
    case WQ__OP_ADD:
    case WQ__OP_FINISH:
    case WQ__OP_RESUME:
    case WQ__OP_REMOVE:
    case WQ__OP_CANCEL:
    case WQ__OP_FORGET:
    case WQ__OP_REVIVE:
        return true;
    default:
        return false;
    }
}

void
wq__replicas_begin(struct wq__redis *e, const struct wq__op *batch)
{
    e->confirms = e->confirm.must_touch = false;
    for (; batch && e->confirm.replicas; batch = batch->next) {
        e->confirms |= promises(batch);
        e->confirm.must_touch |= batch->kind == WQ__OP_ADD;
    }
}

wq_err
wq__replicas_judge(const struct wq__redis *e, const struct wq__confirm *c)
{
    if (*c->problem)
        return wq_fail(WQ_EIO,
                       "redis: it may have happened: %s does not wait for "
                       "replicas: %s",
                       e->target.name, c->problem);
    if (c->acks < c->replicas)
        return wq_fail(WQ_EIO,
                       "redis: it may have happened: %u of %u replicas of %s "
                       "have confirmed it in time",
                       c->acks, c->replicas, e->target.name);
    return WQ_OK;
}

static bool
has_handed_out(const struct wq__op *batch)
{
    for (; batch; batch = batch->next)
        if (batch->kind == WQ__OP_GET && !batch->err && batch->as.get.n)
            return true;
    return false;
}

wq_err
wq__replicas_end(struct wq__redis *e, const struct wq__op *batch)
{
    const bool confirmed = e->confirms;
    wq_err     err = WQ_OK;

    e->confirms = false;
    if (!e->confirm.replicas || confirmed || !has_handed_out(batch))
        return WQ_OK;
    e->wire.confirm = &e->confirm;
    err = wq__wire_call(&e->wire, NULL, 0, NULL);
    e->wire.confirm = NULL;
    if (err) /* the keys are handed out */
        return WQ_EIO;
    return wq__replicas_judge(e, &e->confirm);
}
