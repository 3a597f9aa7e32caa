/* SPDX-License-Identifier: MIT */
/* memory_store.c: the verbs of an engine of the memory store; see
 * memory_store.h.
 *
 * Every verb takes the lock, acts, wakes the engines that sleep if there is
 * news for them (publish()), and releases the lock.
 */
#include "support/store_inside.h"

#include "core/mem.h"
#include "core/span.h"
#include "limit/limiter.h"
#include "shared/op.h"

static struct memory_engine *
engine_of(struct wq__engine *e)
{
    return (struct memory_engine *)(void *)e;
}

/* ---- telling others ------------------------------------------------------ */

/* Light the beacon of an engine if another session has changed the store. */
static void
show_change(struct memory_engine *e)
{
    if (!e->beacon.open)
        return;
    if (e->changed)
        wq__beacon_light(&e->beacon, WQ__LIT_BY_QUEUE);
    else
        wq__beacon_dim(&e->beacon, WQ__LIT_BY_QUEUE);
}

/* Is there less to wait for than before: a drain may be over? */
static bool
became_idle(struct memory_store *store)
{
    const bool ready = wq__core_len(&store->core) != 0;
    const bool held = store->core.loans.live != 0;
    const bool idle = (store->ready && !ready) || (store->held && !held);

    store->ready = ready;
    store->held = held;
    return idle;
}

/* `by` has changed the store: if a sleeper of another session must know, wake
 * it. */
static void
publish(struct memory_engine *by)
{
    struct memory_store *store = by->store;
    const int64_t        due_ns = wq__core_first_deadline(&store->core);

    store->news |= due_ns < store->due_ns;
    store->news |= became_idle(store);
    store->due_ns = due_ns;
    if (!store->news)
        return;
    store->news = false;
    for (struct memory_engine *e = store->engines; e; e = e->next) {
        if (e == by)
            continue; /* its shell knows */
        e->changed = true;
        show_change(e);
        wq__wakeup_broadcast(&e->wakeup);
    }
}

/* ---- calls --------------------------------------------------------------- */

/* End the session of an engine, and wake up others as its end would. */
static void
end_now(struct memory_engine *e)
{
    if (!e->lives)
        return;
    store_end_session(e->store, e->session);
    e->store->news = true;
}

/* Take the lock, and find out what becomes of the call. */
static struct store_effect
begin_call(struct memory_engine *e, enum store_call call)
{
    wq__lock_take(&e->store->lock);
    const struct store_effect effect = store_next_effect(e, call);
    if (effect.end_session)
        end_now(e);
    return effect;
}

static wq_err
end_call(struct memory_engine *e, const struct store_effect *effect, wq_err err)
{
    wq_clock *clock = e->store->clock;

    publish(e);
    if (!effect->err && err != WQ_ELOST)
        e->unreported = false;
    wq__lock_release(&e->store->lock);
    if (effect->jump_ns)
        wq_clock_fake_step(clock, effect->jump_ns);
    return effect->err ? effect->err : err;
}

/* Sessions that have ended, this one included, give back their keys. True: a
 * new session has begun. If the reply is lost, the shell does not know of the
 * new session, nor from when on its time counts: then the next call begins
 * another one. */
static bool
settle_sessions(struct memory_engine *e, int64_t now, struct wq__did *did)
{
    if (e->lives && e->unreported) {
        store_release(e, NULL, 0);
        store_end_session(e->store, e->session);
    }
    store_end_expired(e->store, now);
    did->expired += store_give_back(e, now);
    e->unreported = !e->lives;
    if (!e->lives)
        store_begin_session(e, now);
    return e->unreported;
}

static void
pass_deadlines(struct memory_store *store, int64_t now)
{
    const size_t before = wq__core_len(&store->core);

    wq__core_promote(&store->core, now);
    store->news |= wq__core_len(&store->core) > before;
}

static void
run_batch(struct memory_engine *e, struct wq__op *batch, struct wq__pulse *out)
{
    struct memory_store   *store = e->store;
    const int64_t          now = store->clock->now(store->clock);
    const struct wq__tally before = store->core.tally;
    struct wq__did         did = {0};

    e->changed = false;
    show_change(e);
    const bool lost = settle_sessions(e, now, &did);
    pass_deadlines(store, now);
    store_carry_out(e, batch, now, &did);
    wq__did_count(&did, &before, &store->core.tally);
    publish(e);
    *out = (struct wq__pulse){
        .did = did,
        .ready = wq__core_len(&store->core),
        .held = store->core.loans.live,
        .dirty = store->core.dirty,
        .next_ns = store_next_ns(e, now),
        .session_lost = lost,
    };
}

