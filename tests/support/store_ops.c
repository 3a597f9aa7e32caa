/* SPDX-License-Identifier: MIT */
/* store_ops.c: what does each operation do to the store?
 *
 * The core decides, as in the in-memory backend (src/memory). The limiter is
 * the library's own, so it is called under the store's lock; "look up the key,
 * query the limiter, add the key" is one step here.
 */
#include "support/store_inside.h"

#include <string.h>

#include "core/inside.h"
#include "core/limited.h"
#include "core/mem.h"
#include "shared/op.h"

/* What the operations of one batch share. */
struct batch {
    struct memory_engine *e;
    struct memory_store  *store;
    struct wq__core      *core;
    int64_t               now;
    struct wq__did       *did;
};

static unsigned
states_of(const struct batch *b, wq_key key)
{
    return wq__core_states(b->core, key, wq__core_hash(b->core, key));
}

/* ---- the limiter --------------------------------------------------------- */

static unsigned
requeues_of(const struct batch *b, wq_key key)
{
    return wq_limiter_num_requeues(b->store->limiter, key);
}

/* Has the key had all its retries? */
static bool
is_given_up(const struct batch *b, wq_key key, unsigned *retries)
{
    *retries = requeues_of(b, key);
    return b->e->terms.max_retries && *retries >= b->e->terms.max_retries;
}

/* Does the policy decide without the limiter? */
static void
decide(const struct batch *b, wq_key key, struct wq__prepared *prepared)
{
    wq__limited_decide(b->e->terms.retry, states_of(b, key), prepared);
}

/* ---- adds ---------------------------------------------------------------- */

/* The keys of an add that are not DEAD. */
struct entries {
    size_t               n;
    size_t               bytes; /* of the block that begins at `prepared` */
    struct wq__prepared *prepared;
    wq_key              *keys;
    size_t              *from; /* their places among the keys of the add */
};

static wq_err
make_entries(const struct batch *b, const wq_key *keys, size_t n,
             struct entries *out)
{
    const size_t each =
        sizeof *out->prepared + sizeof *out->keys + sizeof *out->from;

    *out = (struct entries){.bytes = n * each};
    out->prepared = wq__mem_array(&b->store->mem, n, each);
    if (!out->prepared)
        return WQ_ENOMEM;
    out->keys = (wq_key *)(void *)(out->prepared + n);
    out->from = (size_t *)(void *)(out->keys + n);
    for (size_t i = 0; i < n; i++) {
        if (store_is_dead(b->store, keys[i]))
            continue;
        out->keys[out->n] = keys[i];
        out->from[out->n] = i;
        out->prepared[out->n++] =
            (struct wq__prepared){.hash = wq__core_hash(b->core, keys[i])};
    }
    return WQ_OK;
}

static void
free_entries(const struct batch *b, struct entries *entries)
{
    wq__mem_free(&b->store->mem, entries->prepared, entries->bytes);
}

static struct wq__how
translate(const struct batch *b, const wq_add_options *options)
{
    if (options->rate_limited)
        return wq__limited_how(options, b->e->terms.retry, b->now);
    struct wq__how how = wq__how_of(options);
    how.now = b->now;
    return how;
}

static void
undo_limiter(const struct batch *b, const struct entries *entries, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (entries->prepared[i].limited)
            wq_limiter_undo(b->store->limiter, entries->keys[i]);
}

/* Query the limiter for all keys for which it decides. WQ_EGIVENUP: the key
 * entries->from[*given_up] has had all its retries; the limiter has forgotten
 * it, and is as before else. */
static wq_err
limit(const struct batch *b, const wq_add_options *options,
      const struct entries *entries, size_t *given_up, unsigned *retries)
{
    for (size_t i = 0; i < entries->n; i++)
        decide(b, entries->keys[i], &entries->prepared[i]);
    for (size_t i = 0; i < entries->n; i++) {
        if (!entries->prepared[i].limited)
            continue;
        if (is_given_up(b, entries->keys[i], retries)) {
            wq_limiter_forget(b->store->limiter, entries->keys[i]);
            undo_limiter(b, entries, i);
            *given_up = i;
            return WQ_EGIVENUP;
        }
        wq__limited_set(&entries->prepared[i],
                        wq_limiter_when(b->store->limiter, entries->keys[i]),
                        options->after_ns, b->now);
    }
    return WQ_OK;
}

