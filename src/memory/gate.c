/* SPDX-License-Identifier: MIT */
/* gate.c: entering, sleeping, waking, leaving; see gate.h. */
#include "memory/gate.h"

#include "memory/report.h"
#include "port/relax.h"
#include "port/time.h"

/* ---- which threads to wake ---------------------------------------------- */

static struct wq__sleeper *
take_getter(struct wq__memory *m, struct wq__sleeper *getter,
            struct wq__sleeper *wake)
{
    m->woken_getters++;
    return wq__sleepers_take(&m->getters, getter, WQ__WAKE_LOOK, wake);
}

/* How many getters would find a key. Keys in the inbox count as one: they came
 * just now, or could not be merged for lack of memory, and then one getter will
 * return WQ_ENOMEM. While a getter spins they count as up to two: the spinning
 * getter takes one. */
static size_t
getters_needed(struct wq__memory *m)
{
    const size_t pending = wq__inbox_len(&m->inbox);
    const size_t most = m->spinner ? 2 : 1;

    if (wq__core_is_paused(&m->core))
        return 0;
    return wq__core_offers(&m->core) + (pending < most ? pending : most);
}

/* When a sleeping getter must look: at the earliest deadline, or at the end of a
 * nap. */
static int64_t
next_look(const struct wq__memory *m)
{
    const int64_t next = wq__core_next_deadline(&m->core);

    return next < m->patience.nap_ends_ns ? next : m->patience.nap_ends_ns;
}

/* Does a getter sleep until then, or is one woken that will see to it? A
 * spinning getter does not count: it may have lost its processor. */
static bool
deadline_is_watched(struct wq__memory *m)
{
    const int64_t next = next_look(m);

    return next == WQ_FOREVER || m->woken_getters ||
           (m->timekeeper && m->timekeeper_until_ns <= next);
}

/* The timekeeper, if there is one, sleeps too long. If an interrupt has taken
 * it off the list already, it wakes its successor when it leaves. */
static struct wq__sleeper *
take_new_timekeeper(struct wq__memory *m, struct wq__sleeper *wake)
{
    if (!m->timekeeper)
        return take_getter(m, m->getters.first, wake);
    if (wq__sleeper_is_being_woken(m->timekeeper))
        return wake;
    return take_getter(m, m->timekeeper, wake);
}

/* Is the queue shut down, and will no key come any more? */
static bool
has_ended(struct wq__memory *m)
{
    return m->core.shutting_down && wq__core_empty(&m->core) &&
           !wq__inbox_holds(&m->inbox);
}

/* Are keys left to the getters that are awake (patience.h)? One is, as far as can
 * be known: it spins, was woken, or a key is on loan. If it does not come back,
 * because it gave its key to another thread or has ended, the nap ends all the
 * same. */
static bool
is_patient(const struct wq__memory *m)
{
    return m->patience.fast && !m->core.shutting_down &&
           wq__core_is_fifo(&m->core) &&
           (m->spinner || m->woken_getters || m->core.loans.live);
}

static void
begin_nap(struct wq__memory *m, int64_t now)
{
    wq__patience_nap(&m->patience, m->core.fence,
                     wq__core_offers(&m->core) + wq__inbox_len(&m->inbox), now);
}

/* A key may be left to getters that are awake: a nap has begun, or begins. */
static bool
leaves_to_others(struct wq__memory *m)
{
    if (is_patient(m) && !wq__patience_naps(&m->patience))
        begin_nap(m, m->clock->now(m->clock));
    return is_patient(m);
}

static struct wq__sleeper *
take_getters(struct wq__memory *m, struct wq__sleeper *wake)
{
    const size_t n = has_ended(m) ? SIZE_MAX : getters_needed(m);

    while (m->getters.len && n > m->woken_getters + (m->spinner != 0) &&
           !leaves_to_others(m))
        wake = take_getter(m, m->getters.first, wake);
    if (m->getters.len && !deadline_is_watched(m))
        wake = take_new_timekeeper(m, wake);
    return wake;
}

/* A producer that waits for capacity. */
struct producer {
    struct wq__sleeper  self; /* first: a sleeper is the beginning of it */
    struct wq__capacity needs;
    struct wq__capacity promised; /* capacity it was woken for */
    uint64_t            ticket;   /* smaller: it came earlier */
};

