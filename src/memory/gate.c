/* SPDX-License-Identifier: MIT */
/* gate.c: entering, sleeping, waking, leaving; see gate.h. */
#include "memory/gate.h"

#include "memory/report.h"
#include "port/relax.h"
#include "port/time.h"

/* ---- whom to wake ------------------------------------------------------- */

static struct wq__sleeper *
take_getter(struct wq__memory *m, struct wq__sleeper *getter,
            struct wq__sleeper *wake)
{
    m->coming++;
    return wq__sleepers_take(&m->getters, getter, WQ__WAKE_LOOK, wake);
}

/* How many getters would find something. Keys in the inbox count as one: they
 * came just now, or there is no memory for them, and one getter will return
 * WQ_ENOMEM. While a getter spins they count as up to two: it takes one. */
static size_t
work(struct wq__memory *m)
{
    const size_t pending = wq__inbox_len(&m->inbox);
    const size_t most = m->spinner ? 2 : 1;

    if (wq__core_is_paused(&m->core))
        return 0;
    return wq__core_offers(&m->core) + (pending < most ? pending : most);
}

/* Does a sleeper, or one that is coming, know of the earliest deadline? One that
 * spins does not count: it may have lost its processor. */
static bool
deadline_is_watched(struct wq__memory *m)
{
    const int64_t next = wq__core_next_deadline(&m->core);

    return next == WQ_FOREVER || m->coming ||
           (m->keeper && m->keeper_until_ns <= next);
}

/* The keeper, if there is one, sleeps for too long. It may have been taken off
 * the list, interrupted; then it hands over when it leaves. */
static struct wq__sleeper *
take_new_keeper(struct wq__memory *m, struct wq__sleeper *wake)
{
    if (!m->keeper)
        return take_getter(m, m->getters.first, wake);
    if (wq__sleeper_is_being_woken(m->keeper))
        return wake;
    return take_getter(m, m->keeper, wake);
}

/* Can no more key come? */
static bool
has_ended(struct wq__memory *m)
{
    return m->core.shutting_down && wq__core_empty(&m->core) &&
           !wq__inbox_holds(&m->inbox);
}

static struct wq__sleeper *
take_getters(struct wq__memory *m, struct wq__sleeper *wake)
{
    const size_t n = has_ended(m) ? SIZE_MAX : work(m);

    while (m->getters.len && n > m->coming + (m->spinner != 0))
        wake = take_getter(m, m->getters.first, wake);
    if (m->getters.len && !deadline_is_watched(m))
        wake = take_new_keeper(m, wake);
    return wake;
}

/* A producer that waits for room. */
struct producer {
    struct wq__sleeper self; /* first: a sleeper is the beginning of it */
    struct wq__space   needs;
    struct wq__space   promised; /* what it was woken for */
    uint64_t           ticket;   /* when it came */
};

static struct producer *
producer_of(struct wq__sleeper *s)
{
    return (struct producer *)(void *)s;
}

/* Of the room there is, what was not promised to a producer; false: nothing. */
static bool
is_left(const struct wq__memory *m, struct wq__space *room)
{
    if (room->keys <= m->promised.keys || room->bytes <= m->promised.bytes)
        return false;
    room->keys -= m->promised.keys;
    room->bytes -= m->promised.bytes;
    return true;
}

/* The list begins with who came last. One that needs more than there is does
 * not hold up those behind it. */
static struct wq__sleeper *
take_producers(struct wq__memory *m, struct wq__sleeper *wake)
{
    struct wq__space    room = wq__core_room(&m->core);
    struct wq__sleeper *s = m->producers.first;

    if (!s || !is_left(m, &room))
        return wake;
    while (s->next)
        s = s->next;
    for (struct wq__sleeper *before; s && room.keys && room.bytes; s = before) {
        struct producer *p = producer_of(s);

        before = s->prev;
        if (!wq__space_holds(room, p->needs))
            continue;
        p->promised = p->needs;
        m->promised.keys += p->needs.keys;
        m->promised.bytes += p->needs.bytes;
        room.keys -= p->needs.keys;
        room.bytes -= p->needs.bytes;
        wake = wq__sleepers_take(&m->producers, s, WQ__WAKE_LOOK, wake);
    }
    return wake;
}

/* When room may come although nobody does anything: a quiet time ends. If a
 * getter sleeps until then, or is coming, it will notice. */
static int64_t
room_may_come_at(struct wq__memory *m)
{
    return m->core.quiet && !deadline_is_watched(m)
               ? wq__core_next_deadline(&m->core)
               : WQ_FOREVER;
}

/* One producer keeps time if no getter does. It is woken to sleep anew, and is
 * as good as there until it does. */
static struct wq__sleeper *
take_room_keeper(struct wq__memory *m, struct wq__sleeper *wake)
{
    if (!m->producers.len)
        return wake;
    const int64_t at = room_may_come_at(m);
    if (at == WQ_FOREVER || (m->room_keeper && m->room_keeper_until_ns <= at))
        return wake;
    if (!m->room_keeper)
        m->room_keeper = m->producers.first;
    m->room_keeper_until_ns = INT64_MIN;
    if (wq__sleeper_is_being_woken(m->room_keeper))
        return wake;
    return wq__sleepers_take(&m->producers, m->room_keeper, WQ__WAKE_LOOK,
                             wake);
}

