/* SPDX-License-Identifier: MIT */
/* store.h: what is an engine of a queue in Redis or Valkey made of?
 *
 * An engine (shared/engine.h) whose store is a server. Every batch is a script,
 * which the server carries out as one step.
 *
 *   open.c     opening a queue: options, checks of the server
 *   url.c      URLs
 *   handle.c   what only queues in a server have: sessions, the server's state
 *   wire.c     connections; tls.c: encrypted ones; resolve.c: names of hosts
 *   route.c    at which address the server is; sentinel.c, cluster.c
 *   replicas.c waiting for replicas of the server
 *   scripts.c  scripts by name, their replies
 *   record.c   the bytes of a record
 *   time.c     the server's clock, as it is here
 *   step.c     the short way: common operations, one round trip
 *   rows.c     the long way: read records, decide in the core, write them if
 *              nobody has changed them meanwhile
 *   engine.c   sessions, batches; the verbs of an engine
 *   view.c     stats, depths, walks, the check of all invariants
 *   wait.c     sleeping until another handle has changed the store
 *
 * A queue with partitions has several of them, below one engine: spread.h.
 *
 * The short way knows plain adds, gets, DONE and DROP. All else, and all that it
 * does not understand, goes the long way, where the core decides as it does for
 * SQLite (shared/rows.h): so policies, limits, debounce and throttle are written
 * once.
 *
 * One thread at a time uses a struct wq__redis, but for renew(), wait(), kick()
 * and fd(), which have connections of their own.
 */
#ifndef WQ_REDIS_STORE_H
#define WQ_REDIS_STORE_H

#include <stdatomic.h>

#include <wq/redis.h>

#include "clock/offset.h"
#include "port/lock.h"
#include "shared/rows.h"
#include "wire.h"

/* ---- scripts.c ------------------------------------------------------------ */

enum wq__script {
    WQ__SCRIPT_STEP,
    WQ__SCRIPT_READ,
    WQ__SCRIPT_COMMIT,
    WQ__SCRIPT_SESSION,
    WQ__SCRIPT_VIEW,
    WQ__SCRIPTS
};

/* A list of arguments that grows. The bytes are those of the caller, or copies
 * in `text`. Zeroed: empty. */
struct wq__args {
    struct wq__arg *at;
    size_t          len, cap;
    char  *text; /* copies; at[i].data is an offset until they are sent */
    size_t text_len, text_cap;
    bool   no_memory;
};

enum { WQ__KEYS = 10, WQ__NAME_META = 5, WQ__SID_BYTES = 8 };

/* WHOLE: not a partition, but the queue. */
enum { WQ__PARTS_MAX = 64, WQ__PART_WHOLE = -1, WQ__QUEUE_BYTES = 65 };

/* The names of the server's keys of a queue, or of a partition: each has its own
 * hash slot. The number of partitions is in the name, so that keys of one number
 * never meet those of another. */
struct wq__names {
    char name[WQ__KEYS][320];
};

void wq__names_init(struct wq__names *names, const char *queue, unsigned parts,
                    int part);

/* Begin a call of a script; then append its arguments. */
void wq__args_begin(struct wq__args *a);
void wq__args_bytes(struct wq__args *a, const void *data, size_t len);
void wq__args_copy(struct wq__args *a, const void *data, size_t len);
/* Space for a copy, to be filled in before the next argument. NULL: `len` is 0,
 * or there is no memory. */
unsigned char *wq__args_space(struct wq__args *a, size_t len);
void           wq__args_int(struct wq__args *a, int64_t n);
void           wq__args_fini(struct wq__args *a);

/* Run a script on a wire. An error reply becomes WQ_EAWAY: nothing has happened;
 * WQ_EIO, WQ_ENOMEM as wq__wire_call(). */
wq_err wq__script_run(struct wq__wire *w, const struct wq__names *names,
                      enum wq__script script, struct wq__args *args,
                      redisReply **out);

/* The first half of wq__script_run(): see wq__wire_send_ahead(). */
wq_err wq__script_send_ahead(struct wq__wire *w, const struct wq__names *names,
                             enum wq__script script, struct wq__args *args);

/* The i-th element of an array reply, as it should be. */
const redisReply *wq__reply_at(const redisReply *reply, size_t i);
bool              wq__reply_is(const redisReply *reply, const char *status);
int64_t           wq__reply_int(const redisReply *reply, size_t i);
/* READY, HELD, DIRTY, WAITING, DEAD and known keys, which begin at `from`. */
void   wq__reply_counts(const redisReply *list, size_t from,
                        struct wq__row_counts *out);
