/* SPDX-License-Identifier: MIT */
/* side_lock.c: who may write to the database, and who is next?
 *
 * The writer lock is a lock of the kernel, which wakes those that wait for it but
 * does not hand it over: a handle that has just released it, and takes it again
 * for its next transaction, is faster than any that must wake up first. That is
 * good for a while, since each change costs a wake-up. So handles take turns: one
 * that has had the lock for `turn_ns`, again and again, while others want it,
 * sleeps before it takes the lock once more, until another one has it.
 *
 * This is a courtesy, and not what excludes writers: `wants` and `holder` can be
 * wrong, and then a handle sleeps in vain, or has two turns. A process that is
 * stopped while it wants the lock keeps nobody from it: the nap is over after
 * `naps` steps, and the next turns are longer. After a nap in vain, the kernel is
 * asked which of those that want the lock have died: they want nothing more.
 *
 * Cost: lock and unlock 1 us if nobody else has the lock: two fcntl(), a stat(),
 * and a look at the slots in use.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>

#include "error/error.h"
#include "port/time.h"
#include "side_inside.h"

/* ---- locks --------------------------------------------------------------- */

static struct flock
span(short type, int at, int n)
{
    return (struct flock){
        .l_type = type,
        .l_whence = SEEK_SET,
        .l_start = at,
        .l_len = n,
    };
}

/* EINVAL: a kernel without these locks; the others: a file system. */
static wq_err
why_no_lock(int cause)
{
    return cause == EINVAL || cause == ENOLCK || cause == EOPNOTSUPP ||
                   cause == ENOSYS
               ? WQ_ENOTSUP
               : WQ_EIO;
}

wq_err
wq__side_lock_byte(struct wq__side *s, int at)
{
    struct flock one = span(F_WRLCK, at, 1);

    if (fcntl(s->state_fd, F_OFD_SETLK, &one) == 0)
        return WQ_OK;
    return errno == EAGAIN || errno == EACCES ? WQ_ESTATE : why_no_lock(errno);
}

void
wq__side_unlock_byte(struct wq__side *s, int at)
{
    struct flock one = span(F_UNLCK, at, 1);

    (void)fcntl(s->state_fd, F_OFD_SETLK, &one);
}

bool
wq__side_is_locked(struct wq__side *s, int at, int n)
{
    struct flock some = span(F_WRLCK, at, n);

    return fcntl(s->state_fd, F_OFD_GETLK, &some) != 0 ||
           some.l_type != F_UNLCK;
}

wq_err
wq__side_wait_for_lock(struct wq__side *s)
{
    struct flock one = span(F_WRLCK, WQ__SIDE_WRITER, 1);

    while (fcntl(s->state_fd, F_OFD_SETLKW, &one) != 0)
        if (errno != EINTR) {
            const wq_err err = why_no_lock(errno);
            return wq_fail(err, "cannot lock '%s': %s%s", s->file,
                           strerror(errno),
                           err == WQ_ENOTSUP ? "; put the database on a local "
                                               "file system"
                                             : "");
        }
    return WQ_OK;
}

/* ---- turns --------------------------------------------------------------- */

/* With 1 ms, four processes that write all the time get shares of 0.8 or more of
 * the largest one, and write a tenth less than without turns; with 2 ms 0.7, with
 * 0.5 ms a sixth less (bench_sqlite --only processes). */
enum { NAP_NS = 20000, MOST_TURN_NS = 64 * WQ__SIDE_TURN_NS };

static _Atomic int64_t *
holder(struct wq__side *s)
{
    return &s->m->holder;
}

/* Relaxed, here and below: these words guard nothing. */
static bool
was_last(struct wq__side *s)
{
    return s->id &&
           atomic_load_explicit(holder(s), memory_order_relaxed) == s->id;
}

/* Those without a session, which open the database, are not seen: that made no
 * difference to how long an open takes beside one or three busy processes (4 to
 * 8 ms with all of its transactions). */
