/* SPDX-License-Identifier: MIT */
/* engine.c: how does a batch reach the server, and in which session?
 *
 * A batch is cut into runs of operations of one kind: those of the short way
 * (step.c), those of the long way (rows.c), and looks (view.c). Mostly it is one
 * run of the first kind: one round trip.
 *
 * Sessions. The server keeps the end of each session's lease. It refuses every
 * batch and every renewal of a session that has ended, for good: then all holds
 * of this handle are lost, and a new session begins, with another id.
 *
 * Errors. Nothing was sent: WQ_EAWAY. Something was, and the reply is missing:
 * WQ_EIO, and the shell calls reconcile(), which gives back what the server has
 * handed out and nobody here knows of. It also does so when the connection is a
 * new one: the server may be another, or have gone back to what was on its disk.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"
#include "error/error.h"
#include "port/random.h"
#include "port/time.h"
#include "store.h"

static struct wq__redis *
engine_of(struct wq__engine *e)
{
    return (struct wq__redis *)(void *)e;
}

/* ---- calls ---------------------------------------------------------------- */

void
wq__redis_put_time(struct wq__redis *e, struct wq__args *a)
{
    unsigned char bytes[8];

    if (e->own_clock) {
        wq__args_bytes(a, "", 0);
        return;
    }
    wq__put_be(bytes, (uint64_t)e->base.clock->now(e->base.clock), 8);
    wq__args_copy(a, bytes, sizeof bytes);
}

void
wq__redis_put_session(struct wq__args *a, int64_t session)
{
    unsigned char bytes[WQ__SID_BYTES];

    wq__put_be(bytes, (uint64_t)session, sizeof bytes);
    wq__args_copy(a, bytes, session ? sizeof bytes : 0);
}

/* Has the server answered? Other errors are answers. */
static wq_err
note_answer(struct wq__redis *e, wq_err err)
{
    const bool away = err == WQ_EAWAY || err == WQ_EIO;

    if (atomic_load(&e->away) != away)
        atomic_store(&e->away, away);
    return err;
}

/* Every script answers with a list of a word and the time, or AGAIN alone. */
static bool
is_of_script(const redisReply *reply)
{
    return wq__reply_bytes(reply, 1).len == 8 || wq__reply_is(reply, "AGAIN");
}

wq_err
wq__redis_fail_reply(const struct wq__redis *e)
{
    return wq_fail(WQ_EIO,
                   "redis: %s does not answer as the scripts of wq do: is it a "
                   "Redis or Valkey server?",
                   e->target.name);
}

static wq_err
call(struct wq__redis *e, struct wq__wire *w, struct wq__args *args,
     enum wq__script script, redisReply **reply)
{
    const wq_err err = wq__script_run(w, &e->names, script, args, reply);

    if (err)
        return err;
    wq_err       said = WQ_OK;
    const wq_key now = wq__reply_bytes(*reply, 1);

    if (!is_of_script(*reply))
        said = wq__redis_fail_reply(e);
    else if (now.len == 8 && e->own_clock &&
             !wq__redis_clock_note(&e->clock, (int64_t)wq__get_be(now.data, 8),
                                   w->sent_ns))
        said = wq_fail(WQ_EIO,
                       "redis: by the clock of %s it is before 1970 or after "
                       "2116: set it",
                       e->target.name);
    if (said) {
        freeReplyObject(*reply);
        *reply = NULL;
    }
    return said;
}

static bool
is_confirmed(const struct wq__redis *e, enum wq__script script)
{
    return e->confirms &&
           (script == WQ__SCRIPT_STEP || script == WQ__SCRIPT_COMMIT);
}

wq_err
wq__redis_send_ahead(struct wq__redis *e, enum wq__script script)
{
    e->wire.confirm = is_confirmed(e, script) ? &e->confirm : NULL;
    const wq_err err =
        wq__script_send_ahead(&e->wire, &e->names, script, &e->args);
    e->wire.confirm = NULL;
    return err;
}

