/* SPDX-License-Identifier: MIT */
/* lock.c: what does a thread do that finds the lock taken? See lock.h. */
#include "port/lock.h"

#include <errno.h>

#include "port/race.h"
#include "port/relax.h"

/* ---- priority inheritance ------------------------------------------------ */

static wq_err
init_mutex(pthread_mutex_t *mutex)
{
    pthread_mutexattr_t attr;
    int                 rc = pthread_mutexattr_init(&attr);

    if (rc != 0)
        return WQ_ENOMEM;
    rc = pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
    if (rc == 0)
        rc = pthread_mutex_init(mutex, &attr);
    (void)pthread_mutexattr_destroy(&attr);
    if (rc == 0)
        return WQ_OK;
    return rc == ENOMEM ? WQ_ENOMEM : WQ_ENOTSUP;
}

wq_err
wq__lock_init_inheriting(struct wq__lock *l)
{
#if WQ__HAVE_FUTEX
    atomic_init(&l->word, 0);
    l->kind = WQ__LOCK_MUTEX;
#endif
    return init_mutex(&l->mutex);
}

#if WQ__HAVE_FUTEX

void
wq__lock_init(struct wq__lock *l)
{
    atomic_init(&l->word, 0);
    l->kind = WQ__LOCK_PLAIN;
    if (wq__race_is_watched()) {
        l->kind = WQ__LOCK_WATCHED;
        wq__race_disable_checking(l, sizeof *l); /* the word */
    }
}

void
wq__lock_fini(struct wq__lock *l)
{
    if (l->kind == WQ__LOCK_MUTEX)
        (void)pthread_mutex_destroy(&l->mutex);
    if (l->kind == WQ__LOCK_WATCHED)
        wq__race_enable_checking(l, sizeof *l);
}

/* ---- locks that are not plain -------------------------------------------- */

bool
wq__lock_try_kind(struct wq__lock *l)
{
    if (l->kind == WQ__LOCK_MUTEX)
        return pthread_mutex_trylock(&l->mutex) == 0;
    if (!wq__lock_try_word(l))
        return false;
    wq__race_acquire(l);
    return true;
}

void
wq__lock_take_kind(struct wq__lock *l)
{
    if (l->kind == WQ__LOCK_MUTEX) {
        (void)pthread_mutex_lock(&l->mutex);
        return;
    }
    wq__lock_take_word(l);
    wq__race_acquire(l);
}

void
wq__lock_release_kind(struct wq__lock *l)
{
    if (l->kind == WQ__LOCK_MUTEX) {
        (void)pthread_mutex_unlock(&l->mutex);
        return;
    }
    wq__race_release(l);
    wq__lock_release_word(l);
}

/* ---- waiting ------------------------------------------------------------- */

/* How many pauses a thread makes before it sleeps: a pause takes 10 to 50 ns, a
 * sleep and its wake-up several microseconds. More pauses would waste time when
 * the holder is not running.
 *
 * The thread looks at the lock less and less often. What the lock guards is in
 * the cache of the processor that held it last: one processor does in a
 * microsecond what two processors in turn take several microseconds for. So a
 * waiter lets the holder go on for a while. */
enum { PAUSES = 256, PAUSES_AT_ONCE = 64 };

static bool
spin(struct wq__lock *l)
{
    int at_once = 2;

    for (int made = 0; made < PAUSES; made += at_once) {
        for (int i = 0; i < at_once; i++)
            wq__pause();
        if (atomic_load_explicit(&l->word, memory_order_relaxed) == 0 &&
            wq__lock_try_word(l))
            return true;
        if (at_once < PAUSES_AT_ONCE)
            at_once *= 2;
    }
    return false;
}

void
wq__lock_take_contended(struct wq__lock *l)
{
    if (spin(l))
        return;
    /* From here on the word becomes 2 even if no other thread sleeps: this
     * thread cannot know, and a needless wake-up is harmless, while a missing
     * one is not. */
    while (atomic_exchange_explicit(&l->word, 2, memory_order_acquire) != 0)
        (void)wq__futex_wait(&l->word, 2, WQ_FOREVER);
}

void
wq__lock_wake_one(struct wq__lock *l)
{
    wq__futex_wake_one(&l->word);
}

#endif
