/* SPDX-License-Identifier: MIT */
/* view.c: what is in the server, for programs and people to look at?
 *
 * Cost: stats O(HELD keys), depths O(priorities, HELD and WAITING keys), a walk
 * O(n) in steps of some hundred keys, a check O(n), in one step.
 *
 * A walk follows the server's own cursor (HSCAN) page by page. The keys of a page
 * are visited by their hashes, so that a walk which had no space goes on where
 * it was. The server may show a key twice while its table grows or shrinks.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/span.h"
#include "error/error.h"
#include "spread.h"
#include "store.h"

static wq_err
look(struct wq__redis *e, const char *what, uint64_t argument,
     redisReply **reply)
{
    char text[24];

    wq__args_begin(&e->args);
    wq__redis_put_session(&e->args, e->session);
    wq__redis_put_time(e, &e->args);
    wq__args_bytes(&e->args, what, strlen(what));
    (void)snprintf(text, sizeof text, "%" PRIu64, argument);
    wq__args_copy(&e->args, text, strlen(text));
    return wq__redis_call(e, WQ__SCRIPT_VIEW, reply);
}

/* ---- numbers -------------------------------------------------------------- */

static void
read_ages(const struct wq__redis *e, const redisReply *reply, wq_stats *out)
{
    const wq_key oldest = wq__reply_bytes(reply, 11);
    const double total = strtod(wq__reply_bytes(reply, 12).data, NULL);
    const double sum = (double)out->held * (double)e->rows.now_ns - total;

    out->longest_ns =
        oldest.len == 8 ? wq__span_between((int64_t)wq__get_be(oldest.data, 8),
                                           e->rows.now_ns)
                        : 0;
    out->unfinished_ns =
        sum >= 9.2e18 ? INT64_MAX : (int64_t)(sum > 0 ? sum : 0);
    if (out->unfinished_ns < out->longest_ns || out->held == 1)
        out->unfinished_ns = out->longest_ns;
}

/* A session that holds keys in several partitions is one holder. */
static wq_err
note_holders(struct wq__ids *ids, const redisReply *list)
{
    for (size_t i = 0; i < list->elements; i++) {
        const wq_key  bytes = wq__reply_bytes(list, i);
        const int64_t id = bytes.len == WQ__SID_BYTES
                               ? (int64_t)wq__get_be(bytes.data, bytes.len)
                               : 0;
        size_t        k = 0;

        while (k < ids->len && ids->at[k] != id)
            k++;
        if (k < ids->len)
            continue;
        if (ids->len == ids->cap) {
            const size_t cap = ids->cap ? ids->cap * 2 : 16;
            int64_t     *at = realloc(ids->at, cap * sizeof *at);
            if (!at)
                return WQ_ENOMEM;
            ids->at = at;
            ids->cap = cap;
        }
        ids->at[ids->len++] = id;
    }
    return WQ_OK;
}

/* Counts are those of the handles: the shell knows them. */
static wq_err
read_stats(struct wq__redis *e, wq_stats *out)
{
    redisReply *reply = NULL;
    wq_err      err = look(e, "stats", 0, &reply);

    if (err)
        return err;
    const bool    waits = wq__reply_at(reply, 8)->type == REDIS_REPLY_INTEGER;
    const int64_t us = wq__reply_int(reply, 8);
    struct wq__row_counts n;
    wq__reply_counts(reply, 2, &n);
    *out = (wq_stats){
        .size = out->size,
        .next_ns = waits && us < INT64_MAX / 1000
                       ? wq__span_between(e->rows.now_ns,
                                          us * 1000 + wq__reply_int(reply, 9))
                       : WQ_FOREVER,
        .unfinished_ns = -1,
        .longest_ns = -1,
        .holders = (size_t)wq__reply_int(reply, 10),
    };
    wq__rows_fill_in(&n, out);
    if (e->rows.terms.ages)
        read_ages(e, reply, out);
    if (e->holders)
        err = note_holders(e->holders, wq__reply_at(reply, 13));
    freeReplyObject(reply);
    return err;
}

static wq_err
read_depths(struct wq__redis *e, wq_depth *out, size_t max, size_t *n)
{
    redisReply  *reply = NULL;
    const wq_err err = look(e, "depths", 0, &reply);

    if (err)
        return err;
    *n = 0;
    wq__depths_add(out, max, n, 0, 0); /* always in use */
    for (size_t i = 2; i + 1 < reply->elements; i += 2)
        wq__depths_add(out, max, n, (int)wq__reply_int(reply, i),
                       (size_t)wq__reply_int(reply, i + 1));
    freeReplyObject(reply);
    return WQ_OK;
}

/* ---- walks ---------------------------------------------------------------- */

/* A key of a page, and its place in it. */
struct place {
    uint32_t hash;
    size_t   at;
};

