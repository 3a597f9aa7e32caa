/* SPDX-License-Identifier: MIT */
/* done.c: what does `wq done` do? It ends the holds that `wq get` began. */
#include "base/report.h"
#include "queue/holder.h"
#include "queue/open.h"
#include "verbs/verbs.h"

static wq_result
result_of(const struct options *options)
{
    if (options->again_ns >= 0)
        return wq_result_after(options->again_ns);
    switch (options->end) {
    case END_RETRY:
        return options->retries ? wq_result_retry() : wq_result_bury();
    case END_BURY:
        return wq_result_bury();
    case END_BACK:
        return wq_result_back();
    default:
        return wq_result_done();
    }
}

/* The key had too many failures: it is DEAD, which the user should know. */
static int
finish(struct holder *h, wq_key key)
{
    const struct options *options = h->options;
    wq_item              *item;
    wq_err                err = holder_resume(h, key, &item);

    if (!err) {
        err = wq_finish(h->q, item, result_of(options));
        holder_forget(h, key);
    }
    if (err == WQ_OK)
        return STATUS_OK;
    if (err == WQ_EGIVENUP) {
        report("done: %s has failed too often: it is DEAD",
               report_key(key.data, key.len));
        return STATUS_OK;
    }
    if (err == WQ_ELOST) {
        report("done: %s: its hold was lost: its result does not count; "
               "another worker may have the key",
               report_key(key.data, key.len));
        return STATUS_NONE;
    }
    if (err == WQ_ENOTFOUND) {
        report("done: %s is not held by process %d; --holder=PID names the "
               "process",
               report_key(key.data, key.len), holder_of(options));
        return STATUS_NONE;
    }
    queue_report(options, "finish", key, err);
    return STATUS_ERROR;
}

int
verb_done(const struct options *options)
{
    const unsigned most =
        options->retries == RETRIES_FOREVER ? 0 : options->retries;
    struct holder h;
    int           status = STATUS_OK;

    if (!holder_open_held(
            &h, options,
            WQ_CONFIG(.ages = true, .max_retries = most,
                      .retry = queue_retry_policy(options),
                      .limiter = queue_backoff(&options->backoff))))
        return STATUS_ERROR;
    for (char **key = options->operands; *key; key++) {
        const int one = finish(&h, wq_str(*key));
        status = one > status ? one : status;
    }
    holder_close(&h);
    return status;
}