wq_err
wq__redis_call(struct wq__redis *e, enum wq__script script, redisReply **reply)
{
    const bool confirms = is_confirmed(e, script);

    e->wire.confirm = confirms ? &e->confirm : NULL;
    wq_err err = call(e, &e->wire, &e->args, script, reply);
    e->wire.confirm = NULL;
    if (!err && wq__reply_bytes(*reply, 1).len == 8)
        e->rows.now_ns =
            (int64_t)wq__get_be(wq__reply_bytes(*reply, 1).data, 8);
    if (!err && confirms && wq__reply_is(*reply, "OK")) {
        err = wq__replicas_judge(e, &e->confirm);
        if (err) {
            freeReplyObject(*reply);
            *reply = NULL;
        }
    }
    return err;
}

/* ---- sessions ------------------------------------------------------------- */

static void
put_session_call(struct wq__redis *e, struct wq__args *a, int64_t session,
                 const char *what)
{
    wq__args_begin(a);
    wq__redis_put_session(a, session);
    wq__redis_put_time(e, a);
    wq__args_bytes(a, what, strlen(what));
    wq__args_int(a, e->base.lease_ns / 1000);
    wq__redis_put_session(a, session + 1); /* the end of its keys in `held` */
    wq__args_int(a, e->parts);
    wq__args_bytes(a, e->target.client, strlen(e->target.client));
}

static wq_err
forgive(struct wq__redis *e, struct wq__wire *w, struct wq__args *a,
        bool *lives)
{
    redisReply *reply = NULL;

    put_session_call(e, a, atomic_load(&e->session), "forgive");
    const wq_err err = call(e, w, a, WQ__SCRIPT_SESSION, &reply);
    if (err)
        return err;
    atomic_store(&e->clock.stepped, false);
    *lives = wq__reply_is(reply, "OK");
    freeReplyObject(reply);
    return WQ_OK;
}

wq_err
wq__redis_forgive(struct wq__redis *e, bool *lives)
{
    *lives = false;
    return atomic_load(&e->clock.stepped)
               ? forgive(e, &e->wire, &e->args, lives)
               : WQ_OK;
}

static wq_err
fail_parts(const struct wq__redis *e, const redisReply *reply)
{
    return wq_fail(
        WQ_EINVAL,
        "redis: the queue '%s' in %s has partitions=%" PRId64
        ", not %u: open it with the former; to change it, work until "
        "no key is left, close all of its handles, and delete "
        "wq:{%s}:meta",
        e->queue, e->target.name, wq__reply_int(reply, 2), e->parts, e->queue);
}

wq_err
wq__redis_change_session(struct wq__redis *e, int64_t session, const char *what)
{
    redisReply *reply = NULL;

    put_session_call(e, &e->args, session, what);
    wq_err err = wq__redis_call(e, WQ__SCRIPT_SESSION, &reply);
    if (err)
        return err;
    if (wq__reply_is(reply, "NEWER"))
        err = wq_fail(WQ_EVERSION,
                      "redis: the queue in %s was made by a newer release of "
                      "wq (format %.10s)",
                      e->target.name,
                      (const char *)wq__reply_bytes(reply, 2).data);
    else if (wq__reply_is(reply, "PARTS"))
        err = fail_parts(e, reply);
    else if (wq__reply_is(reply, "LOST"))
        err = WQ_ELOST;
    else if (strcmp(what, "check") == 0)
        e->parts_stored = wq__reply_int(reply, 2) == 1;
    freeReplyObject(reply);
    return err;
}

wq_err
wq__redis_new_id(int64_t *id)
{
    uint64_t   random = 0;
    const bool known = wq__random(&random, sizeof random) == 0;

    *id = (int64_t)(random >> 1);
    return known && *id
               ? WQ_OK
               : wq_fail(WQ_EAWAY, "redis: the system has no random numbers");
}

static wq_err
begin_session(struct wq__redis *e, int64_t id)
{
    const wq_err err = wq__redis_change_session(e, id, "begin");

    if (!err)
        atomic_store(&e->session, id);
    return err;
}

