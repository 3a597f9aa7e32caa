/* SPDX-License-Identifier: MIT */
/* work.c: what does a worker do with a key?
 *
 * Gets it, hands it to the handler, does what the result says, and is done with
 * it: the contract of PQ-47. Whatever goes wrong, the key ends up in the queue,
 * or in on_drop(). No lock is held here, and none taken while no watchdog looks
 * on and the size of the pool stays.
 */
#include "core/span.h"
#include "port/park.h"
#include "port/time.h"
#include "workers/pool.h"

static void
count(struct wq__worker *w, enum wq__count what)
{
    const uint64_t n =
        atomic_load_explicit(&w->counts[what], memory_order_relaxed);
    atomic_store_explicit(&w->counts[what], n + 1, memory_order_relaxed);
}

/* What failed may work in a moment; until then do not spin. */
static void
rest(void)
{
    const int64_t a_moment_ns = INT64_C(10) * 1000000; /* to people: at once */
    struct wq__parker nobody;

    wq__parker_init(&nobody);
    (void)wq__park(&nobody, wq__span_add(wq__time_now(), a_moment_ns));
    wq__parker_fini(&nobody);
}

/* ---- what becomes of a key ----------------------------------------------- */

static void
drop(struct wq__worker *w, wq_key key, unsigned retries, wq_err why)
{
    const wq_workers_config *config = &w->pool->config;

    count(w, WQ__DROPPED);
    if (why != WQ_EGIVENUP) /* the queue has counted that one */
        (void)wq_count_drops(w->pool->queue, 1);
    if (config->on_drop)
        config->on_drop(config->ctx, key, retries, why);
}

/* Again, with the priority the key came with [PQ-47]. */
static wq_err
add_again(wq_queue *q, const wq_item *item, bool rate_limited, int64_t after_ns)
{
    const wq_add_options how = {
        .size = sizeof how,
        .priority = item->priority,
        .rate_limited = rate_limited,
        .after_ns = after_ns,
    };

    if (item->priority) {
        const wq_err err = wq_add_with(q, &how, &item->key, 1);
        if (err != WQ_ENOTSUP) /* better a lost priority than a lost key */
            return err;
    }
    return rate_limited ? wq_add_rate_limited(q, item->key)
                        : wq_add_after(q, item->key, after_ns);
}

static void
retry(struct wq__worker *w, const wq_item *item)
{
    wq_queue      *q = w->pool->queue;
    const wq_key   key = item->key;
    const unsigned max = w->pool->config.max_retries;
    const unsigned retries = wq_num_requeues(q, key);

    if (max && retries >= max) {
        (void)wq_forget(q, key);
        drop(w, key, retries, WQ_EGIVENUP);
        return;
    }
    const wq_err err = add_again(q, item, true, 0);
    if (err)
        drop(w, key, retries, err);
    else
        count(w, WQ__RETRIED);
}

static void
postpone(struct wq__worker *w, const wq_item *item, int64_t after_ns)
{
    wq_queue      *q = w->pool->queue;
    const wq_key   key = item->key;
    const unsigned retries = wq_num_requeues(q, key);

    (void)wq_forget(q, key);
    const wq_err err = add_again(q, item, false, after_ns);
    if (err)
        drop(w, key, retries, err);
    else
        count(w, WQ__POSTPONED);
}

/* A result nobody knows is a retry: what the handler meant cannot be told, but
 * hardly that the key be lost. */
static void
settle(struct wq__worker *w, const wq_item *item, wq_result result)
{
    wq_queue    *q = w->pool->queue;
    const wq_key key = item->key;

    if (result.outcome == WQ_RESULT_DONE) {
        (void)wq_forget(q, key); /* a backend without a limiter: as good */
        count(w, WQ__DONE);
    } else if (result.outcome == WQ_RESULT_AFTER && result.after_ns > 0) {
        postpone(w, item, result.after_ns);
    } else if (result.outcome == WQ_RESULT_DROP) {
        drop(w, key, wq_num_requeues(q, key), WQ_OK);
    } else {
        retry(w, item);
    }
}

/* Only a wq_order of the user's can fail for lack of memory. The key is to come
 * back then, and cannot while it is on loan: try until it can. */
static void
hand_back(struct wq__worker *w, wq_item *item)
{
    wq_err err;

    while ((err = wq_done(w->pool->queue, item)) != WQ_OK) {
        count(w, WQ__ERRORS);
        if (err != WQ_ENOMEM)
            return; /* it is not ours any more */
        if (wq__workers_stopping(w->pool)) {
            drop(w, item->key, wq_num_requeues(w->pool->queue, item->key), err);
            return;
        }
        rest();
    }
}

/* ---- the loop ------------------------------------------------------------ */

static void
handle(struct wq__worker *w, wq_item *item)
{
    const wq_workers_config *config = &w->pool->config;

    wq__watchdog_begin(w, item);
    const wq_result result = config->handler(config->ctx, item);
    wq__watchdog_finish(w);
    settle(w, item, result);
}

static void
set_phase(struct wq__worker *w, enum wq__worker_phase phase)
{
    /* Only "getting" must be in order with the epoch (pool.h). */
    atomic_store_explicit(&w->phase, phase, memory_order_release);
}

/* Give back the loan, if there is one; then one get, and what follows. False:
 * there will be no more keys. */
static bool
serve(struct wq__worker *w, wq_item **loan)
{
    const wq_err err = wq_next(w->pool->queue, w->pool->patience_ns, loan);

    if (err && *loan) {            /* it could not be given back */
        set_phase(w, WQ__WORKING); /* nobody waits for it, as for a handler */
        count(w, WQ__ERRORS);
        if (err == WQ_ENOMEM)
            hand_back(w, *loan);
        *loan = NULL;
        return true;
    }
    switch (err) {
    case WQ_OK:
        set_phase(w, WQ__WORKING);
        handle(w, *loan);
        break;
    case WQ_EINTERRUPTED: /* perhaps somebody wants us to look up */
    case WQ_ETIMEDOUT:    /* or cannot even say so */
        break;
    case WQ_ESHUTDOWN:
        return false;
    default:
        set_phase(w, WQ__LOOKING_UP);
        count(w, WQ__ERRORS);
        rest();
    }
    return true;
}

/* May the worker go on? It has no loan if it shall leave. */
static bool
goes_on(struct wq__worker *w, wq_item **loan)
{
    if (*loan && !wq__workers_are_called(w))
        return true;
    if (*loan) {
        set_phase(w, WQ__WORKING); /* nobody waits for it, as for a handler */
        hand_back(w, *loan);
    }
    *loan = NULL;
    return wq__workers_look_up(w);
}

void
wq__work(void *arg)
{
    struct wq__worker *w = arg;
    wq_item           *loan = NULL; /* worked on, and not given back yet */

    wq__workers_current = w->pool;
    while (goes_on(w, &loan))
        if (!serve(w, &loan)) {
            wq__workers_leave(w);
            return;
        }
}
