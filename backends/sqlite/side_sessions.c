/* SPDX-License-Identifier: MIT */
/* side_sessions.c: which sessions live, and which have ended?
 *
 * A session has ended when its `until` is WQ__SIDE_ENDED, and from then on for
 * good. Until then its time may be over, or its process dead, but nobody has
 * acted on that.
 *
 *                          renew()
 *                          ┌───┐
 *              begin()     ▼   │     find_ended(), is_live(), renew() too late,
 *     free ───────────►  until = t ──────────────────────────► ENDED
 *       ▲                      │      begin() of the next, close()  │
 *       │        end()         │                                    │ bury()
 *       └──────────────────────┴────────────────────────────────────┘
 *
 * Renewed or ended, never both: both are one compare-and-swap on `until`, from
 * the value that the decision was based on. All changes of one atomic word have
 * one order, for all processes. If the renewal is first, the finder's swap
 * fails, and it decides again from the new time. If the end is first, the
 * renewal's swap fails, and it finds ENDED. Nothing replaces ENDED but begin(),
 * which needs the lock on the byte of the slot. The owner gives up that lock
 * only when it begins or ends a session itself, or dies, and it renews under
 * s->lock, under which it does the former. So a renewal never meets the session
 * of somebody else in its slot.
 *
 * Dead is a session whose byte is not locked: its process has died, executed
 * another program, or closed the handle. That is also true across pid
 * namespaces. Or one whose process has died although the byte is locked: a child
 * that was made by a bare clone() keeps the file description of its parent.
 * Nothing is concluded from silence: a stopped process keeps its session.
 *
 * Cost: a look at the slots in use is 3 ns each; a question to the kernel 4 us
 * each.
 */
#include <errno.h>
#include <string.h>

#include "error/error.h"
#include "port/random.h"
#include "port/time.h"
#include "side_inside.h"

/* ---- slots --------------------------------------------------------------- */

static int64_t
id_of(const struct wq__side *s, int i)
{
    return atomic_load_explicit(&wq__side_slot(s, i)->id, memory_order_relaxed);
}

static int64_t
until_of(const struct wq__side *s, int i)
{
    return atomic_load_explicit(&wq__side_slot(s, i)->until,
                                memory_order_seq_cst);
}

static int
top(const struct wq__side *s)
{
    return (int)s->m->top;
}

/* The slot of session `id`; -1: none. */
static int
find(const struct wq__side *s, int64_t id)
{
    for (int i = 0; i < top(s); i++)
        if (id_of(s, i) == id)
            return i;
    return -1;
}

static void
note_change(struct wq__side *s, uint32_t queue)
{
    (void)atomic_fetch_add_explicit(&wq__side_queue(s, queue)->members, 1,
                                    memory_order_release);
}

/* Ended first, then free: a process that is killed in between leaves a session
 * that has ended. */
static void
free_slot(struct wq__side *s, int i)
{
    struct wq__side_slot *slot = wq__side_slot(s, i);

    atomic_store_explicit(&slot->until, WQ__SIDE_ENDED, memory_order_seq_cst);
    atomic_store_explicit(&slot->id, 0, memory_order_release);
    atomic_store_explicit(&slot->sleeping, WQ__AWAKE, memory_order_relaxed);
    atomic_store_explicit(&slot->wants, 0, memory_order_relaxed);
    while (s->m->top > 0 && id_of(s, top(s) - 1) == 0)
        s->m->top--;
    note_change(s, atomic_load_explicit(&slot->queue, memory_order_relaxed));
}

int64_t
wq__side_read_process(const struct wq__side *s, int i, struct wq__process *out)
{
    const struct wq__side_slot *slot = wq__side_slot(s, i);
    const int64_t id = atomic_load_explicit(&slot->id, memory_order_acquire);

    out->pid = atomic_load_explicit(&slot->pid, memory_order_relaxed);
    out->start = atomic_load_explicit(&slot->start, memory_order_relaxed);
    out->pid_ns = atomic_load_explicit(&slot->pid_ns, memory_order_relaxed);
    out->time_ns = atomic_load_explicit(&slot->time_ns, memory_order_relaxed);
    /* The fields are read before the id is read again; pairs with the release
     * fence in occupy(). */
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&slot->id, memory_order_relaxed) == id ? id : 0;
}

uint32_t
wq__side_pid_of(struct wq__side *s, int64_t id)
{
    const int          i = id ? find(s, id) : -1;
    struct wq__process p;

    return i >= 0 && wq__side_read_process(s, i, &p) == id &&
                   wq__process_is_near(&p, &s->self)
               ? p.pid
               : 0;
}

/* ---- has it ended? ------------------------------------------------------- */

static bool
is_own(const struct wq__side *s, int i)
{
    return s->slot == i && s->id == id_of(s, i);
}

