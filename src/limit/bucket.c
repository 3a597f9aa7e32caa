/* SPDX-License-Identifier: MIT */
/* bucket.c: may this happen now, and if not, when?
 *
 * The token bucket of <wq/limiter.h>, without waiting (wait.c): tokens.h under
 * a lock, and reservations that can be cancelled. The clock is read under the
 * lock, so that times arrive in order. All are O(1).
 */
#include "limit/bucket.h"

#include <assert.h>
#include <errno.h>

#include "config/read.h"
#include "core/mem.h"
#include "core/span.h"
#include "error/error.h"

/* ---- life ---------------------------------------------------------------- */

wq_bucket *
wq__bucket_create(const wq_allocator *mem, double limit, int64_t burst,
                  wq_clock *clock)
{
    if (wq__check_finite("wq_bucket_create: limit", limit) ||
        wq__check_not_negative("wq_bucket_create: burst", burst)) {
        errno = EINVAL;
        return NULL;
    }
    wq_bucket *b = wq__mem_alloc(mem, sizeof *b);
    if (!b) {
        (void)wq_fail(WQ_ENOMEM, "wq_bucket_create: out of memory");
        errno = ENOMEM;
        return NULL;
    }

    *b = (wq_bucket){
        .mem = *mem,
        .clock = clock ? clock : wq_clock_monotonic(),
        .rate = {limit, burst},
        .last_event_ns = INT64_MIN,
    };
    wq__lock_init(&b->lock);
    b->level = wq__fill_full(&b->rate);
    return b;
}

wq_bucket *
wq_bucket_create(double limit, int64_t burst, wq_clock *clock)
{
    return wq__bucket_create(&wq__mem_default, limit, burst, clock);
}

void
wq_bucket_destroy(wq_bucket *b)
{
    if (!b)
        return;
    assert(!b->waiters);
    const wq_allocator mem = b->mem;
    wq__lock_fini(&b->lock);
    wq__mem_free(&mem, b, sizeof *b);
}

/* ---- with the lock ------------------------------------------------------- */

wq_err
wq__bucket_take(wq_bucket *b, int64_t now, int64_t n, int64_t max_wait,
                wq_reservation *out)
{
    int64_t time_to_act;

    wq__lock_assert_taken(&b->lock);
    switch (
        wq__fill_take(&b->rate, &b->level, now, n, max_wait, &time_to_act)) {
    case WQ__TAKE_TOO_MANY:
        return WQ_EINVAL;
    case WQ__TAKE_TOO_LATE:
        return WQ_ETIMEDOUT;
    case WQ__TAKE_OK:
        break;
    }
    *out = (wq_reservation){b, n, time_to_act, b->rate.limit};
    if (b->rate.limit != WQ_RATE_INF)
        b->last_event_ns = time_to_act;
    return WQ_OK;
}

/* How many of its tokens can be put back: not those on which later reservations
 * are based (T-13). */
static double
restorable(const wq_bucket *b, const wq_reservation *r)
{
    const int64_t later = wq__span_sub(b->last_event_ns, r->time_to_act_ns);
    const double  promised = wq__rate_tokens(r->limit, later);

    return (double)r->n - promised;
}

void
wq__bucket_cancel(wq_bucket *b, wq_reservation *r, int64_t now)
{
    const int64_t time = wq__fill_time(&b->level, now);

    wq__lock_assert_taken(&b->lock);
    if (b->rate.limit == WQ_RATE_INF || r->n == 0 || r->time_to_act_ns < time)
        return;
    if (r->limit == WQ_RATE_INF)
        return; /* it took nothing (T-62) */
    const double tokens = restorable(b, r);
    if (tokens <= 0)
        return;

    wq__fill_give(&b->rate, &b->level, now, tokens);
    if (r->time_to_act_ns == b->last_event_ns) {
        /* The last reservation is cancelled: the one before is the last again,
         * if its time has not come. */
        const int64_t took = wq__rate_duration(r->limit, (double)r->n);
        const int64_t before = wq__span_sub(r->time_to_act_ns, took);
        if (before >= time)
            b->last_event_ns = before;
    }
}

/* ---- tokens now, or later ------------------------------------------------ */

/* The time that the caller passed or, if NULL, that of the clock. */
static int64_t
time_at(const wq_bucket *b, const int64_t *now_ns)
{
    return now_ns ? *now_ns : wq_clock_now(b->clock);
}

static wq_err
reserve(wq_bucket *b, const int64_t *now_ns, int64_t n, int64_t max_wait_ns,
        wq_reservation *out)
{
    if (!b || !out || n < 0 || max_wait_ns < 0)
        return WQ_EINVAL;
    wq__lock_take(&b->lock);
    const wq_err err =
        wq__bucket_take(b, time_at(b, now_ns), n, max_wait_ns, out);
    wq__lock_release(&b->lock);
    return err;
}

bool
wq_bucket_allow(wq_bucket *b)
{
    return wq_bucket_allow_n(b, 1);
}

