/* SPDX-License-Identifier: MIT */
/* engine.c: how does a batch become a transaction?
 *
 *     lock ─► BEGIN ─► ended sessions, deadlines, operations ─► COMMIT ─►
 *     counts and news for others ─► unlock ─► return     (durable.c: sync)
 *
 * The writer lock (side.h) is around every transaction and every checkpoint. The
 * kernel wakes those that wait for it; the locks of SQLite are tried again after
 * a while, and a process can starve. All that a batch reads is under it, too:
 * what one process has committed, the next one sees.
 *
 * Counts. The numbers of READY, HELD, ... keys are in the mapped file, where
 * reading them costs nothing. They are invalid from before a COMMIT until after
 * it: if the process dies there, or the answer is not clear, the next one counts
 * the rows.
 *
 * Errors before COMMIT: nothing has happened, WQ_EAWAY. From COMMIT on it may
 * have: WQ_EIO, and the shell reconciles.
 */
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"
#include "error/error.h"
#include "shared/op.h"
#include "store.h"

static struct wq__sqlite *
engine_of(struct wq__engine *e)
{
    return (struct wq__sqlite *)(void *)e;
}

/* ---- transactions --------------------------------------------------------- */

/* The file that is open is the one with the name? Keys in a file that was
 * deleted would be lost. */
static wq_err
check_file(struct wq__sqlite *e)
{
    int moved = 0;

    (void)sqlite3_file_control(e->db.sqlite, "main", SQLITE_FCNTL_HAS_MOVED,
                               &moved);
    return moved ? wq_fail(WQ_EAWAY,
                           "sqlite: '%s' was deleted or replaced while it was "
                           "open; open the queue again",
                           e->path)
                 : WQ_OK;
}

static void
reset(struct wq__sqlite *e)
{
    const struct wq__side_counts *counts = wq__side_counts(e->side, e->queue);

    wq__rows_begin(&e->rows, e->base.clock->now(e->base.clock),
                   *wq__side_last_number(e->side), &counts->keys);
    e->counted = counts->valid;
    e->wrote = false;
    e->locked = false;
    e->buries = 0;
    e->sync_first = false;
}

/* Takes the writer lock; an error releases it. `how` is one of the BEGINs. */
static wq_err
begin_as(struct wq__sqlite *e, enum wq__statement how)
{
    wq_err err = wq__side_lock(e->side);

    if (err)
        return err;
    err = check_file(e);
    if (!err)
        err = wq__db_run(&e->db, how);
    if (err) {
        wq__side_unlock(e->side);
        return err;
    }
    reset(e);
    return WQ_OK;
}

static wq_err
begin(struct wq__sqlite *e)
{
    return begin_as(e, WQ__SQL_BEGIN);
}

static void
roll_back(struct wq__sqlite *e)
{
    if (!sqlite3_get_autocommit(e->db.sqlite))
        (void)wq__db_run(&e->db, WQ__SQL_ROLLBACK);
}

/* The transaction has failed, and changed nothing. Keeps the sentence. */
static wq_err
abandon(struct wq__sqlite *e, wq_err err)
{
    const struct wq__sentence said = wq__fail_save();

    roll_back(e);
    wq__side_unlock(e->side);
    wq__fail_restore(&said);
    return err;
}

/* Write what depends on the whole batch. */
static wq_err
prepare_commit(struct wq__sqlite *e)
{
    wq_err err = wq__sqlite_save_bucket(e);

    if (!err)
        err = wq__sqlite_refresh_next(e); /* nothing to do after a batch */
    return !err && e->wrote ? wq__sqlite_reserve(e) : err;
}

/* A process that is killed in the middle leaves counts that are not valid. Only
 * the compiler must not change the order: the processor finishes the stores of
 * all instructions before the one at which the process ends. */
static void
store_counts(const struct wq__sqlite *e, struct wq__side_counts *counts)
{
    counts->valid = 0;
    atomic_signal_fence(memory_order_seq_cst);
    counts->keys = e->rows.counts;
    atomic_signal_fence(memory_order_seq_cst);
    counts->valid = e->counted;
}

/* With the lock: while COMMIT runs, nobody knows whether it has happened. The
 * process may be killed in between: so its numbers are used, and its commit is
 * one that is not synced, before others can see it. */
static wq_err
commit_writes(struct wq__sqlite *e)
{
    struct wq__side_counts *counts = wq__side_counts(e->side, e->queue);

    counts->valid = 0;
    *wq__side_last_number(e->side) = e->rows.number;
    ++*wq__side_commits(e->side);
    if (wq__sqlite_run_commit(e)) {
        const struct wq__sentence said = wq__fail_save();
        roll_back(e);
        wq__fail_restore(&said);
        return WQ_EIO;
    }
    if (e->sync == WQ_SQLITE_SYNC_ALL && !wq__side_is_unsure(e->side))
        wq__side_raise_synced(e->side, *wq__side_commits(e->side));
    store_counts(e, counts);
    return WQ_OK;
}

