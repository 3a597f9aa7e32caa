/* SPDX-License-Identifier: MIT */
/* row_ops.c: what does each operation do to the rows?
 *
 * One key at a time: its row enters the scratch core, the core decides, the row
 * is written. An add of several keys is all or nothing: a savepoint takes back
 * the rows that were written before the one that was refused.
 *
 * A function here returns an error of the transaction; what becomes of an
 * operation is in op->err.
 */
#include <stdlib.h>

#include "core/limited.h"
#include "shared/op.h"
#include "shared/rows.h"

/* ---- errors --------------------------------------------------------------- */

/* Is this the answer to one operation, or the end of the transaction? Only
 * the store ends a transaction. */
static bool
is_answer(wq_err err)
{
    return err != WQ_EAWAY && err != WQ_EIO;
}

static uint32_t
hash_of(const struct wq__rows *r, wq_key key)
{
    return wq__core_hash(&r->scratch, key);
}

/* Take a key out of the scratch core that is not to be saved. */
static wq_err
abandon(struct wq__rows *r, wq_key key, wq_err err)
{
    wq__core_expel(&r->scratch, key, hash_of(r, key));
    return err;
}

/* ---- adds ----------------------------------------------------------------- */

/* What an add did with one key. */
struct addition {
    wq_added added;
    int64_t  delay_ns; /* of the limiter; -1: it was not queried */
    unsigned retries;  /* WQ_EGIVENUP */
};

/* Has the key had all its retries? */
static bool
is_given_up(const struct wq__rows *r, const struct wq__row *row,
            unsigned *retries)
{
    *retries = wq__row_requeues(r, row);
    return r->terms.max_retries && *retries >= r->terms.max_retries;
}

/* What the add means for the core. */
static struct wq__how
translate(const struct wq__rows *r, const wq_add_options *options)
{
    if (options->rate_limited)
        return wq__limited_how(options, r->terms.retry, r->now_ns);
    struct wq__how how = wq__how_of(options);
    how.now = r->now_ns;
    return how;
}

/* Add a key whose row is in the scratch core. WQ_EGIVENUP: nothing was added. */
static wq_err
add_imported(struct wq__rows *r, const wq_add_options *options, wq_key key,
             struct wq__row *row, struct addition *out)
{
    const struct wq__how how = translate(r, options);
    struct wq__prepared  p = {.hash = hash_of(r, key)};

    out->delay_ns = -1;
    if (!options->rate_limited)
        p.at = wq__span_add(r->now_ns, options->after_ns);
    else
        wq__limited_decide(r->terms.retry,
                           wq__core_states(&r->scratch, key, p.hash), &p);
    if (p.limited) {
        if (is_given_up(r, row, &out->retries))
            return WQ_EGIVENUP;
        const wq_err err = wq__row_when(r, row, &out->delay_ns);
        if (err)
            return err;
        wq__limited_set(&p, out->delay_ns, options->after_ns, r->now_ns);
    }
    const wq_err err =
        wq__core_add_with(&r->scratch, &how, &key, &p, 1, NULL, NULL);
    out->added = p.added;
    return err;
}

static wq_err
add_one(struct wq__rows *r, const wq_add_options *options, wq_key key,
        struct addition *out)
{
    struct wq__row before, row;
    wq_err         err = r->store->find(r, key, &before);

    *out = (struct addition){.added = WQ_ADDED_DEAD, .delay_ns = -1};
    if (err || before.dead)
        return err;
    row = before;
    err = wq__row_import(r, key, &before, NULL);
    if (!err)
        err = add_imported(r, options, key, &row, out);
    return err ? abandon(r, key, err) : wq__row_save(r, key, &before, &row);
}

/* A key that was given up is forgotten. */
static wq_err
forget_key(struct wq__rows *r, wq_key key)
{
    struct wq__row before, row;
    const wq_err   err = r->store->find(r, key, &before);

    if (err)
        return err;
    row = before;
    wq__row_forget(&row);
    return wq__row_write(r, key, &before, &row);
}

/* What must be put back if an operation fails. */
struct moment {
    struct wq__row_counts counts;
    struct wq__tally      tally;
    size_t                made_ready;
    bool                  stale_next;
    struct wq__row_bucket bucket;
};

