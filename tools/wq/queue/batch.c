/* SPDX-License-Identifier: MIT */
/* batch.c: how do many keys get into a queue in few steps? See batch.h. */
#include "queue/batch.h"

#include <stdlib.h>
#include <string.h>

#include <wq/inspect.h>

/* Keys of one step. More would not be faster, and would keep others from the
 * store for longer. */
enum { STEP = 512 };

/* A key that has failed and is WAITING waits for its retry, by its backoff or by
 * the requeue-after of its handler. */
bool
batch_is_retrying(const struct options *options, wq_queue *q, wq_key key)
{
    wq_key_info info = {.size = sizeof info};

    return !options->retry_on_add && wq_read_key(q, key, &info) == WQ_OK &&
           info.requeues > 0 && info.states & WQ_STATE_WAITING &&
           !(info.states & (WQ_STATE_READY | WQ_STATE_HELD));
}

/* One run covers all adds before it starts. A pending retry also covers this
 * add; or, with --retry-on-add, the run of this add covers the retry. */
wq_add_options
batch_options(const struct options *options, int64_t after_ns, int priority,
              bool retrying)
{
    wq_add_options how = {.size = sizeof how, .priority = priority};

    if (retrying) {
        how.waiting = WQ_IF_WAITING_IGNORE;
    } else if (after_ns < 0 && options->debounce_ns) {
        how.debounce_ns = options->debounce_ns;
        how.max_wait_ns = options->debounce_max_ns;
    } else {
        how.after_ns = after_ns < 0 ? options->after_ns : after_ns;
        how.waiting = WQ_IF_WAITING_MERGE;
    }
    return how;
}

bool
batch_put(struct batch *batch, wq_key key, int64_t after_ns, int priority)
{
    if (batch->n == batch->cap) {
        const size_t      cap = batch->cap ? 2 * batch->cap : 64;
        struct batch_key *keys = realloc(batch->keys, cap * sizeof *keys);
        if (!keys)
            return false;
        batch->keys = keys;
        batch->cap = cap;
    }
    const size_t at = batch->bytes.len;
    wq__text_add(&batch->bytes, key.data, key.len);
    if (batch->bytes.err) {
        batch->bytes.err = WQ_OK; /* the keys before it are complete */
        batch->bytes.len = at;
        return false;
    }
    batch->keys[batch->n++] = (struct batch_key){
        .at = at, .len = key.len, .after_ns = after_ns, .priority = priority};
    return true;
}

static wq_key
key_at(const struct batch *batch, size_t i)
{
    return wq_bytes(batch->bytes.data + batch->keys[i].at, batch->keys[i].len);
}

wq_key
batch_first(const struct batch *batch)
{
    return key_at(batch, 0);
}

/* The number of keys from `first` on that can be added in one step. */
static size_t
same_from(const struct batch *batch, size_t first)
{
    const struct batch_key *keys = batch->keys;
    size_t                  n = 1;

    while (first + n < batch->n && n < STEP &&
           keys[first + n].after_ns == keys[first].after_ns &&
           keys[first + n].priority == keys[first].priority &&
           keys[first + n].retrying == keys[first].retrying)
        n++;
    return n;
}

/* Takes out the first `n` keys. */
static void
take_out(struct batch *batch, size_t n)
{
    const size_t gone = n < batch->n ? batch->keys[n].at : batch->bytes.len;

    if (gone > 0)
        memmove(batch->bytes.data, batch->bytes.data + gone,
                batch->bytes.len - gone);
    batch->bytes.len -= gone;
    batch->n -= n;
    for (size_t i = 0; i < batch->n; i++) {
        batch->keys[i] = batch->keys[i + n];
        batch->keys[i].at -= gone;
    }
}

/* Looks which keys wait for their retry. The state of a key may change before it
 * is added; then the add is as if it had come a moment earlier. */
static void
mark_retrying(struct batch *batch, wq_queue *q)
{
    wq_stats stats = {.size = sizeof stats};

    if (batch->options->retry_on_add || wq_read_stats(q, &stats) != WQ_OK)
        return;
    for (size_t i = 0; i < batch->n; i++)
        batch->keys[i].retrying =
            stats.waiting > 0 &&
            batch_is_retrying(batch->options, q, key_at(batch, i));
}

wq_err
batch_add(struct batch *batch, wq_queue *q,
          void (*added)(void *ctx, wq_key key, wq_added result,
                        const wq_add_options *how),
          void *ctx)
{
    wq_key   keys[STEP];
    wq_added results[STEP];
    size_t   first = 0;
    wq_err   err = WQ_OK;

    mark_retrying(batch, q);
    while (first < batch->n) {
        const size_t   n = same_from(batch, first);
        wq_add_options how = batch_options(
            batch->options, batch->keys[first].after_ns,
            batch->keys[first].priority, batch->keys[first].retrying);
        for (size_t i = 0; i < n; i++)
            keys[i] = key_at(batch, first + i);
        how.results = results;
        if ((err = wq_add_with(q, &how, keys, n)))
            break;
        for (size_t i = 0; i < n; i++)
            added(ctx, keys[i], results[i], &how);
        first += n;
    }
    take_out(batch, first);
    return err;
}

void
batch_fini(struct batch *batch)
{
    wq__text_fini(&batch->bytes);
    free(batch->keys);
    *batch = (struct batch){0};
}