/* A key that is named twice had a backoff already when it was added again. */
static void
undo_what_was_kept(const struct batch *b, const struct entries *entries)
{
    for (size_t i = 0; i < entries->n; i++) {
        struct wq__prepared *p = &entries->prepared[i];

        if (!wq__limited_in_vain(p))
            continue;
        wq_limiter_undo(b->store->limiter, entries->keys[i]);
        p->limited = false;
    }
}

/* All of the entries, or none. */
static wq_err
add_entries(const struct batch *b, const wq_add_options *options,
            const struct entries *entries)
{
    const struct wq__how how = translate(b, options);

    if (!options->rate_limited)
        for (size_t i = 0; i < entries->n; i++)
            entries->prepared[i].at = wq__span_add(b->now, options->after_ns);
    if (entries->n && b->store->max_len &&
        b->store->dead.len >= b->store->max_len)
        return WQ_EFULL;
    const wq_err err =
        wq__core_add_with(b->core, &how, entries->keys, entries->prepared,
                          entries->n, NULL, NULL);
    if (err) {
        undo_limiter(b, entries, entries->n);
        return err;
    }
    if (b->e->terms.retry & WQ_RETRY_ONCE)
        undo_what_was_kept(b, entries);
    for (size_t i = 0; i < entries->n; i++)
        b->store->news |= entries->prepared[i].added == WQ_ADDED_NEW;
    return WQ_OK;
}

static void
report_adds(const struct entries *entries, size_t n, wq_added *added,
            int64_t *delayed)
{
    for (size_t i = 0; i < n; i++) {
        if (added)
            added[i] = WQ_ADDED_DEAD;
        if (delayed)
            delayed[i] = -1;
    }
    for (size_t i = 0; i < entries->n; i++) {
        const struct wq__prepared *p = &entries->prepared[i];

        if (added)
            added[entries->from[i]] = p->added;
        if (delayed && p->limited)
            delayed[entries->from[i]] = p->delay;
    }
}

static wq_err
add(const struct batch *b, struct wq__op *op)
{
    const wq_add_options *options = op->as.add.how;
    const size_t          n = op->as.add.n;
    struct entries        entries;
    size_t                given_up;
    wq_err                err = WQ_OK;

    if (n == 0)
        return WQ_OK;
    err = make_entries(b, op->as.add.keys, n, &entries);
    if (err)
        return err;
    if (options->rate_limited)
        err = limit(b, options, &entries, &given_up, &op->as.add.retries);
    if (err == WQ_EGIVENUP) {
        op->as.add.given_up = entries.from[given_up];
        b->did->drops++;
    }
    if (!err)
        err = add_entries(b, options, &entries);
    if (!err)
        report_adds(&entries, n, op->as.add.added, op->as.add.delayed);
    free_entries(b, &entries);
    return err;
}

/* ---- gets ---------------------------------------------------------------- */

static wq_err
hand_out(void *ctx, const struct wq__op *op)
{
    const struct batch *b = ctx;
    wq_item             next, *item;
    int64_t             waited_ns;
    wq_err err = wq__core_prepare_get(b->core, b->now, &next, &waited_ns);

    if (!err)
        err = wq__op_hand_out(op, b->core, b->now, &next, waited_ns,
                              requeues_of(b, next.key), &item);
    if (!err)
        wq__core_note_holder(item, b->e->session->number);
    return err;
}

/* ---- finishes ------------------------------------------------------------ */

/* A hold that ends. */
struct ending {
    const struct batch    *b;
    wq_key                 key; /* outlives the loan */
    const struct wq__loan *loan;
};

static void
end_loan(void *hold)
{
    const struct ending *x = hold;
    int64_t              work;

    (void)wq__core_done(x->b->core, &x->loan->item, x->b->now, &work);
}

