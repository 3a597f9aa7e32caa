/* SPDX-License-Identifier: MIT */
/* memory.c: how many bytes does a key take, its own included?
 *
 * Keys are made one by one and not kept: the queue's copy is the only one. The
 * figures are the bytes that malloc() has allocated, and the growth of the
 * process as the kernel counts it.
 */
#include <malloc.h>
#include <stdio.h>
#include <unistd.h>

#include "bench.h"

#define HOUR INT64_C(3600000000000)

/* Only glibc defines the second macro, so that both cannot be in one
 * condition. */
#if defined(__GLIBC__)
#define HAVE_MALLINFO2 __GLIBC_PREREQ(2, 33)
#else
#define HAVE_MALLINFO2 0
#endif

/* Only glibc reports it; without glibc there is no such row. */
static double
allocated(void)
{
#if HAVE_MALLINFO2
    const struct mallinfo2 m = mallinfo2();
    return (double)m.uordblks + (double)m.hblkhd;
#else
    bench_need(false);
    return 0;
#endif
}

static double
resident(void)
{
    unsigned long pages = 0;
    FILE         *f = fopen("/proc/self/statm", "r");

    bench_need(f != NULL);
    must(fscanf(f, "%*u %lu", &pages) == 1, "reading statm");
    (void)fclose(f);
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

static void
measure(const struct side *s, size_t n,
        void (*add)(const struct side *, void *, wq_key))
{
    const size_t keys = bench_scaled(n);
    char         text[KEY_LEN + 1];
    void        *q = s->create();

    const double bytes = allocated(), rss = resident();
    for (size_t i = 0; i < keys; i++) {
        bench_write_key(text, i);
        add(s, q, (wq_key){text, KEY_LEN});
    }
    bench_print("bytes", (allocated() - bytes) / (double)keys);
    bench_print("rss_bytes", (resident() - rss) / (double)keys);
    s->destroy(q);
}

static void
add_now(const struct side *s, void *q, wq_key key)
{
    s->add(q, key);
}

static void
add_later(const struct side *s, void *q, wq_key key)
{
    s->add_after(q, key, HOUR);
}

static void
pending(const struct side *s, size_t n)
{
    measure(s, n, add_now);
}

static void
waiting(const struct side *s, size_t n)
{
    bench_need(s->add_after);
    measure(s, n, add_later);
}

/* `n` queues with one key each: bytes for each queue */
static void
many_queues(const struct side *s, size_t n)
{
    static void *queues[10000];
    char         text[KEY_LEN + 1];

    must(n <= sizeof queues / sizeof queues[0], "number of queues");
    const double bytes = allocated(), rss = resident();
    for (size_t i = 0; i < n; i++) {
        bench_write_key(text, i);
        queues[i] = s->create();
        s->add(queues[i], (wq_key){text, KEY_LEN});
    }
    bench_print("bytes", (allocated() - bytes) / (double)n);
    bench_print("rss_bytes", (resident() - rss) / (double)n);
    for (size_t i = 0; i < n; i++)
        s->destroy(queues[i]);
}

const struct row rows_memory[] = {
    {"memory-pending", pending, 1000000},
    {"memory-waiting", waiting, 1000000},
    {"memory-10m", pending, 10000000},
    {"memory-queues", many_queues, 10000},
    {NULL, NULL, 0},
};
