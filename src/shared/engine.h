/* SPDX-License-Identifier: MIT */
/* engine.h: what must a store be able to do?
 *
 * A shared queue has two parts. The shell (this directory) is the same for all
 * stores: loans, sleeping and waking, interrupts, shutdown, drain, metrics, the
 * renewal of holds. An engine is one handle's connection to one kind of store:
 * it carries out operations, each of them all or nothing.
 *
 *     threads ──► shell: combine() ──► engine->run(batch) ──► store
 *
 * The shell collects the operations of all threads that call at the same time
 * into a batch, so that a transaction or a round trip serves many (group
 * commit). It calls begin(), run() and reconcile() from one thread at a time,
 * without a lock; settle(), renew(), wait() and kick() may be called by other
 * threads meanwhile.
 *
 * Two batches at a time. A store that is elsewhere rests while a reply is on its
 * way, and so does the process while the store works. So an engine may offer
 * begin(), which sends a batch; run() is its other half. The shell begins the next
 * batch before it runs this one, and runs them in the order in which it has begun
 * them. They happen in that order, unless one needs more of run() than to receive
 * its results: then it may happen after the next one, whose pulse is later even
 * so. Before the shell calls reconcile(), it has run all of them.
 *
 * Sessions. The store knows each handle as a session, which is the holder of
 * the keys that the handle gets. A session begins when the engine is opened. It
 * ends by close(), by the death of its process, or, where holds end by time,
 * because it was not renewed in time: a session that was renewed at t has ended
 * at t + lease. A store never revives a session that has ended: the next run()
 * or reconcile() begins a new one, and reports that (session_lost). Until such
 * a report has reached the shell, that is, until that call has returned WQ_OK,
 * renew() is WQ_ELOST, and the next run() or reconcile() begins one more new
 * session: otherwise a renewal could prolong holds that only the shell believes
 * in. Every hand-out has a fence; a finish must name key, session and fence of
 * the hold, else it is WQ_ELOST and changes nothing.
 *
 * The keys of a session that ends by time become READY, behind those that are;
 * each counts an expiry; a key that has had max_expiries of them since its last
 * success (DONE, AFTER) becomes DEAD. By close(): READY, without an expiry.
 *
 * DEAD keys are outside of the core: the store keeps them in a list of their
 * own. A DEAD key has no other state; an add of it is WQ_OK and WQ_ADDED_DEAD.
 *
 * Errors. run() returns WQ_OK if the store has answered; then each operation
 * has its own result. WQ_EAWAY: nothing of the batch has happened. WQ_EIO: it
 * is not known which operations of the batch have happened; each of them has as
 * a whole, or not at all, and none after one that has not. Each caller learns
 * that its own may have happened: so the shell needs no more. After WQ_EIO, or
 * any other error, the shell calls reconcile() before anything else: it gives
 * back the keys of gets that have happened. A finish that has is WQ_ELOST when
 * it is repeated, which the shell reports as WQ_OK (finish.c).
 *
 * An engine with several stores may reach some of them: then run() is WQ_OK, an
 * operation of a store that was not reached is WQ_EAWAY, and an add that has
 * happened in some of them only is WQ_EIO.
 *
 * Durability. To be durable an operation may need more than the batch, as a sync
 * of the disk: run() marks it `unsettled`, and settle() does the rest. It is
 * called beside run(): so the next batch runs meanwhile, and one settle() serves
 * all batches that have run. The thread whose operation it is waits for it; all
 * others see the effect of the operation at once. WQ_EIO: it is not known whether
 * these operations are durable, and each of them is WQ_EIO. A finish that is
 * WQ_ELOST is unsettled, too: it may repeat one that has happened.
 *
 * An engine says why by wq_fail(), never with a password: wq_last_error() of
 * every thread whose operations were in the batch shows it.
 *
 * Time. All times are on the engine's clock, which all handles of the store
 * agree on. The shell reads it and sleeps on it. Where it can step, a clock of
 * this machine counts how long holds are certain, and the timeouts of calls.
 */
#ifndef WQ_SHARED_ENGINE_H
#define WQ_SHARED_ENGINE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <wq/inspect.h>
#include <wq/limiter.h>
#include <wq/wq.h>

#include "clock/clock.h"

