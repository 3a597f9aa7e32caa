/* SPDX-License-Identifier: MIT */
/* work.c: what does a worker do with a key?
 *
 * It gets the key, calls the handler, and ends the loan with the result: the
 * contract of PQ-47, for the threads of a pool and for wq_work_one(). If the
 * queue cannot end the loan now, a worker repeats it. A key that is given up is
 * reported to on_drop(). Takes no lock of the pool, unless there is a watchdog,
 * the pool is resized, or the queue fails.
 *
 * The loan of a handler that returned "done" ends together with the next get,
 * in one step. All other loans end at once: after a step with a get, which may
 * block, their reports would come late, and WQ_ESHUTDOWN could mean either.
 */
#include <string.h>

#include <wq/backend.h>

#include "config/read.h"
#include "core/mem.h"
#include "error/error.h"
#include "workers/config.h"
#include "workers/pool.h"

#define MS INT64_C(1000000)

/* The time between two attempts: short for people, long for processors. It
 * doubles while a store fails, so that many workers do not load it. */
#define PAUSE_NS (10 * MS)
#define PAUSE_MAX_NS (1000 * MS)

/* A key up to this length is copied without an allocation. */
enum { KEY_AT_HAND = 256 };

/* What serving a key needs. */
struct service {
    wq_queue                *queue;
    const wq_workers_config *config; /* checked */
    const wq_allocator      *mem;
    struct wq__worker *worker; /* has the counts and the watchdog; NULL: none */
};

static struct service
service_of(struct wq__worker *w)
{
    return (struct service){w->pool->queue, &w->pool->config, &w->pool->mem, w};
}

static void
count_by(const struct service *s, enum wq__count what, int by)
{
    if (!s->worker)
        return;
    _Atomic uint64_t *at = &s->worker->counts[what];
    const uint64_t    n = atomic_load_explicit(at, memory_order_relaxed);
    atomic_store_explicit(at, n + (uint64_t)by, memory_order_relaxed);
}

static void
count(const struct service *s, enum wq__count what)
{
    count_by(s, what, 1);
}

/* ---- drops ---------------------------------------------------------------- */

/* What on_drop() is told, if the key is dropped. Written down while the key is
 * on loan: afterwards its bytes are gone. */
struct report {
    wq_key   key;
    unsigned retries;
    char    *copy; /* of the key; `at_hand`, or allocated */
    char     at_hand[KEY_AT_HAND];
};

static bool
can_be_reported(const struct service *s, wq_result result)
{
    return s->config->on_drop && result.outcome != WQ_RESULT_DONE;
}

/* WQ_ENOMEM: no memory for the copy. */
static wq_err
prepare_report(const struct service *s, const wq_item *item, struct report *r)
{
    const size_t len = item->key.len;

    r->copy =
        len < sizeof r->at_hand ? r->at_hand : wq__mem_alloc(s->mem, len + 1);
    if (!r->copy)
        return WQ_ENOMEM;
    memcpy(r->copy, item->key.data, len);
    r->copy[len] = '\0';
    r->key = (wq_key){r->copy, len};
    r->retries = wq_num_requeues(s->queue, item->key);
    return WQ_OK;
}

static void
discard_report(const struct service *s, struct report *r)
{
    if (r->copy != r->at_hand)
        wq__mem_free(s->mem, r->copy, r->key.len + 1);
}

static void
report_drop(const struct service *s, const struct report *r, wq_err why)
{
    s->config->on_drop(s->config->ctx, r->key, r->retries, why);
}

/* ---- what the result says ------------------------------------------------ */

/* wq_finish() returned `err`: has the loan ended, or was there none? Otherwise
 * the item is still on loan, and another attempt may succeed. */
static bool
ends_loan(wq_err err)
{
    switch (err) {
    case WQ_OK:
    case WQ_EGIVENUP:
    case WQ_EDROPPED:
    case WQ_ESHUTDOWN:
    case WQ_ELOST:
    case WQ_ESTATE:
    case WQ_EINVAL:
        return true;
    default:
        return false;
    }
}

/* The error for on_drop(); WQ_OK: the key was not dropped. */
static wq_err
why_dropped(wq_result result, wq_err err)
{
    if (!err)
        return result.outcome == WQ_RESULT_DROP ? WQ_EDROPPED : WQ_OK;
    return err == WQ_EGIVENUP || err == WQ_EDROPPED || err == WQ_ESHUTDOWN
               ? err
               : WQ_OK;
}

