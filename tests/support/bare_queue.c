/* SPDX-License-Identifier: MIT */
/* bare_queue.c: an in-memory queue that shows few verbs; see bare_queue.h.
 *
 * A call that a gate stops may be the last one: it does not use the queue after
 * it has left the in-memory queue.
 */
#include "support/bare_queue.h"

#include <stdlib.h>
#include <string.h>

void
gate_arm(struct gate *g, unsigned at)
{
    atomic_store(&g->at, at);
}

void
gate_await(struct gate *g)
{
    tally_await(&g->checkpoint.begun, 1);
}

void
gate_open(struct gate *g)
{
    tally_add(&g->checkpoint.allowed, CHECKPOINT_OPEN);
}

/* A call is `here`: stop, if the gate is armed for that. Returns `err`. */
static wq_err
gate_pass(struct gate *g, enum gate_at here, wq_err err)
{
    unsigned at = g ? atomic_load(&g->at) : 0;

    if (at & here && atomic_compare_exchange_strong(&g->at, &at, 0))
        checkpoint_pass(&g->checkpoint);
    return err;
}

static struct bare *
bare_of(const wq_queue *q)
{
    return (struct bare *)(void *)(uintptr_t)q;
}

/* WQ_OK: an add of `key` is not refused. */
static wq_err
refusal(struct bare *b, wq_key key)
{
    if (b->max_ready && wq_len(b->memory) >= b->max_ready)
        return WQ_EFULL;
    if (b->refused_key && key.len == strlen(b->refused_key) &&
        !memcmp(key.data, b->refused_key, key.len))
        return atomic_load(&b->refused_with);
    if (atomic_load(&b->refuse_next) <= 0)
        return WQ_OK;
    atomic_fetch_sub(&b->refuse_next, 1);
    return WQ_ENOMEM;
}

static wq_err
bare_add(wq_queue *q, wq_key key)
{
    struct bare *b = bare_of(q);
    struct gate *g = b->gate;

    atomic_fetch_add(&b->adds, 1);
    const wq_err err = refusal(b, key);
    return gate_pass(g, GATE_AFTER_ADD, err ? err : wq_add(b->memory, key));
}

static wq_err
bare_add_with(wq_queue *q, const wq_add_options *how, const wq_key *keys,
              size_t n)
{
    struct bare *b = bare_of(q);
    struct gate *g = b->gate;

    atomic_fetch_add(&b->nowaits, how->nowait);
    if (b->add_with_err)
        return b->add_with_err;
    const wq_err err = refusal(b, *keys);
    return gate_pass(g, GATE_AFTER_ADD,
                     err ? err : wq_add_with(b->memory, how, keys, n));
}

static wq_err
bare_add_after(wq_queue *q, wq_key key, int64_t delay_ns)
{
    struct bare *b = bare_of(q);
    struct gate *g = b->gate;

    return gate_pass(g, GATE_AFTER_ADD, wq_add_after(b->memory, key, delay_ns));
}

static wq_err
bare_get(wq_queue *q, int64_t timeout_ns, wq_item **out)
{
    struct bare *b = bare_of(q);
    struct gate *g = timeout_ns > 0 ? b->gate : NULL;

    (void)gate_pass(g, GATE_BEFORE_GET, WQ_OK);
    return gate_pass(g, GATE_AFTER_GET,
                     wq_get_within(b->memory, timeout_ns, out));
}

static wq_err
bare_done(wq_queue *q, wq_item *item)
{
    return wq_done(bare_of(q)->memory, item);
}

static wq_err
bare_len(wq_queue *q, size_t *out)
{
    *out = wq_len(bare_of(q)->memory);
    return WQ_OK;
}

static void
bare_shutdown(wq_queue *q)
{
    wq_shutdown(bare_of(q)->memory);
}

static bool
bare_shutting_down(const wq_queue *q)
{
    return wq_shutting_down(bare_of(q)->memory);
}

static wq_err
bare_drain(wq_queue *q, int64_t timeout_ns)
{
    struct bare *b = bare_of(q);
    struct gate *g = b->gate;

    return gate_pass(g, GATE_AFTER_DRAIN,
                     wq_shutdown_with_drain_within(b->memory, timeout_ns));
}

static void
bare_interrupt(wq_queue *q)
{
    wq_interrupt(bare_of(q)->memory);
}

static wq_err
bare_remove(wq_queue *q, wq_key key)
{
    struct bare *b = bare_of(q);

    atomic_fetch_add(&b->removes, 1);
    return b->remove_err ? b->remove_err : wq_remove(b->memory, key);
}

static wq_err
bare_remove_wait(wq_queue *q, wq_key key, int64_t timeout_ns)
{
    struct bare *b = bare_of(q);
    struct gate *g = timeout_ns > 0 ? b->gate : NULL;

    return gate_pass(g, GATE_AFTER_WAIT,
                     wq_remove_wait(b->memory, key, timeout_ns));
}

static wq_err
bare_key_info(wq_queue *q, wq_key key, wq_key_info *out)
{
    return wq_read_key(bare_of(q)->memory, key, out);
}

static wq_err
bare_each(wq_queue *q, unsigned states, wq_visit visit, void *ctx)
{
    return wq_each(bare_of(q)->memory, states, visit, ctx);
}

static wq_err
bare_stats(wq_queue *q, wq_stats *out)
{
    return wq_read_stats(bare_of(q)->memory, out);
}

static void
bare_destroy(wq_queue *q)
{
    struct bare *b = bare_of(q);

    wq_destroy(b->memory);
    if (b->destroys)
        atomic_fetch_add(b->destroys, 1);
    free(b);
}

struct bare *
bare_create(const wq_config *config)
{
    struct bare *b = calloc(1, sizeof *b);

    if (!b)
        abort();
    b->backend = (wq_backend){
        .size = sizeof b->backend,
        .name = "bare",
        .destroy = bare_destroy,
        .add = bare_add,
        .get = bare_get,
        .done = bare_done,
        .len = bare_len,
        .shutdown = bare_shutdown,
        .shutting_down = bare_shutting_down,
        .drain = bare_drain,
        .interrupt = bare_interrupt,
    };
    if (wq_backend_init(&b->base, &b->backend) || wq_create(config, &b->memory))
        abort();
    return b;
}

void
bare_show_adds(struct bare *b)
{
    b->backend.add_with = bare_add_with;
    b->backend.add_after = bare_add_after;
}

void
bare_show_keys(struct bare *b)
{
    b->backend.remove = bare_remove;
    b->backend.remove_wait = bare_remove_wait;
    b->backend.key_info = bare_key_info;
    b->backend.each = bare_each;
    b->backend.stats = bare_stats;
}