static void
want(struct wq__side *s, bool wants)
{
    if (s->slot >= 0)
        atomic_store_explicit(&wq__side_slot(s, s->slot)->wants, wants,
                              memory_order_relaxed);
}

static bool
is_wanted_by(const struct wq__side *s, int i)
{
    return i != s->slot && atomic_load_explicit(&wq__side_slot(s, i)->wants,
                                                memory_order_relaxed);
}

/* With the lock. */
static bool
is_wanted(const struct wq__side *s)
{
    for (uint32_t i = 0; i < s->m->top; i++)
        if (is_wanted_by(s, (int)i))
            return true;
    return false;
}

/* With the lock: those that have died want nothing. Sessions of their queue would
 * find that within a second, but nobody may use that queue. */
static void
forget_dead(struct wq__side *s)
{
    s->in_vain = false;
    for (uint32_t i = 0; i < s->m->top; i++) {
        struct wq__side_slot *slot = wq__side_slot(s, (int)i);
        const int64_t         id =
            atomic_load_explicit(&slot->id, memory_order_relaxed);

        if (is_wanted_by(s, (int)i) && !wq__side_is_live(s, id, INT64_MIN))
            atomic_store_explicit(&slot->wants, 0, memory_order_relaxed);
    }
}

/* With the lock: does a turn begin? */
static void
note_holder(struct wq__side *s)
{
    if (was_last(s))
        return;
    atomic_store_explicit(holder(s), s->id, memory_order_relaxed);
    s->turn_began_ns = wq__time_now();
}

/* Without the lock: sleep until another handle has it. If none takes it, those
 * that want it do not run: have a longer turn before the next try. */
static void
let_others(struct wq__side *s)
{
    const struct timespec nap = {.tv_nsec = NAP_NS};

    s->yields = false;
    for (int i = 0; i < s->naps && was_last(s); i++)
        (void)nanosleep(&nap, NULL);
    if (!was_last(s)) {
        s->turn_ns = WQ__SIDE_TURN_NS;
        return;
    }
    s->in_vain = true;
    s->turn_began_ns = wq__time_now();
    if (s->turn_ns < MOST_TURN_NS)
        s->turn_ns *= 2;
}

/* ---- the writer lock ----------------------------------------------------- */

/* Is `state` the file that was opened? Else it may be cut, or have another
 * layout: do not touch it. With the lock the answer is certain; without it, it is
 * what was true a moment ago. */
static bool
is_ours(const struct wq__side *s)
{
    return wq__side_is_in_place(s, sizeof *s->m) &&
           atomic_load_explicit(&s->m->made, memory_order_relaxed) == s->made;
}

static wq_err
take(struct wq__side *s)
{
    wq_err err = wq__side_lock_byte(s, WQ__SIDE_WRITER);

    if (err == WQ_OK)
        return WQ_OK;
    if (is_ours(s))
        want(s, true);
    err = wq__side_wait_for_lock(s);
    if (is_ours(s))
        want(s, false);
    return err;
}

wq_err
wq__side_lock(struct wq__side *s)
{
    if (s->yields && is_ours(s))
        let_others(s);
    const wq_err err = take(s);
    if (err)
        return err;

    if (is_ours(s)) {
        note_holder(s);
        if (s->in_vain)
            forget_dead(s);
        return WQ_OK;
    }
    wq__side_unlock_byte(s, WQ__SIDE_WRITER);
    return wq_fail(WQ_EAWAY,
                   "'%s' was deleted or replaced while processes use the "
                   "database; stop all of them and start them again",
                   s->dir);
}

void
wq__side_unlock(struct wq__side *s)
{
    s->yields = is_wanted(s) && wq__time_now() - s->turn_began_ns >= s->turn_ns;
    wq__side_unlock_byte(s, WQ__SIDE_WRITER);
}