static wq_err
commit(struct wq__sqlite *e)
{
    const wq_err err = prepare_commit(e);

    if (err) {
        roll_back(e);
        return err;
    }
    if (e->wrote)
        return commit_writes(e);
    /* Nothing to lose: what was counted anew is right. */
    roll_back(e);
    store_counts(e, wq__side_counts(e->side, e->queue));
    return WQ_OK;
}

/* ---- news ----------------------------------------------------------------- */

/* With the lock: wake up sessions that must know what this one has done. */
static void
publish(struct wq__sqlite *e, const struct wq__row_counts *before)
{
    const struct wq__row_counts *after = &e->rows.counts;
    unsigned                     news = 0;
    const size_t                 ready = e->rows.made_ready < after->ready
                                             ? e->rows.made_ready
                                             : (size_t)after->ready;

    if (ready)
        news |= WQ__NEWS_READY;
    if ((before->ready && !after->ready) || (before->held && !after->held) ||
        after->next_ns < before->next_ns)
        news |= WQ__NEWS_OTHER;
    if (news)
        wq__side_publish(e->side, e->queue, news, ready);
}

/* The transaction ends well, or not: commit, tell others, unlock. */
static wq_err
end(struct wq__sqlite *e)
{
    const struct wq__row_counts before =
        wq__side_counts(e->side, e->queue)->keys;
    wq_err err = commit(e);

    if (err) {
        wq__side_unlock(e->side);
        return err;
    }
    if (e->buries)
        wq__side_bury(e->side, e->buries);
    wq__side_catch_up(e->side, e->queue);
    publish(e, &before);
    wq__sqlite_checkpoint(e);
    e->commits = *wq__side_commits(e->side);
    wq__side_unlock(e->side);
    return e->sync_first ? wq__sqlite_make_durable(e, e->commits) : WQ_OK;
}

/* ---- batches -------------------------------------------------------------- */

/* How many deadlines act in one transaction, which takes some 0.3 s then. */
enum { PROMOTIONS = 1 << 16 };

/* All that happens before the operations of a batch. */
static wq_err
catch_up(struct wq__sqlite *e, struct wq__did *did)
{
    wq_err err = e->counted ? WQ_OK : wq__sqlite_recount(e);

    if (!err)
        err = wq__sqlite_settle_others(e, did);
    return err ? err : wq__rows_promote(&e->rows, PROMOTIONS);
}

static int64_t
end_of_lease(const struct wq__sqlite *e)
{
    return e->base.lease_ns ? e->rows.now_ns + e->base.lease_ns : WQ_FOREVER;
}

/* With the lock. */
static wq_err
begin_session(struct wq__sqlite *e)
{
    e->session = 0;
    const wq_err err =
        wq__side_begin(e->side, e->queue, end_of_lease(e), &e->session);
    e->rows.holder = e->session;
    return !err && e->holder_pid
               ? wq__side_begin_for(e->side, e->queue, (uint32_t)e->holder_pid,
                                    &e->rows.holder)
               : err;
}

/* The own session has ended, or the shell has not heard of it: its keys are
 * given back, in a transaction of their own, and another one begins. */
static wq_err
replace_session(struct wq__sqlite *e, bool expired)
{
    wq_err err = begin(e);

    if (err)
        return err;
    if (!e->counted)
        err = wq__sqlite_recount(e);
    if (!err && e->session)
        err = wq__sqlite_return_own(e, expired);
    if (err)
        return abandon(e, err);
    err = end(e);
    if (err)
        return err;
    err = wq__side_lock(e->side);
    if (err)
        return err;
    if (e->session)
        wq__side_end(e->side);
    err = begin_session(e);
    if (e->base.lease_ns) /* others may have to wake up at its end */
        wq__side_publish(e->side, e->queue, WQ__NEWS_OTHER, 0);
    wq__side_unlock(e->side);
    return err;
}

/* *lost: a new session has begun. */
static wq_err
ensure_session(struct wq__sqlite *e, bool *lost)
{
    const int64_t now = e->base.clock->now(e->base.clock);
    const bool    ended = !e->session || wq__side_is_ended(e->side, now);

    *lost = ended || atomic_load(&e->unreported);
    if (!*lost)
        return WQ_OK;
    atomic_store(&e->unreported, true);
    return replace_session(e, ended);
}

static int64_t
next_of(struct wq__sqlite *e)
{
    const int64_t end_ns = wq__side_next_end(e->side, e->queue);

    if (e->rows.more_to_do)
        return e->rows.now_ns;
    return end_ns < e->rows.counts.next_ns ? end_ns : e->rows.counts.next_ns;
}