/* An unknown outcome is a retry: the key must not be lost. */
static enum wq__count
count_of(wq_result result)
{
    switch (result.outcome) {
    case WQ_RESULT_DONE:
        return WQ__DONE;
    case WQ_RESULT_AFTER:
        return WQ__POSTPONED;
    case WQ_RESULT_DROP:
        return WQ__DROPPED;
    case WQ_RESULT_BACK:
        return WQ__RETURNED;
    case WQ_RESULT_BURY:
        return WQ__BURIED;
    case WQ_RESULT_RETRY:
    default:
        return WQ__RETRIED;
    }
}

/* Count a handler that returned `result`, once its loan has ended [PW-21]. */
static void
count_ended(const struct service *s, wq_result result, wq_err err)
{
    if (!err)
        count(s, count_of(result));
    else if (why_dropped(result, err))
        count(s, WQ__DROPPED);
    else
        count(s, WQ__LOST);
    if (err == WQ_ESTATE || err == WQ_EINVAL)
        count(s, WQ__ERRORS);
}

/* Does the queue refuse to run the key again, now and later? A backend without
 * delays or limits does. */
static bool
is_unsupported(wq_result result, wq_err err)
{
    return (err == WQ_ENOTSUP || err == WQ_EINVAL) &&
           result.outcome != WQ_RESULT_DONE && result.outcome != WQ_RESULT_DROP;
}

/* Try once to end the loan; count it if it has ended. *why: the key was dropped
 * for this reason; WQ_OK: it was not. */
static wq_err
finish(const struct service *s, wq_item *item, wq_result result, wq_err *why)
{
    wq_err err = wq_finish(s->queue, item, result);

    *why = why_dropped(result, err);
    if (is_unsupported(result, err)) {
        const wq_err unsupported = err;

        result = wq_result_drop();
        err = wq_finish(s->queue, item, result);
        *why = err ? WQ_OK : unsupported;
    }
    if (ends_loan(err))
        count_ended(s, result, err);
    return err;
}

/* The same, with a call of on_drop() if the key was dropped. WQ_OK: the loan
 * has ended as the result says, or the key was dropped. */
static wq_err
settle(const struct service *s, wq_item *item, wq_result result)
{
    struct report report;
    wq_err        why;

    if (!can_be_reported(s, result)) {
        const wq_err err = finish(s, item, result, &why);
        return why ? WQ_OK : err;
    }
    wq_err err = prepare_report(s, item, &report);
    if (err)
        return err;
    err = finish(s, item, result, &why);
    if (why)
        report_drop(s, &report, why);
    discard_report(s, &report);
    return why ? WQ_OK : err;
}

/* The last attempt to end the loan returned `err`: the item stays on loan. If
 * the store did not answer, the hold ends with the process, and another worker
 * gets the key: it is not lost. Otherwise the key is dropped. */
static void
leave_on_loan(const struct service *s, const wq_item *item, wq_err err)
{
    if (err == WQ_EIO || err == WQ_EAWAY)
        return;
    count(s, WQ__DROPPED);
    (void)wq_count_drops(s->queue, 1);
    if (s->config->on_drop)
        s->config->on_drop(s->config->ctx, item->key,
                           wq_num_requeues(s->queue, item->key), err);
}

static wq_result
call_handler(const struct service *s, const wq_item *item)
{
    if (s->worker)
        wq__watchdog_begin(s->worker, item);
    const wq_result result = s->config->handler(s->config->ctx, item);
    if (s->worker)
        wq__watchdog_finish(s->worker);
    return result;
}

/* ---- without a pool ------------------------------------------------------ */

wq_err
wq_work_one(wq_queue *q, const wq_workers_config *config, int64_t timeout_ns)
{
    struct wq__workers_config checked;
    const struct service      s = {q, &checked.user, &checked.allocator, NULL};
    wq_item                  *item;

    if (!q)
        return wq_fail(WQ_EINVAL, "wq_work_one: q is NULL");
    wq_err err = wq__workers_config_read("wq_work_one", config, &checked);
    if (!err)
        err = wq__check_not_negative("wq_work_one: timeout_ns", timeout_ns);
    if (!err)
        err = wq_get_within(q, timeout_ns, &item);
    if (err)
        return err;
    err = settle(&s, item, call_handler(&s, item));
    if (!ends_loan(err))
        leave_on_loan(&s, item, err);
    return err;
}

/* ---- a thread of a pool -------------------------------------------------- */

static void
set_phase(struct wq__worker *w, enum wq__worker_phase phase)
{
    /* Only GETTING needs an order with the epoch (pool.h). */
    atomic_store_explicit(&w->phase, phase, memory_order_release);
}

