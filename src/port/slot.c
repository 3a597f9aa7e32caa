/* SPDX-License-Identifier: MIT */
/* slot.c: numbers for threads; see slot.h.
 *
 * A bitmap of the numbers in use. Taking one acquires, giving it back releases.
 * All writes to a word of the bitmap are read-modify-writes, so whoever takes a
 * number sees what was done before any earlier giving back in that word: the
 * release sequence is never broken. There is no lock, so that a fork() cannot
 * leave one taken.
 *
 * The end of a thread is told by a key of thread-specific data. It lives as
 * long as the library is loaded: a key that stayed behind would call code that
 * is no longer there.
 */
#include "port/slot.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { WORD = 64, WORDS = WQ__SLOTS / WORD };

_Static_assert(WQ__SLOTS % WORD == 0, "no bit of the bitmap is left over");

_Thread_local unsigned wq__slot_own        WQ__SLOT_NEAR;
_Thread_local uint32_t wq__slot_serial_own WQ__SLOT_NEAR;

uint32_t
wq__slot_new_serial(void)
{
    static _Atomic uint32_t last; /* nothing but its own value matters */

    while (!wq__slot_serial_own)
        wq__slot_serial_own =
            atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
    return wq__slot_serial_own;
}

/* The number was given back: other destructors of the thread may still report,
 * and must not take one that nobody would give back. */
static _Thread_local bool has_ended WQ__SLOT_NEAR;

static _Atomic uint64_t taken[WORDS]; /* bit b of word w: number 64w + b + 1 */
static pthread_key_t    ending;       /* its value: where the number is */
/* `ending` can be used. Written before and after all threads, as it were: a
 * thread that sees an old value gets 0, or an error from the key. */
static atomic_bool usable;

static void
give_back(unsigned slot)
{
    const unsigned bit = slot - 1;

    /* Pairs with claim_in(): what this thread did comes before. */
    (void)atomic_fetch_and_explicit(
        &taken[bit / WORD], ~(UINT64_C(1) << bit % WORD), memory_order_release);
}

/* The thread ends. */
static void
end(void *value)
{
    unsigned      *own = value;
    const unsigned slot = *own;

    *own = 0;
    has_ended = true;
    give_back(slot);
}

/* A number of this word, or 0. */
static unsigned
claim_in(unsigned w)
{
    uint64_t seen = atomic_load_explicit(&taken[w], memory_order_relaxed);

    while (~seen) {
        const uint64_t lowest = ~seen & (seen + 1);
        /* Acquire pairs with give_back(). */
        if (atomic_compare_exchange_weak_explicit(
                &taken[w], &seen, seen | lowest, memory_order_acquire,
                memory_order_relaxed)) {
            unsigned bit = 0;
            while (lowest >> bit != 1)
                bit++;
            return w * WORD + bit + 1;
        }
    }
    return 0;
}

static unsigned
claim(void)
{
    unsigned slot = 0;

    for (unsigned w = 0; w < WORDS && !slot; w++)
        slot = claim_in(w);
    return slot;
}

unsigned
wq__slot_take(void)
{
    if (wq__slot_own || has_ended ||
        !atomic_load_explicit(&usable, memory_order_acquire))
        return wq__slot_own;
    const unsigned slot = claim();
    /* Without memory for the value nobody would give it back. */
    if (slot && pthread_setspecific(ending, &wq__slot_own) != 0) {
        give_back(slot);
        return 0;
    }
    wq__slot_own = slot;
    return slot;
}

/* ---- the library is loaded and unloaded ---------------------------------- */

__attribute__((constructor)) static void
load(void)
{
    const bool made = pthread_key_create(&ending, end) == 0;
    /* Pairs with the load in wq__slot_take(): the key is there. */
    atomic_store_explicit(&usable, made, memory_order_release);
}

__attribute__((destructor)) static void
unload(void)
{
    if (atomic_exchange(&usable, false))
        (void)pthread_key_delete(ending);
}