wq_err
wq__redis_rejoin(struct wq__redis *e, int64_t id, bool expired)
{
    const int64_t old = e->session;
    wq_err        err = WQ_OK;

    if (old)
        err = wq__redis_release(e, old, expired, NULL, 0);
    if (!err && old)
        err = wq__redis_change_session(e, old, "end");
    if (err)
        return err;
    atomic_store(&e->session, 0);
    return begin_session(e, id);
}

/* The session has ended, or the shell has not heard of it: its keys are given
 * back, and another one begins. */
static wq_err
replace_session(struct wq__redis *e, bool expired)
{
    int64_t id;

    atomic_store(&e->unreported, true);
    const wq_err err = wq__redis_new_id(&id);
    return err ? err : wq__redis_rejoin(e, id, expired);
}

/* *lost: a new session has begun. */
static wq_err
ensure_session(struct wq__redis *e, bool *lost)
{
    if (e->session && !atomic_load(&e->unreported))
        return WQ_OK;
    *lost = true;
    return replace_session(e, false);
}

/* ---- batches -------------------------------------------------------------- */

enum kind { SHORT, LONG, VIEW };

static enum kind
kind_of(const struct wq__redis *e, const struct wq__op *op)
{
    return wq__step_knows(e, op) ? SHORT : wq__view_knows(op) ? VIEW : LONG;
}

/* The end of the run of operations of one kind that begins with `op`. */
static struct wq__op *
end_of_run(const struct wq__redis *e, struct wq__op *op)
{
    const enum kind kind = kind_of(e, op);

    do
        op = op->next;
    while (op && kind != VIEW && kind_of(e, op) == kind);
    return op;
}

/* The short way if it is `kind`, and the long one where that does not do; *way is
 * the last one. */
static wq_err
run_way(struct wq__redis *e, struct wq__op *ops, const struct wq__op *end,
        enum kind kind, struct wq__pulse *pulse, enum wq__way *way, bool *lost)
{
    wq_err err = WQ_OK;

    *way = WQ__WAY_LONG;
    if (kind == SHORT)
        err = wq__step_run(e, ops, end, pulse, way);
    *lost = !err && *way == WQ__WAY_LOST;
    if (err || *way != WQ__WAY_LONG)
        return err;
    return wq__redis_long_way(e, ops, end, pulse, lost);
}

/* A look comes after what deadlines and sessions that have ended have to do: the
 * long way ends one session each time. */
static wq_err
run_some(struct wq__redis *e, struct wq__op *ops, const struct wq__op *end,
         enum kind kind, struct wq__pulse *pulse, bool *lost)
{
    enum { SESSIONS = 1000 };
    enum wq__way way = WQ__WAY_LONG;
    wq_err       err = WQ_OK;

    if (kind != VIEW)
        return run_way(e, ops, end, kind, pulse, &way, lost);
    for (int i = 0; i < SESSIONS && way == WQ__WAY_LONG && !err && !*lost; i++)
        err = run_way(e, NULL, NULL, SHORT, pulse, &way, lost);
    return err || *lost ? err : wq__view_run(e, ops);
}

/* Carry out from *at on. *lost: the session has ended, and *at has not
 * happened. */
static wq_err
run_once(struct wq__redis *e, struct wq__op **at, struct wq__pulse *pulse,
         bool *lost)
{
    if (!*at)
        return run_some(e, NULL, NULL, SHORT, pulse, lost);
    while (*at) {
        struct wq__op *end = end_of_run(e, *at);
        const wq_err err = run_some(e, *at, end, kind_of(e, *at), pulse, lost);
        if (err || *lost)
            return err;
        *at = end;
    }
    return WQ_OK;
}

/* A session that only a step of the server's clock has ended goes on. */
static wq_err
run_from(struct wq__redis *e, struct wq__op **at, struct wq__pulse *pulse,
         bool *lost)
{
    bool   lives = false;
    wq_err err = run_once(e, at, pulse, lost);

    if (!err && *lost && !e->wire.stale)
        err = wq__redis_forgive(e, &lives);
    if (err || !lives)
        return err;
    *lost = false;
    return run_once(e, at, pulse, lost);
}