enum wq__op_kind {
    WQ__OP_ADD,      /* wq_add_with() */
    WQ__OP_GET,      /* hand out keys */
    WQ__OP_RESUME,   /* lend a key that a session holds already */
    WQ__OP_FINISH,   /* a hold ends with a result */
    WQ__OP_REMOVE,   /* wq_remove() */
    WQ__OP_CANCEL,   /* wq_cancel_after() */
    WQ__OP_FORGET,   /* wq_forget() */
    WQ__OP_REVIVE,   /* wq_revive() */
    WQ__OP_REQUEUES, /* wq_num_requeues() */
    WQ__OP_KEY_INFO, /* wq_read_key() */
    WQ__OP_STATS,    /* what wq_read_stats() says about the store */
    WQ__OP_DEPTHS,   /* wq_read_depths() */
    WQ__OP_WALK,     /* a part of wq_each() */
    WQ__OP_CHECK,    /* wq_check() */
};

/* A key that is handed out. */
struct wq__handed {
    wq_key   key;
    int      priority;
    uint64_t fence;
    unsigned requeues;  /* its failures */
    int64_t  waited_ns; /* for how long it was READY */
};

struct wq__op {
    enum wq__op_kind kind;
    wq_err           err;  /* out */
    struct wq__op   *next; /* in the batch; in this order they take effect */
    bool unsettled;        /* out: not durable before settle(); see wq__pulse */
    union {
        struct {
            const wq_add_options *how; /* checked; this release's size */
            const wq_key         *keys;
            size_t                n;
            wq_added             *added;   /* out, if not NULL: one per key */
            int64_t              *delayed; /* out, if not NULL: the delay that
                                              the limiter gave, one per key;
                                              -1: it was not queried */
            unsigned retries;  /* out: WQ_EGIVENUP: of the key given up */
            size_t   given_up; /* out: WQ_EGIVENUP: which key */
        } add;
        struct {
            size_t max;
            size_t n; /* out; WQ_OK with 0: no key is READY */
            /* The FINISH right before it in the batch, or NULL: hand out
             * nothing unless its result is WQ_OK or WQ_EGIVENUP. */
            const struct wq__op *unless_failed;
            /* Called for each key before it is handed out; copies it. WQ_ENOMEM:
             * the key stays READY, and no further key is handed out; the
             * operation is WQ_OK if it has handed out others, else WQ_ENOMEM.
             */
            wq_err (*take)(void *ctx, const struct wq__handed *handed);
            void  *ctx;
            wq_key key; /* RESUME: this one. WQ_ENOTFOUND: it is not HELD by the
                           session. WQ_ENOTSUP: holds end with their handles */
            int64_t from; /* RESUME: of this session, which holds it no longer
                             then; the fence stays. 0: of our own */
        } get;
        struct {
            wq_key   key;
            uint64_t fence;
            /* DROP only ends the hold: it is also the result of wq_done(). */
            wq_result result;
            unsigned  retries; /* out: WQ_EGIVENUP: how many */
            int64_t   delayed; /* out: RETRY: the delay that the limiter gave */
        } finish;
        struct {
            wq_key       key;      /* of REMOVE, CANCEL, FORGET, REVIVE, ... */
            unsigned     requeues; /* out: REQUEUES */
            wq_key_info *info;     /* out: KEY_INFO */
        } one;
        wq_stats *stats; /* out: STATS; the shell adds what it knows */
        struct {
            wq_depth *out;
            size_t    max;
            size_t   *n;
        } depths;
        struct {
            unsigned states; /* enum wq_state, or'ed */
            uint64_t cursor; /* 0: from the beginning; in and out */
            unsigned part;   /* likewise, of engines with several stores */
            bool     ended;  /* out: there are no more keys */
            /* Called for each key; false: no space, go on with this key next
             * time. */
            bool (*found)(void *ctx, wq_key key, const wq_key_info *info);
            void *ctx;
        } walk;
        struct {
            void (*problem)(void *ctx, const char *text);
            void *ctx;
        } check;
    } as;
};

/* Counts of what a batch did: see wq_stats. */
struct wq__did {
    uint64_t adds, merged, gets, dones, removed, deferred, drops;
    uint64_t expired; /* holds of other sessions that had ended by time */
};

static inline void
wq__did_add(struct wq__did *to, const struct wq__did *more)
{
    to->adds += more->adds;
    to->merged += more->merged;
    to->gets += more->gets;
    to->dones += more->dones;
    to->removed += more->removed;
    to->deferred += more->deferred;
    to->drops += more->drops;
    to->expired += more->expired;
}