static struct producer *
producer_of(struct wq__sleeper *s)
{
    return (struct producer *)(void *)s;
}

/* Subtract from *left what was promised to woken producers. Returns false if
 * nothing is left; then *left is unchanged. */
static bool
subtract_promised(const struct wq__memory *m, struct wq__capacity *left)
{
    if (left->keys <= m->promised.keys || left->bytes <= m->promised.bytes)
        return false;
    left->keys -= m->promised.keys;
    left->bytes -= m->promised.bytes;
    return true;
}

/* Scan the list from its end: the producer that came first is last. Wake each
 * producer whose keys fit; skip one whose keys do not fit. */
static struct wq__sleeper *
take_producers(struct wq__memory *m, struct wq__sleeper *wake)
{
    struct wq__capacity left = wq__core_free_capacity(&m->core);
    struct wq__sleeper *s = m->producers.first;

    if (!s || !subtract_promised(m, &left))
        return wake;
    while (s->next)
        s = s->next;
    for (struct wq__sleeper *before; s && left.keys && left.bytes; s = before) {
        struct producer *p = producer_of(s);

        before = s->prev;
        if (!wq__capacity_covers(left, p->needs))
            continue;
        p->promised = p->needs;
        m->promised.keys += p->needs.keys;
        m->promised.bytes += p->needs.bytes;
        left.keys -= p->needs.keys;
        left.bytes -= p->needs.bytes;
        wake = wq__sleepers_take(&m->producers, s, WQ__WAKE_LOOK, wake);
    }
    return wake;
}

/* When capacity may grow without any call: at the end of a cooldown.
 * WQ_FOREVER: never, or a getter sleeps until then and will see to it. */
static int64_t
capacity_may_grow_at(struct wq__memory *m)
{
    return m->core.cooldowns && !deadline_is_watched(m)
               ? wq__core_next_deadline(&m->core)
               : WQ_FOREVER;
}

/* If no getter sleeps until the next cooldown ends, one producer must. This
 * function wakes it; it then sleeps again, until that time. Before it does so,
 * `capacity_timekeeper_until_ns` is INT64_MIN, so that no second producer is
 * woken for this. */
static struct wq__sleeper *
take_capacity_timekeeper(struct wq__memory *m, struct wq__sleeper *wake)
{
    if (!m->producers.len)
        return wake;
    const int64_t at = capacity_may_grow_at(m);
    if (at == WQ_FOREVER ||
        (m->capacity_timekeeper && m->capacity_timekeeper_until_ns <= at))
        return wake;
    if (!m->capacity_timekeeper)
        m->capacity_timekeeper = m->producers.first;
    m->capacity_timekeeper_until_ns = INT64_MIN;
    if (wq__sleeper_is_being_woken(m->capacity_timekeeper))
        return wake;
    return wq__sleepers_take(&m->producers, m->capacity_timekeeper,
                             WQ__WAKE_LOOK, wake);
}

static struct wq__sleeper *
take_sleepers(struct wq__memory *m, struct wq__sleeper *wake)
{
    wake = take_getters(m, wake);
    wake = take_producers(m, wake);
    wake = take_capacity_timekeeper(m, wake);
    if (m->drainers.len && wq__gate_is_drained(m))
        wake = wq__sleepers_take_all(&m->drainers, WQ__WAKE_LOOK, wake);
    if (m->waiters.len)
        wake = wq__waits_take(m, wake);
    return wake;
}

struct wq__sleeper *
wq__gate_take_getters(struct wq__memory *m, enum wq__wake why)
{
    if (why == WQ__WAKE_LOOK)
        m->woken_getters += m->getters.len;
    return wq__sleepers_take_all(&m->getters, why, NULL);
}

bool
wq__gate_is_drained(struct wq__memory *m)
{
    return wq__core_idle(&m->core) && wq__core_empty(&m->core) &&
           !wq__inbox_holds(&m->inbox);
}

/* ---- entering and leaving ----------------------------------------------- */

/* From which position of the inbox on must a producer wake a getter? During a
 * nap from none: the nap ends without a producer. A spinning getter sees the
 * first key within a fraction of a microsecond, and wakes others when it leaves
 * and there are more keys. So WQ__SPARED keys, READY ones included, are left to
 * it: about as many as a producer adds in that time. A key beyond that wakes a
 * sleeping getter. An event loop and a sink with a callback for changes count as
 * sleeping getters. */
