/* SPDX-License-Identifier: MIT */
/* rows.c: how does the core in the client decide about keys in the server?
 *
 *     read.lua ──► entries ──► shared/rows.h ──► commit.lua ──► done
 *        ▲                                           │
 *        └──────────── AGAIN: a record differs ◄─────┘
 *
 * All that a batch may need is read in one round trip: the records of its keys,
 * the first READY ones, those that are due, the holds of a session that has
 * ended. The records that changed are written in a second one, if all of them
 * are still as they were read. If not, somebody else has made progress: read
 * again. A key that is added or taken meanwhile and that this batch does not
 * change is no conflict.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error/error.h"
#include "port/time.h"
#include "shared/op.h"
#include "store.h"

/* DUE: how many deadlines read.lua reads at most. */
enum { PROMOTIONS = 256, DUE = 200, FEW_READY = 4 };

static struct wq__redis *
engine_of(struct wq__rows *r)
{
    return (struct wq__redis *)(void *)((char *)r -
                                        offsetof(struct wq__redis, rows));
}

/* ---- entries -------------------------------------------------------------- */

static void
reset(struct wq__redis *e)
{
    struct wq__txn *t = &e->txn;

    freeReplyObject(t->reply);
    t->reply = NULL;
    e->holders_read = NULL;
    t->len = 0;
    t->save = t->saves = 0;
    t->ended = 0;
    t->holds = 0;
    t->last_hold = (wq_key){0};
    t->short_ready = t->all_ready = false;
    if (t->index)
        memset(t->index, 0, t->index_cap * sizeof *t->index);
}

void
wq__txn_fini(struct wq__txn *t)
{
    if (t->reply)
        freeReplyObject(t->reply);
    free(t->entries);
    free(t->index);
    *t = (struct wq__txn){.reply = NULL};
}

static uint32_t *
place_of(const struct wq__redis *e, wq_key key)
{
    const struct wq__txn *t = &e->txn;
    size_t at = wq__core_hash(&e->rows.scratch, key) & (t->index_cap - 1);

    while (t->index[at] && !wq__same_key(t->entries[t->index[at] - 1].key, key))
        at = (at + 1) & (t->index_cap - 1);
    return &t->index[at];
}

static struct wq__entry *
find_entry(const struct wq__redis *e, wq_key key)
{
    const uint32_t place = e->txn.index_cap ? *place_of(e, key) : 0;

    return place ? &e->txn.entries[place - 1] : NULL;
}

/* Memory for one more entry; the index is at most half full. */
static bool
reserve_entry(struct wq__redis *e)
{
    struct wq__txn *t = &e->txn;

    if (t->len < t->cap)
        return true;
    const size_t      cap = t->cap ? t->cap * 2 : 64;
    struct wq__entry *entries = realloc(t->entries, cap * sizeof *entries);
    if (!entries)
        return false;
    t->entries = entries;
    uint32_t *index = calloc(cap * 2, sizeof *index);
    if (!index)
        return false;
    free(t->index);
    t->index = index;
    t->index_cap = cap * 2;
    t->cap = cap;
    for (size_t i = 0; i < t->len; i++)
        *place_of(e, t->entries[i].key) = (uint32_t)i + 1;
    return true;
}

static wq_err
enter(struct wq__redis *e, wq_key key, wq_key record, struct wq__entry **out)
{
    struct wq__entry *entry = find_entry(e, key);

    if (!entry) {
        if (!reserve_entry(e))
            return WQ_ENOMEM;
        *place_of(e, key) = (uint32_t)e->txn.len + 1;
        entry = &e->txn.entries[e->txn.len++];
        *entry = (struct wq__entry){
            .key = key, .old = record.data, .old_len = record.len};
        if (key.len > WQ_KEY_MAX ||
            !wq__record_unpack(record.data, record.len, &entry->row))
            return wq_fail(WQ_EAWAY,
                           "redis: what is stored of a key of %zu bytes in %s "
                           "is damaged",
                           key.len, e->target.name);
    }
    if (out)
        *out = entry;
    return WQ_OK;
}

/* Keys and records in turn. */
static wq_err
enter_all(struct wq__redis *e, const redisReply *list, bool holds)
{
    wq_err err = WQ_OK;

    for (size_t i = 0; i + 1 < list->elements && !err; i += 2) {
        struct wq__entry *entry = NULL;
        err = enter(e, wq__reply_bytes(list, i), wq__reply_bytes(list, i + 1),
                    &entry);
        if (entry && holds) {
            entry->is_hold = true;
            e->txn.last_hold = entry->key;
            e->txn.holds++;
        }
    }
    return err;
}