wq_key wq__reply_bytes(const redisReply *reply, size_t i);

/* ---- record.c ------------------------------------------------------------- */

enum { WQ__RECORD_MAX = 160 };

size_t wq__record_pack(const struct wq__row *row, unsigned char *out);
/* No bytes: no row. False: not a record. */
bool wq__record_unpack(const void *data, size_t len, struct wq__row *row);
void wq__record_pack_fill(const struct wq__fill *level, unsigned char out[16]);
void wq__record_unpack_fill(const unsigned char from[16],
                            struct wq__fill    *level);
void wq__put_be(unsigned char *to, uint64_t n, size_t bytes);
uint64_t wq__get_be(const void *from, size_t bytes);

/* ---- time.c --------------------------------------------------------------- */

struct wq__redis_clock {
    struct wq__offset_clock base; /* written by the thread that has a reply */
    atomic_bool             known;
    /* The server's clock went forward by more than `tolerance_ns`, and nobody has
     * told the server. Set by the thread that has a reply. */
    atomic_bool stepped;
    int64_t     tolerance_ns;
};

void wq__redis_clock_init(struct wq__redis_clock *c, int64_t lease_ns);

/* A reply of the time `server_ns` came to a call that was sent at `sent_ns`, on
 * CLOCK_BOOTTIME. False: no clock is that wrong; nothing was noted. */
bool wq__redis_clock_note(struct wq__redis_clock *c, int64_t server_ns,
                          int64_t sent_ns);

/* ---- a transaction of the long way ---------------------------------------- */

/* A key whose record was read. */
struct wq__entry {
    wq_key         key; /* in the reply, or of the operation */
    struct wq__row row, saved;
    unsigned       save; /* `saved` belongs to this save */
    const void    *old;  /* the record as it was read */
    size_t         old_len;
    bool           changed;
    bool           is_hold; /* of the session whose holds were read */
};

struct wq__txn {
    redisReply       *reply; /* of read.lua: keys and records are in it */
    struct wq__entry *entries;
    size_t            len, cap;
    uint32_t         *index; /* 1 + entry, by hash; 0: free */
    size_t            index_cap;
    unsigned          save; /* the save under way; 0: none */
    unsigned          saves;
    size_t            wants_ready; /* READY keys to read */
    bool              all_ready;   /* all READY keys were read */
    bool              short_ready; /* more are needed: read again */
    bool              more_due;    /* not all deadlines that have passed */
    int               last_prio;   /* of the last READY key that was read */
    int64_t           last_seq;
    int64_t           ended; /* the session whose holds were read; 0: none */
    size_t            holds; /* how many */
    wq_key            last_hold;
    const redisReply *bucket; /* as it was read */
};

struct wq__redis {
    struct wq__engine      base;
    struct wq__rows        rows;
    struct wq__redis_clock clock;
    bool                   own_clock; /* time is the server's */
    struct wq__target      target;
    char                   queue[WQ__QUEUE_BYTES]; /* its name */
    unsigned          parts; /* how many partitions the queue has; 1: none */
    bool              parts_stored; /* that number is, said the last "check" */
    int               part;         /* which one this is, or WQ__PART_WHOLE */
    struct wq__names  names;
    struct wq__wire   wire;   /* of run() and reconcile() */
    struct wq__yields yields; /* of this wire, or of those of all partitions */
    struct wq__args   args;
    struct wq__args   ahead[WQ__WIRE_AHEAD];    /* of the calls in wire.ahead */
    int64_t           sessions[WQ__WIRE_AHEAD]; /* in which these were sent */
    bool              begun; /* the first call of this batch was sent ahead */
    struct wq__txn    txn;
    /* Sessions and their names in turn, of the reply under way; or NULL. */
    const redisReply  *holders_read;
    struct wq__confirm confirm;  /* what replicas must confirm */
    bool               confirms; /* ... of the batch under way */

    /* Keys that were handed out in this batch, until the shell has taken them. */
    struct wq__handed *handed;
    size_t             handed_len, handed_cap;

    /* The session. Written by run() and reconcile(), read by renew(). */
    _Atomic int64_t session;
    /* It began in a batch that the shell has not heard of. Written by run() and
     * reconcile(), read by renew(): sequentially consistent, it is rare. */
    atomic_bool unreported;

