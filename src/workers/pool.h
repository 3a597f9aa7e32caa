/* SPDX-License-Identifier: MIT */
/* pool.h: what is a pool of workers made of?
 *
 *   pool.c      how many workers there are: start, resize, stop
 *   work.c      what a worker does, and wq_work_one()
 *   watchdog.c  the thread that notices handlers which do not return, and
 *               keys that are lost while their handlers run
 *   stats.c     statistics
 *
 * The life of a worker, and the functions that change its stage:
 *
 *                run_all()           check_epoch()
 *   STARTING ───────────► RUNNING ───────────────► EXITED ──► joined and freed
 *      │                                             ▲        join_exited()
 *      └─────────────────────────────────────────────┘
 *                abandon_all()
 *
 * How a worker learns that it must exit (the epoch). Most of the time a worker
 * takes no lock of the pool. A thread that wants workers to exit changes the
 * target, advances the epoch, and then reads the phases of the workers. A
 * worker sets its phase to GETTING, and then reads the epoch. These steps are
 * sequentially consistent, so either the worker sees the new epoch, or the
 * other thread sees it GETTING and interrupts it.
 *
 * An interrupt can miss its worker: it is for all gets of the queue, and if it
 * finds another get blocked, it is not kept for a worker that is about to
 * block. So the caller waits until every worker that was GETTING has checked
 * the epoch, and interrupts again until then. That also works beside other
 * pools and gets of the user.
 */
#ifndef WQ_WORKERS_POOL_H
#define WQ_WORKERS_POOL_H

#include <stdatomic.h>

#include <wq/workers.h>

#include "port/lock.h"
#include "port/thread.h"
#include "workers/wakeup.h"

enum wq__worker_stage { WQ__STARTING, WQ__RUNNING, WQ__EXITED };

/* What a running worker is doing. */
enum wq__worker_phase { WQ__CHECKING, WQ__GETTING, WQ__WORKING };

/* What is counted: see wq_workers_stats. */
enum wq__count {
    WQ__DONE,
    WQ__RETRIED,
    WQ__POSTPONED,
    WQ__DROPPED,
    WQ__ERRORS,
    WQ__LOST,
    WQ__RETURNED,
    WQ__BURIED,
    WQ__COUNTS,
};

struct wq__worker {
    wq_workers       *pool;
    struct wq__thread thread;

    /* An enum wq__worker_phase. Written by the worker; see above. */
    atomic_int phase;

    /* Written by the worker alone, read by any thread: relaxed. */
    _Atomic uint64_t counts[WQ__COUNTS];

    /* With the pool's lock. */
    struct wq__worker    *next; /* in the one list that `stage` names */
    enum wq__worker_stage stage;
    /* The epoch it checked last. Only the worker writes it, so it may read
     * it without the lock. */
    uint64_t epoch;

    /* For the watchdog, with the pool's lock. */
    const wq_item *item;       /* the item of its running handler; or NULL */
    int64_t        started_ns; /* when the handler began */
    bool           reported;   /* on_stuck() was called for it */
    bool           hold_ends;  /* its hold may end, and on_lost() was not
                                * called for it */
    int64_t        look_ns;    /* when to look at its hold, then */
    bool           in_use;     /* the watchdog uses `item` without the lock */
};

struct wq_workers {
    wq_queue         *queue;  /* not owned; outlives the pool */
    wq_workers_config config; /* checked; its pointers: see below */
    wq_allocator      mem;    /* a copy of the config's */
    char              name[WQ__THREAD_NAME_MAX]; /* config.name points here */
    int64_t           get_timeout_ns; /* how long a get blocks at most */

    _Atomic uint64_t epoch; /* see above; advanced with the lock */

    /* Guards all below. Taken before a clock's lock, never together with
     * another one. No callback and no verb of the queue is called under it. */
    struct wq__lock   lock;
    struct wq__wakeup changed;  /* broadcast when something below has changed */
    bool              changing; /* a resize is in progress; others wait */
    bool              stopping; /* it never starts again */
    unsigned          target;   /* how many workers there should be */
    unsigned          named;    /* workers so far: the number of the next one */

    struct wq__worker *running; /* the running workers; owned */
    size_t             running_len;
    /* Workers whose threads end and must be joined; owned. */
    struct wq__worker *exited;
    size_t unjoined; /* those, and workers that are being joined now */

    uint64_t counts[WQ__COUNTS]; /* of workers that have exited */

    struct wq__thread watchdog;
    bool              watched;        /* there is a watchdog */
    bool              watch_ends;     /* it must end */
    int64_t           watch_until_ns; /* until when it sleeps */
    struct wq__wakeup watch;          /* broadcast for the watchdog */
};

/* The pool that the calling thread works for: as a worker, as the watchdog, or
 * in a wq_parallelize() of one of these. NULL: none. */
extern _Thread_local wq_workers *wq__workers_current;

/* What a running worker does; returns when it must exit. `arg` is the
 * worker. */
void wq__work(void *arg);

/* Before a get: sets the phase to GETTING. True: the epoch has advanced, and
 * the worker must check it first. */
bool wq__workers_epoch_moved(struct wq__worker *w);

/* Before a get: true, with the phase GETTING, if the worker may go on. False:
 * it has exited, and must not touch the pool again. */
bool wq__workers_check_epoch(struct wq__worker *w);

/* The queue has no more keys: the worker exits. */
void wq__workers_exit(struct wq__worker *w);

/* Wait for `timeout_ns`, real time, or until the pool is stopped. True: it
 * is. */
bool wq__workers_await_stop(wq_workers *pool, int64_t timeout_ns);

/* The watchdog. If the config has neither item_deadline_ns nor on_lost, these
 * do nothing. */
wq_err wq__watchdog_start(wq_workers *pool);
void   wq__watchdog_end(
      wq_workers *pool); /* with the lock, which it releases meanwhile */
/* The handler of `item` begins. The handler has returned; when the second
 * function returns, the loan may end. */
void wq__watchdog_begin(struct wq__worker *w, const wq_item *item);
void wq__watchdog_finish(struct wq__worker *w);

#endif