/* ---- what shared/rows.h asks for ------------------------------------------ */

static wq_err
find(struct wq__rows *r, wq_key key, struct wq__row *row)
{
    const struct wq__entry *entry = find_entry(engine_of(r), key);

    if (!entry) /* the keys of all operations were asked for */
        return wq__redis_fail_reply(engine_of(r));
    *row = entry->row;
    return WQ_OK;
}

static bool
is_before_in_line(const struct wq__row *a, int prio, int64_t seq)
{
    return a->image.priority != prio ? a->image.priority > prio : a->seq < seq;
}

static bool
is_earlier(const struct wq__image *a, const struct wq__image *b)
{
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->arrival < b->arrival;
}

static bool
is_candidate(const struct wq__row *row, enum wq__row_order order,
             int64_t bound_ns)
{
    switch (order) {
    case WQ__FIRST_READY:
        return row->image.states & WQ__READY;
    case WQ__FIRST_DUE:
        return row->image.states & (WQ__WAITING | WQ__COOLDOWN) &&
               row->image.at_ns <= bound_ns;
    case WQ__FIRST_USED:
    default:
        return row->has_bucket && row->tokens_ns > bound_ns;
    }
}

static bool
comes_before(const struct wq__row *a, const struct wq__row *b,
             enum wq__row_order order)
{
    return order == WQ__FIRST_READY
               ? is_before_in_line(a, b->image.priority, b->seq)
           : order == WQ__FIRST_DUE ? is_earlier(&a->image, &b->image)
                                    : a->tokens_ns < b->tokens_ns;
}

static wq_err
first(struct wq__rows *r, enum wq__row_order order, int64_t bound_ns,
      struct wq__row *row, wq_key *key)
{
    struct wq__redis       *e = engine_of(r);
    struct wq__txn         *t = &e->txn;
    const struct wq__entry *best = NULL;

    for (size_t i = 0; i < t->len; i++) {
        const struct wq__entry *at = &t->entries[i];
        if (is_candidate(&at->row, order, bound_ns) &&
            (!best || comes_before(&at->row, &best->row, order)))
            best = at;
    }
    if (order == WQ__FIRST_READY && !t->all_ready &&
        (!best ||
         (t->last_seq != best->row.seq &&
          !is_before_in_line(&best->row, t->last_prio, t->last_seq)))) {
        t->short_ready = true; /* a key that was not read may be before it */
        return WQ_EAWAY;
    }
    if (!best)
        return WQ_ENOTFOUND;
    *row = best->row;
    *key = best->key;
    return WQ_OK;
}

static wq_err
write_row(struct wq__rows *r, wq_key key, const struct wq__row *before,
          struct wq__row *row, bool empty)
{
    struct wq__redis *e = engine_of(r);
    struct wq__entry *entry = find_entry(e, key);

    (void)before;
    if (!entry)
        return wq__redis_fail_reply(e);
    if (e->txn.save && entry->save != e->txn.save) {
        entry->saved = entry->row;
        entry->save = e->txn.save;
    }
    row->id = !empty;
    entry->row = empty ? (struct wq__row){.id = 0} : *row;
    entry->changed = true;
    return WQ_OK;
}

static wq_err
save(struct wq__rows *r)
{
    struct wq__txn *t = &engine_of(r)->txn;

    t->save = ++t->saves;
    return WQ_OK;
}

static wq_err
end_save(struct wq__rows *r, bool undo)
{
    struct wq__txn *t = &engine_of(r)->txn;

    for (size_t i = 0; undo && i < t->len; i++)
        if (t->entries[i].save == t->save)
            t->entries[i].row = t->entries[i].saved;
    t->save = 0;
    return WQ_OK;
}

static wq_err
read_bucket(struct wq__rows *r, struct wq__fill *level, bool *there)
{
    const redisReply *bucket = engine_of(r)->txn.bucket;

    *there = bucket->type == REDIS_REPLY_STRING && bucket->len == 16;
    if (*there)
        wq__record_unpack_fill((const unsigned char *)bucket->str, level);
    return WQ_OK;
}