static wq_err
fail_lease(const struct wq__redis *e)
{
    return wq_fail(
        WQ_EAWAY,
        "redis: %s forgets this session at once: it evicts keys, or takes "
        "longer for a call than the lease lasts",
        e->target.name);
}

/* The batch before has happened after this one: find out what the store is like
 * now. If that fails, the shell must look soon. */
static void
refresh(struct wq__redis *e, struct wq__pulse *out)
{
    const struct wq__sentence said = wq__fail_save();
    bool                      lost = false;
    const wq_err              err = run_some(e, NULL, NULL, SHORT, out, &lost);

    if (err || lost)
        out->next_ns = 0;
    if (err)
        wq__fail_restore(&said);
}

static wq_err
run(struct wq__redis *e, struct wq__op *batch, struct wq__pulse *pulse)
{
    enum { TRIES = 4 }; /* a lease is longer than most calls */
    struct wq__pulse out = {.next_ns = WQ_FOREVER};
    struct wq__op   *at = batch;

    wq_err err = e->begun ? WQ_OK : ensure_session(e, &out.session_lost);
    for (int i = 0; i < TRIES && !err; i++) {
        bool lost = false;
        err = run_from(e, &at, &out, &lost);
        if (err) /* operations before it have happened */
            return at != batch ? WQ_EIO : err;
        if (!lost) {
            err = wq__replicas_end(e, batch);
            if (err)
                return err; /* the shell does not hear of a new session yet */
            if (e->wire.stale)
                refresh(e, &out);
            atomic_store(&e->unreported, false);
            atomic_store(&e->next_ns, out.next_ns);
            atomic_store(&e->ready, out.ready);
            atomic_store(&e->held, out.held);
            *pulse = out;
            return WQ_OK;
        }
        if (e->wire.stale) { /* the batch before has heard of it, too */
            err = ensure_session(e, &out.session_lost);
            continue;
        }
        if (at != batch) /* what it got is lost, what it finished is done */
            return wq_fail(WQ_EIO, "redis: the lease has ended in a batch");
        if (e->parts > 1) /* that concerns the others, too */
            return wq_fail(WQ_ELOST, "redis: the lease has ended");
        out.session_lost = true;
        err = replace_session(e, true);
    }
    if (err)
        return err;
    return fail_lease(e);
}

void
wq__redis_begin_run(struct wq__redis *e, struct wq__op *batch, bool ahead)
{
    wq__replicas_begin(e, batch);
    wq__redis_wake_up(e);
    if (ahead && (!batch || kind_of(e, batch) == SHORT))
        (void)wq__step_send_ahead(e, batch,
                                  batch ? end_of_run(e, batch) : NULL);
}

wq_err
wq__redis_end_run(struct wq__redis *e, struct wq__op *batch,
                  struct wq__pulse *pulse)
{
    const int64_t session = e->session;

    e->begun = e->wire.n_ahead > 0;
    const wq_err err = run(e, batch, pulse);
    wq__redis_woke_up(e, err == WQ_OK);
    if (e->session != session)
        wq__redis_session_changed(e);
    e->confirms = false;
    e->base.forgetful = e->wire.connects != e->wire.only;
    return note_answer(e, err);
}

static wq_err
redis_run(struct wq__engine *base, struct wq__op *batch,
          struct wq__pulse *pulse)
{
    struct wq__redis *e = engine_of(base);

    if (!e->wire.n_ahead)
        wq__redis_begin_run(e, batch, false);
    return wq__redis_end_run(e, batch, pulse);
}

/* Is it one call, with nothing to do before or after it? */
static bool
may_begin(struct wq__redis *e, struct wq__op *batch)
{
    return batch && kind_of(e, batch) == SHORT && !end_of_run(e, batch) &&
           atomic_load(&e->session) && !atomic_load(&e->unreported) &&
           !e->confirm.replicas && !atomic_load(&e->watched) &&
           (!atomic_load(&e->listed) || atomic_load(&e->waiting)) &&
           wq__wire_is_ready(&e->wire);
}