/* A check looks at the file as it is, also if it is damaged. */
static bool
is_check(const struct wq__op *batch)
{
    return batch && batch->kind == WQ__OP_CHECK && !batch->next;
}

/* What can be seen, beside single keys. */
static wq_err
look(struct wq__sqlite *e, struct wq__op *op)
{
    switch (op->kind) {
    case WQ__OP_STATS:
        return wq__sqlite_read_stats(e, op->as.stats);
    case WQ__OP_DEPTHS:
        return wq__sqlite_read_depths(e, op->as.depths.out, op->as.depths.max,
                                      op->as.depths.n);
    case WQ__OP_WALK:
        return wq__sqlite_walk(e, op);
    default:
        return wq__sqlite_check(e, op->as.check.problem, op->as.check.ctx);
    }
}

/* Does it perhaps repeat a finish whose sync has failed? Then the shell reports that
 * one (finish.c). */
static bool
may_repeat(const struct wq__op *op)
{
    return op->kind == WQ__OP_FINISH && op->err == WQ_ELOST;
}

/* An error ends the transaction. */
static wq_err
carry_out_one(struct wq__sqlite *e, struct wq__op *op, struct wq__did *did)
{
    if (op->kind < WQ__OP_STATS) {
        e->rows.promised = false;
        const wq_err err = wq__rows_carry_out(&e->rows, op, did);
        op->unsettled = e->rows.promised || may_repeat(op);
        return err;
    }
    op->err = look(e, op);
    return op->err == WQ_EAWAY || op->err == WQ_EIO ? op->err : WQ_OK;
}

/* In a transaction, which ends. */
static wq_err
carry_out(struct wq__sqlite *e, struct wq__op *batch, struct wq__pulse *pulse)
{
    const struct wq__tally before = e->rows.scratch.tally;
    wq_err err = is_check(batch) ? WQ_OK : catch_up(e, &pulse->did);

    for (struct wq__op *op = batch; op && !err; op = op->next)
        err = carry_out_one(e, op, &pulse->did);
    if (!err)
        err = wq__sqlite_refresh_next(e);
    if (err)
        return abandon(e, err);
    wq__did_count(&pulse->did, &before, &e->rows.scratch.tally);
    pulse->ready = e->rows.counts.ready;
    pulse->held = e->rows.counts.held;
    pulse->dirty = e->rows.counts.dirty;
    pulse->next_ns = next_of(e); /* needs the lock */
    err = end(e);
    if (!err && !wq__sqlite_is_durable(e, e->commits))
        pulse->settles = e->commits;
    return err;
}

/* Begin a transaction of a session that lives: it may end by time while the
 * thread waits for the writer lock. */
static wq_err
begin_in_session(struct wq__sqlite *e, enum wq__statement how, bool *lost)
{
    enum { TRIES = 8 }; /* a lease is longer than most waits */

    for (int i = 0; i < TRIES; i++) {
        wq_err err = ensure_session(e, lost);
        if (!err)
            err = begin_as(e, how);
        if (err || !wq__side_is_ended(e->side, e->rows.now_ns))
            return err;
        (void)abandon(e, WQ_OK);
    }
    return wq_fail(WQ_EAWAY,
                   "sqlite: '%s' is locked for longer than the lease lasts",
                   e->path);
}

/* An add of one key, which may find it READY: then it only reads. */
static bool
may_only_look(const struct wq__op *batch)
{
    return batch && batch->kind == WQ__OP_ADD && batch->as.add.n == 1 &&
           !batch->next;
}

static wq_err
run_as(struct wq__sqlite *e, enum wq__statement how, struct wq__op *batch,
       struct wq__pulse *pulse)
{
    struct wq__pulse out = {.ready = 0};
    wq_err           err = begin_in_session(e, how, &out.session_lost);

    if (!err)
        err = carry_out(e, batch, &out);
    if (err)
        return err;
    atomic_store(&e->unreported, false);
    *pulse = out;
    return WQ_OK;
}

/* A transaction that begins as one that reads takes SQLite's lock when it
 * writes: two calls of the kernel less if it does not. But it does not wait for
 * that lock if another program has it: then the batch begins anew. */
static wq_err
sqlite_run(struct wq__engine *base, struct wq__op *batch,
           struct wq__pulse *pulse)
{
    struct wq__sqlite *e = engine_of(base);

    wq__side_looks(e->side); /* also if it fails: an event loop must not spin */
    e->locked = false;
    if (may_only_look(batch)) {
        const wq_err err = run_as(e, WQ__SQL_BEGIN_TO_LOOK, batch, pulse);
        if (!e->locked)
            return err;
    }
    return run_as(e, WQ__SQL_BEGIN, batch, pulse);
}