/* Sessions and names in turn, of those that hold a key that was read. */
static void
name_holder(struct wq__rows *r, int64_t session, char out[WQ_HOLDER_BYTES])
{
    const struct wq__redis *e = engine_of(r);
    const redisReply       *list = e->holders_read;

    if (session == e->session) /* it may have been handed out just now */
        (void)snprintf(out, WQ_HOLDER_BYTES, "%s", e->target.client);
    for (size_t i = 0; list && !*out && i + 1 < list->elements; i += 2) {
        const wq_key id = wq__reply_bytes(list, i);
        const wq_key name = wq__reply_bytes(list, i + 1);
        if (id.len != WQ__SID_BYTES ||
            (int64_t)wq__get_be(id.data, WQ__SID_BYTES) != session)
            continue;
        const char  *bytes = name.data;
        const size_t len =
            name.len < WQ_HOLDER_BYTES ? name.len : WQ_HOLDER_BYTES - 1;
        for (size_t k = 0; k < len; k++)
            out[k] = bytes[k] > ' ' && bytes[k] <= '~' ? bytes[k] : '?';
        out[len] = '\0';
        return;
    }
}

static wq_err
damaged(struct wq__rows *r, wq_key key, const struct wq__row *row)
{
    (void)r, (void)row;
    return wq_fail(WQ_EAWAY,
                   "redis: the record of a key of %zu bytes is damaged: run "
                   "'wq fsck'",
                   key.len);
}

const struct wq__row_store wq__redis_rows = {
    damaged, find, first, write_row, save, end_save, read_bucket, name_holder};

/* ---- reading -------------------------------------------------------------- */

static const wq_key *
keys_of(const struct wq__op *op, size_t *n)
{
    *n = 1;
    switch (op->kind) {
    case WQ__OP_ADD:
        *n = op->as.add.n;
        return op->as.add.keys;
    case WQ__OP_FINISH:
        return &op->as.finish.key;
    case WQ__OP_GET:
        *n = 0;
        return NULL;
    case WQ__OP_RESUME:
        return &op->as.get.key;
    default:
        return &op->as.one.key;
    }
}

/* How many READY keys may be handed out, or be named? */
static size_t
ready_wanted(const struct wq__op *ops, const struct wq__op *end)
{
    size_t gets = 0, keys = 0, n;

    for (const struct wq__op *op = ops; op != end; op = op->next) {
        (void)keys_of(op, &n);
        keys += n;
        if (op->kind == WQ__OP_GET)
            gets += op->as.get.max < 100000 ? op->as.get.max : 100000;
    }
    return gets ? gets + keys : 0;
}

/* Who gives back the keys of ended sessions? The first that are found. */
static const wq_key anybody = {"1", 1};

/* At what time of the server, in microseconds, does it carry out a call that is
 * sent now, at the latest? If it is later there, its clock may have gone forward:
 * sessions must not end for that. */
static int64_t
latest_us(const struct wq__redis *e)
{
    return (e->base.clock->now(e->base.clock) + e->clock.tolerance_ns) / 1000;
}

/* `bounded`: only if it is not too late; 0: at any time. */
static void
put_read(struct wq__redis *e, const struct wq__op *ops,
         const struct wq__op *end, bool checks, wq_key whose, bool bounded)
{
    struct wq__args *a = &e->args;
    size_t           n, names = 0;
    bool             describes = false;

    wq__args_begin(a);
    wq__redis_put_session(a, checks ? e->session : 0);
    wq__redis_put_time(e, a);
    for (const struct wq__op *op = ops; op != end; op = op->next) {
        (void)keys_of(op, &n);
        names += n;
        describes |= op->kind == WQ__OP_KEY_INFO;
    }
    wq__args_int(a, (int64_t)(3 * (names + e->txn.wants_ready) + 8));
    wq__args_int(a, (int64_t)e->txn.wants_ready);
    wq__args_int(a,
                 (e->rows.terms.limiter.parts & WQ_PART_ITEM_BUCKET ? 1 : 0) +
                     (describes ? 2 : 0));
    wq__args_bytes(a, whose.data, whose.len);
    wq__args_int(a, bounded && e->own_clock ? latest_us(e) : 0);
    for (const struct wq__op *op = ops; op != end; op = op->next) {
        const wq_key *keys = keys_of(op, &n);
        for (size_t i = 0; i < n; i++)
            wq__args_bytes(a, keys[i].data, keys[i].len);
    }
}

static int64_t
time_of(const redisReply *list, size_t i)
{
    const int64_t us = wq__reply_int(list, i);

    return wq__reply_at(list, i)->type != REDIS_REPLY_INTEGER ? WQ_FOREVER
           : us >= INT64_MAX / 1000                           ? WQ_FOREVER
                                    : us * 1000 + wq__reply_int(list, i + 1);
}

