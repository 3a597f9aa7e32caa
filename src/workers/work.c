/* SPDX-License-Identifier: MIT */
/* work.c: what does a worker do with a key?
 *
 * Gets it, hands it to the handler, does what the result says, and is done with
 * it: the contract of PQ-47, for the threads of a pool and for wq_work_one().
 * Whatever goes wrong, the key ends up in the queue, or in on_drop(). No lock is
 * held here, and none taken while no watchdog looks on and the size of the pool
 * stays.
 */
#include "config/read.h"
#include "core/span.h"
#include "error/error.h"
#include "port/park.h"
#include "port/time.h"
#include "workers/config.h"
#include "workers/pool.h"

/* What serving a key needs. */
struct service {
    wq_queue                *queue;
    const wq_workers_config *config; /* checked */
    struct wq__worker       *worker; /* whose counts and watchdog; NULL: none */
};

/* A key on loan to this thread. */
struct loan {
    wq_item *item;    /* NULL: none */
    bool     dropped; /* the drop was reported: once for each hand-out */
};

static struct service
service_of(struct wq__worker *w)
{
    return (struct service){w->pool->queue, &w->pool->config, w};
}

static void
count(const struct service *s, enum wq__count what)
{
    if (!s->worker)
        return;
    _Atomic uint64_t *at = &s->worker->counts[what];
    const uint64_t    n = atomic_load_explicit(at, memory_order_relaxed);
    atomic_store_explicit(at, n + 1, memory_order_relaxed);
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
drop(const struct service *s, struct loan *loan, unsigned retries, wq_err why)
{
    if (loan->dropped)
        return;
    loan->dropped = true;
    count(s, WQ__DROPPED);
    if (why != WQ_EGIVENUP) /* the queue has counted that one */
        (void)wq_count_drops(s->queue, 1);
    if (s->config->on_drop)
        s->config->on_drop(s->config->ctx, loan->item->key, retries, why);
}

/* The key was to be added again, with the result `err`. */
static void
note_added(const struct service *s, struct loan *loan, unsigned retries,
           wq_err err, enum wq__count what)
{
    if (err)
        drop(s, loan, retries, err);
    else
        count(s, what);
}

static wq_err
add_at_priority_0(wq_queue *q, wq_key key, bool rate_limited, int64_t after_ns)
{
    if (rate_limited)
        return wq_add_rate_limited(q, key);
    return after_ns > 0 ? wq_add_after(q, key, after_ns) : wq_add(q, key);
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
    return add_at_priority_0(q, item->key, rate_limited, after_ns);
}

static void
retry(const struct service *s, struct loan *loan)
{
    const unsigned retries = wq_num_requeues(s->queue, loan->item->key);
    const wq_err   err = add_again(s->queue, loan->item, true, 0);

    note_added(s, loan, retries, err, WQ__RETRIED);
}

static void
postpone(const struct service *s, struct loan *loan, int64_t after_ns)
{
    const unsigned retries = wq_num_requeues(s->queue, loan->item->key);

    (void)wq_forget(s->queue, loan->item->key);
    const wq_err err = add_again(s->queue, loan->item, false, after_ns);
    note_added(s, loan, retries, err, WQ__POSTPONED);
}

/* A result that is none of the enum is a retry: what the handler meant cannot be
 * known, but hardly that the key be lost. */
static void
settle(const struct service *s, struct loan *loan, wq_result result)
{
    const wq_key key = loan->item->key;

    switch (result.outcome) {
    case WQ_RESULT_DONE:
        (void)wq_forget(s->queue, key); /* without a limiter: as good */
        count(s, WQ__DONE);
        return;
    case WQ_RESULT_AFTER:
        postpone(s, loan, result.after_ns);
        return;
    case WQ_RESULT_DROP:
        drop(s, loan, wq_num_requeues(s->queue, key), WQ_EDROPPED);
        return;
    case WQ_RESULT_RETRY:
    default:
        retry(s, loan);
    }
}

/* All that is done with a key, from get to done. */
static void
serve(const struct service *s, struct loan *loan)
{
    loan->dropped = false;
    if (s->worker)
        wq__watchdog_begin(s->worker, loan->item);
    const wq_result result = s->config->handler(s->config->ctx, loan->item);
    if (s->worker)
        wq__watchdog_finish(s->worker);
    settle(s, loan, result);
}

/* wq_done() returned `err`: is the item still on loan to us? Then a wq_order or
 * a backend refused the done, and may accept it later. */
static bool
is_still_on_loan(wq_err err)
{
    return err && err != WQ_ESTATE && err != WQ_EINVAL && err != WQ_ELOST;
}

/* No further wq_done() is called: the key stays on loan. */
static void
drop_on_loan(const struct service *s, struct loan *loan, wq_err why)
{
    drop(s, loan, wq_num_requeues(s->queue, loan->item->key), why);
}

/* ---- without a pool ------------------------------------------------------ */

wq_err
wq_work_one(wq_queue *q, const wq_workers_config *config, int64_t timeout_ns)
{
    struct wq__workers_config checked;
    const struct service      s = {q, &checked.user, NULL};
    struct loan               loan;

    if (!q)
        return wq_fail(WQ_EINVAL, "wq_work_one: q is NULL");
    wq_err err = wq__workers_config_read("wq_work_one", config, &checked);
    if (!err)
        err = wq__check_not_negative("wq_work_one: timeout_ns", timeout_ns);
    if (!err)
        err = wq_get_within(q, timeout_ns, &loan.item);
    if (err)
        return err;
    serve(&s, &loan);
    err = wq_done(q, loan.item);
    if (is_still_on_loan(err))
        drop_on_loan(&s, &loan, err);
    return err;
}

/* ---- a thread of a pool -------------------------------------------------- */

/* wq_done(), repeated while it fails and the item is ours, until the pool
 * stops. */
static void
hand_back(const struct service *s, struct loan *loan)
{
    wq_err err;

    while ((err = wq_done(s->queue, loan->item)) != WQ_OK) {
        count(s, WQ__ERRORS);
        if (!is_still_on_loan(err))
            return;
        if (wq__workers_stopping(s->worker->pool)) {
            drop_on_loan(s, loan, err);
            return;
        }
        rest();
    }
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
take_turn(struct wq__worker *w, struct loan *loan)
{
    const struct service s = service_of(w);
    const wq_err err = wq_next(s.queue, w->pool->patience_ns, &loan->item);

    if (err && loan->item) {       /* it could not be given back */
        set_phase(w, WQ__WORKING); /* nobody waits for it, as for a handler */
        count(&s, WQ__ERRORS);
        if (is_still_on_loan(err))
            hand_back(&s, loan);
        loan->item = NULL;
        return true;
    }
    switch (err) {
    case WQ_OK:
        set_phase(w, WQ__WORKING);
        serve(&s, loan);
        break;
    case WQ_EINTERRUPTED: /* perhaps somebody wants us to look up */
    case WQ_ETIMEDOUT:    /* or cannot even say so */
        break;
    case WQ_ESHUTDOWN:
        return false;
    default:
        set_phase(w, WQ__LOOKING_UP);
        count(&s, WQ__ERRORS);
        rest();
    }
    return true;
}

/* May the worker go on? It has no loan if it shall leave. */
static bool
goes_on(struct wq__worker *w, struct loan *loan)
{
    if (loan->item && !wq__workers_are_called(w))
        return true;
    if (loan->item) {
        const struct service s = service_of(w);

        set_phase(w, WQ__WORKING); /* nobody waits for it, as for a handler */
        hand_back(&s, loan);
    }
    loan->item = NULL;
    return wq__workers_look_up(w);
}

void
wq__work(void *arg)
{
    struct wq__worker *w = arg;
    struct loan        loan = {0}; /* worked on, and not given back yet */

    wq__workers_current = w->pool;
    while (goes_on(w, &loan))
        if (!take_turn(w, &loan)) {
            wq__workers_leave(w);
            return;
        }
}