static struct wq__sleeper *
take_whom_it_concerns(struct wq__memory *m, struct wq__sleeper *wake)
{
    wake = take_getters(m, wake);
    wake = take_producers(m, wake);
    wake = take_room_keeper(m, wake);
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
        m->coming += m->getters.len;
    return wq__sleepers_take_all(&m->getters, why, NULL);
}

bool
wq__gate_is_drained(struct wq__memory *m)
{
    return wq__core_idle(&m->core) && wq__core_empty(&m->core) &&
           !wq__inbox_holds(&m->inbox);
}

/* ---- entering and leaving ----------------------------------------------- */

/* From which position of the inbox on must a producer wake a getter? A getter
 * that spins sees the first key within a fraction of a microsecond, and wakes
 * others when it leaves with it and finds more. It is given time for as many
 * keys as a producer adds until then, READY ones included; a key beyond that
 * wakes a getter that sleeps. An event loop and a sink that wants to hear of
 * changes count as getters that sleep. */
static uint64_t
rouse_from(struct wq__memory *m)
{
    const size_t ready = wq__core_offers(&m->core);

    if ((m->watched && !m->lit) || wq__gate_tells(m))
        return 0;
    if (!m->getters.len)
        return WQ__ROUSE_NOBODY;
    if (!m->spinner)
        return 0;
    return m->inbox.head + (ready < WQ__SPARED ? WQ__SPARED - ready : 0);
}

/* Tell producers that use the inbox. The caller looks at the inbox afterwards
 * (inbox.h, I4). */
static void
publish_rouse_from(struct wq__memory *m)
{
    const uint64_t from = rouse_from(m);

    /* Only the lock holder writes this: the same value is not written again. */
    if (atomic_load_explicit(&m->rouse_from, memory_order_relaxed) != from)
        atomic_store(&m->rouse_from, from);
}

/* Would a get that does not wait find something, or that all has ended? */
static bool
get_would_answer(struct wq__memory *m)
{
    return work(m) || has_ended(m) || m->destroying;
}

/* Tell the event loop. The beacon is put out, and `rouse_from` lowered, before
 * the inbox is looked at for the last time (I4): a key that comes meanwhile
 * lights it again here, a later one does so by its producer. */