static bool
is_for_other(const struct wq__side *s, int i)
{
    return atomic_load_explicit(&wq__side_slot(s, i)->is_for_other,
                                memory_order_relaxed);
}

/* Not for the own slot: F_OFD_GETLK does not report own locks. */
static bool
is_dead(struct wq__side *s, int i)
{
    struct wq__process p;

    assert(!is_own(s, i));
    if (s->slot != i && !is_for_other(s, i) && !wq__side_is_locked(s, 1 + i, 1))
        return true;
    (void)wq__side_read_process(s, i, &p);
    return wq__process_is_gone(&p, &s->self);
}

/* Decide whether the session in slot `i` has ended; if so, for good. `probe`: ask
 * the kernel, too. */
static bool
settle(struct wq__side *s, int i, int64_t now_ns, bool probe)
{
    struct wq__side_slot *slot = wq__side_slot(s, i);
    int64_t               until = until_of(s, i);
    bool                  over = until == WQ__SIDE_ENDED;

    if (!over && until > now_ns && probe && !is_own(s, i) && is_dead(s, i)) {
        atomic_store_explicit(&slot->until, WQ__SIDE_ENDED,
                              memory_order_seq_cst);
        return true;
    }
    while (!over && until <= now_ns && until != WQ_FOREVER)
        over = until == WQ__SIDE_ENDED ||
               atomic_compare_exchange_strong_explicit(
                   &slot->until, &until, WQ__SIDE_ENDED, memory_order_seq_cst,
                   memory_order_seq_cst);
    return over;
}

bool
wq__side_renew(struct wq__side *s, int64_t now_ns, int64_t until_ns)
{
    bool renewed = false;

    wq__lock_take(&s->lock);
    if (s->slot >= 0 && id_of(s, s->slot) == s->id) {
        struct wq__side_slot *slot = wq__side_slot(s, s->slot);
        int64_t               was = until_of(s, s->slot);

        while (was != WQ__SIDE_ENDED &&
               !atomic_compare_exchange_weak_explicit(
                   &slot->until, &was,
                   was <= now_ns    ? WQ__SIDE_ENDED
                   : was < until_ns ? until_ns
                                    : was, /* another thread was faster */
                   memory_order_seq_cst, memory_order_seq_cst))
            ;
        renewed = was > now_ns; /* ENDED is less than any time */
    }
    wq__lock_release(&s->lock);
    return renewed;
}

bool
wq__side_is_ended(struct wq__side *s, int64_t now_ns)
{
    wq__lock_take(&s->lock);
    const bool ended = s->slot < 0 || id_of(s, s->slot) != s->id ||
                       settle(s, s->slot, now_ns, false);
    wq__lock_release(&s->lock);
    return ended;
}

bool
wq__side_is_live(struct wq__side *s, int64_t id, int64_t now_ns)
{
    const int i = id ? find(s, id) : -1;

    return i >= 0 && !settle(s, i, now_ns, true);
}

/* ---- who has ended? ------------------------------------------------------ */

/* Ask the kernel about `n` sessions of `queue`, beginning behind the own one. */
static void
probe_behind(struct wq__side *s, uint32_t queue, int64_t now_ns, int n)
{
    const int from = s->slot + 1;

    for (int k = 0; k < top(s) && n > 0; k++) {
        const int i = (from + k) % top(s);
        if (!wq__side_is_of(s, i, queue) || is_own(s, i))
            continue;
        (void)settle(s, i, now_ns, true);
        n--;
    }
}

/* Sets s->peer_died. */
static void
look_at_peers(struct wq__side *s)
{
    wq__lock_take(&s->lock);
    if (s->watched)
        wq__side_sweep_peers(s);
    wq__lock_release(&s->lock);
}

static void
probe_if_due(struct wq__side *s, uint32_t queue, int64_t now_ns, bool all)
{
    const int64_t real_ns = wq__time_now();

    look_at_peers(s);
    all |= atomic_exchange_explicit(&s->peer_died, false, memory_order_relaxed);
    if (!all && s->probed && real_ns - s->probed_ns < WQ__SIDE_PROBE_NS)
        return;
    s->probed = true;
    s->probed_ns = real_ns;
    probe_behind(s, queue, now_ns, all ? WQ__SIDE_SESSIONS : WQ__SIDE_PEERS);
}

int64_t
wq__side_find_ended(struct wq__side *s, uint32_t queue, int64_t now_ns,
                    bool probe)
{
    probe_if_due(s, queue, now_ns, probe);
    for (int i = 0; i < top(s); i++)
        if (wq__side_is_of(s, i, queue) && settle(s, i, now_ns, false))
            return id_of(s, i);
    return 0;
}