/* What the shell must know after a batch. */
struct wq__pulse {
    struct wq__did did;
    size_t         ready; /* READY keys that are left */
    size_t         held;  /* HELD keys, of all sessions */
    size_t         dirty; /* of these, how many are DIRTY */
    /* When run() has something to do next: the earliest deadline, or the end of
     * another session; WQ_FOREVER: never. */
    int64_t  next_ns;
    bool     session_lost; /* a new session has begun: all holds that
                                    began before this batch are lost */
    uint64_t settles; /* what settle() gets for its unsettled operations, not
                         less than for earlier ones; 0: all are durable */
};

enum { WQ__FLIGHTS = 2 };

/* What a handle asks of the store for all its operations. */
struct wq__terms {
    wq_limiter_spec limiter;      /* of rate-limited adds and retries */
    unsigned        retry;        /* enum wq_retry */
    unsigned        max_retries;  /* 0: any number */
    unsigned        max_expiries; /* a key is DEAD after so many; 0: never */
    size_t          max_len;      /* most keys of the store; 0: any number */
    bool            ages;         /* keep for how long keys are READY or HELD */
};

/* A hold that the shell knows of. */
struct wq__known {
    wq_key   key;
    uint64_t fence;
};

struct wq__engine;

struct wq__engine_ops {
    const char *name; /* for messages: "sqlite" */

    /* Begin to carry out a batch; run() of the same batch returns its results.
     * At most WQ__FLIGHTS batches at a time; other calls of run() come before
     * the first of them is begun, or after the last one has run. False: it
     * cannot be begun now, and nothing has happened; run() does all of it. NULL:
     * no batch can. Not together with settle(). */
    bool (*begin)(struct wq__engine *e, struct wq__op *batch);

    /* Carry out a batch, in order. Deadlines that have passed act first, and so
     * do sessions that have ended. Fills in *pulse if it returns WQ_OK. */
    wq_err (*run)(struct wq__engine *e, struct wq__op *batch,
                  struct wq__pulse *pulse);

    /* Make durable what batches up to the one with this number have promised.
     * Any threads, also beside run(). NULL: no batch has such a number. */
    wq_err (*settle)(struct wq__engine *e, uint64_t number);

    /* Renew the session. WQ_ELOST: it has ended. Should return within a third
     * of the lease: then there is time for another one. Not called unless
     * lease_ns is set. */
    wq_err (*renew)(struct wq__engine *e);

    /* Give back what the session holds and `known` does not name, without an
     * expiry. *lost: as wq__pulse.session_lost. */
    wq_err (*reconcile)(struct wq__engine *e, const struct wq__known *known,
                        size_t n, bool *lost);

    /* Sleep until another session has changed the store since the last run()
     * that returned WQ_OK so that a sleeper of this one must know it: a key
     * became READY; no key is READY any more; no key is HELD any more; next_ns
     * has become earlier; or until `until_ns`, or kick(). May return earlier,
     * and must where a change may be missed: so a look at the store now and
     * then is the engine's part. One thread at a time. */
    void (*wait)(struct wq__engine *e, int64_t until_ns);

    /* End the wait() of another thread; if there is none, the next one. */
    void (*kick)(struct wq__engine *e);

    /* A descriptor that is readable when another session has changed the store
     * since the last run(); for wq_fd(). The same for the life of the engine;
     * may be called beside run(). NULL, or -1: there is none. */
    int (*fd)(struct wq__engine *e);

    /* End the session: its holds become READY, without a failure; free the
     * engine. `forked`: the process is a child, and the session is the
     * parent's: only free memory. */
    void (*close)(struct wq__engine *e, bool forked);
};

/* The beginning of an engine's own struct. */
struct wq__engine {
    const struct wq__engine_ops *ops;
    wq_clock                    *clock;
    wq_clock *steady_clock; /* of holds, timeouts. NULL: `clock` */
    bool distant; /* a batch is a round trip: one for all threads that are about
                     to post is worth waiting for */
    int64_t lease_ns; /* how long a session lives without a renewal; 0: as long
                         as its process */
    /* Set by run() if it returns WQ_EAWAY because the store may have forgotten
     * batches that it had answered, as a server can that was restarted: it may
     * hold keys for this session that were finished. The shell calls
     * reconcile(), and run() again. */
    bool forgetful;
    /* Set by renew() if it returns WQ_OK: how many keys the store keeps for the
     * session; an engine in which no request can arrive late leaves it at 0. If
     * the shell knows of fewer, it calls reconcile(). */
    atomic_size_t kept;
};

#endif
