/* SPDX-License-Identifier: MIT */
/* measure.c: how are shared queues measured? See stores.h. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>

#include "bench.h"
#include "crew.h"
#include "stores/stores.h"

const size_t thread_counts[THREAD_COUNTS] = {1, 8, CREW_MOST};

bool bench_is_quick;

/* ---- time ------------------------------------------------------------------ */

double
cpu_ns(void)
{
    return bench_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

double
span_ns(void)
{
    return bench_is_quick ? 5e6 : 300e6;
}

size_t
scaled(size_t n)
{
    return bench_is_quick && n > 50 ? n / 50 : n;
}

/* ---- cycles ---------------------------------------------------------------- */

void
must_ok(wq_err err, const char *what)
{
    if (err)
        (void)fprintf(stderr, "bench: %s: %s\n", what, wq_last_error());
    must(!err, what);
}

void
cycle_with_get(struct member *m, wq_key key)
{
    wq_item *item;

    must_ok(wq_add(m->queue, key), "wq_add");
    must_ok(wq_get(m->queue, &item), "wq_get");
    must_ok(wq_done(m->queue, item), "wq_done");
}

void
cycle_with_next(struct member *m, wq_key key)
{
    must_ok(wq_add(m->queue, key), "wq_add");
    must_ok(wq_next_with(m->queue, wq_result_done(), WQ_FOREVER, &m->item),
            "wq_next_with");
}

/* ---- idle ------------------------------------------------------------------ */

static void *
wait_for_key(void *arg)
{
    wq_item *item;

    must(wq_get(arg, &item) == WQ_ESHUTDOWN, "wq_get without a key");
    return NULL;
}

static struct rusage
usage(void)
{
    struct rusage r;

    must(getrusage(RUSAGE_SELF, &r) == 0, "getrusage");
    return r;
}

void
print_idle(wq_queue *q)
{
    const double seconds = bench_is_quick ? 0.2 : 10;
    pthread_t    thread;

    must(!pthread_create(&thread, NULL, wait_for_key, q), "pthread_create");
    bench_sleep_ns(50000000); /* the thread is asleep now */
    const double        cpu = cpu_ns();
    const struct rusage before = usage();
    bench_sleep_ns((int64_t)(seconds * 1e9));
    const double switches = (double)(usage().ru_nvcsw - before.ru_nvcsw - 1);
    const double percent = (cpu_ns() - cpu) / (seconds * 1e9) * 100;

    printf("\n| a process that waits for %g s | |\n|---|--:|\n"
           "| CPU, %% | %.4f |\n| wake-ups/s | %.1f |\n",
           seconds, percent, switches / seconds);
    demand_at_most(0.05, percent, " %", "idle process: CPU");
    demand_at_most(2, switches / seconds, "/s", "idle process: wake-ups");
    wq_shutdown(q);
    pthread_join(thread, NULL);
}

/* ---- parts ----------------------------------------------------------------- */

void
print_machine(const char *when, const char *store, const char *version)
{
    double         load[3] = {0};
    struct utsname u;

    (void)getloadavg(load, 3);
    must(uname(&u) == 0, "uname");
    printf("%s: load %.2f %.2f %.2f; %s %s; %s %s\n", when, load[0], load[1],
           load[2], store, version, u.sysname, u.release);
}

static bool
is_named(const char *name, size_t len, const struct part *p)
{
    return strlen(p->name) == len && strncmp(p->name, name, len) == 0;
}

static bool
is_chosen(const char *only, const struct part *p)
{
    size_t len;

    for (const char *at = only; at; at = at[len] ? at + len + 1 : NULL) {
        len = strcspn(at, ",");
        if (is_named(at, len, p))
            return true;
    }
    return !only;
}

bool
parts_exist(const struct part *parts, size_t n, const char *only)
{
    size_t len;

    for (const char *at = only; at; at = at[len] ? at + len + 1 : NULL) {
        bool found = false;

        len = strcspn(at, ",");
        for (size_t i = 0; i < n; i++)
            found |= is_named(at, len, &parts[i]);
        if (!found) {
            (void)fprintf(stderr, "--only: there is no part '%.*s'\n", (int)len,
                          at);
            return false;
        }
    }
    return true;
}

void
parts_run(const struct part *parts, size_t n, const char *only, size_t rounds)
{
    for (size_t i = 0; i < rounds; i++)
        for (size_t k = 0; k < n; k++)
            if (parts[k].measure && is_chosen(only, &parts[k]))
                parts[k].measure(i);
    for (size_t k = 0; k < n; k++)
        if (is_chosen(only, &parts[k]))
            parts[k].print(rounds);
}