static void
note_last_ready(struct wq__redis *e, const redisReply *ready)
{
    struct wq__txn *t = &e->txn;
    struct wq__row  row;

    t->all_ready = ready->elements / 2 < t->wants_ready || !t->wants_ready;
    if (!ready->elements)
        return;
    const wq_key last = wq__reply_bytes(ready, ready->elements - 1);
    (void)wq__record_unpack(last.data, last.len, &row);
    t->last_prio = row.image.priority;
    t->last_seq = row.seq;
}

/* Begin the transaction with what was read. */
static wq_err
take_in(struct wq__redis *e)
{
    struct wq__txn       *t = &e->txn;
    const redisReply     *reply = t->reply;
    const redisReply     *counts = wq__reply_at(reply, 4);
    const wq_key          ended = wq__reply_bytes(reply, 8);
    struct wq__row_counts n;

    wq__reply_counts(counts, 0, &n);
    n.next_ns = time_of(counts, 6);
    wq__rows_begin(&e->rows,
                   (int64_t)wq__get_be(wq__reply_bytes(reply, 1).data, 8),
                   wq__reply_int(reply, 2), &n);
    e->rows.holder = e->session;
    t->bucket = wq__reply_at(reply, 5);
    t->ended =
        ended.len == WQ__SID_BYTES ? (int64_t)wq__get_be(ended.data, 8) : 0;
    wq_err err = enter_all(e, wq__reply_at(reply, 9), true);
    if (!err)
        err = enter_all(e, wq__reply_at(reply, 6), false);
    if (!err)
        err = enter_all(e, wq__reply_at(reply, 7), false);
    if (!err)
        err = enter_all(e, wq__reply_at(reply, 10), false);
    if (!err)
        err = enter_all(e, wq__reply_at(reply, 11), false);
    e->holders_read = wq__reply_at(reply, 13);
    note_last_ready(e, wq__reply_at(reply, 7));
    t->more_due = wq__reply_at(reply, 6)->elements == (size_t)2 * DUE;
    return err;
}

/* *lost: the session has ended. `checks`: it must live. */
static wq_err
read_all(struct wq__redis *e, const struct wq__op *ops,
         const struct wq__op *end, bool checks, wq_key whose, bool *lost)
{
    bool   unused;
    wq_err err = wq__redis_forgive(e, &unused);

    for (int i = 0; i < 2 && !err; i++) {
        reset(e);
        put_read(e, ops, end, checks, whose, whose.len == anybody.len && !i);
        err = wq__redis_call(e, WQ__SCRIPT_READ, &e->txn.reply);
        if (err || !wq__reply_is(e->txn.reply, "LATE"))
            break;
        err = wq__redis_forgive(e, &unused); /* a step, or a slow link? */
    }
    *lost = !err && wq__reply_is(e->txn.reply, "LOST");
    if (err || *lost)
        return err;
    return wq__reply_is(e->txn.reply, "OK") ? take_in(e)
                                            : wq__redis_fail_reply(e);
}

/* ---- writing -------------------------------------------------------------- */

static size_t
pack(const struct wq__entry *entry, unsigned char *out)
{
    return entry->row.id ? wq__record_pack(&entry->row, out) : 0;
}

static size_t
put_changes(struct wq__redis *e)
{
    size_t n = 0;

    for (size_t i = 0; i < e->txn.len; i++) {
        const struct wq__entry *at = &e->txn.entries[i];
        unsigned char           record[WQ__RECORD_MAX];
        const size_t            len = at->changed ? pack(at, record) : 0;

        if (!at->changed ||
            (len == at->old_len && (!len || memcmp(record, at->old, len) == 0)))
            continue;
        wq__args_bytes(&e->args, at->key.data, at->key.len);
        wq__args_bytes(&e->args, at->old, at->old_len);
        wq__args_copy(&e->args, record, len);
        n++;
    }
    return n;
}

static void
put_bucket(struct wq__redis *e)
{
    unsigned char bytes[16];

    if (!e->rows.bucket.moved) {
        wq__args_bytes(&e->args, "", 0);
        wq__args_bytes(&e->args, "", 0);
        return;
    }
    wq__args_bytes(&e->args, e->txn.bucket->str, (size_t)e->txn.bucket->len);
    wq__record_pack_fill(&e->rows.bucket.level, bytes);
    wq__args_copy(&e->args, bytes, sizeof bytes);
}

enum verdict { WRITTEN, AGAIN, LOST };

