/* SPDX-License-Identifier: MIT */
/* row_limits.c: how long does a key wait before its retry, if all processes count
 * together?
 *
 * The limiter is data (wq_limiter_spec); its state is in the store: failures
 * and a key's own bucket in the row of the key, the bucket of all keys beside the
 * rows. A transaction that is rolled back takes it back, too. The bound
 * max_keys of a spec is for memory, and is not applied.
 */
#include "core/span.h"
#include "limit/draw.h"
#include "limit/spec.h"
#include "limit/tokens.h"
#include "shared/rows.h"

enum { COUNTS = WQ_PART_EXPONENTIAL | WQ_PART_FAST_SLOW };

static const wq_limiter_spec *
spec_of(const struct wq__rows *r)
{
    return &r->terms.limiter;
}

/* ---- failures ------------------------------------------------------------- */

unsigned
wq__row_requeues(const struct wq__rows *r, const struct wq__row *row)
{
    const int64_t ttl_ns = spec_of(r)->ttl_ns;

    if (!(spec_of(r)->parts & COUNTS))
        return 0;
    if (ttl_ns && wq__span_sub(r->now_ns, row->failed_ns) >= ttl_ns)
        return 0;
    return row->fails;
}

static int64_t
count_failure(struct wq__rows *r, struct wq__row *row)
{
    const uint32_t before = wq__row_requeues(r, row);
    const bool     jitter = spec_of(r)->jitter != WQ_JITTER_NONE;

    row->fails = before < UINT32_MAX ? before + 1 : before;
    row->failed_ns = spec_of(r)->ttl_ns ? r->now_ns : 0;
    return wq__spec_delay(spec_of(r), before,
                          jitter ? wq__draw(&r->random) : 0);
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
item_rate(const struct wq__rows *r)
{
    return (struct wq__rate){spec_of(r)->item_rate, spec_of(r)->item_burst};
}

static int64_t
take_own(struct wq__rows *r, struct wq__row *row)
{
    const struct wq__rate rate = item_rate(r);
    struct wq__fill       level = {row->tokens, row->tokens_ns};

    if (rate.limit == WQ_RATE_INF)
        return 0;
    if (rate.burst == 0)
        return WQ_FOREVER;
    if (!row->has_bucket)
        level = wq__fill_full(&rate);
    const int64_t delay_ns = take(&rate, &level, r->now_ns);
    row->has_bucket = true;
    row->tokens = level.tokens;
    row->tokens_ns = level.last_ns;
    return delay_ns;
}

static wq_err
read_bucket(struct wq__rows *r, const struct wq__rate *rate)
{
    bool         there = false;
    const wq_err err = r->store->read_bucket(r, &r->bucket.level, &there);

    if (err)
        return err;
    if (!there)
        r->bucket.level = wq__fill_full(rate);
    r->bucket.read = true;
    return WQ_OK;
}

static wq_err
take_common(struct wq__rows *r, int64_t *delay_ns)
{
    const struct wq__rate rate = {spec_of(r)->rate, spec_of(r)->burst};
    const wq_err          err = r->bucket.read ? WQ_OK : read_bucket(r, &rate);

    if (err)
        return err;
    const struct wq__fill before = r->bucket.level;
    *delay_ns = take(&rate, &r->bucket.level, r->now_ns);
    r->bucket.moved |= r->bucket.level.tokens != before.tokens ||
                       r->bucket.level.last_ns != before.last_ns;
    return WQ_OK;
}

/* A bucket that is full again is the same as none. Each add looks at the two
 * that were used longest ago: more than it can make. */
wq_err
wq__rows_drop_full_buckets(struct wq__rows *r)
{
    const struct wq__rate rate = item_rate(r);
    int64_t               after_ns = INT64_MIN;

    for (int i = 0; i < 2; i++) {
        struct wq__row row;
        wq_key         key;
        wq_err err = r->store->first(r, WQ__FIRST_USED, after_ns, &row, &key);

        if (err)
            return err == WQ_ENOTFOUND ? WQ_OK : err;
        const struct wq__fill level = {row.tokens, row.tokens_ns};
        after_ns = row.tokens_ns;
        if (wq__fill_at(&rate, &level, r->now_ns) < (double)rate.burst)
            continue;
        struct wq__row rest = row;
        rest.has_bucket = false;
        rest.tokens = 0;
        rest.tokens_ns = 0;
        err = wq__row_write(r, key, &row, &rest);
        if (err)
            return err;
    }
    return WQ_OK;
}

/* ---- together ------------------------------------------------------------- */

wq_err
wq__row_when(struct wq__rows *r, struct wq__row *row, int64_t *delay_ns)
{
    const unsigned parts = spec_of(r)->parts;
    int64_t        longest = 0, its;

    if (parts & COUNTS)
        longest = count_failure(r, row);
    if (parts & WQ_PART_BUCKET) {
        const wq_err err = take_common(r, &its);
        if (err)
            return err;
        longest = its > longest ? its : longest;
    }
    if (parts & WQ_PART_ITEM_BUCKET) {
        its = take_own(r, row);
        longest = its > longest ? its : longest;
    }
    if (parts & WQ_PART_MAX_WAIT && longest > spec_of(r)->max_wait_ns)
        longest = spec_of(r)->max_wait_ns;
    *delay_ns = longest;
    return WQ_OK;
}

void
wq__row_forget(struct wq__row *row)
{
    row->fails = 0;
    row->failed_ns = 0;
    row->has_bucket = false;
    row->tokens = 0;
    row->tokens_ns = 0;
}