static uint64_t
compute_wake_from(struct wq__memory *m)
{
    const size_t ready = wq__core_offers(&m->core);

    if ((m->watched && !m->lit) || wq__gate_reports_changes(m))
        return 0;
    if (!m->getters.len || (wq__patience_naps(&m->patience) && is_patient(m)))
        return WQ__WAKE_NOBODY;
    if (!m->spinner)
        return 0;
    return m->inbox.head + (ready < WQ__SPARED ? WQ__SPARED - ready : 0);
}

/* Publish it for producers that use the inbox. The caller reads the inbox
 * afterwards (inbox.h, I4). */
static void
publish_wake_from(struct wq__memory *m)
{
    const uint64_t from = compute_wake_from(m);

    /* Only the lock holder writes this, so an equal value need not be
     * stored. */
    if (atomic_load_explicit(&m->wake_from, memory_order_relaxed) != from)
        atomic_store(&m->wake_from, from);
}

/* Would a get return without waiting? */
static bool
get_would_answer(struct wq__memory *m)
{
    return getters_needed(m) || has_ended(m) || m->destroying;
}

/* Light or dim the beacon of the event loop. `wake_from` is lowered before the
 * last read of the inbox (I4): a key that came before lights the beacon here,
 * and the producer of a later key takes the lock and lights it. */
static void
update_beacon(struct wq__memory *m)
{
    m->lit = get_would_answer(m);
    if (!m->lit) {
        publish_wake_from(m);
        m->lit = wq__inbox_holds(&m->inbox) && !wq__core_is_paused(&m->core);
    }
    if (m->lit)
        wq__beacon_light(&m->beacon, WQ__LIT_BY_QUEUE);
    else
        wq__beacon_dim(&m->beacon, WQ__LIT_BY_QUEUE);
    m->clock->watch(m->clock, &m->watch,
                    wq__core_is_paused(&m->core)
                        ? WQ_FOREVER
                        : wq__core_next_deadline(&m->core));
}

/* Is there a change to report to the sinks? While the queue is being destroyed
 * it may be freed before this thread reports: the destroyer reports then. */
static bool
take_change(struct wq__memory *m, wq_change *change)
{
    return wq__gate_reports_changes(m) && !m->destroying &&
           wq__report_take(m, change);
}

/* Publish whether a key is READY, for spinning getters. Only the lock holder
 * writes it, so an equal value need not be stored. */
static void
give_hint(struct wq__memory *m)
{
    const bool hint = wq__core_offers(&m->core) != 0;

    if (atomic_load_explicit(&m->work_hint, memory_order_relaxed) != hint)
        atomic_store_explicit(&m->work_hint, hint, memory_order_relaxed);
}

/* Release the lock; wake the threads of `wake` and those that the state
 * requires (gate.h). `wake_from` is published twice: before the last read of
 * the inbox, in take_sleepers() (I4), and after it, when it is clear which
 * getters still sleep. */
static void
release_and_wake(struct wq__memory *m, struct wq__sleeper *wake)
{
    wq__lock_assert_taken(&m->lock);
    publish_wake_from(m);
    if (m->blocked)
        wake = take_sleepers(m, wake);
    if (m->watched)
        update_beacon(m);
    publish_wake_from(m);
    give_hint(m);
    /* Wake before releasing the lock: while this thread holds the lock, it
     * inherits the priority of a real-time thread that waits for it, so threads
     * of lower priority cannot preempt it before it has woken the others. */
    if (m->real_time) {
        wq__wake(wake);
        wake = NULL;
    }
    wq__lock_release(&m->lock);
    wq__maybe_yield(); /* the queue may be destroyed from here on */
    wq__wake(wake);
}

void
wq__gate_leave_query(struct wq__memory *m)
{
    release_and_wake(m, NULL);
}

void
wq__gate_leave_waking(struct wq__memory *m, struct wq__sleeper *wake)
{
    wq_change  change;
    const bool changed = take_change(m, &change);

    release_and_wake(m, wake);
    if (changed) /* after waking: a slow sink delays no thread */
        wq__report_change(m, &change);
}

bool
wq__gate_report_inside(struct wq__memory *m)
{
    wq_change change;

    if (!take_change(m, &change))
        return false;
    release_and_wake(m, NULL);
    wq__report_change(m, &change);
    wq__gate_enter(m);
    return true;
}

