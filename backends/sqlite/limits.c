/* SPDX-License-Identifier: MIT */
/* limits.c: how long does a key wait before its retry, if all processes count
 * together?
 *
 * The limiter is data (wq_limiter_spec); its state is in the file: failures and
 * a key's own bucket in the row of the key, the bucket of all keys in the row of
 * the queue. A transaction that is rolled back takes it back, too. The bound
 * max_keys of a spec is for memory, and is not applied.
 */
#include "core/span.h"
#include "limit/draw.h"
#include "limit/spec.h"
#include "limit/tokens.h"
#include "store.h"

enum { COUNTS = WQ_PART_EXPONENTIAL | WQ_PART_FAST_SLOW };

static const wq_limiter_spec *
spec_of(const struct wq__sqlite *e)
{
    return &e->terms.limiter;
}

/* ---- failures ------------------------------------------------------------- */

unsigned
wq__sqlite_requeues(const struct wq__sqlite *e, const struct wq__row *row)
{
    const int64_t ttl_ns = spec_of(e)->ttl_ns;

    if (!(spec_of(e)->parts & COUNTS))
        return 0;
    if (ttl_ns && wq__span_sub(e->now_ns, row->failed_ns) >= ttl_ns)
        return 0;
    return row->fails;
}

static int64_t
count_failure(struct wq__sqlite *e, struct wq__row *row)
{
    const uint32_t before = wq__sqlite_requeues(e, row);
    const bool     jitter = spec_of(e)->jitter != WQ_JITTER_NONE;

    row->fails = before < UINT32_MAX ? before + 1 : before;
    row->failed_ns = spec_of(e)->ttl_ns ? e->now_ns : 0;
    return wq__spec_delay(spec_of(e), before,
                          jitter ? wq__draw(&e->random) : 0);
}

/* ---- buckets -------------------------------------------------------------- */

static int64_t
take(const struct wq__rate *rate, struct wq__fill *level, int64_t now_ns)
{
    int64_t at_ns = WQ_FOREVER;

    (void)wq__fill_take(rate, level, now_ns, 1, WQ_FOREVER, &at_ns);
    return at_ns == WQ_FOREVER ? WQ_FOREVER : wq__span_sub(at_ns, now_ns);
}

static struct wq__rate
item_rate(const struct wq__sqlite *e)
{
    return (struct wq__rate){spec_of(e)->item_rate, spec_of(e)->item_burst};
}

static int64_t
take_own(struct wq__sqlite *e, struct wq__row *row)
{
    const struct wq__rate rate = item_rate(e);
    struct wq__fill       level = {row->tokens, row->tokens_ns};

    if (rate.limit == WQ_RATE_INF)
        return 0;
    if (rate.burst == 0)
        return WQ_FOREVER;
    if (!row->has_bucket)
        level = wq__fill_full(&rate);
    const int64_t delay_ns = take(&rate, &level, e->now_ns);
    row->has_bucket = true;
    row->tokens = level.tokens;
    row->tokens_ns = level.last_ns;
    return delay_ns;
}

static wq_err
read_bucket(struct wq__sqlite *e, const struct wq__rate *rate)
{
    sqlite3_stmt *s = wq__db_statement(&e->db, WQ__SQL_GET_BUCKET);

    if (s)
        (void)sqlite3_bind_int64(s, 1, e->queue);
    if (!s || wq__db_step(s) != SQLITE_ROW)
        return wq__db_error(&e->db, "read");
    struct wq__fill level = {sqlite3_column_double(s, 0),
                             sqlite3_column_int64(s, 1)};
    if (sqlite3_column_type(s, 0) == SQLITE_NULL)
        level = wq__fill_full(rate);
    (void)sqlite3_reset(s);
    e->bucket.level = level;
    e->bucket.read = true;
    return WQ_OK;
}

static wq_err
take_common(struct wq__sqlite *e, int64_t *delay_ns)
{
    const struct wq__rate rate = {spec_of(e)->rate, spec_of(e)->burst};
    const wq_err          err = e->bucket.read ? WQ_OK : read_bucket(e, &rate);

    if (err)
        return err;
    const struct wq__fill before = e->bucket.level;
    *delay_ns = take(&rate, &e->bucket.level, e->now_ns);
    e->bucket.moved |= e->bucket.level.tokens != before.tokens ||
                       e->bucket.level.last_ns != before.last_ns;
    return WQ_OK;
}

wq_err
wq__sqlite_save_bucket(struct wq__sqlite *e)
{
    if (!e->bucket.moved)
        return WQ_OK;
    sqlite3_stmt *s = wq__db_statement(&e->db, WQ__SQL_SET_BUCKET);
    if (s) {
        (void)sqlite3_bind_int64(s, 1, e->queue);
        (void)sqlite3_bind_double(s, 2, e->bucket.level.tokens);
        (void)sqlite3_bind_int64(s, 3, e->bucket.level.last_ns);
    }
    if (!s || wq__db_step(s) != SQLITE_DONE)
        return wq__db_error(&e->db, "write to");
    e->wrote = true;
    e->bucket.moved = false;
    return WQ_OK;
}

/* A bucket that is full again is the same as none. Each add looks at the two
 * that were used longest ago: more than it can make. */
wq_err
wq__sqlite_drop_full_buckets(struct wq__sqlite *e)
{
    const struct wq__rate rate = item_rate(e);
    int64_t               after_ns = INT64_MIN;

    for (int i = 0; i < 2; i++) {
        struct wq__row row;
        wq_key         key;
        sqlite3_stmt  *s = wq__db_statement(&e->db, WQ__SQL_FIRST_FULL);

        if (!s)
            return wq__db_error(&e->db, "read");
        (void)sqlite3_bind_int64(s, 1, e->queue);
        (void)sqlite3_bind_int64(s, 2, after_ns);
        const int code = wq__db_step(s);
        if (code != SQLITE_ROW)
            return code == SQLITE_DONE ? WQ_OK : wq__db_error(&e->db, "read");
        wq__row_read(s, &row, &key);
        (void)sqlite3_reset(s); /* the key is not used: the row has an id */
        const struct wq__fill level = {row.tokens, row.tokens_ns};
        after_ns = row.tokens_ns;
        if (wq__fill_at(&rate, &level, e->now_ns) < (double)rate.burst)
            continue;
        struct wq__row rest = row;
        rest.has_bucket = false;
        rest.tokens = 0;
        rest.tokens_ns = 0;
        const wq_err err = wq__row_write(e, (wq_key){0}, &row, &rest);
        if (err)
            return err;
    }
    return WQ_OK;
}

/* ---- together ------------------------------------------------------------- */

wq_err
wq__sqlite_when(struct wq__sqlite *e, struct wq__row *row, int64_t *delay_ns)
{
    const unsigned parts = spec_of(e)->parts;
    int64_t        longest = 0, its;

    if (parts & COUNTS)
        longest = count_failure(e, row);
    if (parts & WQ_PART_BUCKET) {
        const wq_err err = take_common(e, &its);
        if (err)
            return err;
        longest = its > longest ? its : longest;
    }
    if (parts & WQ_PART_ITEM_BUCKET) {
        its = take_own(e, row);
        longest = its > longest ? its : longest;
    }
    if (parts & WQ_PART_MAX_WAIT && longest > spec_of(e)->max_wait_ns)
        longest = spec_of(e)->max_wait_ns;
    *delay_ns = longest;
    return WQ_OK;
}

void
wq__sqlite_forget(struct wq__row *row)
{
    row->fails = 0;
    row->failed_ns = 0;
    row->has_bucket = false;
    row->tokens = 0;
    row->tokens_ns = 0;
}