bool
wq_bucket_allow_n(wq_bucket *b, int64_t n)
{
    wq_reservation taken;
    return reserve(b, NULL, n, 0, &taken) == WQ_OK;
}

bool
wq_bucket_allow_n_at(wq_bucket *b, int64_t now_ns, int64_t n)
{
    wq_reservation taken;
    return reserve(b, &now_ns, n, 0, &taken) == WQ_OK;
}

wq_err
wq_bucket_reserve(wq_bucket *b, wq_reservation *out)
{
    return reserve(b, NULL, 1, WQ_FOREVER, out);
}

wq_err
wq_bucket_reserve_n(wq_bucket *b, int64_t n, wq_reservation *out)
{
    return reserve(b, NULL, n, WQ_FOREVER, out);
}

wq_err
wq_bucket_reserve_n_at(wq_bucket *b, int64_t now_ns, int64_t n,
                       wq_reservation *out)
{
    return reserve(b, &now_ns, n, WQ_FOREVER, out);
}

wq_err
wq_bucket_reserve_n_within(wq_bucket *b, int64_t n, int64_t max_wait_ns,
                           wq_reservation *out)
{
    return reserve(b, NULL, n, max_wait_ns, out);
}

wq_err
wq_bucket_reserve_n_within_at(wq_bucket *b, int64_t now_ns, int64_t n,
                              int64_t max_wait_ns, wq_reservation *out)
{
    return reserve(b, &now_ns, n, max_wait_ns, out);
}

/* ---- reservations -------------------------------------------------------- */

bool
wq_reservation_ok(const wq_reservation *r)
{
    return r && r->bucket;
}

int64_t
wq_reservation_delay_from(const wq_reservation *r, int64_t now_ns)
{
    if (!wq_reservation_ok(r) || r->time_to_act_ns == WQ_FOREVER)
        return WQ_FOREVER;
    const int64_t delay_ns = wq__span_sub(r->time_to_act_ns, now_ns);
    return delay_ns > 0 ? delay_ns : 0;
}

int64_t
wq_reservation_delay(const wq_reservation *r)
{
    if (!wq_reservation_ok(r))
        return WQ_FOREVER;
    return wq_reservation_delay_from(r, wq_clock_now(r->bucket->clock));
}

static void
cancel(wq_reservation *r, const int64_t *now_ns)
{
    if (!wq_reservation_ok(r))
        return;
    wq_bucket *b = r->bucket;
    wq__lock_take(&b->lock);
    wq__bucket_cancel(b, r, time_at(b, now_ns));
    wq__lock_release(&b->lock);
    r->n = 0; /* a second cancel has no effect (T-14) */
}

void
wq_reservation_cancel(wq_reservation *r)
{
    cancel(r, NULL);
}

void
wq_reservation_cancel_at(wq_reservation *r, int64_t now_ns)
{
    cancel(r, &now_ns);
}

/* ---- settings ------------------------------------------------------------ */

static wq_err
set(wq_bucket *b, const int64_t *now_ns, const double *limit,
    const int64_t *burst)
{
    if (!b || (limit && !wq__rate_is_sound(*limit)) || (burst && *burst < 0))
        return WQ_EINVAL;

    wq__lock_take(&b->lock);
    wq__fill_settle(&b->rate, &b->level, time_at(b, now_ns));
    if (limit)
        b->rate.limit = *limit;
    if (burst)
        b->rate.burst = *burst;
    wq__lock_release(&b->lock);
    return WQ_OK;
}

wq_err
wq_bucket_set_limit(wq_bucket *b, double limit)
{
    return set(b, NULL, &limit, NULL);
}

wq_err
wq_bucket_set_limit_at(wq_bucket *b, int64_t now_ns, double limit)
{
    return set(b, &now_ns, &limit, NULL);
}

wq_err
wq_bucket_set_burst(wq_bucket *b, int64_t burst)
{
    return set(b, NULL, NULL, &burst);
}

wq_err
wq_bucket_set_burst_at(wq_bucket *b, int64_t now_ns, int64_t burst)
{
    return set(b, &now_ns, NULL, &burst);
}

static struct wq__rate
rate_of(wq_bucket *b)
{
    if (!b)
        return (struct wq__rate){0};
    wq__lock_take(&b->lock);
    const struct wq__rate rate = b->rate;
    wq__lock_release(&b->lock);
    return rate;
}

double
wq_bucket_limit(wq_bucket *b)
{
    return rate_of(b).limit;
}

int64_t
wq_bucket_burst(wq_bucket *b)
{
    return rate_of(b).burst;
}

static double
tokens(wq_bucket *b, const int64_t *now_ns)
{
    if (!b)
        return 0;
    wq__lock_take(&b->lock);
    const double n = wq__fill_at(&b->rate, &b->level, time_at(b, now_ns));
    wq__lock_release(&b->lock);
    return n;
}

double
wq_bucket_tokens(wq_bucket *b)
{
    return tokens(b, NULL);
}

double
wq_bucket_tokens_at(wq_bucket *b, int64_t now_ns)
{
    return tokens(b, &now_ns);
}
