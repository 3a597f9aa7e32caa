/* SPDX-License-Identifier: MIT */
/* delaying.h: what is a delaying layer made of?
 *
 * A core of its own, which stores deadlines; a lock around it; and the inner
 * queue, which knows nothing of deadlines. due.c passes due keys on to the
 * inner queue; adds.c, withdraw.c, gets.c and view.c are the verbs that combine
 * the two; delaying.c has the verbs that are only passed on, and creates and
 * destroys a layer.
 *
 * A key in the core of the layer is
 *
 *   WAITING   it has a deadline;
 *   READY     its deadline has passed, and it is not in the inner queue yet;
 *   HELD      a thread is adding it to the inner queue, or the inner queue
 *             was full (`refused`).
 *
 * A key that is READY or HELD here is due. To the callers of the layer a due
 * key is WAITING, and its deadline is now.
 */
#ifndef WQ_LAYER_DELAYING_H
#define WQ_LAYER_DELAYING_H

#include <stdatomic.h>

#include <wq/backend.h>

#include "clock/clock.h"
#include "core/core.h"
#include "front/check.h"
#include "layer/calls.h"
#include "layer/forward.h"
#include "port/lock.h"

struct wq__delaying {
    struct wq__layer layer; /* first */
    wq_allocator     mem;   /* a copy of the config's */
    wq_clock        *clock; /* not owned; the inner queue must use it, too */
    struct wq__calls calls; /* those that may be in `inner` */
    /* Those that only the destroy of `inner` ends, and that use the layer
     * afterwards. */
    struct wq__calls waits;
    /* Guards all below. The clock and the allocator are called under it, the
     * inner queue is not. */
    struct wq__lock lock;
    /* WAITING keys, and keys that are due and not in `inner` */
    struct wq__core core;
    /* An item of `core`: the key to offer first, because the inner queue was
     * full; or NULL. */
    wq_item *refused;
    size_t   blocked; /* gets that may sleep in `inner` */
    /* The get that sleeps until the next deadline; NULL: none. */
    const void *timekeeper;
    int64_t     timekeeper_until_ns;
    uint64_t    interrupts;  /* calls of wq_interrupt() */
    bool        interrupted; /* one of them is remembered */
    bool destroying; /* gets that return from `inner` return WQ_ESHUTDOWN */
    /* `inner` hands out no key, so `beacon` does not show deadlines. */
    bool     paused;
    bool     pauses_overlap; /* of the calls in `pausing`: `paused` is unknown,
                                and false */
    size_t   pausing;  /* calls of wq_pause() and wq_resume() in progress */
    uint64_t retries;  /* adds with a delay, which `inner` does not count */
    uint64_t merged;   /* adds that joined a run in `inner`: not counted there
                            nor in `core` */
    uint64_t deferred; /* keys that were removed from `inner` for a deadline */
    uint64_t drops;    /* due keys that a shutdown dropped */
    /* Readable when `inner` is, and when a deadline has passed; open from the
     * first wq_fd() on. */
    struct wq__beacon beacon;
    struct wq__watch  watch; /* lights it at the next deadline */
};

static inline struct wq__delaying *
wq__delaying_of(const wq_queue *q)
{
    return (struct wq__delaying *)(void *)q;
}

/* A verb that calls the inner queue begins with the first of these and ends
 * with the second. The layer may be freed after that. */
static inline struct wq__delaying *
wq__delaying_begin(wq_queue *q)
{
    struct wq__delaying *d = wq__delaying_of(q);

    wq__calls_begin(&d->calls);
    return d;
}

static inline wq_err
wq__delaying_end(struct wq__delaying *d, wq_err err)
{
    wq__calls_end(&d->calls);
    return err;
}

/* Take the lock; release it, and set `beacon` to the next deadline. */
static inline void
wq__delaying_enter(struct wq__delaying *d)
{
    wq__lock_take(&d->lock);
}

void wq__delaying_leave(struct wq__delaying *d);

/* ---- due.c --------------------------------------------------------------- */

/* The longest sleep of a get that no thread can wake: in an inner queue that
 * cannot be interrupted, and while the inner queue refuses a key. 10 ms: soon,
 * but no spinning. */
#define WQ__SLICE_NS INT64_C(10000000)

/* Add all keys that are due to the inner queue, up to the first one that it
 * refuses. True: a key that is due may still be here. */
bool wq__delaying_pass_on(struct wq__delaying *d);

/* The same; if this call adds `key`, *what says what the inner queue did. */
bool wq__delaying_pass_on_key(struct wq__delaying *d, wq_key key,
                              wq_added *what);

/* A verb that may have freed capacity in the inner queue returned `err`; `left`
 * is what wq__delaying_pass_on() returned before it. */
void wq__delaying_pass_on_rest(struct wq__delaying *d, bool left, wq_err err);

/* With the lock: when a get must check this layer again; WQ_FOREVER: never.
 * While a key is due, or another thread is offering it and may be refused, that
 * is after WQ__SLICE_NS. */
int64_t wq__delaying_next_look(struct wq__delaying *d);

/* With the lock: drop the item that the inner queue refused. */
void wq__delaying_drop_refused(struct wq__delaying *d);

/* ---- gets.c -------------------------------------------------------------- */

/* Make the gets in the inner queue return, if that has the verb. */
void wq__delaying_interrupt_inner(struct wq__delaying *d);

/* With the lock: does no get wake up at wq__delaying_next_look(), although one
 * could? Then the caller interrupts the inner queue, without the lock. */
bool wq__delaying_needs_interrupt(struct wq__delaying *d);

wq_err wq__delaying_get(wq_queue *q, int64_t timeout_ns, wq_item **out);
wq_err wq__delaying_get_many(wq_queue *q, wq_item **out, size_t max,
                             int64_t timeout_ns, size_t *n);
wq_err wq__delaying_next(wq_queue *q, int64_t timeout_ns, wq_item **item);
void   wq__delaying_interrupt(wq_queue *q);

/* ---- adds.c -------------------------------------------------------------- */

wq_err wq__delaying_add(wq_queue *q, wq_key key);
wq_err wq__delaying_add_after(wq_queue *q, wq_key key, int64_t delay_ns);
wq_err wq__delaying_add_with(wq_queue *q, const wq_add_options *how,
                             const wq_key *keys, size_t n);

/* ---- withdraw.c ---------------------------------------------------------- */

wq_err wq__delaying_remove(wq_queue *q, wq_key key);
wq_err wq__delaying_cancel_after(wq_queue *q, wq_key key);
wq_err wq__delaying_remove_wait(wq_queue *q, wq_key key, int64_t timeout_ns);

/* ---- view.c -------------------------------------------------------------- */

wq_err wq__delaying_len(wq_queue *q, size_t *out);
wq_err wq__delaying_stats(wq_queue *q, wq_stats *out);
wq_err wq__delaying_depths(wq_queue *q, wq_depth *out, size_t max, size_t *n);
wq_err wq__delaying_key_info(wq_queue *q, wq_key key, wq_key_info *out);
wq_err wq__delaying_each(wq_queue *q, unsigned states, wq_visit visit,
                         void *ctx);
wq_err wq__delaying_check(wq_queue *q, wq_problem problem, void *ctx);
int    wq__delaying_fd(wq_queue *q);
void   wq__delaying_close_fd(struct wq__delaying *d);

#endif
