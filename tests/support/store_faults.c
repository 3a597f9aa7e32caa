/* SPDX-License-Identifier: MIT */
/* store_faults.c: which call fails, and how? */
#include "support/store_inside.h"

#include <assert.h>

#include "core/mem.h"

/* ---- plans --------------------------------------------------------------- */

void
memory_store_plan(struct memory_store *store, struct store_plan plan)
{
    wq__lock_take(&store->lock);
    assert(store->n_plans < STORE_PLANS);
    store->plans[store->n_plans++] = plan;
    wq__lock_release(&store->lock);
}

void
memory_store_fail(struct memory_store *store, enum store_fault fault,
                  unsigned nth, int64_t jump_ns)
{
    memory_store_plan(
        store,
        (struct store_plan){.fault = fault, .nth = nth, .jump_ns = jump_ns});
}

void
memory_store_fail_always(struct memory_store *store, enum store_fault fault)
{
    memory_store_plan(store, (struct store_plan){.fault = fault});
}

void
memory_store_heal(struct memory_store *store)
{
    wq__lock_take(&store->lock);
    store->n_plans = 0;
    wq__lock_release(&store->lock);
}

unsigned
memory_store_calls(struct memory_store *store)
{
    wq__lock_take(&store->lock);
    const unsigned calls = store->calls;
    wq__lock_release(&store->lock);
    return calls;
}

static bool
is_about(const struct store_plan *plan, const struct memory_engine *e,
         enum store_call call)
{
    return (!plan->engine || plan->engine == &e->base) &&
           (!plan->calls || plan->calls & (unsigned)call);
}

static void
apply(const struct store_plan *plan, struct store_effect *effect)
{
    wq_err err = WQ_OK;

    switch (plan->fault) {
    case STORE_AWAY:
        err = WQ_EAWAY;
        effect->happens = false;
        break;
    case STORE_EIO_BEFORE:
        err = WQ_EIO;
        effect->happens = false;
        break;
    case STORE_EIO_AFTER:
        err = WQ_EIO;
        break;
    case STORE_END_SESSION:
        effect->end_session = true;
        break;
    case STORE_JUMP:
        effect->jump_ns += plan->jump_ns;
        break;
    }
    if (!effect->err)
        effect->err = err;
}

struct store_effect
store_next_effect(struct memory_engine *e, enum store_call call)
{
    struct memory_store *store = e->store;
    struct store_effect  effect = {.happens = true};
    size_t               kept = 0;

    store->calls++;
    for (size_t i = 0; i < store->n_plans; i++) {
        struct store_plan plan = store->plans[i];
        const bool        counts = plan.nth && is_about(&plan, e, call);

        plan.nth -= counts;
        if (is_about(&plan, e, call) && plan.nth == 0)
            apply(&plan, &effect);
        if (!counts || plan.nth)
            store->plans[kept++] = plan;
    }
    store->n_plans = kept;
    return effect;
}

/* ---- lost replies -------------------------------------------------------- */

/* An operation of the copy, and where its results go. */
struct lost_op {
    struct wq__op op;
    wq_key_info   info;
    wq_stats      stats;
    size_t        n;
};

static bool
found_nothing(void *ctx, wq_key key, const wq_key_info *info)
{
    (void)ctx, (void)key, (void)info;
    return true;
}

/* Where `op` of the batch is in the copy. */
static const struct wq__op *
counterpart(const struct wq__op *batch, const struct lost_op *copy,
            const struct wq__op *op)
{
    for (; batch && batch != op; batch = batch->next)
        copy++;
    return batch ? &copy->op : NULL;
}

static void
silence(struct lost_op *lost)
{
    struct wq__op *op = &lost->op;

    switch (op->kind) {
    case WQ__OP_ADD:
        op->as.add.added = NULL;
        op->as.add.delayed = NULL;
        break;
    case WQ__OP_GET:
        op->as.get.take = NULL;
        break;
    case WQ__OP_KEY_INFO:
        lost->info.size = sizeof lost->info;
        op->as.one.info = &lost->info;
        break;
    case WQ__OP_STATS:
        lost->stats.size = sizeof lost->stats;
        op->as.stats = &lost->stats;
        break;
    case WQ__OP_DEPTHS:
        op->as.depths.out = NULL;
        op->as.depths.max = 0;
        op->as.depths.n = &lost->n;
        break;
    case WQ__OP_WALK:
        op->as.walk.found = found_nothing;
        break;
    default:
        break;
    }
}

struct wq__op *
store_copy_batch(struct memory_store *store, const struct wq__op *batch,
                 size_t *n)
{
    struct lost_op *copy;
    size_t          i = 0;

    *n = 0;
    for (const struct wq__op *op = batch; op; op = op->next)
        ++*n;
    copy = wq__mem_array(&store->mem, *n ? *n : 1, sizeof *copy);
    if (!copy)
        return NULL;
    for (const struct wq__op *op = batch; op; op = op->next, i++) {
        copy[i] = (struct lost_op){.op = *op};
        if (op->next)
            copy[i].op.next = &copy[i + 1].op;
        if (op->kind == WQ__OP_GET && op->as.get.unless_failed)
            copy[i].op.as.get.unless_failed =
                counterpart(batch, copy, op->as.get.unless_failed);
        silence(&copy[i]);
    }
    return &copy->op;
}

void
store_free_batch(struct memory_store *store, struct wq__op *copy, size_t n)
{
    wq__mem_free(&store->mem, copy, (n ? n : 1) * sizeof(struct lost_op));
}