/* Write what has changed. */
static wq_err
commit(struct wq__redis *e, bool checks, struct wq__pulse *pulse,
       enum verdict *verdict)
{
    struct wq__args *a = &e->args;
    redisReply      *reply = NULL;
    const bool       awake = e->awake;

    wq__args_begin(a);
    wq__redis_put_session(a, checks ? e->session : 0);
    wq__redis_put_time(e, a);
    wq__args_int(a, (int64_t)e->rows.terms.max_len);
    put_bucket(e);
    wq__redis_put_session(a, e->txn.ended == e->session ? 0 : e->txn.ended);
    wq__args_int(a, awake);
    *verdict = WRITTEN;
    /* `awake`: the server must know that, if nothing else; `confirms`: its
     * replicas must know what others did. */
    if (!put_changes(e) && !e->rows.bucket.moved && !e->txn.ended && !awake &&
        !e->confirms) {
        wq__redis_read_pulse(wq__reply_at(e->txn.reply, 12), 0, pulse);
        return WQ_OK;
    }
    const wq_err err = wq__redis_call(e, WQ__SCRIPT_COMMIT, &reply);
    if (err)
        return err;
    *verdict = wq__reply_is(reply, "OK")     ? WRITTEN
               : wq__reply_is(reply, "LOST") ? LOST
                                             : AGAIN;
    if (*verdict == WRITTEN) {
        wq__redis_read_pulse(wq__reply_at(reply, 2), 0, pulse);
    }
    freeReplyObject(reply);
    return WQ_OK;
}

/* ---- operations ----------------------------------------------------------- */

/* A key is handed out if the commit succeeds: remember it until then. */
static wq_err
collect(void *ctx, const struct wq__handed *handed)
{
    struct wq__redis *e = ctx;

    if (e->handed_len == e->handed_cap) {
        const size_t       cap = e->handed_cap ? e->handed_cap * 2 : 16;
        struct wq__handed *list = realloc(e->handed, cap * sizeof *list);
        if (!list)
            return WQ_ENOMEM;
        e->handed = list;
        e->handed_cap = cap;
    }
    e->handed[e->handed_len] = *handed;
    e->handed[e->handed_len++].key = find_entry(e, handed->key)->key;
    return WQ_OK;
}

static bool
hands_out(const struct wq__op *op)
{
    return op->kind == WQ__OP_GET || op->kind == WQ__OP_RESUME;
}

static wq_err
carry_out(struct wq__redis *e, struct wq__op *op, struct wq__did *did)
{
    if (!hands_out(op))
        return wq__rows_carry_out(&e->rows, op, did);
    struct wq__op shadow = *op;
    shadow.as.get.take = collect;
    shadow.as.get.ctx = e;
    const wq_err err = wq__rows_carry_out(&e->rows, &shadow, did);
    op->err = shadow.err;
    op->as.get.n = shadow.as.get.n;
    return err;
}

static int
compare_holds(const void *a, const void *b)
{
    const uint64_t x = (*(struct wq__entry *const *)a)->row.image.fence;
    const uint64_t y = (*(struct wq__entry *const *)b)->row.image.fence;

    return (x > y) - (x < y);
}

/* Give back the holds that were read, in the order in which they were handed
 * out. */
static wq_err
return_holds(struct wq__redis *e, int64_t session, bool expired, size_t *n)
{
    struct wq__entry **list = malloc((e->txn.holds + 1) * sizeof(void *));
    wq_err             err = WQ_OK;

    *n = 0;
    if (!list)
        return WQ_ENOMEM;
    for (size_t i = 0; i < e->txn.len; i++)
        if (e->txn.entries[i].is_hold &&
            e->txn.entries[i].row.owner == session && *n < e->txn.holds)
            list[(*n)++] = &e->txn.entries[i];
    qsort(list, *n, sizeof *list, compare_holds);
    for (size_t i = 0; i < *n && !err; i++) {
        const struct wq__row before = list[i]->row;
        err = wq__rows_give_back(&e->rows, list[i]->key, &before, expired);
    }
    free(list);
    return err;
}

static wq_err
decide(struct wq__redis *e, struct wq__op *ops, const struct wq__op *end,
       struct wq__did *did)
{
    const struct wq__tally before = e->rows.scratch.tally;
    size_t                 returned = 0;
    wq_err                 err = WQ_OK;

