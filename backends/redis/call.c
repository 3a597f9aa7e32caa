/* SPDX-License-Identifier: MIT */
/* call.c: how do commands and replies on a wire belong together?
 *
 * A server answers in the order in which it was asked. Mostly a call sends its
 * command and receives the reply. To have several under way a command is sent
 * ahead, and its call resumes later, when it is the oldest of these. A call that
 * sends another command meanwhile first receives and keeps the replies to those
 * that were sent ahead; such a reply is stale when its call resumes: what this
 * process has learnt since, it did not know when it sent the command.
 *
 * If the connection is lost, so are all replies that were not received: WQ_EIO.
 */
#include "wire.h"

#include <assert.h>
#include <string.h>

#include "error/error.h"
#include "port/time.h"

static bool
is_awaited(const struct wq__sent *sent)
{
    return !sent->reply && !sent->err;
}

/* After a reply: bytes are still to come if commands were sent ahead. */
static void
note_reply(struct wq__wire *w)
{
    w->touched = false;
    for (size_t i = 0; i < w->n_ahead; i++)
        w->touched |= is_awaited(&w->ahead[i]);
}

static wq_err
send_command(struct wq__wire *w, const struct wq__arg *args, size_t n)
{
    wq_err err = wq__wire_open(w);

    if (err)
        return err;
    if (w->only && w->connects != w->only)
        return wq_fail(WQ_EAWAY, "redis: the connection to %s is a new one",
                       w->target->name);
    if (n)
        wq__wire_add(w, args, n);
    if (w->confirm)
        wq__confirm_add(w);
    w->sent_ns = wq__time_boottime();
    err = wq__wire_send(w);
    w->deadline_ns = wq__time_now() + w->timeout_ns;
    return err;
}

wq_err
wq__wire_send_ahead(struct wq__wire *w, const struct wq__arg *args, size_t n)
{
    assert(w->n_ahead < WQ__WIRE_AHEAD);
    const wq_err err = send_command(w, args, n);

    w->ahead[w->n_ahead++] = (struct wq__sent){
        .sent_ns = w->sent_ns, .deadline_ns = w->deadline_ns, .err = err};
    return err;
}

void
wq__wire_unsend(struct wq__wire *w)
{
    assert(w->n_ahead > 0);
    w->n_ahead--;
}

void
wq__wire_resume(struct wq__wire *w)
{
    w->resumes = w->n_ahead > 0;
}

/* A reply has come: the server begins with the next command only now. */
static void
prolong(struct wq__wire *w)
{
    for (size_t i = 0; i < w->n_ahead; i++)
        w->ahead[i].deadline_ns = wq__time_now() + w->timeout_ns;
}

/* The other half: the reply to the oldest of them. */
static wq_err
resume(struct wq__wire *w, redisReply **out)
{
    struct wq__sent oldest = w->ahead[0];

    w->n_ahead--;
    memmove(w->ahead, w->ahead + 1, w->n_ahead * sizeof *w->ahead);
    w->sent_ns = oldest.sent_ns;
    w->deadline_ns = oldest.deadline_ns;
    if (is_awaited(&oldest)) {
        oldest.err = wq__wire_receive(w, w->deadline_ns, &oldest.reply);
        note_reply(w);
        prolong(w);
    } else if (oldest.err == WQ_EIO) {
        /* Another thread may have met the error. */
        (void)wq_fail(WQ_EIO, "redis: %s: %s", w->target->name, w->broken);
    }
    *out = oldest.reply;
    return oldest.err;
}

void
wq__wire_keep_replies(struct wq__wire *w)
{
    if (!w->n_ahead)
        return;
    const struct wq__sentence said = wq__fail_save();

    for (size_t i = 0; i < w->n_ahead; i++) {
        struct wq__sent *sent = &w->ahead[i];

        if (!is_awaited(sent))
            continue;
        assert(!w->confirm); /* there would be more than one reply to each */
        sent->err = wq__wire_receive(w, sent->deadline_ns, &sent->reply);
        note_reply(w);
    }
    if (wq__fail_count() != said.number)
        wq__fail_restore(&said);
}

static wq_err
exchange(struct wq__wire *w, const struct wq__arg *args, size_t n,
         redisReply **out)
{
    wq__wire_keep_replies(w); /* the reply to this command comes behind them */
    const wq_err err = send_command(w, args, n);
    return err || !n ? err : wq__wire_receive(w, w->deadline_ns, out);
}

wq_err
wq__wire_call(struct wq__wire *w, const struct wq__arg *args, size_t n,
              redisReply **out)
{
    w->stale = w->resumes && !is_awaited(&w->ahead[0]);
    wq_err err = w->resumes ? resume(w, out) : exchange(w, args, n, out);

    w->resumes = false;
    if (!err && w->confirm) {
        err = wq__confirm_receive(w, w->deadline_ns + w->confirm->timeout_ns);
        if (err && n) {
            freeReplyObject(*out);
            *out = NULL;
        }
    }
    return err;
}