    /* What is known of the server. The texts are set once, at open. */
    atomic_bool away; /* the last call, or renewal, was not answered */
    char        version[32];
    char        role[16];

    /* ---- beside batches ---- */
    struct wq__lock side_lock; /* guards the next five */
    struct wq__wire
        side_wire; /* of renew(), and to enter the set of sleepers */
    struct wq__args    side_args;
    struct wq__confirm side_confirm; /* of renew() */
    bool               was_renewed;  /* once */
    int64_t            renewing;     /* the session whose renewal was sent */

    /* ---- wait(), kick(), fd() ---- */
    struct wq__lock wait_lock; /* guards what follows, but for what is atomic */
    struct wq__wire wait_wire;
    bool            in_bed;  /* a BLPOP is under way on it */
    bool            has_fds; /* the next four are open */
    int             kick_fd; /* an eventfd; never changes */
    int     unread_fd;       /* an eventfd: news that a user of fd() must see */
    int     look_fd;         /* a timerfd: a user of fd() must look */
    int     news_fd;         /* an epoll set of wait_wire and the last two */
    int64_t look_at_ns;      /* when look_fd expires; 0: it is not set */
    struct wq__beacon beacon;
    struct wq__watch  watch;
    bool              has_beacon;
    int64_t           look_ns;  /* look at the store after this time */
    char              bed[360]; /* the list on which the session sleeps */
    int64_t           bed_of;   /* the session that is meant */
    /* The next are read by run() without the lock, to find that it has
     * nothing to do; if they change meanwhile, the next run() does it. */
    atomic_bool     listed;      /* the server counts the session as asleep */
    atomic_bool     waiting;     /* a thread is in wait() */
    atomic_bool     watched;     /* fd() was called */
    _Atomic int64_t next_ns;     /* when there is something to do, says run() */
    _Atomic size_t  ready, held; /* how many keys, says run() */
    bool awake; /* of run(): it says that the session is not asleep */

    /* ---- of a partition: see spread.h ---- */
    atomic_bool    out;      /* it is not to be used before reconcile() */
    _Atomic size_t holds;    /* of the shell, at least, in this partition */
    int64_t        tried_ns; /* out since the open: for how long it was tried */
    atomic_bool    has_news; /* there may be READY keys, says wait() */
    struct wq__ids *holders; /* STATS adds those that hold keys; or NULL */
};

/* Sessions, each once. Zeroed: none. */
struct wq__ids {
    int64_t *at; /* owned */
    size_t   len, cap;
};

/* The time as the scripts want it: "" if the server's is meant. */
void wq__redis_put_time(struct wq__redis *e, struct wq__args *a);
void wq__redis_put_session(struct wq__args *a, int64_t session);

/* Run a script on the main wire, and note the server's time. *reply: NULL after
 * an error. `status` of a reply is its first element. */
wq_err wq__redis_call(struct wq__redis *e, enum wq__script script,
                      redisReply **reply);

/* The first half of such a call: see wq__wire_send_ahead(). */
wq_err wq__redis_send_ahead(struct wq__redis *e, enum wq__script script);

/* If the server's clock went forward: it gives the sessions that this may have
 * ended another lease. *lives: so also this one's. */
wq_err wq__redis_forgive(struct wq__redis *e, bool *lives);

/* WQ_EIO: the server has sent what no script answers. */
wq_err wq__redis_fail_reply(const struct wq__redis *e);

/* ---- replicas.c ----------------------------------------------------------- */

/* A batch begins: must its scripts be confirmed? */
void wq__replicas_begin(struct wq__redis *e, const struct wq__op *batch);

/* It has ended well: confirm what it has handed out, if no script did. WQ_EIO:
 * it is not confirmed. */
wq_err wq__replicas_end(struct wq__redis *e, const struct wq__op *batch);

/* What the server has answered last. */
wq_err wq__replicas_judge(const struct wq__redis   *e,
                          const struct wq__confirm *c);

/* ---- step.c --------------------------------------------------------------- */

/* May the short way carry it out? */
bool wq__step_knows(const struct wq__redis *e, const struct wq__op *op);

/* Carry out the operations from `ops` until `end`. */
enum wq__way { WQ__WAY_DONE, WQ__WAY_LONG, WQ__WAY_LOST, WQ__WAY_MORE };
wq_err wq__step_run(struct wq__redis *e, struct wq__op *ops,
                    const struct wq__op *end, struct wq__pulse *pulse,
                    enum wq__way *way);

