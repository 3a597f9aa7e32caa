/* SPDX-License-Identifier: MIT */
/* wq.c: the library as a user calls it. */
#include <wq/limiter.h>
#include <wq/metrics.h>
#include <wq/workers.h>

#include "bench.h"

#define MS INT64_C(1000000)

/* For create_metered(); lives as long as the program. */
static wq_registry *registry;

wq_queue *
bench_create(const wq_config *config)
{
    wq_queue *q;
    must(wq_create(config, &q) == WQ_OK, "wq_create");
    return q;
}

static void *
create(void)
{
    return bench_create(NULL);
}

static void *
create_metered(void)
{
    must(wq_registry_create(&registry) == WQ_OK, "wq_registry_create");
    return bench_create(
        WQ_CONFIG(.name = "bench", .metrics = wq_registry_sink(registry)));
}

static void *
create_limited(void)
{
    return bench_create(WQ_CONFIG(.limiter = wq_limiter_exponential(1, 1)));
}

static void
add(void *q, wq_key key)
{
    must(wq_add(q, key) == WQ_OK, "wq_add");
}

static void
add_priority(void *q, wq_key key, int priority)
{
    must(!wq_add_with(q, WQ_ADD(.priority = priority), &key, 1), "wq_add_with");
}

static void
add_after(void *q, wq_key key, int64_t delay_ns)
{
    must(wq_add_after(q, key, delay_ns) == WQ_OK, "wq_add_after");
}

static void
add_rate_limited(void *q, wq_key key)
{
    must(wq_add_rate_limited(q, key) == WQ_OK, "wq_add_rate_limited");
}

static void
forget(void *q, wq_key key)
{
    must(wq_forget(q, key) == WQ_OK, "wq_forget");
}

static bool
get(void *q, void **item)
{
    wq_item     *got;
    const wq_err err = wq_get(q, &got);

    must(err == WQ_OK || err == WQ_ESHUTDOWN, "wq_get");
    *item = err ? NULL : got;
    return err == WQ_OK;
}

static void
done(void *q, void *item)
{
    must(wq_done(q, item) == WQ_OK, "wq_done");
}

static bool
next(void *q, void **item)
{
    wq_item     *it = *item;
    const wq_err err = wq_next(q, 0, &it);

    must(err == WQ_OK || err == WQ_ETIMEDOUT, "wq_next");
    *item = it;
    return err == WQ_OK;
}

static wq_key
key(const void *item)
{
    return ((const wq_item *)item)->key;
}

static void
shutdown(void *q)
{
    wq_shutdown(q);
}

static void
destroy(void *q)
{
    wq_destroy(q);
    wq_registry_destroy(registry);
}

/* ---- batches ------------------------------------------------------------ */

static void
add_batch(void *q, const wq_key *keys)
{
    must(wq_add_with(q, NULL, keys, BATCH) == WQ_OK, "wq_add_with");
}

static void
get_batch(void *q, void **items)
{
    wq_item *got[BATCH];
    size_t   n;

    must(!wq_get_many(q, got, BATCH, WQ_FOREVER, &n) && n == BATCH,
         "wq_get_many");
    for (size_t i = 0; i < BATCH; i++)
        items[i] = got[i];
}

static size_t
get_some(void *q, void **items)
{
    wq_item     *got[BATCH];
    size_t       n = 0;
    const wq_err err = wq_get_many(q, got, BATCH, WQ_FOREVER, &n);

    must(err == WQ_OK || err == WQ_ESHUTDOWN, "wq_get_many");
    for (size_t i = 0; !err && i < n; i++)
        items[i] = got[i];
    return err ? 0 : n;
}

static void
done_some(void *q, void **items, size_t n)
{
    wq_item *got[BATCH];

    for (size_t i = 0; i < n; i++)
        got[i] = items[i];
    must(wq_done_many(q, got, n) == WQ_OK, "wq_done_many");
}

static void
done_batch(void *q, void **items)
{
    done_some(q, items, BATCH);
}

/* ---- a limiter alone ---------------------------------------------------- */

static void *
limiter(void)
{
    wq_limiter *l = wq_limiter_exponential(5 * MS, 1000 * 1000 * MS);
    must(!wq_limiter_error(l), "wq_limiter_exponential");
    return l;
}

static int64_t
limiter_when(void *l, wq_key k)
{
    return wq_limiter_when(l, k);
}

static void
limiter_forget(void *l, wq_key k)
{
    wq_limiter_forget(l, k);
}

static void
limiter_destroy(void *l)
{
    wq_limiter_destroy(l);
}

/* ---- a pool ------------------------------------------------------------- */

/* Of the pool; one at a time. */
static void (*pool_work)(void);

static wq_result
handle(void *ctx, const wq_item *item)
{
    (void)ctx;
    (void)item;
    if (pool_work)
        pool_work();
    return wq_result_done();
}

static void *
pool(void *q, void (*work)(void))
{
    wq_workers *p;

    pool_work = work;
    must(!wq_workers_start(
             q, WQ_WORKERS(.threads = POOL_THREADS, .handler = handle), &p),
         "wq_workers_start");
    return p;
}

static size_t
pool_drain(void *p)
{
    wq_workers_stats counts = {.size = sizeof counts};

    must(wq_workers_drain(p, WQ_FOREVER) == WQ_OK, "wq_workers_drain");
    must(wq_workers_read_stats(p, &counts) == WQ_OK, "wq_workers_read_stats");
    must(wq_workers_destroy(p) == WQ_OK, "wq_workers_destroy");
    return (size_t)counts.done;
}

const struct side bench_side = {
    SIDE_VERBS,
    .key = key,
    .shutdown = shutdown,
    .destroy = destroy,
    .create_metered = create_metered,
    .add_priority = add_priority,
    .add_after = add_after,
    .next = next,
    .add_batch = add_batch,
    .get_batch = get_batch,
    .done_batch = done_batch,
    .get_some = get_some,
    .done_some = done_some,
    .create_limited = create_limited,
    .add_rate_limited = add_rate_limited,
    .forget = forget,
    .limiter = limiter,
    .limiter_when = limiter_when,
    .limiter_forget = limiter_forget,
    .limiter_destroy = limiter_destroy,
    .pool = pool,
    .pool_drain = pool_drain,
    .features = bench_features,
};
