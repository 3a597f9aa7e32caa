/* SPDX-License-Identifier: MIT */
/* adds.c: which add goes to the inner queue, and which one sets a deadline?
 *
 * An add without a delay goes to the inner queue; an add with a delay sets a
 * deadline of the layer. Both first pass on what is due: otherwise the core
 * would keep a deadline of the key that has passed, as the earlier of two.
 *
 * A policy for WAITING keys (wq_if_waiting) and a debounce combine the two.
 * The layer and the inner queue cannot change in one step, so such an add
 * takes one key, and changes the one or the other:
 *
 *   add without delay   of a key with a deadline here: the deadline passes now
 *                       (MERGE, REPLACE) or covers the add (IGNORE); of any
 *                       other key: the inner queue adds it
 *   delay, debounce     of a key that is READY or DIRTY in the inner queue: that
 *                       run covers the add (MERGE, debounce) or is withdrawn
 *                       for the deadline (REPLACE); of any other key: the layer
 *                       sets the deadline
 *
 * Another thread may change the key between the look and the change. Then the
 * key may run once more than needed, and never once less: REPLACE sets the
 * deadline before it withdraws the run.
 *
 * Cost: as wq.h says, plus a look-up in the inner queue for a combination.
 */
#include "core/mem.h"
#include "core/span.h"
#include "error/error.h"
#include "layer/delaying.h"
#include "layer/layer.h"

/* What the steps of one add share. */
struct add {
    struct wq__delaying  *d;
    const wq_add_options *how;
    const wq_key         *keys;
    size_t                n;
    int64_t               now; /* when it began */
    /* The keys failed: their deadlines are backoffs, and these are their
     * delays, 0 or less: none. NULL: they did not fail. */
    const int64_t *delays;
};

/* Several keys that failed have a delay each. */
static bool
has_delay(const struct add *a)
{
    return a->how->after_ns > 0 || (a->delays && a->n > 1);
}

static int64_t
delay_of(const struct add *a, size_t i)
{
    return a->delays ? a->delays[i] : a->how->after_ns;
}

static void
report(const struct add *a, wq_added what)
{
    if (a->how->results)
        a->how->results[0] = what;
}

/* ---- what is supported -------------------------------------------------- */

static wq_err
refuse(const char *why)
{
    return wq_fail(WQ_ENOTSUP, "wq_add_with: the delaying layer %s", why);
}

/* For an add that combines a deadline with the state of the inner queue. */
static wq_err
check_combination(const struct add *a)
{
    const wq_add_options *how = a->how;
    const bool            looks = how->debounce_ns ||
                       (has_delay(a) && how->waiting != WQ_IF_WAITING_IGNORE);

    if (how->waiting == WQ_IF_WAITING_KEEP && !how->debounce_ns)
        return WQ_OK;
    if (a->n > 1)
        return refuse("takes one key with debounce_ns or a `waiting` policy");
    if (looks && !WQ_HAS_VERB(a->d->layer.inner, key_info))
        return refuse("needs an inner queue with key_info for debounce_ns, "
                      "MERGE and REPLACE");
    if (has_delay(a) && how->waiting == WQ_IF_WAITING_REPLACE &&
        !WQ_HAS_VERB(a->d->layer.inner, remove))
        return refuse("needs an inner queue with remove for REPLACE");
    return WQ_OK;
}

/* Which adds can an inner queue do that has no add_with? */
static wq_err
check_plain(const struct add *a)
{
    const wq_add_options *how = a->how;
    const bool            now = !has_delay(a) && !how->debounce_ns;

    if (how->priority ||
        (now && (a->n > 1 || how->results || how->nowait || how->max_block_ns)))
        return refuse("needs an inner queue with add_with for this add");
    return WQ_OK;
}

static wq_err
check(const struct add *a)
{
    if (a->how->rate_limited)
        return refuse("has no limiter");
    if (a->how->throttle_ns)
        return refuse("has no throttle: it does not see hand-outs");
    const wq_err err = check_combination(a);
    if (err || WQ_HAS_VERB(a->d->layer.inner, add_with))
        return err;
    return check_plain(a);
}

/* ---- adds to the inner queue -------------------------------------------- */

/* The inner queue has no deadlines, so any policy is KEEP there. */
static wq_err
add_to_inner(const struct add *a)
{
    wq_queue      *inner = a->d->layer.inner;
    wq_add_options how = *a->how;

    how.after_ns = how.debounce_ns = how.max_wait_ns = 0;
    how.waiting = WQ_IF_WAITING_KEEP;
    if (WQ_HAS_VERB(inner, add_with))
        return inner->backend->add_with(inner, &how, a->keys, a->n);
    return inner->backend->add(inner, a->keys[0]);
}

/* ---- deadlines ---------------------------------------------------------- */

enum { PREPARED_ON_STACK = 16 }; /* keys that can be added without allocating */