/* The first half of such a call: see wq__wire_send_ahead(). If e->begun is set,
 * wq__step_run() is the other half of the oldest one. */
wq_err wq__step_send_ahead(struct wq__redis *e, const struct wq__op *ops,
                           const struct wq__op *end);

/* Let the shell take a key that was handed out to `op`. WQ_EIO: it has no memory
 * for it. */
wq_err wq__redis_hand_over(struct wq__op *op, const struct wq__handed *handed);

/* The pulse that a reply contains from its element `at` on. */
void wq__redis_read_pulse(const redisReply *reply, size_t at,
                          struct wq__pulse *pulse);

/* ---- rows.c --------------------------------------------------------------- */

extern const struct wq__row_store wq__redis_rows;

/* Carry out operations the long way. *lost: the session has ended. */
wq_err wq__redis_long_way(struct wq__redis *e, struct wq__op *ops,
                          const struct wq__op *end, struct wq__pulse *pulse,
                          bool *lost);

/* Give back what `session` holds and `known` does not name. */
wq_err wq__redis_release(struct wq__redis *e, int64_t session, bool expired,
                         const struct wq__known *known, size_t n);
void   wq__txn_fini(struct wq__txn *t);

/* ---- view.c --------------------------------------------------------------- */

bool   wq__view_knows(const struct wq__op *op);
wq_err wq__view_run(struct wq__redis *e, struct wq__op *op);

/* ---- wait.c --------------------------------------------------------------- */

wq_err wq__redis_wait_init(struct wq__redis *e);
void   wq__redis_wait_fini(struct wq__redis *e, bool forked);
void   wq__redis_wait(struct wq__engine *base, int64_t until_ns);
/* The same for several engines at once; the first one is to be kicked, and its
 * clock counts. */
void wq__redis_wait_on(struct wq__redis *const *parts, size_t n,
                       int64_t until_ns);
void wq__redis_kick(struct wq__engine *base);
int  wq__redis_fd(struct wq__engine *base);
/* Before and after a batch, which knows what other handles did until then. Sets
 * e->awake. */
void wq__redis_wake_up(struct wq__redis *e);
void wq__redis_woke_up(struct wq__redis *e, bool told);
/* Instead of a batch: the user of fd() has looked, as far as that is possible. */
void wq__redis_skip(struct wq__redis *e);
/* After a batch that has begun another session: it sleeps, too. */
void wq__redis_session_changed(struct wq__redis *e);

/* ---- engine.c ------------------------------------------------------------- */

extern const struct wq__engine_ops wq__redis_ops;

/* A number for a session that no other has. */
wq_err wq__redis_new_id(int64_t *id);

/* Begin the first session. */
wq_err wq__redis_join(struct wq__redis *e, int64_t id);

/* End the session, if there is one: its keys are given back; `expired`: each
 * counts an expiry. Begin the session `id`. */
wq_err wq__redis_rejoin(struct wq__redis *e, int64_t id, bool expired);

/* "begin", "check", "claim", "renew" or "end" a session: see session.lua.
 * WQ_ELOST: it has ended; WQ_EINVAL: the queue has another number of
 * partitions. */
wq_err wq__redis_change_session(struct wq__redis *e, int64_t session,
                                const char *what);

/* Connect, if need be, and find out whether the session has ended. */
wq_err wq__redis_recheck(struct wq__redis *e, bool *ended);

/* The two halves of run(), so that several engines run at the same time.
 * `ahead`: the first call is sent. WQ_ELOST: the session of a partition has
 * ended, and nothing has happened. */
void wq__redis_begin_run(struct wq__redis *e, struct wq__op *batch, bool ahead);
wq_err wq__redis_end_run(struct wq__redis *e, struct wq__op *batch,
                         struct wq__pulse *pulse);

/* The two halves of renew(); without the second if the first is not WQ_OK. */
wq_err wq__redis_begin_renewal(struct wq__redis *e);
wq_err wq__redis_end_renewal(struct wq__redis *e);

void wq__redis_close(struct wq__redis *e, bool forked);
void wq__redis_free(struct wq__redis *e, bool forked);

/* ---- url.c ---------------------------------------------------------------- */

/* Read a URL into options and a target; *copy, as long as the URL, holds the
 * bytes of the options, and is to be wiped and freed. Messages do not show the password. */
wq_err wq__redis_read_url(const char *url, struct wq__target *target,
                          wq_redis_options *o, char **copy);

#endif
