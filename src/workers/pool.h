/* SPDX-License-Identifier: MIT */
/* pool.h: what is a pool of workers made of?
 *
 *   pool.c      how many workers there are: start, resize, stop
 *   work.c      what one of them does, and wq_work_one()
 *   watchdog.c  who notices that a handler does not come back
 *   stats.c     what there is, and was
 *
 * A worker's life, and the functions that lead on:
 *
 *               hire()          look_up()
 *   RECRUIT ───────────► HIRED ───────────► LEFT ──► joined and freed
 *      │                                     ▲       reap()
 *      └─────────────────────────────────────┘
 *               dismiss()
 *
 * How workers learn that they shall leave (the epoch). Most of the time a
 * worker takes no lock of the pool. Whoever wants the workers to look up
 * changes what they are to see, moves the epoch on, and then looks who is
 * getting. A worker says that it is getting, and then looks at the epoch. Both
 * steps on either side are in one order for all threads (seq_cst), so either
 * the worker sees the new epoch, or it is seen getting and is interrupted.
 *
 * An interrupt can miss its worker: it is for all gets of the queue, and one
 * that finds another get blocked is not kept for the worker which is just about
 * to block. So the caller waits until every worker that was getting has looked
 * up, and interrupts again until it has. That also works beside other pools and
 * gets of the user's own.
 */
#ifndef WQ_WORKERS_POOL_H
#define WQ_WORKERS_POOL_H

#include <stdatomic.h>

#include <wq/workers.h>

#include "port/lock.h"
#include "port/thread.h"
#include "workers/bell.h"

enum wq__worker_stage { WQ__RECRUIT, WQ__HIRED, WQ__LEFT };

/* What a hired worker is doing. */
enum wq__worker_phase { WQ__LOOKING_UP, WQ__GETTING, WQ__WORKING };

/* What is counted: see wq_workers_stats. */
enum wq__count {
    WQ__DONE,
    WQ__RETRIED,
    WQ__POSTPONED,
    WQ__DROPPED,
    WQ__ERRORS,
    WQ__COUNTS,
};

struct wq__worker {
    wq_workers       *pool;
    struct wq__thread thread;

    /* enum wq__worker_phase. Written by the worker; see above. */
    atomic_int phase;

    /* Written by the worker alone, read by anybody: relaxed. */
    _Atomic uint64_t counts[WQ__COUNTS];

    /* With the pool's lock. */
    struct wq__worker    *next; /* in the one list that `stage` names */
    enum wq__worker_stage stage;
    uint64_t              epoch; /* when it last looked up; the worker itself,
                                    who alone writes it, reads it without */

    /* For the watchdog, with the pool's lock. */
    const wq_item *item;       /* what its handler is working on; or NULL */
    int64_t        started_ns; /* since when */
    bool           reported;   /* on_stuck() was called for it */
    bool           reporting;  /* and has not returned */
};

struct wq_workers {
    wq_queue         *queue;           /* not owned; outlives the pool */
    wq_workers_config config;          /* checked; its pointers: see below */
    wq_allocator      mem;             /* a copy of the config's */
    char    name[WQ__THREAD_NAME_MAX]; /* what config.name points to */
    int64_t patience_ns;               /* how long a get may block */

    _Atomic uint64_t epoch; /* see above; moved on with the lock */

    /* Guards all below. Taken before a clock's lock and never with another;
     * no callback and no verb of the queue is called under it. */
    struct wq__lock lock;
    struct wq__bell changed;  /* rung when something below has changed */
    bool            changing; /* a resize is under way; others wait */
    bool            stopping; /* for good */
    unsigned        target;   /* how many workers there are to be */
    unsigned        named;    /* how many there ever were: the next's number */

    struct wq__worker *hired; /* all who work; owned */
    size_t             hired_len;
    struct wq__worker
          *left;     /* their threads end, and are to be joined; owned */
    size_t unjoined; /* those, and who is being joined just now */

    uint64_t counts[WQ__COUNTS]; /* of workers who have left */

    struct wq__thread watchdog;
    bool              watched;        /* there is a watchdog */
    bool              watch_ends;     /* it shall end */
    int64_t           watch_until_ns; /* until when it sleeps, if it does */
    struct wq__bell   watch;          /* rung for it alone */
};

/* The pool that the calling thread works for: as a worker, as the watchdog, or
 * in a wq_parallelize() of one of these. NULL: none. */
extern _Thread_local wq_workers *wq__workers_current;

/* The life of a hired worker; returns when it shall end. `arg` is the
 * worker. */
void wq__work(void *arg);

/* Before a get: sets the phase. True: the worker is to look up first. */
bool wq__workers_are_called(struct wq__worker *w);

/* Before a get: true, with the phase set, if the worker shall go on. False: it
 * has left, and must not touch the pool again. */
bool wq__workers_look_up(struct wq__worker *w);

/* There is nothing more to come: the worker leaves. */
void wq__workers_leave(struct wq__worker *w);

/* Was the pool told to stop? */
bool wq__workers_stopping(wq_workers *pool);

/* The watchdog, where the config asks for one; else they do nothing. */
wq_err wq__watchdog_start(wq_workers *pool);
void wq__watchdog_end(wq_workers *pool); /* with the lock; frees it meanwhile */
/* The handler of `item` begins, and has returned: it may be handed back. */
void wq__watchdog_begin(struct wq__worker *w, const wq_item *item);
void wq__watchdog_finish(struct wq__worker *w);

#endif