void
wq__gate_end_blocking(struct wq__memory *m)
{
    struct wq__sleeper *wake = NULL;

    /* Before wq_destroy() may free the queue. */
    (void)wq__gate_report_inside(m);
    m->interested--;
    if (--m->blocked == 0 && m->destroyer.len)
        wake = wq__sleepers_take_all(&m->destroyer, WQ__WAKE_LOOK, NULL);
    release_and_wake(m, wake);
}

/* Merge the adds in the inbox. Producers may use the empty cells at once,
 * unless there are plenty of READY keys: then a getter, or a producer that
 * takes the lock, offers the cells later. */
static wq_err
empty_inbox(struct wq__memory *m, int64_t now_ns)
{
    return wq__inbox_empty(&m->inbox, &m->core, now_ns,
                           !wq__gate_has_plenty(m));
}

wq_err
wq__gate_catch_up_to(struct wq__memory *m, int64_t now_ns)
{
    const wq_err err = empty_inbox(m, now_ns);

    wq__core_promote(&m->core, now_ns);
    return err;
}

wq_err
wq__gate_catch_up_now(struct wq__memory *m)
{
    if (m->core.waiting.len)
        return wq__gate_catch_up_to(m, m->clock->now(m->clock));
    return empty_inbox(m, 0); /* nothing can be due */
}

/* ---- sleeping ----------------------------------------------------------- */

/* Look for work, with a pause after each look, until there may be some: a READY
 * key, or a key in the inbox, which was empty up to `head`. Returns the number
 * of looks. */
static int
look_for_work(struct wq__memory *m, uint64_t head, int limit)
{
    int looks = 0;

    while (looks < limit &&
           !atomic_load_explicit(&m->work_hint, memory_order_relaxed) &&
           atomic_load_explicit(&m->inbox.tail, memory_order_relaxed) == head) {
        wq__pause();
        looks++;
    }
    return looks;
}

int
wq__gate_spin(struct wq__memory *m)
{
    const int64_t  longest_ns = 200000; /* WQ__SPIN_MOST slow looks */
    const int      limit = wq__spin_limit(&m->spin);
    const uint64_t head = m->inbox.head;

    if (m->spinner || !m->may_spin || !limit)
        return 0;
    const uint64_t self = ++m->spins;

    m->spinner = self;
    atomic_store_explicit(&m->spin_ends_ns, wq__time_now() + longest_ns,
                          memory_order_relaxed);
    release_and_wake(m, NULL);
    const int looks = look_for_work(m, head, limit);
    wq__gate_enter(m);
    if (m->spinner == self)
        m->spinner = 0;
    return looks;
}

void
wq__gate_ignore_lost_spinner(struct wq__memory *m)
{
    if (m->spinner &&
        wq__time_now() >
            atomic_load_explicit(&m->spin_ends_ns, memory_order_relaxed))
        m->spinner = 0;
}

/* Sleep on `list`, which `self` is on, until woken or `deadline_ns`; leave the
 * list. Releases the lock meanwhile. Reports nothing to sinks: a slow sink
 * would delay a getter or producer that another thread has already counted as
 * woken. (Waiters are an exception: wq__gate_await_waiter() reports while its
 * caller is on the list.) */
static enum wq__wake
sleep_on(struct wq__memory *m, struct wq__sleepers *list,
         struct wq__sleeper *self, int64_t deadline_ns)
{
    release_and_wake(m, NULL);
    const bool woken = wq__sleeper_sleep(self, m->clock, deadline_ns);
    wq__gate_enter(m);
    if (!woken && wq__sleeper_is_being_woken(self)) {
        release_and_wake(m, NULL);
        /* The waker is about to unpark it; a clock's alarm may end the park
         * first. */
        while (!wq__sleeper_sleep(self, m->clock, WQ_FOREVER))
            ;
        wq__gate_enter(m);
    }
    return wq__sleeper_leave(list, self);
}

/* One getter sleeps until the next look on behalf of all. */
static enum wq__wake
sleep_and_keep_time(struct wq__memory *m, struct wq__sleeper *self,
                    int64_t deadline_ns)
{
    const int64_t next = next_look(m);

    if (next != WQ_FOREVER && !m->timekeeper) {
        m->timekeeper = self;
        m->timekeeper_until_ns = next;
        if (next < deadline_ns)
            deadline_ns = next;
    }
    const enum wq__wake why = sleep_on(m, &m->getters, self, deadline_ns);
    if (m->timekeeper == self)
        m->timekeeper = NULL;
    return why;
}