static struct moment
remember(const struct wq__rows *r)
{
    return (struct moment){
        .counts = r->counts,
        .tally = r->scratch.tally,
        .made_ready = r->made_ready,
        .stale_next = r->stale_next,
        .bucket = r->bucket,
    };
}

static void
put_back(struct wq__rows *r, const struct moment *m)
{
    r->counts = m->counts;
    r->scratch.tally = m->tally;
    r->made_ready = m->made_ready;
    r->stale_next = m->stale_next;
    r->bucket = m->bucket;
}

static wq_err
add_each(struct wq__rows *r, struct wq__op *op, struct addition *out,
         size_t *failed)
{
    wq_err err = WQ_OK;

    for (size_t i = 0; i < op->as.add.n && !err; i++) {
        *failed = i;
        err = add_one(r, op->as.add.how, op->as.add.keys[i], &out[i]);
    }
    return err;
}

/* Are there more keys than allowed, because of this add? */
static bool
is_overfull(const struct wq__rows *r, uint64_t known_before)
{
    return r->terms.max_len && r->counts.known > known_before &&
           r->counts.known > r->terms.max_len;
}

/* May the add be refused after rows were written? Then a savepoint takes them
 * back. A savepoint copies each page that is changed: a fifth of the processor
 * time of an add of many keys. */
static bool
may_be_refused(const struct wq__rows *r, const struct wq__op *op)
{
    return r->terms.max_len || (op->as.add.n > 1 && r->terms.max_retries &&
                                op->as.add.how->rate_limited);
}

/* All keys, or none. Without a savepoint only memory can fail: then the
 * transaction ends, unless nothing can have been written. */
static wq_err
add_all(struct wq__rows *r, struct wq__op *op, struct addition *out,
        size_t *failed)
{
    const bool          saves = may_be_refused(r, op);
    const struct moment before = remember(r);
    wq_err              err = saves ? r->store->save(r) : WQ_OK;

    if (err)
        return err;
    wq_err answer = add_each(r, op, out, failed);
    if (!is_answer(answer))
        return answer;
    if (!answer && is_overfull(r, before.counts.known))
        answer = WQ_EFULL;
    if (answer)
        put_back(r, &before);
    if (saves)
        err = r->store->end_save(r, answer != WQ_OK);
    else
        r->torn |= answer && *failed > 0;
    return err ? err : answer;
}

static void
report(struct wq__op *op, const struct addition *additions)
{
    for (size_t i = 0; i < op->as.add.n; i++) {
        if (op->as.add.added)
            op->as.add.added[i] = additions[i].added;
        if (op->as.add.delayed)
            op->as.add.delayed[i] = additions[i].delay_ns;
    }
}

static wq_err
add_with_memory(struct wq__rows *r, struct wq__op *op,
                struct addition *additions, struct wq__did *did)
{
    size_t failed = 0;

    additions[0].retries = 0;
    wq_err err = add_all(r, op, additions, &failed);

    if (!err)
        report(op, additions);
    if (err == WQ_EGIVENUP) {
        op->as.add.given_up = failed;
        op->as.add.retries = additions[failed].retries;
        did->drops++;
        err = forget_key(r, op->as.add.keys[failed]);
        return err ? err : WQ_EGIVENUP;
    }
    return err;
}

static wq_err
add(struct wq__rows *r, struct wq__op *op, struct wq__did *did)
{
    enum { FEW = 16 };
    struct addition  few[FEW];
    struct addition *additions = few;
    const size_t     n = op->as.add.n;
    wq_err           err = WQ_OK;

    if (n == 0)
        return WQ_OK;
    if (r->terms.limiter.parts & WQ_PART_ITEM_BUCKET &&
        op->as.add.how->rate_limited)
        err = wq__rows_drop_full_buckets(r);
    if (err)
        return err;
    if (n > FEW)
        additions = calloc(n, sizeof *additions);
    if (!additions)
        return WQ_ENOMEM;
    err = add_with_memory(r, op, additions, did);
    if (additions != few)
        free(additions);
    r->promised |= !err;
    return err;
}

