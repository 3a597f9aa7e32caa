/* SPDX-License-Identifier: MIT */
/* call.h: how is an engine called?
 *
 * Never with the shell's lock, and with cancellation off: engines do I/O, and
 * no function of the library is a cancellation point. A thread that ended in an
 * engine would leave the handle without a leader.
 */
#ifndef WQ_SHARED_CALL_H
#define WQ_SHARED_CALL_H

#include "port/cancel.h"
#include "shared/engine.h"

static inline bool
wq__engine_begin(struct wq__engine *e, struct wq__op *batch)
{
    if (!e->ops->begin)
        return false;
    const int  state = wq__cancel_off();
    const bool begun = e->ops->begin(e, batch);

    wq__cancel_restore(state);
    return begun;
}

static inline wq_err
wq__engine_run(struct wq__engine *e, struct wq__op *batch,
               struct wq__pulse *pulse)
{
    const int    state = wq__cancel_off();
    const wq_err err = e->ops->run(e, batch, pulse);

    wq__cancel_restore(state);
    return err;
}

static inline wq_err
wq__engine_settle(struct wq__engine *e, uint64_t number)
{
    const int    state = wq__cancel_off();
    const wq_err err = e->ops->settle(e, number);

    wq__cancel_restore(state);
    return err;
}

static inline wq_err
wq__engine_renew(struct wq__engine *e)
{
    const int    state = wq__cancel_off();
    const wq_err err = e->ops->renew(e);

    wq__cancel_restore(state);
    return err;
}

static inline wq_err
wq__engine_reconcile(struct wq__engine *e, const struct wq__known *known,
                     size_t n, bool *lost)
{
    const int    state = wq__cancel_off();
    const wq_err err = e->ops->reconcile(e, known, n, lost);

    wq__cancel_restore(state);
    return err;
}

static inline void
wq__engine_wait(struct wq__engine *e, int64_t until_ns)
{
    const int state = wq__cancel_off();

    e->ops->wait(e, until_ns);
    wq__cancel_restore(state);
}

static inline void
wq__engine_kick(struct wq__engine *e)
{
    const int state = wq__cancel_off();

    e->ops->kick(e);
    wq__cancel_restore(state);
}

static inline int
wq__engine_fd(struct wq__engine *e)
{
    const int state = wq__cancel_off();
    const int fd = e->ops->fd ? e->ops->fd(e) : -1;

    wq__cancel_restore(state);
    return fd;
}

static inline void
wq__engine_close(struct wq__engine *e, bool forked)
{
    const int state = wq__cancel_off();

    e->ops->close(e, forked);
    wq__cancel_restore(state);
}

#endif