static int
compare_places(const void *a, const void *b)
{
    const struct place *x = a, *y = b;

    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

static struct place *
sort_page(const struct wq__redis *e, const redisReply *page, size_t n)
{
    struct place *places = malloc((n + 1) * sizeof *places);

    for (size_t i = 0; places && i < n; i++)
        places[i] = (struct place){
            wq__core_hash(&e->rows.scratch, wq__reply_bytes(page, 2 * i)) >> 1,
            2 * i};
    if (places)
        qsort(places, n, sizeof *places, compare_places);
    return places;
}

/* *full: there is no space for it. */
static wq_err
visit(struct wq__redis *e, struct wq__op *op, wq_key key, wq_key record,
      bool *full)
{
    wq_key_info    info = {.size = sizeof info};
    struct wq__row row;

    if (!wq__record_unpack(record.data, record.len, &row))
        return wq_fail(WQ_EAWAY,
                       "redis: a record in %s is damaged: run 'wq "
                       "fsck'",
                       e->target.name);
    const wq_err err = wq__row_describe(&e->rows, key, &row, &info);
    if (!err)
        *full = info.states & op->as.walk.states &&
                !op->as.walk.found(op->as.walk.ctx, key, &info);
    return err;
}

/* The cursor: 1 + the hash from which on the page is not visited, 31 bits; above
 * it the server's cursor of the page. */
static wq_err
visit_page(struct wq__redis *e, struct wq__op *op, const redisReply *reply)
{
    const redisReply *page = wq__reply_at(reply, 3);
    const uint64_t    next = (uint64_t)wq__reply_int(reply, 2);
    const size_t      n = page->elements / 2;
    const uint64_t    from = op->as.walk.cursor >> 32 << 32;
    const uint32_t    hash = (uint32_t)op->as.walk.cursor;
    struct place     *places = sort_page(e, page, n);
    bool              full = false;
    wq_err            err = places ? WQ_OK : WQ_ENOMEM;

    for (size_t i = 0; i < n && !err && !full; i++) {
        if (hash && places[i].hash < hash - 1)
            continue;
        err = visit(e, op, wq__reply_bytes(page, places[i].at),
                    wq__reply_bytes(page, places[i].at + 1), &full);
        if (full)
            op->as.walk.cursor = from | (places[i].hash + 1);
    }
    free(places);
    if (!err && !full)
        op->as.walk.cursor = next << 32;
    op->as.walk.ended = !err && !full && !next;
    return err;
}

/* A page of keys and records, from a cursor of the server on. */
static wq_err
scan(struct wq__redis *e, uint64_t cursor, redisReply **reply)
{
    const wq_err err = look(e, "scan", cursor, reply);

    if (!err) /* no record has a larger one */
        e->rows.number = wq__reply_int(*reply, 4);
    return err;
}

static wq_err
walk(struct wq__redis *e, struct wq__op *op)
{
    redisReply *reply = NULL;
    wq_err      err = scan(e, op->as.walk.cursor >> 32, &reply);

    if (err)
        return err;
    e->holders_read = wq__reply_at(reply, 5);
    err = visit_page(e, op, reply);
    e->holders_read = NULL;
    freeReplyObject(reply);
    return err;
}

/* ---- the check ------------------------------------------------------------ */

static bool
is_plain(unsigned char byte)
{
    return byte >= ' ' && byte <= '~' && byte != '\\';
}

/* Report what is wrong with a key, whose bytes are shown as in view.lua. */
static void
complain(const struct wq__op *op, wq_key key, const char *problem)
{
    enum { SHOWN = 100 }; /* bytes of a key; each takes four at most */
    const unsigned char *bytes = key.data;
    char                 shown[4 * SHOWN + 1] = "", text[4 * SHOWN + 200];
    char                *to = shown;

    for (size_t i = 0; i < key.len && i < SHOWN; i++)
        to += sprintf(to, is_plain(bytes[i]) ? "%c" : "\\x%02x", bytes[i]);
    (void)snprintf(text, sizeof text, "the key '%s%s': %s", shown,
                   key.len > SHOWN ? "..." : "", problem);
    op->as.check.problem(op->as.check.ctx, text);
}

static int
part_of(const struct wq__redis *e, wq_key key)
{
    return e->part == WQ__PART_WHOLE ? e->part
                                     : (int)wq__spread_part(key, e->parts);
}

static wq_err
check_records(struct wq__redis *e, struct wq__op *op)
{
    uint64_t cursor = 0;

    do {
        redisReply  *reply = NULL;
        const wq_err err = scan(e, cursor, &reply);

        if (err)
            return err;
        const redisReply *page = wq__reply_at(reply, 3);
        for (size_t i = 0; i + 1 < page->elements; i += 2) {
            const wq_key   record = wq__reply_bytes(page, i + 1);
            struct wq__row row;
            const wq_key   key = wq__reply_bytes(page, i);
            const char    *problem =
                !wq__record_unpack(record.data, record.len, &row)
                       ? "its record is damaged"
                   : part_of(e, key) != e->part
                       ? "it is in another partition than its own"
                       : wq__row_problem(&e->rows, key, &row);
            if (problem)
                complain(op, key, problem);
        }
        cursor = (uint64_t)wq__reply_int(reply, 2);
        freeReplyObject(reply);
    } while (cursor);
    return WQ_OK;
}

static wq_err
check(struct wq__redis *e, struct wq__op *op)
{
    redisReply  *reply = NULL;
    const wq_err err = look(e, "check", 0, &reply);

    if (err)
        return err;
    const redisReply *list = wq__reply_at(reply, 2);
    for (size_t i = 0; i < list->elements; i++)
        op->as.check.problem(op->as.check.ctx, wq__reply_bytes(list, i).data);
    freeReplyObject(reply);
    return check_records(e, op);
}

/* ---- interface ------------------------------------------------------------ */

bool
wq__view_knows(const struct wq__op *op)
{
    return op->kind == WQ__OP_STATS || op->kind == WQ__OP_DEPTHS ||
           op->kind == WQ__OP_WALK || op->kind == WQ__OP_CHECK;
}

wq_err
wq__view_run(struct wq__redis *e, struct wq__op *op)
{
    switch (op->kind) {
    case WQ__OP_STATS:
        op->err = read_stats(e, op->as.stats);
        break;
    case WQ__OP_DEPTHS:
        op->err = read_depths(e, op->as.depths.out, op->as.depths.max,
                              op->as.depths.n);
        break;
    case WQ__OP_WALK:
        op->err = walk(e, op);
        break;
    default:
        op->err = check(e, op);
        break;
    }
    return op->err == WQ_EAWAY || op->err == WQ_EIO ? op->err : WQ_OK;
}