/* The batch has its effect, but its results go nowhere. */
static void
run_unheard(struct memory_engine *e, const struct wq__op *batch)
{
    struct wq__pulse pulse;
    size_t           n;
    struct wq__op   *copy = store_copy_batch(e->store, batch, &n);

    if (!copy)
        return; /* then it had no effect: WQ_EIO means either */
    run_batch(e, n ? copy : NULL, &pulse); /* a look has no operations */
    e->changed = true;                     /* the shell has not heard of it */
    show_change(e);
    store_free_batch(e->store, copy, n);
}

static wq_err
memory_run(struct wq__engine *base, struct wq__op *batch,
           struct wq__pulse *pulse)
{
    struct memory_engine     *e = engine_of(base);
    const struct store_effect effect = begin_call(e, STORE_RUN);

    if (!effect.err)
        run_batch(e, batch, pulse);
    else if (effect.happens)
        run_unheard(e, batch);
    return end_call(e, &effect, WQ_OK);
}

static wq_err
renew_session(struct memory_engine *e)
{
    struct memory_store *store = e->store;
    const int64_t        now = store->clock->now(store->clock);

    store_end_expired(store, now);
    if (!e->lives || e->unreported)
        return WQ_ELOST;
    e->session->until_ns = wq__span_add(now, e->base.lease_ns);
    return WQ_OK;
}

static wq_err
memory_renew(struct wq__engine *base)
{
    struct memory_engine     *e = engine_of(base);
    const struct store_effect effect = begin_call(e, STORE_RENEW);
    const wq_err              err = effect.happens ? renew_session(e) : WQ_OK;

    return end_call(e, &effect, err);
}

static bool
reconcile(struct memory_engine *e, const struct wq__known *known, size_t n)
{
    const int64_t  now = e->store->clock->now(e->store->clock);
    struct wq__did did = {0};
    const bool     lost = settle_sessions(e, now, &did);

    store_release(e, known, n);
    (void)store_give_back(e, now);
    return lost;
}

static wq_err
memory_reconcile(struct wq__engine *base, const struct wq__known *known,
                 size_t n, bool *lost)
{
    struct memory_engine     *e = engine_of(base);
    const struct store_effect effect = begin_call(e, STORE_RECONCILE);
    const bool                began = effect.happens && reconcile(e, known, n);

    if (!effect.err)
        *lost = began;
    return end_call(e, &effect, WQ_OK);
}

/* ---- waiting ------------------------------------------------------------- */

static void
memory_wait(struct wq__engine *base, int64_t until_ns)
{
    struct memory_engine *e = engine_of(base);
    struct memory_store  *store = e->store;

    wq__lock_take(&store->lock);
    while (!e->kicked && !e->changed &&
           store->clock->now(store->clock) < until_ns)
        wq__wakeup_wait(&e->wakeup, &store->lock, store->clock, until_ns);
    e->kicked = false;
    wq__lock_release(&store->lock);
}

static void
memory_kick(struct wq__engine *base)
{
    struct memory_engine *e = engine_of(base);

    wq__lock_take(&e->store->lock);
    e->kicked = true;
    wq__wakeup_broadcast(&e->wakeup);
    wq__lock_release(&e->store->lock);
}

static int
memory_fd(struct wq__engine *base)
{
    struct memory_engine *e = engine_of(base);

    wq__lock_take(&e->store->lock);
    if (!e->beacon.open && !wq__beacon_init(&e->beacon, WQ__TIMER_NONE))
        show_change(e);
    const int fd = wq__beacon_fd(&e->beacon);
    wq__lock_release(&e->store->lock);
    return fd;
}

/* ---- life ---------------------------------------------------------------- */

static void
free_store(struct memory_store *store)
{
    while (store->sessions) /* of engines that were closed in a child */
        store_end_session(store, store->sessions);
    if (store->limiter) {
        wq__limiter_unclaim(store->limiter);
        wq_limiter_destroy(store->limiter);
    }
    store_dead_fini(store);
    wq__core_fini(&store->core);
    wq__lock_fini(&store->lock);

    const wq_allocator mem = store->mem;
    wq__mem_free(&mem, store, sizeof *store);
}

/* An engine, or the test, does not use the store any more. Releases the lock if
 * `locked`. */
static void
drop_reference(struct memory_store *store, bool locked)
{
    const bool last = --store->refs == 0;

    if (locked)
        wq__lock_release(&store->lock);
    if (last)
        free_store(store);
}

static void
delist(struct memory_engine *e)
{
    struct memory_engine **at = &e->store->engines;

    while (*at != e)
        at = &(*at)->next;
    *at = e->next;
}

/* The keys of the session become READY at once. */
static void
end_session_of(struct memory_engine *e)
{
    const int64_t now = e->store->clock->now(e->store->clock);

    store_end_expired(e->store, now);
    if (e->lives) {
        store_release(e, NULL, 0);
        store_end_session(e->store, e->session);
    }
    (void)store_give_back(e, now);
    publish(e);
}

/* In a child of fork() another thread of the parent may have had the lock, so
 * it is not taken. */