static bool
redis_begin(struct wq__engine *base, struct wq__op *batch)
{
    struct wq__redis *e = engine_of(base);

    if (!may_begin(e, batch))
        return false;
    const struct wq__sentence said = wq__fail_save();
    const size_t              n = e->wire.n_ahead;
    const wq_err              err = wq__step_send_ahead(e, batch, NULL);
    if (err)
        wq__fail_restore(&said); /* run() says why */
    if (err && err != WQ_EIO && e->wire.n_ahead > n)
        wq__wire_unsend(&e->wire); /* run() tries again */
    return e->wire.n_ahead > n;
}

/* From now on only this connection counts: a server that answers over another
 * one may be another, or have lost what it was told last. */
static wq_err
settle(struct wq__redis *e)
{
    e->wire.only = 0;
    const wq_err err = wq__wire_open(&e->wire);
    e->wire.only = e->wire.connects;
    return err;
}

/* Does the session live? */
static wq_err
ask_session(struct wq__redis *e, bool *ended)
{
    struct wq__pulse unused = {.ready = 0};
    struct wq__op   *none = NULL;

    return run_from(e, &none, &unused, ended);
}

wq_err
wq__redis_recheck(struct wq__redis *e, bool *ended)
{
    const wq_err err = settle(e);

    *ended = !e->session;
    return err || *ended ? err : ask_session(e, ended);
}

static wq_err
redis_reconcile(struct wq__engine *base, const struct wq__known *known,
                size_t n, bool *lost)
{
    struct wq__redis *e = engine_of(base);
    bool              replaced = false, ended = false;
    wq_err            err = settle(e);

    if (!err)
        err = ensure_session(e, &replaced);
    if (!err)
        err = ask_session(e, &ended);
    if (!err && ended) {
        replaced = true;
        err = replace_session(e, true);
    }
    if (!err && !replaced)
        err = wq__redis_release(e, e->session, false, known, n);
    if (err)
        return err;
    atomic_store(&e->unreported, false);
    *lost = replaced;
    return WQ_OK;
}

/* ---- beside batches ------------------------------------------------------- */

/* With the lock: the first one, at open, protects no hold. What comes after it
 * confirms it, too: replicas receive all in one order. */
static struct wq__confirm *
confirm_of_renewal(struct wq__redis *e)
{
    return e->side_confirm.replicas && e->was_renewed ? &e->side_confirm : NULL;
}

/* With the lock. */
static wq_err
send_renewal(struct wq__redis *e)
{
    bool unused;

    if (atomic_load(&e->clock.stepped)) {
        const wq_err err = forgive(e, &e->side_wire, &e->side_args, &unused);
        if (err)
            return err;
    }
    put_session_call(e, &e->side_args, e->renewing, "renew");
    e->side_wire.confirm = confirm_of_renewal(e);
    (void)wq__script_send_ahead(&e->side_wire, &e->names, WQ__SCRIPT_SESSION,
                                &e->side_args);
    return WQ_OK;
}

wq_err
wq__redis_begin_renewal(struct wq__redis *e)
{
    wq__lock_take(&e->side_lock);
    e->renewing = atomic_load(&e->session);
    if (!e->renewing || atomic_load(&e->unreported)) {
        wq__lock_release(&e->side_lock);
        return WQ_ELOST;
    }
    const wq_err err = send_renewal(e);
    if (err)
        wq__lock_release(&e->side_lock);
    return err;
}