/* release_and_wake() reads the inbox once more, and takes this getter off the
 * list again if a key has come. */
static enum wq__wake
sleep_as_getter(struct wq__memory *m, int64_t deadline_ns)
{
    struct wq__sleeper self;

    wq__sleeper_enter(&m->getters, &self);
    return sleep_and_keep_time(m, &self, deadline_ns);
}

/* A getter has slept, and was perhaps woken: does it sleep on, because the keys
 * are left to others? */
static bool
sleeps_on(struct wq__memory *m, int64_t deadline_ns)
{
    if (!wq__patience_naps(&m->patience))
        return false;
    const int64_t now = m->clock->now(m->clock);
    const bool    over = now >= m->patience.nap_ends_ns;

    if (over && wq__patience_wake(&m->patience, m->core.fence))
        begin_nap(m, now);
    return wq__patience_naps(&m->patience) && is_patient(m) &&
           !m->interrupted && now < deadline_ns &&
           now < wq__core_next_deadline(&m->core);
}

wq_err
wq__gate_await_work(struct wq__memory *m, int64_t deadline_ns)
{
    if (m->interrupted) {
        m->interrupted = false;
        return WQ_EINTERRUPTED;
    }
    if (wq__gate_report_inside(m))
        return WQ_OK; /* look again */
    wq__spin_note_sleep(&m->spin);
    do {
        const enum wq__wake why = sleep_as_getter(m, deadline_ns);

        if (why == WQ__WAKE_LOOK)
            m->woken_getters--;
        if (why == WQ__WAKE_INTERRUPT)
            return WQ_EINTERRUPTED;
    } while (sleeps_on(m, deadline_ns));
    return WQ_OK;
}

/* Where a producer with this ticket is inserted. The list is sorted by ticket,
 * largest first. Returns the last producer with a larger ticket than `ticket`;
 * NULL if there is none. */
static struct wq__sleeper *
insert_position(const struct wq__memory *m, uint64_t ticket)
{
    struct wq__sleeper *behind = NULL;

    for (struct wq__sleeper *s = m->producers.first;
         s && producer_of(s)->ticket > ticket; s = s->next)
        behind = s;
    return behind;
}

void
wq__gate_await_capacity(struct wq__memory *m, struct wq__capacity needs,
                        uint64_t ticket, int64_t deadline_ns)
{
    if (wq__gate_report_inside(m))
        return; /* to look again */
    struct producer p = {.needs = needs, .ticket = ticket};
    const int64_t   at = capacity_may_grow_at(m);

    wq__sleeper_enter_behind(&m->producers, &p.self,
                             insert_position(m, ticket));
    if (at != WQ_FOREVER && !m->capacity_timekeeper) {
        m->capacity_timekeeper = &p.self;
        m->capacity_timekeeper_until_ns = at;
        if (at < deadline_ns)
            deadline_ns = at;
    }
    (void)sleep_on(m, &m->producers, &p.self, deadline_ns);
    if (m->capacity_timekeeper == &p.self)
        m->capacity_timekeeper = NULL;
    m->promised.keys -= p.promised.keys;
    m->promised.bytes -= p.promised.bytes;
}

void
wq__gate_await_drain(struct wq__memory *m, int64_t deadline_ns)
{
    struct wq__sleeper self;

    wq__sleeper_enter(&m->drainers, &self);
    (void)sleep_on(m, &m->drainers, &self, deadline_ns);
}

void
wq__gate_await_waiter(struct wq__memory *m, struct wq__sleeper *self,
                      int64_t deadline_ns)
{
    wq__sleeper_enter(&m->waiters, self);
    (void)wq__gate_report_inside(m);
    (void)sleep_on(m, &m->waiters, self, deadline_ns);
}

void
wq__gate_evacuate(struct wq__memory *m, struct wq__sleeper *wake)
{
    struct wq__sleeper self;

    if (!m->blocked) {
        wq__gate_leave_waking(m, wake);
        return;
    }
    wq__sleeper_enter(&m->destroyer, &self);
    wq__gate_leave_waking(m, wake);
    wq__sleeper_outlast(&m->destroyer, &self, m->clock, &m->lock);
}
