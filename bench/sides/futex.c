/* SPDX-License-Identifier: MIT */
/* futex.c: how long does it take at least to wake a thread?
 *
 * One word, the number of keys: an add raises it and calls the kernel, a get
 * sleeps while it is 0. (A flag would merge two adds if the getter is late, and
 * every later get would be compared with the wrong add.) There is no key, no
 * lock and no order: not a queue, but a lower bound for the row `wake`.
 */
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bench.h"

#define CLOSED (UINT32_C(1) << 31)

struct word {
    _Atomic uint32_t keys; /* with CLOSED: after the shutdown */
};

static void *
create(void)
{
    struct word *w = calloc(1, sizeof *w);
    must(w != NULL, "calloc");
    return w;
}

static void
wake(struct word *w)
{
    (void)syscall(SYS_futex, &w->keys, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void
add(void *q, wq_key key)
{
    struct word *w = q;

    (void)key;
    atomic_fetch_add(&w->keys, 1);
    wake(w);
}

static bool
get(void *q, void **item)
{
    struct word *w = q;

    while (atomic_load(&w->keys) == 0)
        (void)syscall(SYS_futex, &w->keys, FUTEX_WAIT_PRIVATE, 0, NULL, NULL,
                      0);
    *item = w;
    return atomic_load(&w->keys) != CLOSED;
}

static void
done(void *q, void *item)
{
    (void)item;
    atomic_fetch_sub(&((struct word *)q)->keys, 1);
}

static void
shutdown(void *q)
{
    struct word *w = q;

    atomic_fetch_or(&w->keys, CLOSED);
    wake(w);
}

const struct side bench_side = {
    .only = " wake ",
    SIDE_VERBS,
    .shutdown = shutdown,
    .destroy = free,
};
