/* SPDX-License-Identifier: MIT */
/* waits.h: how does a test look at a thread that waits for work to be over?
 *
 * wq_flush(), wq_wait_idle(), wq_flush_key() and wq_remove_wait() in a thread of
 * their own:
 *
 *     struct wait w;
 *     begin_wait(&w, FOR_FLUSH, q, NULL);     it sleeps
 *     ...
 *     assert_waits(&w);                       it still does
 *     assert_ends(&w, WQ_OK);                 it returns, at once or soon
 *
 * freeze() holds a thread that sleeps where it is, in a signal handler, until
 * thaw(): what happens meanwhile happens before the thread can look.
 */
#ifndef WQ_BEHAVIOUR_WAITS_H
#define WQ_BEHAVIOUR_WAITS_H

#include "asked.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

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

static inline int
run_work(struct worker *self)
{
    wq_item *item;
    wq_err   err = wq_get_within(self->arg, 0, &item);

    if (!err)
        err = wq_done(self->arg, item);
    return (int)err;
}

/* From now on keys that this thread adds are left for another one, without the
 * lock, until somebody looks; see test_other_getter.c. */
static inline void
have_another_getter(wq_queue *q)
{
    for (int i = 0; i < 3; i++) {
        add(q, "first");
        assert_err(worker_join(worker_start(run_work, q)), WQ_OK);
    }
}

/* ---- a thread that cannot run -------------------------------------------- */

/* The thread sanitizer defers signals until a thread leaves the library: there
 * nothing is frozen, and a test asks less. */
#if defined(__SANITIZE_THREAD__)
#define CAN_FREEZE 0
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define CAN_FREEZE 0
#endif
#endif
#ifndef CAN_FREEZE
#define CAN_FREEZE 1
#endif

static struct {
    int began[2],
        go_on[2]; /* pipes: the handler writes to one, reads another */
} ice;

static inline void
stay_frozen(int signal)
{
    const int saved = errno;
    char      byte = 'f';

    (void)signal;
    if (write(ice.began[1], &byte, 1) == 1)
        while (read(ice.go_on[0], &byte, 1) != 1)
            ;
    errno = saved;
}

/* One thread at a time, which must be asleep. */
static inline void
freeze(const struct wait *w)
{
    const struct sigaction action = {.sa_handler = stay_frozen};
    char                   byte;

    if (!CAN_FREEZE)
        return;
    assert_int_equal(pipe(ice.began), 0);
    assert_int_equal(pipe(ice.go_on), 0);
    assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
    assert_int_equal(pthread_kill(w->worker->thread, SIGUSR1), 0);
    assert_int_equal(read(ice.began[0], &byte, 1), 1);
}

static inline void
thaw(void)
{
    if (CAN_FREEZE)
        assert_int_equal(write(ice.go_on[1], "t", 1), 1);
}

/* The thread has returned. */
static inline void
close_ice(void)
{
    for (int i = 0; CAN_FREEZE && i < 2; i++) {
        (void)close(ice.began[i]);
        (void)close(ice.go_on[i]);
    }
}

#endif