/* ---- gets ----------------------------------------------------------------- */

/* Hand out the key of a row that is in the scratch core, READY. */
static wq_err
hand_out_imported(struct wq__rows *r, const struct wq__op *op,
                  struct wq__row *row)
{
    wq_item next, *item;
    int64_t waited_ns;
    wq_err  err =
        wq__core_prepare_get(&r->scratch, r->now_ns, &next, &waited_ns);

    if (!err)
        err = wq__op_hand_out(op, &r->scratch, r->now_ns, &next, waited_ns,
                              wq__row_requeues(r, row), &item);
    if (err)
        return err;
    row->owner = r->holder;
    return WQ_OK;
}

/* WQ_ENOTFOUND: no key is READY. */
static wq_err
hand_out(void *ctx, const struct wq__op *op)
{
    struct wq__rows *r = ctx;
    struct wq__row   before, row;
    wq_key           key;

    if (!r->counts.ready)
        return WQ_ENOTFOUND;
    wq_err err = r->store->first(r, WQ__FIRST_READY, 0, &before, &key);
    if (err)
        return err;
    row = before;
    err = wq__row_import(r, key, &before, NULL);
    if (!err)
        err = hand_out_imported(r, op, &row);
    return err ? abandon(r, key, err) : wq__row_save(r, key, &before, &row);
}

/* Lend a key that the holder, or another one, has already. WQ_ENOTFOUND: it has
 * not. */
static wq_err
resume(struct wq__rows *r, struct wq__op *op)
{
    const int64_t  from = op->as.get.from ? op->as.get.from : r->holder;
    struct wq__row before, row;
    const wq_err   err = r->store->find(r, op->as.get.key, &before);

    op->as.get.n = 0;
    if (err)
        return err;
    if (!(before.image.states & WQ__HELD) || before.owner != from)
        return WQ_ENOTFOUND;
    row = before;
    row.owner = r->holder;
    const struct wq__handed handed = {
        .key = op->as.get.key,
        .priority = row.image.held_priority,
        .fence = row.image.fence,
        .requeues = wq__row_requeues(r, &row),
    };
    const wq_err taken = op->as.get.take(op->as.get.ctx, &handed);
    op->as.get.n = !taken;
    return taken ? taken : wq__row_write(r, op->as.get.key, &before, &row);
}

/* ---- finishes ------------------------------------------------------------- */

/* A hold that ends: the row as it was and as it will be, and its loan in the
 * scratch core. */
struct ending {
    struct wq__rows *r;
    wq_key           key;
    struct wq__row   before, row;
    wq_item         *item;
};

static void
end_loan(void *hold)
{
    struct ending   *x = hold;
    struct wq__rows *r = x->r;
    int64_t          work;

    (void)wq__core_done(&r->scratch, x->item, r->now_ns, &work);
}

static void
forget(void *hold)
{
    struct ending *x = hold;

    wq__row_forget(&x->row);
    x->row.expiries = 0;
}

static wq_err
add_again(void *hold, const wq_add_options *how, int64_t *delayed,
          unsigned *retries)
{
    struct ending  *x = hold;
    struct addition addition = {.retries = 0};
    const wq_err    err = add_imported(x->r, how, x->key, &x->row, &addition);

    *delayed = addition.delay_ns;
    *retries = addition.retries;
    return err;
}

static wq_err
give_back(void *hold, int priority)
{
    struct ending *x = hold;
    const wq_err   err =
        wq__core_give_back(&x->r->scratch, x->item, priority, x->r->now_ns);

    if (!err)
        end_loan(x);
    return err;
}

/* The loan ends at the end of time, so that no cooldown keeps the record. */
static wq_err
bury(void *hold)
{
    struct ending   *x = hold;
    struct wq__rows *r = x->r;
    const int        priority = x->item->priority;
    int64_t          work;

    (void)wq__core_remove_at_done(&r->scratch, x->key, hash_of(r, x->key),
                                  true);
    (void)wq__core_done(&r->scratch, x->item, WQ_FOREVER, &work);
    wq__row_export(r, x->key, &x->row);
    x->row.dead = true;
    x->row.seq = wq__rows_number(r);
    x->row.owner = 0;
    x->row.expiries = 0;
    x->row.image.priority = priority;
    x->row.image.since_ns = r->now_ns;
    return WQ_OK;
}

