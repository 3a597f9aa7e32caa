/* SPDX-License-Identifier: MIT */
/* limited.c: how does the limiter delay an add?
 *
 * A limiter may be user code, so it is called without the lock. A rate-limited
 * add takes three steps: find the keys for which wq_config.retry decides
 * without the limiter; call the limiter for the others; add all of them.
 * Between the steps other threads may add the same key; the add then undoes its
 * call of the limiter.
 */
#include "core/limited.h"
#include "memory/gate.h"
#include "memory/report.h"

/* ---- the policy --------------------------------------------------------- */

static wq_err
apply_policy_to_all(struct wq__memory *m, const wq_key *keys,
                    struct wq__prepared *prepared, size_t n)
{
    if (!m->retry_policy) {
        for (size_t i = 0; i < n; i++)
            prepared[i].limited = true;
        return WQ_OK;
    }
    wq__gate_enter(m);
    const wq_err err = wq__gate_catch_up(m);
    for (size_t i = 0; !err && i < n; i++)
        wq__limited_decide(m->retry_policy,
                           wq__core_states(&m->core, keys[i], prepared[i].hash),
                           &prepared[i]);
    wq__gate_leave(m);
    return err;
}

/* ---- the limiter -------------------------------------------------------- */

/* Undo the calls of the limiter for the first `n` keys. */
static void
undo(struct wq__memory *m, const wq_key *keys,
     const struct wq__prepared *prepared, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (prepared[i].limited)
            wq__retry_undo(&m->retry, keys[i]);
}

static wq_err
call_limiter_for_all(struct wq__memory *m, const wq_key *keys,
                     struct wq__prepared *prepared, size_t n, int64_t after_ns,
                     int64_t now)
{
    for (size_t i = 0; i < n; i++) {
        if (!prepared[i].limited)
            continue;
        int64_t      delay_ns;
        const wq_err err = wq__retry_delay(&m->retry, keys[i], &delay_ns);
        if (err) {
            undo(m, keys, prepared, i);
            return err;
        }
        wq__limited_set(&prepared[i], delay_ns, after_ns, now);
    }
    return WQ_OK;
}

/* Another thread may have added the key with a backoff before we did: then our
 * call of the limiter was in vain. */
static void
undo_what_was_kept(struct wq__memory *m, const wq_key *keys,
                   struct wq__prepared *prepared, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (wq__limited_in_vain(&prepared[i])) {
            wq__retry_undo(&m->retry, keys[i]);
            prepared[i].limited = false;
        }
}

/* Report the delays that were used. */
static void
report_delays(struct wq__memory *m, const struct wq__prepared *prepared,
              size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (prepared[i].limited)
            wq__report_duration(m, WQ__REPORT_LIMITED, prepared[i].delay);
}

/* ---- interface ---------------------------------------------------------- */

wq_err
wq__memory_add_limited(struct wq__memory *m, const wq_add_options *options,
                       const wq_key *keys, struct wq__prepared *prepared,
                       size_t n)
{
    if (wq__memory_shutting_down(&m->base))
        return WQ_ESHUTDOWN;
    wq_err err = apply_policy_to_all(m, keys, prepared, n);
    if (err)
        return err;
    const int64_t now = m->clock->now(m->clock);
    err = call_limiter_for_all(m, keys, prepared, n, options->after_ns, now);
    if (err == WQ_EGIVENUP)
        (void)wq__memory_count_drops(&m->base, 1);
    if (err)
        return err;

    const struct wq__how how = wq__limited_how(options, m->retry_policy, now);
    err = wq__memory_add_prepared(m, &how, keys, prepared, n,
                                  wq__memory_block_time(options));
    if (err) {
        undo(m, keys, prepared, n);
        return err;
    }
    if (m->retry_policy & WQ_RETRY_ONCE)
        undo_what_was_kept(m, keys, prepared, n);
    report_delays(m, prepared, n);
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
    wq__gate_report(m);
    return WQ_OK;
}