static void
update_beacon(struct wq__memory *m)
{
    m->lit = get_would_answer(m);
    if (!m->lit) {
        publish_rouse_from(m);
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

/* Has something changed that the sinks are to be told? While the queue is being
 * destroyed it may be gone before they are: the destroyer tells them. */
static bool
take_change(struct wq__memory *m, wq_change *change)
{
    return wq__gate_tells(m) && !m->destroying && wq__report_take(m, change);
}

/* Is something READY? For those who spin. Only the lock holder writes it, so it
 * need not be written again. */
static void
give_hint(struct wq__memory *m)
{
    const bool hint = wq__core_offers(&m->core) != 0;

    if (atomic_load_explicit(&m->work_hint, memory_order_relaxed) != hint)
        atomic_store_explicit(&m->work_hint, hint, memory_order_relaxed);
}

/* Release the lock; wake `wake`, and whoever has something to do now. What
 * producers must know is published twice: before the last look at the inbox,
 * which take_whom_it_concerns() takes (I4), and when it is clear who is woken.
 */
static void
let_go(struct wq__memory *m, struct wq__sleeper *wake)
{
    wq__lock_assert_taken(&m->lock);
    publish_rouse_from(m);
    if (m->blocked)
        wake = take_whom_it_concerns(m, wake);
    if (m->watched)
        update_beacon(m);
    publish_rouse_from(m);
    give_hint(m);
    if (m->real_time) { /* a thread that waits for the lock lends its priority */
        wq__wake(wake);
        wake = NULL;
    }
    wq__lock_release(&m->lock);
    wq__dawdle(); /* the queue may be gone: wq_destroy() */
    wq__wake(wake);
}

void
wq__gate_leave_asking(struct wq__memory *m)
{
    let_go(m, NULL);
}

void
wq__gate_leave_waking(struct wq__memory *m, struct wq__sleeper *wake)
{
    wq_change  change;
    const bool changed = take_change(m, &change);

    let_go(m, wake);
    if (changed) /* nobody sleeps on because a sink takes its time */
        wq__report_change(m, &change);
}

bool
wq__gate_tell_inside(struct wq__memory *m)
{
    wq_change change;

    if (!take_change(m, &change))
        return false;
    let_go(m, NULL);
    wq__report_change(m, &change);
    wq__gate_enter(m);
    return true;
}

void
wq__gate_leave_for_good(struct wq__memory *m)
{
    struct wq__sleeper *wake = NULL;

    (void)wq__gate_tell_inside(m); /* as long as the queue cannot go */
    m->company--;
    if (--m->blocked == 0 && m->destroyer.len)
        wake = wq__sleepers_take_all(&m->destroyer, WQ__WAKE_LOOK, NULL);
    let_go(m, wake);
}

/* Producers may hand over more, unless there is plenty: then a getter says when,
 * or one of them that had to take the lock. */
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
wq__gate_take_in(struct wq__memory *m)
{
    if (m->core.waiting.len)
        return wq__gate_catch_up_to(m, m->clock->now(m->clock));
    return empty_inbox(m, 0); /* nothing can be due */
}

/* ---- sleeping ----------------------------------------------------------- */

/* Look for work, with a pause after each look, until there may be some, be it in
 * the inbox, which was emptied up to `head`. Returns the number of looks. */
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
    let_go(m, NULL);
    const int looks = look_for_work(m, head, limit);
    wq__gate_enter(m);
    if (m->spinner == self)
        m->spinner = 0;
    return looks;
}

void
wq__gate_give_up_spinner(struct wq__memory *m)
{
    if (m->spinner &&
        wq__time_now() >
            atomic_load_explicit(&m->spin_ends_ns, memory_order_relaxed))
        m->spinner = 0;
}

/* Sleep on `list`, where `self` is, until woken or `deadline_ns`, and come off
 * it. The lock is free meanwhile. No sink is told here: a thread on the list
 * must be able to run as soon as it is woken. */
static enum wq__wake
sleep_on(struct wq__memory *m, struct wq__sleepers *list,
         struct wq__sleeper *self, int64_t deadline_ns)
{
    let_go(m, NULL);
    const bool woken = wq__sleeper_sleep(self, m->clock, deadline_ns);
    wq__gate_enter(m);
    if (!woken && wq__sleeper_is_being_woken(self)) {
        let_go(m, NULL);
        /* Any moment now; what ends a park earlier is a clock's alarm. */
        while (!wq__sleeper_sleep(self, m->clock, WQ_FOREVER))
            ;
        wq__gate_enter(m);
    }
    return wq__sleeper_leave(list, self);
}

/* One getter sleeps until the earliest deadline on behalf of all. */
static enum wq__wake
sleep_and_keep_time(struct wq__memory *m, struct wq__sleeper *self,
                    int64_t deadline_ns)
{
    const int64_t next = wq__core_next_deadline(&m->core);

    if (next != WQ_FOREVER && !m->keeper) {
        m->keeper = self;
        m->keeper_until_ns = next;
        if (next < deadline_ns)
            deadline_ns = next;
    }
    const enum wq__wake why = sleep_on(m, &m->getters, self, deadline_ns);
    if (m->keeper == self)
        m->keeper = NULL;
    return why;
}

/* let_go() looks at the inbox once more, and takes this getter off the list
 * again if a key has come. */
static enum wq__wake
sleep_as_getter(struct wq__memory *m, int64_t deadline_ns)
{
    struct wq__sleeper self;

    wq__sleeper_enter(&m->getters, &self);
    return sleep_and_keep_time(m, &self, deadline_ns);
}

wq_err
wq__gate_await_work(struct wq__memory *m, int64_t deadline_ns)
{
    if (m->interrupted) {
        m->interrupted = false;
        return WQ_EINTERRUPTED;
    }
    if (wq__gate_tell_inside(m))
        return WQ_OK; /* to look again */
    wq__spin_note_sleep(&m->spin);
    const enum wq__wake why = sleep_as_getter(m, deadline_ns);
    if (why == WQ__WAKE_LOOK)
        m->coming--;
    return why == WQ__WAKE_INTERRUPT ? WQ_EINTERRUPTED : WQ_OK;
}

/* The one in the list, which begins with who came last, behind which a ticket
 * belongs; NULL: in front. */
static struct wq__sleeper *
last_after(const struct wq__memory *m, uint64_t ticket)
{
    struct wq__sleeper *behind = NULL;

    for (struct wq__sleeper *s = m->producers.first;
         s && producer_of(s)->ticket > ticket; s = s->next)
        behind = s;
    return behind;
}

void
wq__gate_await_room(struct wq__memory *m, struct wq__space needs,
                    uint64_t ticket, int64_t deadline_ns)
{
    if (wq__gate_tell_inside(m))
        return; /* to look again */
    struct producer p = {.needs = needs, .ticket = ticket};
    const int64_t   at = room_may_come_at(m);

    wq__sleeper_enter_behind(&m->producers, &p.self, last_after(m, ticket));
    if (at != WQ_FOREVER && !m->room_keeper) {
        m->room_keeper = &p.self;
        m->room_keeper_until_ns = at;
        if (at < deadline_ns)
            deadline_ns = at;
    }
    (void)sleep_on(m, &m->producers, &p.self, deadline_ns);
    if (m->room_keeper == &p.self)
        m->room_keeper = NULL;
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
    (void)wq__gate_tell_inside(m);
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
    while (!wq__sleeper_sleep(&self, m->clock, WQ_FOREVER))
        ;
    wq__gate_enter(m); /* the last thread has released the lock, too */
    (void)wq__sleeper_leave(&m->destroyer, &self);
    wq__lock_release(&m->lock);
}
