/* SPDX-License-Identifier: MIT */
/* adds.c: how do operations on keys reach the store? Each is one operation. */
#include <string.h>

#include "core/mem.h"
#include "shared/report.h"
#include "shared/shared.h"

/* ---- adds ---------------------------------------------------------------- */

/* Adds with a delay are retries: client-go counts them so. */
static void
count_retries(struct wq__shared *s, size_t n)
{
    wq__shared_enter(s);
    s->retries += n;
    wq__shared_leave(s);
    wq__shared_report_changes(s);
}

static void
report_delays(struct wq__shared *s, const int64_t *delays, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (delays[i] >= 0)
            wq__shared_report_limited(s, delays[i]);
}

/* Space for the key that on_drop() gets: a NUL byte follows it. */
struct copy {
    char   at_hand[256];
    char  *bytes;
    size_t size;
};

/* Before the add, because it can fail. Nothing, if no key can be given up. */
static wq_err
prepare_copy(struct wq__shared *s, const wq_add_options *how,
             const wq_key *keys, size_t n, struct copy *out)
{
    out->bytes = out->at_hand;
    out->size = sizeof out->at_hand;
    for (size_t i = 0; s->on_drop && how->rate_limited && i < n; i++)
        if (keys[i].len >= out->size)
            out->size = keys[i].len + 1;
    if (out->size > sizeof out->at_hand)
        out->bytes = wq__mem_alloc(&s->mem, out->size);
    return out->bytes ? WQ_OK : WQ_ENOMEM;
}

static void
free_copy(struct wq__shared *s, struct copy *copy)
{
    if (copy->bytes != copy->at_hand)
        wq__mem_free(&s->mem, copy->bytes, copy->size);
}

/* The queue gave a key up. */
static void
report_given_up(struct wq__shared *s, const struct wq__op *op,
                struct copy *copy)
{
    const wq_key key = op->as.add.keys[op->as.add.given_up];

    if (!s->on_drop)
        return;
    memcpy(copy->bytes, key.data, key.len);
    copy->bytes[key.len] = '\0';
    s->on_drop(s->drop_ctx, (wq_key){copy->bytes, key.len}, op->as.add.retries,
               WQ_EGIVENUP);
}

/* `delays`: space for n, if the limiter is to be reported; else NULL. */
static wq_err
add(struct wq__shared *s, const wq_add_options *how, const wq_key *keys,
    size_t n, int64_t *delays)
{
    struct wq__op op = {
        .kind = WQ__OP_ADD,
        .as.add = {.how = how,
                   .keys = keys,
                   .n = n,
                   .added = how->results,
                   .delayed = delays},
    };
    struct copy copy;

    if (prepare_copy(s, how, keys, n, &copy))
        return WQ_ENOMEM;
    (void)wq__shared_run(s, &op);
    if (op.err == WQ_EGIVENUP)
        report_given_up(s, &op, &copy);
    free_copy(s, &copy);
    if (!op.err && delays)
        report_delays(s, delays, n);
    return op.err;
}

/* The same with memory for the delays of a long array. */
static wq_err
add_reporting(struct wq__shared *s, const wq_add_options *how,
              const wq_key *keys, size_t n)
{
    enum { AT_HAND = 16 };
    int64_t  at_hand[AT_HAND];
    int64_t *delays = at_hand;

    if (n > AT_HAND)
        delays = wq__mem_array(&s->mem, n, sizeof *delays);
    if (!delays)
        return WQ_ENOMEM;
    for (size_t i = 0; i < n; i++)
        delays[i] = -1;
    const wq_err err = add(s, how, keys, n, delays);
    if (delays != at_hand)
        wq__mem_free(&s->mem, delays, n * sizeof *delays);
    return err;
}

/* `retries`: count it as such. */
static wq_err
add_counted(wq_queue *q, const wq_add_options *how, const wq_key *keys,
            size_t n, bool retries)
{
    struct wq__shared *s = wq__shared_of(q);

    if (wq__shared_is_foreign(s))
        return WQ_ESTATE;
    if (wq__shared_shutting_down(q))
        return WQ_ESHUTDOWN;
    const wq_err err = how->rate_limited && s->times
                           ? add_reporting(s, how, keys, n)
                           : add(s, how, keys, n, NULL);
    if (!err && retries)
        count_retries(s, n);
    return err;
}

wq_err
wq__shared_add_with(wq_queue *q, const wq_add_options *how, const wq_key *keys,
                    size_t n)
{
    return add_counted(q, how, keys, n, how->rate_limited || how->after_ns > 0);
}

wq_err
wq__shared_add(wq_queue *q, wq_key key)
{
    const wq_add_options how = {.size = sizeof how};

    return add_counted(q, &how, &key, 1, false);
}

wq_err
wq__shared_add_after(wq_queue *q, wq_key key, int64_t delay_ns)
{
    const wq_add_options how = {.size = sizeof how, .after_ns = delay_ns};

    return add_counted(q, &how, &key, 1, true);
}

wq_err
wq__shared_add_rate_limited(wq_queue *q, wq_key key)
{
    const wq_add_options how = {.size = sizeof how, .rate_limited = true};

    return add_counted(q, &how, &key, 1, true);
}

/* ---- one key ------------------------------------------------------------- */

static wq_err
run_one(wq_queue *q, enum wq__op_kind kind, wq_key key)
{
    struct wq__op op = {.kind = kind, .as.one = {.key = key}};

    (void)wq__shared_run(wq__shared_of(q), &op);
    return op.err;
}

wq_err
wq__shared_remove(wq_queue *q, wq_key key)
{
    return run_one(q, WQ__OP_REMOVE, key);
}

wq_err
wq__shared_cancel_after(wq_queue *q, wq_key key)
{
    return run_one(q, WQ__OP_CANCEL, key);
}

wq_err
wq__shared_forget(wq_queue *q, wq_key key)
{
    return run_one(q, WQ__OP_FORGET, key);
}

wq_err
wq__shared_revive(wq_queue *q, wq_key key)
{
    return run_one(q, WQ__OP_REVIVE, key);
}

wq_err
wq__shared_num_requeues(wq_queue *q, wq_key key, unsigned *out)
{
    struct wq__op op = {.kind = WQ__OP_REQUEUES, .as.one = {.key = key}};

    (void)wq__shared_run(wq__shared_of(q), &op);
    if (!op.err)
        *out = op.as.one.requeues;
    return op.err;
}

wq_err
wq__shared_count_drops(wq_queue *q, uint64_t n)
{
    struct wq__shared *s = wq__shared_of(q);

    if (!wq__shared_enter_own(s))
        return WQ_ESTATE;
    s->drops += n;
    wq__shared_leave(s);
    wq__shared_report_changes(s);
    return WQ_OK;
}