static const struct wq__settler settler = {end_loan, forget, add_again,
                                           give_back, bury};

/* A lost DONE or DROP only means that the key runs again. */
static bool
must_be_durable(wq_outcome outcome)
{
    return outcome != WQ_RESULT_DONE && outcome != WQ_RESULT_DROP;
}

/* DEAD rows were exported by bury(). */
static wq_err
write_ending(struct wq__rows *r, struct ending *x)
{
    if (!x->row.dead)
        wq__row_export(r, x->key, &x->row);
    if (!(x->row.image.states & WQ__HELD))
        x->row.owner = 0;
    return wq__row_write(r, x->key, &x->before, &x->row);
}

static bool
is_held_by_us(const struct wq__rows *r, const struct wq__row *row,
              uint64_t fence)
{
    return row->image.states & WQ__HELD && row->owner == r->holder &&
           row->image.fence == fence;
}

static wq_err
finish(struct wq__rows *r, struct wq__op *op, struct wq__did *did)
{
    struct ending x = {.r = r, .key = op->as.finish.key};
    wq_err        err = r->store->find(r, x.key, &x.before);

    if (err)
        return err;
    if (!is_held_by_us(r, &x.before, op->as.finish.fence))
        return WQ_ELOST;
    x.row = x.before;
    const uint64_t dones = r->scratch.tally.dones;
    err = wq__row_import(r, x.key, &x.before, &x.item);
    if (!err)
        err = wq__op_settle(&settler, &x, op, x.item->priority, did);
    if (!wq__op_has_ended(err))
        return abandon(r, x.key, err);
    r->promised |= must_be_durable(op->as.finish.result.outcome);
    did->dones += r->scratch.tally.dones - dones;
    const wq_err written = write_ending(r, &x);
    return written ? written : err;
}

wq_err
wq__rows_give_back(struct wq__rows *r, wq_key key, const struct wq__row *before,
                   bool expired)
{
    const unsigned max = r->terms.max_expiries;
    struct ending  x = {.r = r, .key = key, .before = *before, .row = *before};
    wq_err         err = wq__row_import(r, key, before, &x.item);

    if (err)
        return err;
    if (expired && max && before->expiries + 1 >= max) {
        err = bury(&x);
        x.row.expiries = before->expiries + 1; /* for people, until a revive */
    } else {
        x.row.expiries += expired;
        err = give_back(&x, x.item->priority);
    }
    return err ? abandon(r, key, err) : write_ending(r, &x);
}

/* ---- one key -------------------------------------------------------------- */

/* Change a row that is in the scratch core by a verb of the core. */
static wq_err
change(struct wq__rows *r, wq_key key, const struct wq__row *before,
       wq_err (*verb)(struct wq__core *, wq_key, uint32_t, int64_t))
{
    struct wq__row row = *before;
    wq_err         err = wq__row_import(r, key, before, NULL);

    if (!err)
        err = verb(&r->scratch, key, hash_of(r, key), r->now_ns);
    if (err)
        return abandon(r, key, err);
    wq__row_export(r, key, &row);
    if (!wq__row_is_known(&row))
        row.expiries = 0;
    r->promised = true;
    return wq__row_write(r, key, before, &row);
}

static wq_err
remove_key(struct wq__rows *r, wq_key key)
{
    struct wq__row before;
    const wq_err   err = r->store->find(r, key, &before);

    if (err)
        return err;
    if (!before.dead)
        return change(r, key, &before, wq__core_remove);
    struct wq__row row = before;
    row.dead = false;
    row.expiries = 0;
    wq__row_forget(&row); /* if it is added again, it has all its retries */
    row.seq = 0;
    row.image = (struct wq__image){.states = 0};
    r->promised = true;
    return wq__row_write(r, key, &before, &row);
}

static wq_err
cancel(struct wq__rows *r, wq_key key)
{
    struct wq__row before;
    const wq_err   err = r->store->find(r, key, &before);

    return err ? err : change(r, key, &before, wq__core_cancel);
}

