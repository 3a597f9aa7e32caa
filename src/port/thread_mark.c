/* SPDX-License-Identifier: MIT */
/* thread_mark.c: numbers for threads; see thread_mark.h.
 *
 * A bitmap holds the numbers in use. Taking a number acquires, giving it back
 * releases. All writes to a word of the bitmap are read-modify-writes, which
 * keep the release sequence: so a thread that takes a number sees what happened
 * before every earlier release in that word. There is no lock that a fork()
 * could leave taken.
 *
 * The destructor of a thread-specific key runs when a thread ends. The key is
 * deleted when the library is unloaded: otherwise it would call code that is
 * gone.
 */
#include "port/thread_mark.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { WORD = 64, WORDS = WQ__THREAD_NUMBERS / WORD };

_Static_assert(WQ__THREAD_NUMBERS % WORD == 0,
               "no bit of the bitmap is left over");

_Thread_local unsigned wq__thread_mark_number     WQ__THREAD_MARK_NEAR;
_Thread_local uint32_t wq__thread_mark_serial_own WQ__THREAD_MARK_NEAR;

uint32_t
wq__thread_mark_new_serial(void)
{
    static _Atomic uint32_t last; /* only its own value matters: relaxed */

    while (!wq__thread_mark_serial_own)
        wq__thread_mark_serial_own =
            atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
    return wq__thread_mark_serial_own;
}

/* The number was given back. Other destructors of the thread may still report,
 * and must not take a number that would never be given back. */
static _Thread_local bool has_ended WQ__THREAD_MARK_NEAR;

static _Atomic uint64_t taken[WORDS]; /* bit b of word w: number 64w + b + 1 */
static pthread_key_t    ending;       /* its value: &wq__thread_mark_number */
/* `ending` can be used. Changes when the library is loaded and unloaded; a
 * thread that sees an old value gets 0, or an error from the key. */
static atomic_bool usable;

static void
give_back(unsigned number)
{
    const unsigned bit = number - 1;

    /* Pairs with claim_in(): what this thread did happens before. */
    (void)atomic_fetch_and_explicit(
        &taken[bit / WORD], ~(UINT64_C(1) << bit % WORD), memory_order_release);
}

/* The destructor: the thread ends. */
static void
end(void *value)
{
    unsigned      *own = value;
    const unsigned number = *own;

    *own = 0;
    has_ended = true;
    give_back(number);
}

/* Take a number of word `w`, or return 0. */
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
    unsigned number = 0;

    for (unsigned w = 0; w < WORDS && !number; w++)
        number = claim_in(w);
    return number;
}

unsigned
wq__thread_mark_take_number(void)
{
    if (wq__thread_mark_number || has_ended ||
        !atomic_load_explicit(&usable, memory_order_acquire))
        return wq__thread_mark_number;
    const unsigned number = claim();
    /* Without the key the number would never be given back. */
    if (number && pthread_setspecific(ending, &wq__thread_mark_number) != 0) {
        give_back(number);
        return 0;
    }
    wq__thread_mark_number = number;
    return number;
}

/* ---- the library is loaded and unloaded ---------------------------------- */

__attribute__((constructor)) static void
load(void)
{
    const bool made = pthread_key_create(&ending, end) == 0;
    /* Pairs with the load in wq__thread_mark_take_number(): the key exists. */
    atomic_store_explicit(&usable, made, memory_order_release);
}

__attribute__((destructor)) static void
unload(void)
{
    if (atomic_exchange(&usable, false))
        (void)pthread_key_delete(ending);
}