/* An attempt to end the loan returned `err`. Repeat it until it succeeds or the
 * pool stops; then once more. A resize does not wait for it. */
static void
repeat_settling(const struct service *s, wq_item *item, wq_result result,
                wq_err err)
{
    int64_t pause_ns = PAUSE_NS;
    bool    stopping = false;

    set_phase(s->worker, WQ__WORKING);
    while (!ends_loan(err)) {
        count(s, WQ__ERRORS);
        if (stopping) {
            leave_on_loan(s, item, err);
            return;
        }
        stopping = wq__workers_await_stop(s->worker->pool, pause_ns);
        pause_ns = pause_ns < PAUSE_MAX_NS / 2 ? pause_ns * 2 : PAUSE_MAX_NS;
        err = settle(s, item, result);
    }
}

/* Call the handler, and end the loan unless the result is "done". */
static void
serve(const struct service *s, wq_item **item)
{
    const wq_result result = call_handler(s, *item);

    if (result.outcome == WQ_RESULT_DONE)
        return;
    const wq_err err = settle(s, *item, result);
    if (!ends_loan(err))
        repeat_settling(s, *item, result, err);
    *item = NULL;
}

/* End the loan of *item as done, and get the next one. As the verb next_with:
 * wq_next_with() does not say whether the item was lost. */
static wq_err
done_and_get(wq_queue *q, int64_t timeout_ns, wq_item **item)
{
    if (WQ_HAS_VERB(q, next_with))
        return q->backend->next_with(q, wq_result_done(), timeout_ns, item);
    const wq_err err = wq_finish(q, *item, wq_result_done());
    if (err)
        return err;
    *item = NULL;
    return wq_get_within(q, timeout_ns, item);
}

/* The same for a worker. True: the loan has ended, or there was none; *err is
 * that of the get. The item is counted before, since the get may block. */
static bool
next(const struct service *s, wq_item **item, wq_err *err)
{
    const int64_t timeout_ns = s->worker->pool->get_timeout_ns;

    if (!*item) {
        *err = wq_get_within(s->queue, timeout_ns, item);
        return true;
    }
    count(s, WQ__DONE);
    *err = done_and_get(s->queue, timeout_ns, item);
    if (!*err || (!*item && *err != WQ_ELOST))
        return true;
    count_by(s, WQ__DONE, -1);
    return false;
}

/* The loan of *item could not be ended as done. */
static void
settle_failed_done(const struct service *s, wq_item **item, wq_err err)
{
    if (ends_loan(err))
        count_ended(s, wq_result_done(), err);
    else
        repeat_settling(s, *item, wq_result_done(), err);
    *item = NULL;
}

/* End the loan, if there is one; then get a key and serve it. False: there will
 * be no more keys. */
static bool
serve_next(struct wq__worker *w, wq_item **item)
{
    const struct service s = service_of(w);
    wq_err               err;

    if (!next(&s, item, &err)) {
        settle_failed_done(&s, item, err);
        return true;
    }
    switch (err) {
    case WQ_OK:
        set_phase(w, WQ__WORKING);
        serve(&s, item);
        break;
    case WQ_EINTERRUPTED: /* the epoch may have advanced */
    case WQ_ETIMEDOUT:    /* ... in a backend without interrupts */
        break;
    case WQ_ESHUTDOWN:
        return false;
    default:
        set_phase(w, WQ__CHECKING);
        count(&s, WQ__ERRORS);
        (void)wq__workers_await_stop(w->pool, PAUSE_NS);
    }
    return true;
}

/* May the worker go on? If not, its loan has ended. */
static bool
may_go_on(struct wq__worker *w, wq_item **item)
{
    if (*item && !wq__workers_epoch_moved(w))
        return true;
    if (*item) {
        const struct service s = service_of(w);

        set_phase(w, WQ__WORKING); /* a resize does not wait for it */
        const wq_err err = settle(&s, *item, wq_result_done());
        if (!ends_loan(err))
            repeat_settling(&s, *item, wq_result_done(), err);
    }
    *item = NULL;
    return wq__workers_check_epoch(w);
}

void
wq__work(void *arg)
{
    struct wq__worker *w = arg;
    wq_item *item = NULL; /* its handler returned "done"; it is on loan */

    wq__workers_current = w->pool;
    while (may_go_on(w, &item))
        if (!serve_next(w, &item)) {
            wq__workers_exit(w);
            return;
        }
}