static void
memory_close(struct wq__engine *base, bool forked)
{
    struct memory_engine *e = engine_of(base);
    struct memory_store  *store = e->store;

    if (!forked) {
        wq__lock_take(&store->lock);
        end_session_of(e);
    }
    delist(e);
    if (e->lives)
        e->session->owner = NULL; /* it goes on */
    else
        wq__mem_free(&store->mem, e->session, sizeof *e->session);
    wq__beacon_fini(&e->beacon);
    wq__mem_free(&store->mem, e, sizeof *e);
    drop_reference(store, !forked);
}

static const struct wq__engine_ops ops_with_lease = {
    .name = "memory store",
    .run = memory_run,
    .renew = memory_renew,
    .reconcile = memory_reconcile,
    .wait = memory_wait,
    .kick = memory_kick,
    .fd = memory_fd,
    .close = memory_close,
};

static const struct wq__engine_ops ops_without_lease = {
    .name = "memory store",
    .run = memory_run,
    .reconcile = memory_reconcile,
    .wait = memory_wait,
    .kick = memory_kick,
    .fd = memory_fd,
    .close = memory_close,
};

struct memory_store *
memory_store_create_with(wq_clock *clock, const wq_allocator *mem)
{
    const struct wq__hash_key secret = {.k0 = 1, .k1 = 2, .mask = UINT32_MAX};
    const wq_allocator       *from = mem ? mem : &wq__mem_default;
    struct memory_store      *store = wq__mem_alloc(from, sizeof *store);
    if (!store)
        return NULL;

    *store = (struct memory_store){
        .clock = clock ? clock : wq_clock_monotonic(),
        .mem = *from,
        .refs = 1,
        .due_ns = WQ_FOREVER,
    };
    wq__lock_init(&store->lock);
    wq__core_init(&store->core, secret, NULL, &store->mem);
    store_dead_init(store);
    return store;
}

struct memory_store *
memory_store_create(wq_clock *clock)
{
    return memory_store_create_with(clock, NULL);
}

void
memory_store_destroy(struct memory_store *store)
{
    if (!store)
        return;
    wq__lock_take(&store->lock);
    drop_reference(store, true);
}

/* The store becomes what its first engine asks for. */
static wq_err
apply_terms(struct memory_store *store, const struct wq__terms *terms)
{
    if (store->opened)
        return WQ_OK;
    wq_limiter *limiter = wq__limiter_from_spec(&store->mem, &terms->limiter);
    if (!wq__limiter_claim(limiter))
        return wq__limiter_explain(limiter, "wq__terms.limiter");

    wq_limiter_set_clock(limiter, store->clock);
    store->limiter = limiter;
    store->core.respect = terms->retry & WQ_RETRY_RESPECT;
    store->max_len = store->core.max_len = terms->max_len;
    if (terms->ages)
        wq__core_keep_ages(&store->core);
    store->opened = true;
    return WQ_OK;
}

static struct memory_engine *
make_engine(struct memory_store *store, const struct wq__terms *terms,
            int64_t lease_ns)
{
    struct memory_engine *e = wq__mem_alloc(&store->mem, sizeof *e);
    if (!e)
        return NULL;

    *e = (struct memory_engine){
        .base = {.ops = lease_ns ? &ops_with_lease : &ops_without_lease,
                 .clock = store->clock,
                 .lease_ns = lease_ns},
        .store = store,
        .terms = *terms,
        .session = wq__mem_alloc(&store->mem, sizeof *e->session),
    };
    if (!e->session) {
        wq__mem_free(&store->mem, e, sizeof *e);
        return NULL;
    }
    *e->session = (struct store_session){.owner = e};
    return e;
}

static wq_err
open_engine(struct memory_store *store, const struct wq__terms *terms,
            int64_t lease_ns, struct wq__engine **out)
{
    const wq_err err = apply_terms(store, terms);
    if (err)
        return err;
    struct memory_engine *e = make_engine(store, terms, lease_ns);
    if (!e)
        return WQ_ENOMEM;

    e->next = store->engines;
    store->engines = e;
    store->refs++;
    store_begin_session(e, store->clock->now(store->clock));
    publish(e);
    *out = &e->base;
    return WQ_OK;
}

wq_err
memory_store_engine(struct memory_store *store, const struct wq__terms *terms,
                    int64_t lease_ns, struct wq__engine **out)
{
    wq__lock_take(&store->lock);
    const wq_err err = open_engine(store, terms, lease_ns, out);
    wq__lock_release(&store->lock);
    return err;
}

void
memory_store_end_session(struct wq__engine *base)
{
    struct memory_engine *e = engine_of(base);

    wq__lock_take(&e->store->lock);
    end_now(e);
    publish(e);
    wq__lock_release(&e->store->lock);
}

void
memory_store_give_back_at_most(struct memory_store *store, size_t n)
{
    wq__lock_take(&store->lock);
    store->give_back_at_most = n;
    wq__lock_release(&store->lock);
}
