/* SPDX-License-Identifier: MIT */
/* memory_store.h: how are shared queues tested without a store?
 *
 * A store inside the process: the core behind the seam of shared/engine.h.
 * Several engines can share it, each as a session of its own, and calls fail on
 * command:
 *
 *     struct memory_store *store = memory_store_create(clock);
 *     memory_store_engine(store, &terms, WQ_SECONDS(10), &e);
 *     memory_store_fail(store, STORE_EIO_AFTER, 2, 0);  the second call from now
 *     ... e->ops->run(e, batch, &pulse) ...
 *     assert_sound_store(store);
 *     e->ops->close(e, false);
 *     memory_store_destroy(store);
 *
 * One lock guards the store. A batch first gives back the holds of sessions
 * that have ended, then lets deadlines pass, then carries out its operations.
 * A call wakes other engines when a key becomes READY, when none is READY or
 * HELD any more, when the earliest deadline moves to an earlier time, and when
 * a session begins that may end by time: in all cases in which a sleeper would
 * sleep too long otherwise.
 *
 *   store_inside.h    what the files below share
 *   memory_store.c    the verbs of an engine: enter, act, wake others, leave
 *   store_sessions.c  which sessions live, and what becomes of their holds?
 *   store_ops.c       what does each operation do?
 *   store_dead.c      which keys are DEAD, and how often did a hold expire?
 *   store_faults.c    which call fails, and how?
 *   store_check.c     do all invariants hold?
 */
#ifndef WQ_TEST_MEMORY_STORE_H
#define WQ_TEST_MEMORY_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include <wq/wq.h>

#include "shared/engine.h"

struct memory_store;

/* `clock` NULL: wq_clock_monotonic(); `mem` NULL: malloc and free. Both must
 * outlive the store. NULL: out of memory. */
struct memory_store *memory_store_create(wq_clock *clock);
struct memory_store *memory_store_create_with(wq_clock           *clock,
                                              const wq_allocator *mem);

/* The caller does not use the store any more. It is freed when its engines are
 * closed, too. */
void memory_store_destroy(struct memory_store *store);

/* Open an engine, and begin its session. `terms` is copied. The limiter,
 * WQ_RETRY_RESPECT, max_len and ages of the first engine's terms become those
 * of the store; those of later ones are ignored. The rest is per engine;
 * max_expiries is that of the engine that finds a session ended. lease_ns 0:
 * only close() ends the session. WQ_EINVAL: the limiter; WQ_ENOMEM. */
wq_err memory_store_engine(struct memory_store    *store,
                           const struct wq__terms *terms, int64_t lease_ns,
                           struct wq__engine **out);

/* ---- faults -------------------------------------------------------------- */

enum store_fault {
    STORE_AWAY,        /* nothing happens: WQ_EAWAY */
    STORE_EIO_BEFORE,  /* nothing happens: WQ_EIO */
    STORE_EIO_AFTER,   /* it happens, but the reply is lost: WQ_EIO; nothing is
                          written to the operations, and no callback is called */
    STORE_END_SESSION, /* before the call the session ends, as by time */
    STORE_JUMP,        /* a fake clock steps by jump_ns after the store has done
                          its part, before the call returns */
};

/* Calls that can fail; to be or'ed. */
enum store_call { STORE_RUN = 1, STORE_RENEW = 2, STORE_RECONCILE = 4 };

/* A fault to come. */
struct store_plan {
    enum store_fault fault;
    unsigned nth; /* of the calls that it is about, from now on; 1: the next.
                     Once. 0: all of them */
    int64_t  jump_ns;                /* STORE_JUMP */
    const struct wq__engine *engine; /* whose calls; NULL: of all engines */
    unsigned calls; /* which calls: enum store_call; 0: all of them */
};

/* Add a plan. At most 16 at a time; a plan that has come to pass is removed. If
 * several apply to one call, all do, and the first error is returned. */
void memory_store_plan(struct memory_store *store, struct store_plan plan);

/* Plans for any call of any engine. */
void memory_store_fail(struct memory_store *store, enum store_fault fault,
                       unsigned nth, int64_t jump_ns);
void memory_store_fail_always(struct memory_store *store,
                              enum store_fault     fault);

/* Remove all plans. */
void memory_store_heal(struct memory_store *store);

/* How many run(), renew() and reconcile() there were, failed ones included. */
unsigned memory_store_calls(struct memory_store *store);

/* End the session of an engine now, as by time. Its keys are given back by the
 * next batch of any engine. */
void memory_store_end_session(struct wq__engine *e);

/* A batch gives back at most `n` holds of ended sessions, and leaves the rest
 * to the next ones; 0: all, the default. */
void memory_store_give_back_at_most(struct memory_store *store, size_t n);

/* ---- checks -------------------------------------------------------------- */

/* Verify every invariant. NULL when all hold, else which one is broken (a
 * static string). */
const char *memory_store_check(struct memory_store *store);

/* Fail the test that finds one broken. */
#define assert_sound_store(store)                                              \
    do {                                                                       \
        const char *broken_ = memory_store_check(store);                       \
        if (broken_)                                                           \
            fail_msg("%s", broken_);                                           \
    } while (0)

#endif
