/* SPDX-License-Identifier: MIT */
/* limited.c: what has the limiter to say about an add?
 *
 * Limiters are the user's, perhaps, and are asked without the lock. So an add
 * takes three steps: look which keys the queue's policy settles without asking;
 * ask for the others; add them all. Between the steps other threads may do the
 * same with the same key; what was asked in vain is taken back.
 */
#include "core/span.h"
#include "memory/gate.h"
#include "memory/report.h"

/* ---- the policy --------------------------------------------------------- */

/* With the lock: what is settled without the limiter. */
static void
ask_policy(struct wq__memory *m, wq_key key, struct wq__pick *pick)
{
    const unsigned states = wq__core_states(&m->core, key, pick->hash);

    if (m->retry_policy & WQ_RETRY_FAILURES_ONLY && !(states & WQ__HELD))
        pick->at_once = true;
    else if (m->retry_policy & WQ_RETRY_ONCE && states & WQ__BACKOFF)
        pick->skip = true;
    else
        pick->asked = true;
}

static wq_err
ask_policy_for_all(struct wq__memory *m, const wq_key *keys,
                   struct wq__pick *picks, size_t n)
{
    if (!m->retry_policy) {
        for (size_t i = 0; i < n; i++)
            picks[i].asked = true;
        return WQ_OK;
    }
    wq__gate_enter(m);
    const wq_err err = wq__gate_catch_up(m);
    for (size_t i = 0; !err && i < n; i++)
        ask_policy(m, keys[i], &picks[i]);
    wq__gate_leave(m);
    return err;
}

/* ---- the limiter -------------------------------------------------------- */

/* What was asked for the first `n` was asked in vain. */
static void
undo(struct wq__memory *m, const wq_key *keys, const struct wq__pick *picks,
     size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (picks[i].asked)
            wq__retry_undo(&m->retry, keys[i]);
}

static wq_err
ask_limiter(struct wq__memory *m, wq_key key, struct wq__pick *pick,
            int64_t after_ns, int64_t now)
{
    int64_t      delay_ns;
    const wq_err err = wq__retry_delay(&m->retry, key, &delay_ns);

    if (err)
        return err;
    pick->delay = delay_ns;
    if (after_ns != 0 && after_ns < delay_ns) /* 0: none was given */
        delay_ns = after_ns;
    pick->at_once = delay_ns <= 0;
    pick->at = wq__span_add(now, delay_ns);
    return WQ_OK;
}

static wq_err
ask_limiter_for_all(struct wq__memory *m, const wq_key *keys,
                    struct wq__pick *picks, size_t n, int64_t after_ns,
                    int64_t now)
{
    for (size_t i = 0; i < n; i++) {
        if (!picks[i].asked)
            continue;
        const wq_err err = ask_limiter(m, keys[i], &picks[i], after_ns, now);
        if (err) {
            undo(m, keys, picks, i);
            return err;
        }
    }
    return WQ_OK;
}

/* Another thread may have been here between our look and our add: then the key
 * was waiting by a backoff already. */
static void
undo_what_was_kept(struct wq__memory *m, const wq_key *keys,
                   struct wq__pick *picks, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (picks[i].asked && picks[i].backoff &&
            (picks[i].added == WQ_ADDED_KEPT ||
             picks[i].added == WQ_ADDED_RAISED)) {
            wq__retry_undo(&m->retry, keys[i]);
            picks[i].asked = false;
        }
}

/* What was asked, and not in vain. */
static void
report_delays(struct wq__memory *m, const struct wq__pick *picks, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (picks[i].asked)
            wq__report_limited(m, picks[i].delay);
}

/* ---- what is offered ---------------------------------------------------- */

wq_err
wq__memory_add_limited(struct wq__memory *m, const wq_add_options *options,
                       const wq_key *keys, struct wq__pick *picks, size_t n)
{
    if (wq__memory_shutting_down(&m->base))
        return WQ_ESHUTDOWN;
    wq_err err = ask_policy_for_all(m, keys, picks, n);
    if (err)
        return err;
    const int64_t now = m->clock->now(m->clock);
    err = ask_limiter_for_all(m, keys, picks, n, options->after_ns, now);
    if (err == WQ_EGIVENUP)
        (void)wq__memory_count_drops(&m->base, 1);
    if (err)
        return err;

    const struct wq__how how = {
        .kind = WQ__ADD_AT,
        .now = now,
        .priority = options->priority,
        .waiting = options->waiting,
        .backoff = true,
        .respect = m->retry_policy & WQ_RETRY_FAILURES_ONLY,
    };
    err = wq__memory_add_picks(m, &how, keys, picks, n,
                               wq__memory_block_time(options));
    if (err) {
        undo(m, keys, picks, n);
        return err;
    }
    if (m->retry_policy & WQ_RETRY_ONCE)
        undo_what_was_kept(m, keys, picks, n);
    report_delays(m, picks, n);
    return WQ_OK;
}

wq_err
wq__memory_add_rate_limited(wq_queue *q, wq_key key)
{
    const wq_add_options options = {.rate_limited = true};

    return wq__memory_add_with(q, &options, &key, 1);
}

wq_err
wq__memory_forget(wq_queue *q, wq_key key)
{
    wq_limiter_forget(wq__memory_of(q)->retry.limiter, key);
    return WQ_OK;
}

wq_err
wq__memory_num_requeues(wq_queue *q, wq_key key, unsigned *out)
{
    *out = wq_limiter_num_requeues(wq__memory_of(q)->retry.limiter, key);
    return WQ_OK;
}

wq_err
wq__memory_count_drops(wq_queue *q, uint64_t n)
{
    struct wq__memory *m = wq__memory_of(q);

    atomic_fetch_add_explicit(&m->dropped, n, memory_order_relaxed);
    wq__gate_tell(m);
    return WQ_OK;
}