static struct wq__how
translate(const struct add *a)
{
    struct wq__how how = {
        .kind = WQ__ADD_NOW,
        .now = a->now,
        .priority = a->how->priority,
        .waiting = a->how->waiting,
        .max_wait = a->how->max_wait_ns,
        .backoff = a->delays,
    };

    if (has_delay(a)) {
        how.kind = WQ__ADD_AT;
    } else if (a->how->debounce_ns) {
        how.kind = WQ__ADD_DEBOUNCE;
        how.span = a->how->debounce_ns;
    }
    return how;
}

/* With the lock: set the deadlines of all keys, or of none. */
static wq_err
set_deadlines(const struct add *a, struct wq__prepared *prepared)
{
    struct wq__core     *core = &a->d->core;
    const struct wq__how how = translate(a);

    for (size_t i = 0; i < a->n; i++)
        prepared[i] = (struct wq__prepared){
            .hash = wq__core_hash(core, a->keys[i]),
            .at = wq__span_add(a->now, delay_of(a, i)),
            .at_once = delay_of(a, i) <= 0,
        };
    const wq_err err =
        wq__core_add_with(core, &how, a->keys, prepared, a->n, NULL, NULL);
    for (size_t i = 0; !err && a->how->results && i < a->n; i++)
        a->how->results[i] = prepared[i].added;
    return err;
}

/* With the lock, which it releases: a deadline was set. */
static void
leave_after_deadline(struct wq__delaying *d)
{
    const bool interrupt = wq__delaying_needs_interrupt(d);

    wq__delaying_leave(d);
    if (interrupt)
        wq__delaying_interrupt_inner(d);
}

static wq_err
schedule(const struct add *a)
{
    struct wq__delaying *d = a->d;
    struct wq__prepared  at_hand[PREPARED_ON_STACK], *prepared = at_hand;
    wq_err               err = WQ_ENOMEM;

    wq__delaying_enter(d);
    if (a->n > PREPARED_ON_STACK)
        prepared = wq__mem_array(&d->mem, a->n, sizeof *prepared);
    if (prepared)
        err = set_deadlines(a, prepared);
    if (prepared && prepared != at_hand)
        wq__mem_free(&d->mem, prepared, a->n * sizeof *prepared);
    leave_after_deadline(d);
    return err;
}

/* ---- combinations: one key ---------------------------------------------- */

/* The run that the key needs in the inner queue covers the add, which may raise
 * its priority. */
static wq_err
join_run(const struct add *a, const wq_key_info *info)
{
    if (a->how->priority > info->priority)
        return add_to_inner(a);
    wq__delaying_enter(a->d);
    a->d->merged++;
    wq__delaying_leave(a->d);
    report(a, WQ_ADDED_MERGED);
    return WQ_OK;
}

/* Make sure that the key has a deadline and move it to WQ_FOREVER if it is new:
 * all that needs memory. *made: it is new. */
static wq_err
reserve_deadline(const struct add *a, int priority, bool *made)
{
    struct wq__core     *core = &a->d->core;
    const struct wq__how how = {
        .kind = WQ__ADD_AT, .now = a->now, .priority = priority};
    struct wq__prepared prepared = {.hash = wq__core_hash(core, a->keys[0]),
                                    .at = WQ_FOREVER};

    wq__delaying_enter(a->d);
    const wq_err err =
        wq__core_add_with(core, &how, a->keys, &prepared, 1, NULL, NULL);
    wq__delaying_leave(a->d);
    if (!err)
        *made = prepared.added == WQ_ADDED_SCHEDULED;
    return err;
}

/* The run of the key was withdrawn, or not (`err`). A deadline that was
 * reserved in vain is removed unless another add has moved it. */
static void
use_reserved(const struct add *a, bool made, wq_err err)
{
    struct wq__delaying *d = a->d;
    const wq_key         key = a->keys[0];
    const uint32_t       hash = wq__core_hash(&d->core, key);

    wq__delaying_enter(d);
    if (!err) {
        wq__core_replace_deadline(&d->core, key, hash,
                                  wq__span_add(a->now, delay_of(a, 0)),
                                  a->delays);
        d->deferred++;
        d->merged++;
    } else if (made && wq__core_deadline(&d->core, key, hash) == WQ_FOREVER) {
        (void)wq__core_cancel(&d->core, key, hash, a->now);
    }
    leave_after_deadline(d);
}

/* Withdraw the run that the key needs in the inner queue, and set a deadline
 * instead. WQ_ENOTFOUND: there was no run, and nothing has changed. */
static wq_err
defer(const struct add *a, const wq_key_info *info)
{
    const int priority =
        info->priority > a->how->priority ? info->priority : a->how->priority;
    bool   made = false;
    wq_err err = reserve_deadline(a, priority, &made);

    if (err)
        return err;
    err = a->d->layer.inner->backend->remove(a->d->layer.inner, a->keys[0]);
    use_reserved(a, made, err);
    if (!err)
        report(a, WQ_ADDED_LATER);
    return err == WQ_ESTATE ? WQ_ENOTFOUND : err;
}

