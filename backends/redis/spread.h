/* SPDX-License-Identifier: MIT */
/* spread.h: how is one queue spread over several hash slots?
 *
 * A queue with partitions=N is N queues in Redis below one engine: partition i
 * has the names wq:{NAME/N.i}:..., so each has a slot of its own, and a cluster
 * can keep them in several nodes. A key is always in the same partition,
 * wq__spread_part(): so all that is promised of one key holds as before. Order is
 * that of each partition only.
 *
 *   spread.c          which partition does what in a batch, and the results
 *   spread_gets.c     from which partition do gets take keys?
 *   spread_view.c     stats, depths, walks and checks of all partitions
 *   spread_session.c  the session in all partitions; sleeping; opening
 *
 * Batches. Each operation goes to the partition of its key; an add of keys of
 * several partitions is divided. All partitions of a batch run at the same time:
 * their calls are sent before the first reply is awaited. A partition that cannot
 * be reached has not done its operations (WQ_EAWAY); the others have. If it is not
 * known what a partition has done, the whole batch is WQ_EIO.
 *
 * The session has one id in all partitions, and is renewed in all of them. A
 * partition is `out` when its answers were lost, its session has ended, or its
 * connection is a new one: it is not used before reconcile() has looked at it.
 * That is why run() returns WQ_EAWAY with `forgetful` when such a partition can be
 * reached, and nothing of the batch has happened.
 *
 *   in ──► out   a batch or a renewal has failed
 *   out ─► in    reconcile(): its session lives, or begins anew
 *
 * Holds. The shell knows one time until which all holds are certain. So a renewal
 * counts only if all partitions in which the shell has holds are renewed; those
 * without are put out if they cannot be reached, and do not matter then. run()
 * counts a hold first and looks at `out` then; renew() sets `out` first and looks
 * at the count then: one of them notices the other, and either the batch or the
 * renewal fails. If a session has ended in a partition in which the shell has
 * holds, all holds are lost: the others give theirs back, too.
 */
#ifndef WQ_REDIS_SPREAD_H
#define WQ_REDIS_SPREAD_H

#include "store.h"

/* The partition of a key, below `n`: FNV-1a of its bytes, 64 bits, then the
 * finalizer of MurmurHash3, modulo n. The same everywhere, for ever: keys that are
 * in a server depend on it. */
unsigned wq__spread_part(wq_key key, unsigned n);

/* A copy of an operation, or of the part of an add, for one partition. */
struct wq__copy {
    struct wq__op  op;
    struct wq__op *of;
    unsigned       part;
    const size_t  *index;   /* a divided add: which of its keys these are */
    bool           skipped; /* another copy of it has failed before */
};

/* What a partition does in a batch. */
struct wq__share {
    struct wq__op   *first, **last; /* copies; none: only a look */
    bool             runs;          /* it does something */
    bool             fresh;         /* ... and has: `seen` is of now */
    bool             asked; /* gets that found too little asked it, too */
    wq_err           err;   /* what became of it */
    struct wq__pulse pulse;
};

struct wq__spread {
    struct wq__engine base;
    unsigned          n;
    struct wq__redis *part[WQ__PARTS_MAX]; /* owned */
    struct wq__redis *root; /* whose meta has the number of partitions; owned */
    _Atomic int64_t   session; /* its id in all partitions */
    /* The shell must hear that all holds are lost. Written by reconcile(), read
     * by renew(). */
    atomic_bool unreported;
    int         news_fd; /* an epoll set of all partitions; -1: none yet */

    /* ---- of run() and reconcile() ---- */
    struct wq__pulse seen[WQ__PARTS_MAX];     /* after the last batch of each */
    int64_t          retry_ns[WQ__PARTS_MAX]; /* out: do not connect before */
    bool             hangs[WQ__PARTS_MAX];    /* ... as it took long to fail */
    unsigned         home;   /* the partition that gets take from */
    unsigned         turn;   /* the one that comes next is the one after it */
    size_t           streak; /* keys in a row from `home` */

    /* ---- the batch under way ---- */
    struct wq__share share[WQ__PARTS_MAX];
    bool             happened; /* a partition has carried out operations */
    bool             in_doubt; /* it is not known what one has done */
    bool             must_reconcile; /* one is out, but can be reached */
    bool             reconcile_next; /* so the next batch cannot run */
    struct wq__did   did;            /* what the shell has not heard of */
    struct wq__copy *copies;         /* owned, as all below */
    size_t           copies_len, copies_cap;
    wq_key          *keys; /* of divided adds; the next three run parallel */
    size_t          *index;
    wq_added        *added;
    int64_t         *delayed;
    size_t           keys_len, keys_cap;
};

static inline struct wq__spread *
wq__spread_of(struct wq__engine *e)
{
    return (struct wq__spread *)(void *)e;
}

/* ---- spread.c ------------------------------------------------------------- */

extern const struct wq__engine_ops wq__spread_ops;

/* Partition `p` is not to be used before reconcile(). */
void wq__spread_put_out(struct wq__spread *s, unsigned p);

/* The same; and it was tried in vain from `begin_ns` until now: try again later. A
 * host that does not answer keeps the others for a tenth of the time at most. */
void wq__spread_put_off(struct wq__spread *s, unsigned p, int64_t begin_ns);

/* Run the shares that are to run, all at the same time. WQ_EAWAY, with
 * base.forgetful: nothing has happened; WQ_EIO. Operations of a partition that
 * could not be reached are WQ_EAWAY. */
wq_err wq__spread_run_shares(struct wq__spread *s);

/* Partition `p` has to run these operations, which may be NULL. */
void wq__spread_ask(struct wq__spread *s, unsigned p, struct wq__op *ops);

/* ---- spread_gets.c -------------------------------------------------------- */

/* The partition that a get asks first. */
unsigned wq__spread_home(struct wq__spread *s);

/* After the shares have run: gets that want more ask other partitions. */
wq_err wq__spread_get_more(struct wq__spread *s, struct wq__op *batch);

/* ---- spread_view.c -------------------------------------------------------- */

/* Carry out STATS, DEPTHS, WALK or CHECK. */
wq_err wq__spread_look(struct wq__spread *s, struct wq__op *op);

/* ---- spread_session.c ----------------------------------------------------- */

/* One engine above root->parts partitions, which have the session. On success it
 * owns them and `root`; on error they are still the caller's. */
wq_err wq__spread_open(struct wq__redis *root, struct wq__redis *const *parts,
                       int64_t session, struct wq__engine **out);

wq_err wq__spread_renew(struct wq__engine *base);
wq_err wq__spread_reconcile(struct wq__engine      *base,
                            const struct wq__known *known, size_t n,
                            bool *lost);
void   wq__spread_wait(struct wq__engine *base, int64_t until_ns);
void   wq__spread_kick(struct wq__engine *base);
int    wq__spread_fd(struct wq__engine *base);
void   wq__spread_close(struct wq__engine *base, bool forked);

#endif
