/* SPDX-License-Identifier: MIT */
/* inspect.c: which arguments do the verbs of inspect.h and wq_fd() refuse?
 * Checked here once for all backends. */
#include <wq/backend.h>

#include <errno.h>
#include <stdio.h>

#include "core/sized.h"
#include "front/check.h"
#include "port/cancel.h"

wq_err
wq_read_stats(wq_queue *q, wq_stats *out)
{
    wq_stats known;

    if (!q || !out || !wq__sized_read(out, sizeof known, &known))
        return WQ_EINVAL;
    if (!WQ_HAS_VERB(q, stats))
        return WQ_ENOTSUP;
    known = (wq_stats){.size = sizeof known};
    const wq_err err = q->backend->stats(q, &known);
    known.size = out->size;
    if (!err)
        wq__sized_write(&known, sizeof known, out);
    return err;
}

wq_err
wq_read_key(wq_queue *q, wq_key key, wq_key_info *out)
{
    wq_key_info known;

    if (!q || !out || !wq__sized_read(out, sizeof known, &known))
        return WQ_EINVAL;
    wq_err err = wq__check_key(key);
    if (err)
        return err;
    if (!WQ_HAS_VERB(q, key_info))
        return WQ_ENOTSUP;
    known = (wq_key_info){.size = sizeof known};
    err = q->backend->key_info(q, key, &known);
    known.size = out->size;
    if (!err)
        wq__sized_write(&known, sizeof known, out);
    return err;
}

wq_err
wq_read_depths(wq_queue *q, wq_depth *out, size_t max, size_t *n)
{
    if (!q || !n || (!out && max))
        return WQ_EINVAL;
    return WQ__CALL(q, depths, (q, out, max, n));
}

wq_err
wq_each(wq_queue *q, unsigned states, wq_visit visit, void *ctx)
{
    const unsigned known = WQ_STATE_READY | WQ_STATE_HELD | WQ_STATE_DIRTY |
                           WQ_STATE_WAITING | WQ_STATE_BACKOFF | WQ_STATE_DEAD;

    if (!q || !visit || states & ~known)
        return WQ_EINVAL;
    return WQ__CALL(q, each, (q, states ? states : known, visit, ctx));
}

wq_err
wq_check(wq_queue *q, wq_problem problem, void *ctx)
{
    if (!q || !problem)
        return WQ_EINVAL;
    return WQ__CALL(q, check, (q, problem, ctx));
}

wq_err
wq_write_file(void *file, const char *text, size_t len)
{
    const int  state = wq__cancel_off();
    const bool whole = fwrite(text, 1, len, file) == len;

    wq__cancel_restore(state);
    return whole ? WQ_OK : WQ_EIO;
}

int
wq_fd(wq_queue *q)
{
    if (q && WQ_HAS_VERB(q, fd))
        return q->backend->fd(q);
    errno = q ? ENOSYS : EINVAL;
    return -1;
}