int64_t
wq__side_next_end(struct wq__side *s, uint32_t queue)
{
    int64_t first = WQ_FOREVER;

    for (int i = 0; i < top(s); i++) {
        const int64_t until = until_of(s, i);
        if (wq__side_is_of(s, i, queue) && !is_own(s, i) &&
            until != WQ__SIDE_ENDED && until < first)
            first = until;
    }
    return first;
}

size_t
wq__side_sessions(struct wq__side *s, uint32_t queue)
{
    size_t n = 0;

    for (int i = 0; i < top(s); i++)
        n += wq__side_is_of(s, i, queue) && until_of(s, i) != WQ__SIDE_ENDED;
    return n;
}

size_t
wq__side_all_sessions(struct wq__side *s)
{
    size_t n = 0;

    for (int i = 0; i < top(s); i++)
        n += id_of(s, i) != 0 && until_of(s, i) != WQ__SIDE_ENDED &&
             !is_for_other(s, i);
    return n;
}

/* ---- end ----------------------------------------------------------------- */

/* Give up the own slot. With s->lock: renew() must not meet the next session in
 * it, which can begin as soon as the byte is unlocked. */
static void
leave_slot(struct wq__side *s)
{
    wq__side_close_bell(s);
    wq__side_forget_peers(s);
    wq__side_unlock_byte(s, 1 + s->slot);
    s->slot = -1;
    s->id = 0;
}

void
wq__side_end(struct wq__side *s)
{
    wq__lock_take(&s->lock);
    if (s->slot >= 0) {
        if (id_of(s, s->slot) == s->id)
            free_slot(s, s->slot);
        wq__side_unlink_bell(s, s->slot);
        leave_slot(s);
    }
    wq__lock_release(&s->lock);
}

void
wq__side_bury(struct wq__side *s, int64_t id)
{
    const int i = id ? find(s, id) : -1;

    if (i < 0)
        return;
    if (is_own(s, i)) {
        wq__side_end(s);
        return;
    }
    free_slot(s, i);
    wq__side_unlink_bell(s, i);
}

/* ---- begin --------------------------------------------------------------- */

/* The session before, which the caller did not end: it stays to be found. */
static void
give_up_session(struct wq__side *s)
{
    wq__lock_take(&s->lock);
    if (s->slot >= 0) {
        if (id_of(s, s->slot) == s->id)
            atomic_store_explicit(&wq__side_slot(s, s->slot)->until,
                                  WQ__SIDE_ENDED, memory_order_seq_cst);
        leave_slot(s);
    }
    wq__lock_release(&s->lock);
}

/* Lock the byte of a free slot. The byte of a free slot can be locked: by a
 * process whose session ended by time, and which has not noticed. */
static wq_err
take_free_slot(struct wq__side *s, int *out)
{
    for (int i = 0; i < WQ__SIDE_SESSIONS; i++) {
        if (id_of(s, i) != 0)
            continue;
        const wq_err err = wq__side_lock_byte(s, 1 + i);
        if (err == WQ_ESTATE)
            continue;
        *out = i;
        return err;
    }
    return WQ_EFULL;
}

/* Free the slots of dead sessions of queues that nobody uses: nobody else looks
 * for them. Their keys are recovered when the queue is opened. */
static void
free_forgotten(struct wq__side *s)
{
    for (int i = 0; i < top(s); i++)
        if (id_of(s, i) != 0)
            (void)settle(s, i, INT64_MIN, true);
    for (int i = 0; i < top(s); i++) {
        const uint32_t queue = atomic_load_explicit(&wq__side_slot(s, i)->queue,
                                                    memory_order_relaxed);
        if (id_of(s, i) == 0 || wq__side_sessions(s, queue) > 0)
            continue;
        wq__side_unlink_bell(s, i);
        free_slot(s, i);
    }
}

static wq_err
choose_id(struct wq__side *s, int64_t *out)
{
    uint64_t random;

    do {
        if (wq__random(&random, sizeof random))
            return wq_fail(WQ_EIO,
                           "cannot begin a session in '%s': no random "
                           "numbers: %s",
                           s->dir, strerror(errno));
        *out = (int64_t)(random & INT64_MAX);
    } while (*out == 0 || find(s, *out) >= 0);
    return WQ_OK;
}

/* Write the slot; `id` last. */
static void
occupy(struct wq__side *s, int i, int64_t id, uint32_t queue, int64_t until_ns,
       const struct wq__process *p)
{
    struct wq__side_slot *slot = wq__side_slot(s, i);

    /* Readers without the lock that see a field of this session also see that
     * the id before is gone; pairs with the fence in wq__side_read_process(). */
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&slot->pid, p->pid, memory_order_relaxed);
    atomic_store_explicit(&slot->start, p->start, memory_order_relaxed);
    atomic_store_explicit(&slot->pid_ns, p->pid_ns, memory_order_relaxed);
    atomic_store_explicit(&slot->time_ns, p->time_ns, memory_order_relaxed);
    atomic_store_explicit(&slot->is_for_other, p != &s->self,
                          memory_order_relaxed);
    atomic_store_explicit(&slot->queue, queue, memory_order_relaxed);
    atomic_store_explicit(&slot->sleeping, WQ__AWAKE, memory_order_relaxed);
    atomic_store_explicit(&slot->wants, 0, memory_order_relaxed);
    atomic_store_explicit(&slot->until, until_ns, memory_order_seq_cst);
    if (s->m->top <= (uint32_t)i)
        s->m->top = (uint32_t)i + 1;
    atomic_store_explicit(&slot->id, id, memory_order_release);
}

