/* SPDX-License-Identifier: MIT */
/* futex.c: how long does it take at least to wake a thread?
 *
 * One word: an add sets it and calls the kernel, a get sleeps until it is set.
 * There is no key, no lock and no order: not a queue, but a lower bound for the
 * row `wake`.
 */
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bench.h"

enum { EMPTY, KEY, CLOSED };

struct word {
    _Atomic uint32_t state;
};

static void *
create(void)
{
    struct word *w = calloc(1, sizeof *w);
    must(w != NULL, "calloc");
    return w;
}

static void
set(struct word *w, uint32_t state)
{
    atomic_store(&w->state, state);
    (void)syscall(SYS_futex, &w->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void
add(void *q, wq_key key)
{
    (void)key;
    set(q, KEY);
}

static bool
get(void *q, void **item)
{
    struct word *w = q;

    while (atomic_load(&w->state) == EMPTY)
        (void)syscall(SYS_futex, &w->state, FUTEX_WAIT_PRIVATE, EMPTY, NULL,
                      NULL, 0);
    *item = w;
    return atomic_load(&w->state) == KEY;
}

static void
done(void *q, void *item)
{
    (void)item;
    atomic_store(&((struct word *)q)->state, EMPTY);
}

static void
shutdown(void *q)
{
    set(q, CLOSED);
}

const struct side bench_side = {
    .only = " wake ",
    SIDE_VERBS,
    .shutdown = shutdown,
    .destroy = free,
};
