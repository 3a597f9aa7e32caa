/* SPDX-License-Identifier: MIT */
/* waits.h: wq_flush(), wq_wait_idle(), wq_flush_key() and wq_remove_wait() in a
 * thread of their own.
 *
 *     struct wait w;
 *     begin_wait(&w, FOR_FLUSH, q, NULL);     it is blocked
 *     ...
 *     assert_waits(&w);                       it is still blocked
 *     assert_ends(&w, WQ_OK);                 it returns, at once or soon
 */
#ifndef WQ_BEHAVIOUR_WAITS_H
#define WQ_BEHAVIOUR_WAITS_H

#include "asked.h"

enum wait_for { FOR_FLUSH, FOR_IDLE, FOR_KEY, FOR_REMOVAL, WAIT_KINDS };

struct wait {
    enum wait_for  what;
    wq_queue      *q;
    const char    *key; /* FOR_KEY, FOR_REMOVAL */
    int64_t        timeout_ns;
    struct worker *worker;
};

/* The call itself, in the thread that calls this. */
static inline wq_err
call_wait(enum wait_for what, wq_queue *q, const char *key, int64_t timeout_ns)
{
    switch (what) {
    case FOR_FLUSH:
        return wq_flush(q, timeout_ns);
    case FOR_IDLE:
        return wq_wait_idle(q, timeout_ns);
    case FOR_KEY:
        return wq_flush_key(q, wq_str(key), timeout_ns);
    case FOR_REMOVAL:
    case WAIT_KINDS:
    default:
        return wq_remove_wait(q, wq_str(key), timeout_ns);
    }
}

static inline int
run_wait(struct worker *self)
{
    struct wait *w = self->arg;

    return (int)call_wait(w->what, w->q, w->key, w->timeout_ns);
}

/* In another thread; it may return at once. `w` stays where it is. */
static inline void
start_wait(struct wait *w, enum wait_for what, wq_queue *q, const char *key,
           int64_t timeout_ns)
{
    *w = (struct wait){what, q, key, timeout_ns, NULL};
    w->worker = worker_start(run_wait, w);
}

static inline void
assert_waits(const struct wait *w)
{
    worker_await_blocked(w->worker);
}

/* In another thread, which sleeps when this returns. */
static inline void
begin_wait(struct wait *w, enum wait_for what, wq_queue *q, const char *key)
{
    start_wait(w, what, q, key, WQ_FOREVER);
    assert_waits(w);
}

/* What it returns. */
static inline wq_err
end_of(struct wait *w)
{
    return (wq_err)worker_join(w->worker);
}

#define assert_ends(w, expected) assert_err(end_of(w), expected)

/* The same call in another thread, which need not sleep: what it returns. */
static inline wq_err
elsewhere(enum wait_for what, wq_queue *q, const char *key, int64_t timeout_ns)
{
    struct wait w;

    start_wait(&w, what, q, key, timeout_ns);
    return end_of(&w);
}

/* ---- another thread takes keys out --------------------------------------- */

/* Afterwards adds of this thread go to the inbox, because another thread took
 * the last keys out; see test_inbox.c. */
static inline void
have_another_getter(wq_queue *q)
{
    for (int i = 0; i < 3; i++) {
        add(q, "first");
        assert_err(worker_join(worker_work(q)), WQ_OK);
    }
}

#endif