static wq_err
sqlite_reconcile(struct wq__engine *base, const struct wq__known *known,
                 size_t n, bool *lost)
{
    struct wq__sqlite *e = engine_of(base);
    bool               replaced;

    wq__side_looks(e->side); /* as above: a batch that follows may not run */
    wq_err err = begin_in_session(e, WQ__SQL_BEGIN, &replaced);

    if (err)
        return err;
    if (!e->counted)
        err = wq__sqlite_recount(e);
    if (!err)
        err = wq__sqlite_release(e, known, n);
    if (err)
        return abandon(e, err);
    err = end(e);
    if (err)
        return err;
    atomic_store(&e->unreported, false);
    *lost = replaced;
    return WQ_OK;
}

/* ---- beside batches ------------------------------------------------------- */

static wq_err
sqlite_settle(struct wq__engine *base, uint64_t number)
{
    return wq__sqlite_make_durable(engine_of(base), number);
}

/* Another thread may be in run(): only what never changes, and the side. While
 * that thread has begun a session that the shell has not heard of, the one that
 * the shell means has ended. */
static wq_err
sqlite_renew(struct wq__engine *base)
{
    struct wq__sqlite *e = engine_of(base);
    const int64_t      now = e->base.clock->now(e->base.clock);

    if (!atomic_load(&e->unreported) &&
        wq__side_renew(e->side, now, now + e->base.lease_ns) &&
        !atomic_load(&e->unreported)) /* else it may be the new one */
        return WQ_OK;
    return WQ_ELOST;
}

static void
sqlite_wait(struct wq__engine *base, int64_t until_ns)
{
    struct wq__sqlite *e = engine_of(base);

    wq__side_wait(e->side, e->queue, e->base.clock, until_ns);
}

static void
sqlite_kick(struct wq__engine *base)
{
    wq__side_kick(engine_of(base)->side);
}

static int
sqlite_fd(struct wq__engine *base)
{
    return wq__side_fd(engine_of(base)->side);
}

/* ---- life ----------------------------------------------------------------- */

wq_err
wq__sqlite_join(struct wq__sqlite *e, bool fresh)
{
    wq_err err = begin(e);

    if (err)
        return err;
    err = wq__sqlite_begin_epoch(e, fresh);
    e->rows.now_ns = e->base.clock->now(e->base.clock);
    if (*wq__side_stamp(e->side) != wq__sqlite_stamp(e)) {
        wq__side_forget_counts(e->side);
        e->counted = 0;
        *wq__side_stamp(e->side) = wq__sqlite_stamp(e);
    }
    if (!err && !e->counted)
        err = wq__sqlite_recount(e);
    if (!err) /* `fresh` is for the first handle of the file, not of the queue */
        err = wq__sqlite_adopt_orphans(e);
    if (err)
        return abandon(e, err);
    *wq__side_last_number(e->side) =
        e->rows.number; /* while nobody gives out more */
    err = end(e);
    if (!err)
        err = wq__side_lock(e->side);
    if (err)
        return err;
    err = begin_session(e);
    if (e->base.lease_ns)
        wq__side_publish(e->side, e->queue, WQ__NEWS_OTHER, 0);
    wq__side_unlock(e->side);
    return err;
}

/* The keys of the session become READY at once, without an expiry. If that
 * fails, others find the session dead. The last one that leaves the file moves
 * the WAL into it: then a copy of the file alone is complete. */
static void
leave(struct wq__sqlite *e)
{
    if (begin(e))
        return;
    wq_err err = e->counted ? WQ_OK : wq__sqlite_recount(e);
    if (!err)
        err = wq__sqlite_return_own(e, false);
    if (err) {
        (void)abandon(e, err);
        return;
    }
    if (end(e) || wq__side_lock(e->side))
        return;
    wq__side_end(e->side);
    if (wq__side_all_sessions(e->side) == 0)
        wq__sqlite_move_log(e);
    wq__side_unlock(e->side);
}

void
wq__sqlite_free(struct wq__sqlite *e, bool forked)
{
    wq__rows_fini(&e->rows);
    if (!forked) /* SQLite forbids a child to touch it */
        wq__db_close(&e->db);
    if (e->side)
        wq__side_close(e->side, forked);
    wq__lock_fini(&e->sync_lock);
    free(e->path);
    free(e);
}

static void
sqlite_close(struct wq__engine *base, bool forked)
{
    struct wq__sqlite *e = engine_of(base);

    if (!forked && e->session)
        leave(e);
    wq__sqlite_free(e, forked);
}

const struct wq__engine_ops wq__sqlite_ops = {
    .name = "sqlite",
    .run = sqlite_run,
    .settle = sqlite_settle,
    .renew = sqlite_renew,
    .reconcile = sqlite_reconcile,
    .wait = sqlite_wait,
    .kick = sqlite_kick,
    .fd = sqlite_fd,
    .close = sqlite_close,
};