static void
forget(void *hold)
{
    const struct ending *x = hold;

    wq_limiter_forget(x->b->store->limiter, x->key);
    store_forget_expiries(x->b->store, x->key);
}

/* By the rules of any add, which would forget a key that is given up. */
static wq_err
add_again(void *hold, const wq_add_options *how, int64_t *delayed,
          unsigned *retries)
{
    const struct ending *x = hold;
    struct wq__prepared  policy = {.hash = 0};
    struct wq__op        op = {
               .kind = WQ__OP_ADD,
               .as.add = {.how = how, .keys = &x->key, .n = 1, .delayed = delayed},
    };

    decide(x->b, x->key, &policy);
    if (how->rate_limited && policy.limited &&
        is_given_up(x->b, x->key, retries))
        return WQ_EGIVENUP;
    return add(x->b, &op);
}

static wq_err
give_back(void *hold, int priority)
{
    const struct ending *x = hold;
    const wq_err         err =
        wq__core_give_back(x->b->core, &x->loan->item, priority, x->b->now);

    if (!err)
        end_loan(hold);
    return err;
}

static wq_err
bury(void *hold)
{
    const struct ending *x = hold;

    return store_bury(x->b->store, x->loan);
}

static const struct wq__settler settler = {end_loan, forget, add_again,
                                           give_back, bury};

static wq_err
finish(const struct batch *b, struct wq__op *op)
{
    const struct wq__loan *loan =
        store_find_hold(b->e, op->as.finish.key, op->as.finish.fence);
    const uint64_t dones = b->core->tally.dones;
    if (!loan)
        return WQ_ELOST;

    struct ending x = {b, op->as.finish.key, loan};
    const wq_err  err =
        wq__op_settle(&settler, &x, op, loan->item.priority, b->did);
    b->did->dones += b->core->tally.dones - dones;
    b->store->news |=
        !err && states_of(b, op->as.finish.key) & (unsigned)WQ__READY;
    return err;
}

wq_err
store_return(struct memory_store *store, const struct wq__loan *loan,
             int64_t now)
{
    int64_t      work;
    const wq_err err =
        wq__core_give_back(&store->core, &loan->item, loan->item.priority, now);
    if (err)
        return err;

    (void)wq__core_done(&store->core, &loan->item, now, &work);
    store->news = true;
    return WQ_OK;
}

/* ---- one key ------------------------------------------------------------- */

static wq_err
remove_key(const struct batch *b, wq_key key)
{
    if (store_unbury(b->store, key)) {
        wq_limiter_forget(b->store->limiter, key);
        return WQ_OK;
    }
    const wq_err err =
        wq__core_remove(b->core, key, wq__core_hash(b->core, key), b->now);
    if (!err && !states_of(b, key))
        store_forget_expiries(b->store, key);
    return err;
}

static wq_err
revive(const struct batch *b, wq_key key)
{
    const wq_err err = store_revive(b->store, key, b->now);
    if (err)
        return err;

    wq_limiter_forget(b->store->limiter, key);
    b->store->news = true;
    return WQ_OK;
}

static void
read_key(const struct batch *b, wq_key key, wq_key_info *info)
{
    if (store_is_dead(b->store, key))
        store_dead_info(b->store, key, info);
    else
        wq__core_key_info(b->core, key, wq__core_hash(b->core, key), b->now,
                          info);
    info->requeues = requeues_of(b, key);
    info->group = (wq_key){0};
}

/* ---- all keys ------------------------------------------------------------ */

/* Counts are those of the handles: the shell knows them. */
static void
read_stats(const struct batch *b, wq_stats *out)
{
    wq_stats all = {.size = out->size};

    wq__core_stats(b->core, b->now, &all);
    *out = (wq_stats){
        .size = all.size,
        .ready = all.ready,
        .held = all.held,
        .dirty = all.dirty,
        .waiting = all.waiting,
        .known = all.known + b->store->dead.len,
        .next_ns = all.next_ns,
        .unfinished_ns = all.unfinished_ns,
        .longest_ns = all.longest_ns,
        .offered = all.offered,
        .dead = b->store->dead.len,
        .holders = store_holders(b->store),
    };
}