static wq_err
revive(struct wq__rows *r, wq_key key)
{
    struct wq__row before, row;
    wq_added       what;
    wq_err         err = r->store->find(r, key, &before);

    if (err)
        return err;
    if (!before.dead)
        return WQ_ENOTFOUND;
    row = before;
    row.dead = false;
    row.expiries = 0;
    wq__row_forget(&row);
    err = wq__row_import(r, key, &before, NULL); /* DEAD: only the numbers */
    if (!err)
        err =
            wq__core_add_with_priority(&r->scratch, key, hash_of(r, key),
                                       r->now_ns, before.image.priority, &what);
    if (err)
        return abandon(r, key, err);
    r->promised = true;
    return wq__row_save(r, key, &before, &row);
}

static wq_err
read_requeues(struct wq__rows *r, struct wq__op *op)
{
    struct wq__row row;
    const wq_err   err = r->store->find(r, op->as.one.key, &row);

    if (!err)
        op->as.one.requeues = wq__row_requeues(r, &row);
    return err;
}

static wq_err
read_key(struct wq__rows *r, wq_key key, wq_key_info *info)
{
    struct wq__row row;
    const wq_err   err = r->store->find(r, key, &row);

    return err ? err : wq__row_describe(r, key, &row, info);
}

/* ---- deadlines ------------------------------------------------------------ */

/* The deadline of the first row acts, or its cooldown ends. WQ_ENOTFOUND: no
 * deadline has passed. */
static wq_err
promote_first(struct wq__rows *r)
{
    struct wq__row before, row;
    wq_key         key;
    wq_err err = r->store->first(r, WQ__FIRST_DUE, r->now_ns, &before, &key);

    if (err)
        return err;
    if (!(before.image.states & (WQ__WAITING | WQ__COOLDOWN)))
        return r->store->damaged(r, key, &before); /* else it is found again */
    row = before;
    err = wq__row_import(r, key, &before, NULL);
    if (err)
        return err;
    wq__core_promote(&r->scratch, r->now_ns);
    return wq__row_save(r, key, &before, &row);
}

wq_err
wq__rows_promote(struct wq__rows *r, int most)
{
    wq_err err = WQ_OK;

    if (r->counts.next_ns > r->now_ns)
        return WQ_OK;
    for (int i = 0; i < most && !err; i++)
        err = promote_first(r);
    r->more_to_do |= !err;
    return err == WQ_ENOTFOUND ? WQ_OK : err;
}

/* ---- interface ------------------------------------------------------------ */

static wq_err
dispatch(struct wq__rows *r, struct wq__op *op, struct wq__did *did)
{
    switch (op->kind) {
    case WQ__OP_ADD:
        return add(r, op, did);
    case WQ__OP_GET:
        return wq__op_get(op, hand_out, r);
    case WQ__OP_RESUME:
        return resume(r, op);
    case WQ__OP_FINISH:
        return finish(r, op, did);
    case WQ__OP_REMOVE:
        return remove_key(r, op->as.one.key);
    case WQ__OP_CANCEL:
        return cancel(r, op->as.one.key);
    case WQ__OP_FORGET:
        return forget_key(r, op->as.one.key);
    case WQ__OP_REVIVE:
        return revive(r, op->as.one.key);
    case WQ__OP_REQUEUES:
        return read_requeues(r, op);
    case WQ__OP_KEY_INFO:
        return read_key(r, op->as.one.key, op->as.one.info);
    case WQ__OP_STATS:
    case WQ__OP_DEPTHS:
    case WQ__OP_WALK:
    case WQ__OP_CHECK:
    default:
        return WQ_ENOTSUP; /* the engine's own */
    }
}

wq_err
wq__rows_carry_out(struct wq__rows *r, struct wq__op *op, struct wq__did *did)
{
    const struct moment before = remember(r);

    op->err = dispatch(r, op, did);
    if (!wq__op_has_ended(op->err))
        put_back(r, &before);
    return is_answer(op->err) && !r->torn ? WQ_OK : op->err;
}