    e->handed_len = 0;
    if (e->txn.ended)
        err = return_holds(e, e->txn.ended, true, &returned);
    did->expired += returned;
    if (!err)
        err = wq__rows_promote(&e->rows, PROMOTIONS);
    for (struct wq__op *op = e->txn.more_due ? NULL : ops;
         op && op != end && !err; op = op->next)
        err = carry_out(e, op, did);
    wq__did_count(did, &before, &e->rows.scratch.tally);
    if (!err && e->rows.number > wq__reply_int(e->txn.reply, 3)) {
        e->txn.wants_ready += 64; /* with more numbers */
        e->txn.short_ready = true;
        return WQ_EAWAY;
    }
    return err;
}

static wq_err
hand_over_all(struct wq__redis *e, struct wq__op *ops, const struct wq__op *end)
{
    size_t at = 0;
    wq_err err = WQ_OK;

    for (struct wq__op *op = ops; op != end && !err; op = op->next) {
        if (!hands_out(op) || op->err)
            continue;
        size_t n = op->as.get.n;
        for (op->as.get.n = 0; n && !err; n--)
            err = wq__redis_hand_over(op, &e->handed[at++]);
    }
    return err;
}

static wq_err
fail_busy(const struct wq__redis *e)
{
    return wq_fail(WQ_EAWAY,
                   "redis: other clients of %s change the same keys all the "
                   "time",
                   e->target.name);
}

wq_err
wq__redis_long_way(struct wq__redis *e, struct wq__op *ops,
                   const struct wq__op *end, struct wq__pulse *pulse,
                   bool *lost)
{
    const int64_t until_ns = wq__time_now() + e->target.timeout_ns;
    enum verdict  verdict = AGAIN;

    e->txn.wants_ready = ready_wanted(ops, end);
    if (e->txn.wants_ready)
        e->txn.wants_ready += FEW_READY;
    while (verdict == AGAIN) {
        struct wq__pulse out = *pulse;
        wq_err           err = read_all(e, ops, end, true, anybody, lost);

        if (err || *lost)
            return err;
        err = decide(e, ops, end, &out.did);
        if (err && e->txn.short_ready) {
            e->txn.wants_ready *= 4;
            continue;
        }
        if (!err)
            err = commit(e, true, &out, &verdict);
        if (err)
            return err;
        if (verdict == WRITTEN)
            *pulse = out;
        if (verdict == WRITTEN && e->txn.more_due)
            verdict = AGAIN; /* the operations come after the deadlines */
        else if (verdict == AGAIN && wq__time_now() > until_ns)
            return fail_busy(e);
    }
    *lost = verdict == LOST;
    return *lost ? WQ_OK : hand_over_all(e, ops, end);
}

/* ---- releasing ------------------------------------------------------------ */

/* Holds that the shell knows of stay. */
static void
spare_known(struct wq__redis *e, const struct wq__known *known, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct wq__entry *entry = find_entry(e, known[i].key);
        if (entry && entry->row.image.fence == known[i].fence)
            entry->is_hold = false;
    }
}

/* "SESSION[KEY]": the holds after this key. */
static wq_key
put_place(int64_t session, wq_key after, unsigned char *out)
{
    wq__put_be(out, (uint64_t)session, WQ__SID_BYTES);
    if (after.len)
        memcpy(out + WQ__SID_BYTES, after.data, after.len);
    return (wq_key){out, WQ__SID_BYTES + after.len};
}

wq_err
wq__redis_release(struct wq__redis *e, int64_t session, bool expired,
                  const struct wq__known *known, size_t n)
{
    const int64_t  until_ns = wq__time_now() + e->target.timeout_ns;
    unsigned char *place = malloc(WQ__SID_BYTES + WQ_KEY_MAX);
    wq_err         err = WQ_OK;
    bool           more = true, lost;

    if (!place)
        return WQ_ENOMEM;
    wq_key from = put_place(session, (wq_key){0}, place);
    e->txn.wants_ready = 0;
    while (!err && more) {
        struct wq__pulse unused = {.ready = 0};
        enum verdict     verdict = AGAIN;
        size_t           returned;

        err = read_all(e, NULL, NULL, false, from, &lost);
        if (err)
            break;
        more = e->txn.holds == 256;
        spare_known(e, known, n);
        err = return_holds(e, session, expired, &returned);
        if (!err)
            err = commit(e, false, &unused, &verdict);
        if (err)
            break;
        if (verdict == AGAIN) {
            more = true;
            err = wq__time_now() > until_ns ? fail_busy(e) : WQ_OK;
        } else if (more) {
            from = put_place(session, e->txn.last_hold, place);
        }
    }
    free(place);
    return err;
}