/* Walk over the records of the core, then over the DEAD keys, whose cursors
 * have the highest bit. */
#define DEAD_CURSOR (UINT64_C(1) << 63)

/* True: all of them were visited. */
static bool
walk_core(const struct batch *b, struct wq__op *op)
{
    wq__ref     at = (wq__ref)op->as.walk.cursor;
    size_t      budget = 256; /* records in one batch: some, not all */
    wq_key      key;
    wq_key_info info = {.size = sizeof info};

    while (wq__core_walk(b->core, &at, &budget, op->as.walk.states, b->now,
                         &key, &info)) {
        info.requeues = requeues_of(b, key);
        info.group = (wq_key){0};
        if (!op->as.walk.found(op->as.walk.ctx, key, &info))
            return false; /* the cursor is still that of the key before */
        op->as.walk.cursor = at;
    }
    op->as.walk.cursor = at;
    return budget > 0;
}

static bool
walk_dead(const struct batch *b, struct wq__op *op)
{
    uint64_t number = op->as.walk.cursor & ~DEAD_CURSOR;
    wq_key   key;

    while (op->as.walk.states & WQ_STATE_DEAD &&
           store_next_dead(b->store, &number, &key)) {
        wq_key_info info = {.size = sizeof info};

        read_key(b, key, &info);
        if (!op->as.walk.found(op->as.walk.ctx, key, &info))
            return false;
        op->as.walk.cursor = DEAD_CURSOR | number;
    }
    return true;
}

static void
walk(const struct batch *b, struct wq__op *op)
{
    op->as.walk.ended = false;
    if (!(op->as.walk.cursor & DEAD_CURSOR)) {
        if (!walk_core(b, op))
            return;
        op->as.walk.cursor = DEAD_CURSOR;
    }
    op->as.walk.ended = walk_dead(b, op);
}

static void
check(const struct batch *b, const struct wq__op *op)
{
    const char *broken = store_check(b->store);

    if (broken)
        op->as.check.problem(op->as.check.ctx, broken);
}

/* ---- interface ----------------------------------------------------------- */

static wq_err
carry_out(const struct batch *b, struct wq__op *op)
{
    const wq_key   key = op->as.one.key; /* of those that have one */
    const uint32_t hash =
        op->kind == WQ__OP_CANCEL ? wq__core_hash(b->core, key) : 0;

    switch (op->kind) {
    case WQ__OP_ADD:
        return add(b, op);
    case WQ__OP_GET:
        return wq__op_get(op, hand_out, (void *)b);
    case WQ__OP_RESUME:
        return WQ_ENOTSUP;
    case WQ__OP_FINISH:
        return finish(b, op);
    case WQ__OP_REMOVE:
        return remove_key(b, key);
    case WQ__OP_CANCEL:
        return wq__core_cancel(b->core, key, hash, b->now);
    case WQ__OP_FORGET:
        wq_limiter_forget(b->store->limiter, key);
        return WQ_OK;
    case WQ__OP_REVIVE:
        return revive(b, key);
    case WQ__OP_REQUEUES:
        op->as.one.requeues = requeues_of(b, key);
        return WQ_OK;
    case WQ__OP_KEY_INFO:
        read_key(b, key, op->as.one.info);
        return WQ_OK;
    case WQ__OP_STATS:
        read_stats(b, op->as.stats);
        return WQ_OK;
    case WQ__OP_DEPTHS:
        wq__core_depths(b->core, op->as.depths.out, op->as.depths.max,
                        op->as.depths.n);
        return WQ_OK;
    case WQ__OP_WALK:
        walk(b, op);
        return WQ_OK;
    case WQ__OP_CHECK:
        check(b, op);
        return WQ_OK;
    }
    return WQ_ENOTSUP;
}

void
store_carry_out(struct memory_engine *e, struct wq__op *batch, int64_t now,
                struct wq__did *did)
{
    const struct batch b = {
        .e = e,
        .store = e->store,
        .core = &e->store->core,
        .now = now,
        .did = did,
    };

    for (struct wq__op *op = batch; op; op = op->next)
        op->err = carry_out(&b, op);
}