static wq_err
schedule_combined(const struct add *a)
{
    wq_queue   *inner = a->d->layer.inner;
    wq_key_info info = {.size = sizeof info};

    wq_err err = inner->backend->key_info(inner, a->keys[0], &info);
    if (err)
        return err;
    if (!(info.states & (WQ_STATE_READY | WQ_STATE_DIRTY)))
        return schedule(a);
    if (a->how->waiting != WQ_IF_WAITING_REPLACE)
        return join_run(a, &info);
    err = defer(a, &info);
    return err == WQ_ENOTFOUND ? schedule(a) : err;
}

static bool
has_deadline(struct wq__delaying *d, wq_key key)
{
    return wq__core_states(&d->core, key, wq__core_hash(&d->core, key)) &
           WQ__WAITING;
}

/* A key with a deadline here that passes now becomes due, not READY at once:
 * the inner queue may be full, and a key that is known is never refused. */
static wq_err
add_combined(const struct add *a)
{
    struct wq__delaying *d = a->d;
    struct wq__prepared  prepared;
    wq_added             what = WQ_ADDED_NEW;

    wq__delaying_enter(d);
    const bool   waits = has_deadline(d, a->keys[0]);
    const wq_err err = waits ? set_deadlines(a, &prepared) : WQ_OK;
    wq__delaying_leave(d);
    if (!waits)
        return add_to_inner(a);
    if (err || a->how->waiting == WQ_IF_WAITING_IGNORE)
        return err;
    (void)wq__delaying_pass_on_key(d, a->keys[0], &what);
    report(a, what);
    return WQ_OK;
}

/* ---- interface ---------------------------------------------------------- */

static void
count_retries(const struct add *a)
{
    wq__delaying_enter(a->d);
    a->d->retries += a->n;
    wq__delaying_leave(a->d);
}

static wq_err
add_all(const struct add *a)
{
    const bool keep = a->how->waiting == WQ_IF_WAITING_KEEP;

    if (a->how->debounce_ns)
        return schedule_combined(a);
    if (!has_delay(a))
        return keep ? add_to_inner(a) : add_combined(a);
    return keep || a->how->waiting == WQ_IF_WAITING_IGNORE
               ? schedule(a)
               : schedule_combined(a);
}

/* `retry`: counts as one, even without a delay [M-08]. */
static wq_err
add(struct add *a, bool retry)
{
    wq_err err = check(a);

    if (err)
        return err;
    a->now = a->d->clock->now(a->d->clock);
    (void)wq__delaying_pass_on(a->d);
    err = add_all(a);
    if (!err && retry)
        count_retries(a);
    return err;
}

wq_err
wq__delaying_add(wq_queue *q, wq_key key)
{
    struct wq__delaying *d = wq__delaying_begin(q);

    (void)wq__delaying_pass_on(d);
    return wq__delaying_end(d,
                            d->layer.inner->backend->add(d->layer.inner, key));
}

static wq_err
add_after_0(struct wq__delaying *d, wq_key key)
{
    const wq_add_options plain = {.size = sizeof plain};
    const struct add     a = {.d = d, .how = &plain, .keys = &key, .n = 1};

    (void)wq__delaying_pass_on(d);
    const wq_err err = d->layer.inner->backend->add(d->layer.inner, key);
    if (!err)
        count_retries(&a);
    return err;
}

wq_err
wq__delaying_add_after(wq_queue *q, wq_key key, int64_t delay_ns)
{
    struct wq__delaying *d = wq__delaying_begin(q);
    const wq_add_options how = {.size = sizeof how, .after_ns = delay_ns};
    struct add           a = {.d = d, .how = &how, .keys = &key, .n = 1};

    return wq__delaying_end(d,
                            delay_ns > 0 ? add(&a, true) : add_after_0(d, key));
}

wq_err
wq__delaying_add_with(wq_queue *q, const wq_add_options *how,
                      const wq_key *keys, size_t n)
{
    struct wq__delaying *d = wq__delaying_begin(q);
    struct add           a = {.d = d, .how = how, .keys = keys, .n = n};

    if (wq_shutting_down(d->layer.inner)) /* also if the key needs no add */
        return wq__delaying_end(d, WQ_ESHUTDOWN);
    return wq__delaying_end(d, add(&a, has_delay(&a)));
}

/* Of several keys, those without a delay are due at once: the inner queue and
 * the layer cannot add keys in one step. */
wq_err
wq__delaying_add_failed(wq_queue *q, const wq_add_options *options,
                        const wq_key *keys, const int64_t *delays, size_t n)
{
    struct wq__delaying *d = wq__delaying_begin(q);
    wq_add_options       how = *options;
    struct add           a = {
                  .d = d, .how = &how, .keys = keys, .n = n, .delays = delays};

    how.rate_limited = false;
    how.after_ns = delays[0];
    const wq_err err = add(&a, true);
    if (!err && n > 1)
        (void)wq__delaying_pass_on(d);
    return wq__delaying_end(d, err);
}