/* The thread in wait(), or the user of fd(), sleeps on with the new session. */
static wq_err
enter_slot(struct wq__side *s, int i, int64_t id, uint32_t queue)
{
    wq__lock_take(&s->lock);
    s->slot = i;
    s->id = id;
    s->queue = queue;
    const bool failed =
        (s->waiting || s->watched) && wq__side_open_bell(s) != 0;
    const int cause = errno;
    if (!failed && (s->waiting || s->watched)) {
        wq__side_lie_down(s);
        wq__side_watch_peers(s);
    }
    wq__lock_release(&s->lock);
    if (!failed || !s->watched)
        return WQ_OK; /* wait() looks now and then */
    return wq_fail(WQ_EIO, "cannot make '%s/bell.%d': %s", s->dir, i,
                   strerror(cause));
}

static wq_err
find_place(struct wq__side *s, int *slot, int64_t *id)
{
    wq_err err = choose_id(s, id);
    if (err)
        return err;
    if ((err = take_free_slot(s, slot)) == WQ_EFULL) {
        free_forgotten(s);
        err = take_free_slot(s, slot);
    }
    if (err == WQ_EFULL)
        return wq_fail(WQ_EFULL,
                       "'%s' has %d sessions, which is the maximum; close "
                       "handles of the database",
                       s->dir, WQ__SIDE_SESSIONS);
    if (err)
        return wq_fail(err, "cannot lock '%s': %s", s->file, strerror(errno));
    return WQ_OK;
}

wq_err
wq__side_begin(struct wq__side *s, uint32_t queue, int64_t until_ns,
               int64_t *id)
{
    int     slot = -1;
    int64_t new_id;

    give_up_session(s);
    wq_err err = find_place(s, &slot, &new_id);
    if (err)
        return err;
    wq__side_unlink_bell(s, slot); /* of a session whose process was killed */
    occupy(s, slot, new_id, queue, until_ns, &s->self);
    note_change(s, queue);
    err = enter_slot(s, slot, new_id, queue);
    if (err) {
        wq__side_end(s);
        return err;
    }
    wq__side_ring(s, queue, WQ__SIDE_SESSIONS);
    *id = new_id;
    return WQ_OK;
}

/* ---- for another process ------------------------------------------------- */

/* The slot of the session of `p` that is for another; -1: none. */
static int
find_for(struct wq__side *s, uint32_t queue, const struct wq__process *p)
{
    struct wq__process its;

    for (int i = 0; i < top(s); i++) {
        if (!wq__side_is_of(s, i, queue) || !is_for_other(s, i) ||
            until_of(s, i) == WQ__SIDE_ENDED)
            continue;
        (void)wq__side_read_process(s, i, &its);
        if (its.pid == p->pid && its.start == p->start &&
            its.pid_ns == p->pid_ns)
            return i;
    }
    return -1;
}

wq_err
wq__side_begin_for(struct wq__side *s, uint32_t queue, uint32_t pid,
                   int64_t *id)
{
    struct wq__process p;
    int64_t            new_id = 0;

    if (!wq__process_find(pid, &s->self, &p))
        return wq_fail(WQ_EINVAL, "there is no process %u to hold keys",
                       (unsigned)pid);
    int slot = find_for(s, queue, &p);
    if (slot >= 0) {
        *id = id_of(s, slot);
        return WQ_OK;
    }
    const wq_err err = find_place(s, &slot, &new_id);
    if (err)
        return err;
    wq__side_unlink_bell(s, slot);
    occupy(s, slot, new_id, queue, WQ_FOREVER, &p);
    wq__side_unlock_byte(s, 1 + slot);
    note_change(s, queue);
    wq__side_ring(s, queue, WQ__SIDE_SESSIONS); /* others watch the process */
    *id = new_id;
    return WQ_OK;
}

/* Not up to `top`, which another layout may not have. */
bool
wq__side_is_held(struct wq__side *s)
{
    struct wq__process p;

    for (int i = 0; i < WQ__SIDE_SESSIONS; i++)
        if (is_for_other(s, i) && until_of(s, i) != WQ__SIDE_ENDED &&
            wq__side_read_process(s, i, &p) != 0 &&
            !wq__process_is_gone(&p, &s->self))
            return true;
    return false;
}