static int64_t
lesser(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* With the lock: a renewal is sent after a third of the lease. However long calls
 * may take, it ends, and so does the beginning of a sleep, when there is time for
 * another one. (Not the first one: opening may take as long as a call.) */
static void
limit_renewals(struct wq__redis *e)
{
    const int64_t third_ns = e->base.lease_ns / 3;

    e->side_wire.timeout_ns = lesser(e->side_wire.timeout_ns, third_ns);
    e->side_confirm.timeout_ns =
        lesser(e->side_confirm.timeout_ns, third_ns / 4);
}

/* With the lock. */
static wq_err
receive_renewal(struct wq__redis *e)
{
    redisReply *reply = NULL;

    wq__wire_resume(&e->side_wire);
    wq_err err =
        call(e, &e->side_wire, &e->side_args, WQ__SCRIPT_SESSION, &reply);
    const bool confirms = e->side_wire.confirm != NULL;

    e->side_wire.confirm = NULL;
    if (err)
        return err;
    const bool lost = !wq__reply_is(reply, "OK");
    atomic_store(&e->base.kept, (size_t)wq__reply_int(reply, 2));
    freeReplyObject(reply);
    if (!lost && confirms)
        err = wq__replicas_judge(e, &e->side_confirm);
    if (err)
        return err;
    e->was_renewed = true;
    limit_renewals(e);
    /* Else it may be one that the shell has not heard of. */
    return lost || atomic_load(&e->unreported) ||
                   atomic_load(&e->session) != e->renewing
               ? WQ_ELOST
               : WQ_OK;
}

wq_err
wq__redis_end_renewal(struct wq__redis *e)
{
    wq_err err = receive_renewal(e);

    if (err == WQ_ELOST && atomic_load(&e->clock.stepped)) {
        err = send_renewal(e); /* the reply has told of a step of the clock */
        if (!err)
            err = receive_renewal(e);
    }
    wq__lock_release(&e->side_lock);
    return note_answer(e, err);
}

static wq_err
redis_renew(struct wq__engine *base)
{
    struct wq__redis *e = engine_of(base);
    const wq_err      err = wq__redis_begin_renewal(e);

    return note_answer(e, err ? err : wq__redis_end_renewal(e));
}

/* ---- life ----------------------------------------------------------------- */

wq_err
wq__redis_join(struct wq__redis *e, int64_t id)
{
    const wq_err err = begin_session(e, id);

    e->wire.only = e->wire.connects;
    return err;
}

/* The keys of the session become READY at once, without an expiry. If that
 * fails, they do when the lease ends. */
static void
leave(struct wq__redis *e)
{
    struct wq__pulse unused = {.ready = 0};
    enum wq__way     way;

    e->wire.only = 0;
    if (wq__redis_release(e, e->session, false, NULL, 0))
        return;
    wq__redis_wake_up(e);
    if (e->awake) /* a token for it is for another session */
        (void)wq__step_run(e, NULL, NULL, &unused, &way);
    wq__redis_woke_up(e, true);
    (void)wq__redis_change_session(e, e->session, "end");
}

void
wq__redis_free(struct wq__redis *e, bool forked)
{
    wq__redis_wait_fini(e, forked);
    wq__wire_fini(&e->wire, forked);
    wq__wire_fini(&e->side_wire, forked);
    if (e->rows.store)
        wq__rows_fini(&e->rows);
    wq__txn_fini(&e->txn);
    wq__args_fini(&e->args);
    for (size_t i = 0; i < WQ__WIRE_AHEAD; i++)
        wq__args_fini(&e->ahead[i]);
    wq__args_fini(&e->side_args);
    wq__target_fini(&e->target);
    free(e->handed);
    free(e);
}

void
wq__redis_close(struct wq__redis *e, bool forked)
{
    if (!forked && e->session)
        leave(e);
    wq__redis_free(e, forked);
}

static void
redis_close(struct wq__engine *base, bool forked)
{
    wq__redis_close(engine_of(base), forked);
}

const struct wq__engine_ops wq__redis_ops = {
    .name = "redis",
    .begin = redis_begin,
    .run = redis_run,
    .renew = redis_renew,
    .reconcile = redis_reconcile,
    .wait = wq__redis_wait,
    .kick = wq__redis_kick,
    .fd = wq__redis_fd,
    .close = redis_close,
};
