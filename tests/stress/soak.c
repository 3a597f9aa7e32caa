/* SPDX-License-Identifier: MIT */
/* soak.c: do memory, descriptors and threads stay flat in a program that uses
 * queues for a long time?
 *
 *     soak [SECONDS]    60 unless given
 *
 * Three queues, in memory, in a file and in a Redis server, stay open all the
 * time; a pool works on each. In every round, visitors open the same file and
 * the same server once more, and queues in memory of their own; they add and
 * remove keys, delay them, poll the descriptor, work, look inside, and leave. At
 * the end of a round nothing is queued and every visitor has left. Then the
 * program reads its own figures: it needs Linux for them.
 *
 * The figures of the first quarter do not count: caches fill. After it, none may
 * exceed the largest of the second quarter by more than its allowance, and
 * descriptors and threads not at all.
 *
 * Exit status: 0, 1 if a figure has grown, 77 without a server, or if SECONDS are
 * too few for a round in every quarter.
 */
#define _GNU_SOURCE /* mallinfo2() */
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <wq/inspect.h>
#include <wq/limiter.h>
#include <wq/metrics.h>
#include <wq/redis.h>
#include <wq/sqlite.h>
#include <wq/workers.h>

#include "support/entries.h"
#include "support/must.h"
#include "support/redis_server.h"
#include "support/sqlite_queue.h"
#include "unit/dice.h"

enum {
    PLACES = 3,
    KEYS = 400, /* different ones */
    ADDS = 600, /* of a visitor, in a round */
    LINES = 40, /* of the table that is printed */
};

static struct redis_server server;
static wq_registry        *registry;
static _Atomic uint64_t    runs, aways;

static int64_t
now_ns(void)
{
    struct timespec t;

    MUST(!clock_gettime(CLOCK_MONOTONIC, &t));
    return t.tv_sec * WQ_SECONDS(1) + t.tv_nsec;
}

static void
nap_ms(int ms)
{
    MUST(poll(NULL, 0, ms) == 0);
}

/* Must a call be made again? A server on a busy machine may answer too late. */
static bool
is_away(wq_err err)
{
    if (err != WQ_EAWAY && err != WQ_EIO)
        return false;
    atomic_fetch_add(&aways, 1);
    nap_ms(20);
    return true;
}

/* The result of `call`, once the store has answered. */
#define ANSWER(err, call)                                                      \
    do                                                                         \
        (err) = (call);                                                        \
    while (is_away(err))

/* ---- queues --------------------------------------------------------------- */

static wq_err
try_open(int place, wq_queue **out)
{
    char             url[200];
    const wq_config *config =
        WQ_CONFIG(.name = "soak", .metrics = wq_registry_sink(registry),
                  .limiter = wq_limiter_exponential(WQ_MS(1), WQ_MS(20)));

    (void)snprintf(url, sizeof url, "redis+unix://%s?queue=soak",
                   server.socket);
    return place == 0   ? wq_create(config, out)
           : place == 1 ? wq_sqlite_open(sqlite_queue_path(), NULL, config, out)
                        : wq_redis_open(url, NULL, config, out);
}

static wq_queue *
open_place(int place)
{
    wq_queue *q = NULL;
    wq_err    err;

    ANSWER(err, try_open(place, &q));
    if (err)
        (void)fprintf(stderr, "soak: %s\n", wq_last_error());
    MUST(!err);
    return q;
}

/* Every eighth run fails, and every sixteenth wants another one. */
static wq_result
work(void *unused, const wq_item *item)
{
    const uint64_t n = atomic_fetch_add(&runs, 1);

    (void)unused, (void)item;
    return n % 8 == 0    ? wq_result_retry()
           : n % 16 == 1 ? wq_result_after(WQ_MS(2))
                         : wq_result_done();
}

static wq_workers *
start_pool(wq_queue *q, unsigned threads)
{
    wq_workers *pool = NULL;

    MUST(!wq_workers_start(q, WQ_WORKERS(.threads = threads, .handler = work),
                           &pool));
    return pool;
}

/* Until no key is queued, delayed or held, by any handle. */
static void
await_rest(wq_queue *q)
{
    wq_stats stats = {.size = sizeof stats};
    wq_err   err;

    do {
        nap_ms(2);
        ANSWER(err, wq_read_stats(q, &stats));
        MUST(!err);
    } while (stats.ready + stats.waiting + stats.held > 0);
}

/* ---- a round -------------------------------------------------------------- */

/* A key of 1 to 200 bytes. */
static wq_key
any_key(struct dice *dice, char bytes[static 200])
{
    const size_t n = dice_roll(dice, KEYS);
    const int    len = snprintf(bytes, 200, "key/%zu/%0*d", n,
                                (int)(n % 8 ? n % 20 : n % 180), 0);

    return (wq_key){bytes, (size_t)len};
}

static void
use(wq_queue *q, struct dice *dice)
{
    char         bytes[200];
    const wq_key key = any_key(dice, bytes);
    wq_err       err = WQ_OK;

    switch (dice_roll(dice, 8)) {
    case 0:
        ANSWER(err, wq_add_after(q, key, (int64_t)dice_roll(dice, WQ_MS(5))));
        break;
    case 1:
        ANSWER(err, wq_add_rate_limited(q, key));
        break;
    case 2:
        (void)wq_remove(q, key); /* if it is there, and not HELD */
        break;
    default:
        ANSWER(err, wq_add(q, key));
    }
    MUST(!err);
}

static wq_err
count_text(void *total, const char *text, size_t len)
{
    (void)text;
    *(size_t *)total += len;
    return WQ_OK;
}

/* As an event loop: sleeps in poll(), takes what is there. */
static void
loop_some(wq_queue *q)
{
    struct pollfd p = {.fd = wq_fd(q), .events = POLLIN};

    MUST(p.fd >= 0);
    for (int i = 0; i < 20; i++) {
        wq_err err;
        ANSWER(err, wq_work_one(q, WQ_WORKERS(.handler = work), 0));
        MUST(!err || err == WQ_ETIMEDOUT || err == WQ_ELOST);
        if (err)
            MUST(poll(&p, 1, 1) >= 0);
    }
}

struct visit {
    int      place;
    uint64_t seed;
};

static void *
visit(void *arg)
{
    const struct visit *v = arg;
    struct dice         dice = dice_from(v->seed);
    wq_queue           *q = open_place(v->place);
    size_t              text = 0;
    wq_err              err;

    for (int i = 0; i < ADDS / 3; i++)
        use(q, &dice);
    loop_some(q);
    wq_workers *pool = start_pool(q, 2);
    for (int i = 0; i < ADDS / 3; i++)
        use(q, &dice);
    MUST(!wq_workers_resize(pool, 1 + (unsigned)dice_roll(&dice, 4)));
    for (int i = 0; i < ADDS / 3; i++)
        use(q, &dice);
    ANSWER(err, wq_dump(q, count_text, &text));
    MUST(!err);
    await_rest(q);
    MUST(!wq_workers_destroy(pool));
    wq_destroy(q);
    return NULL;
}

static void
play_round(wq_queue *const q[PLACES], struct dice *dice)
{
    struct visit visits[PLACES];
    pthread_t    threads[PLACES];
    size_t       text = 0;

    for (int i = 0; i < PLACES; i++) {
        visits[i] = (struct visit){i, dice_bits(dice)};
        MUST(!pthread_create(&threads[i], NULL, visit, &visits[i]));
    }
    for (int i = 0; i < ADDS; i++)
        use(q[i % PLACES], dice);
    MUST(!wq_registry_write(registry, WQ_TEXT_PROMETHEUS, count_text, &text));
    for (int i = 0; i < PLACES; i++)
        MUST(!pthread_join(threads[i], NULL));
    for (int i = 0; i < PLACES; i++)
        await_rest(q[i]);
}

/* ---- figures -------------------------------------------------------------- */

enum figure { RSS, HEAP, DESCRIPTORS, THREADS, STORED, FIGURES };

/* What a figure may exceed the largest of the second quarter by. */
static const struct {
    const char *name;
    long        allowance;
} figures[FIGURES] = {
    [RSS] = {"RSS kB", 1024}, /* the allocator's holes */
    [HEAP] = {"heap kB", 8},
    [DESCRIPTORS] = {"descriptors", 0},
    [THREADS] = {"threads", 0},
    [STORED] = {"keys of the server", 2}, /* sessions whose end was lost */
};

static long
rss_kb(void)
{
    long  total = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");

    MUST(f && fscanf(f, "%ld %ld", &total, &resident) == 2);
    (void)fclose(f);
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static void
read_figures(long out[FIGURES])
{
    out[RSS] = rss_kb();
    out[HEAP] = (long)(mallinfo2().uordblks / 1024);
    /* Without `.`, `..`, and the descriptor of the directory. */
    out[DESCRIPTORS] = (long)entries_of("/proc/self/fd") - 3;
    out[THREADS] = (long)entries_of("/proc/self/task") - 2;
    out[STORED] = atol(redis_server_say(&server, "DBSIZE"));
}

static void
print_figures(int64_t elapsed_ns, const long of[FIGURES])
{
    printf("%6lld", (long long)(elapsed_ns / WQ_SECONDS(1)));
    for (int i = 0; i < FIGURES; i++)
        printf("%20ld", of[i]);
    printf("%14llu\n", (unsigned long long)runs);
    (void)fflush(stdout);
}

static void
keep_largest(long largest[FIGURES], const long of[FIGURES])
{
    for (int i = 0; i < FIGURES; i++)
        if (largest[i] < of[i])
            largest[i] = of[i];
}

/* Compares the second quarter with the half after it. */
static int
judge(const long second[FIGURES], const long rest[FIGURES])
{
    int grown = 0;

    if (second[RSS] == 0 || rest[RSS] == 0) {
        printf("soak: skipped: too short on this machine\n");
        return 77;
    }
    for (int i = 0; i < FIGURES; i++) {
        const bool flat = rest[i] <= second[i] + figures[i].allowance;
        printf("soak: %s: at most %ld in the second quarter, %ld after it%s\n",
               figures[i].name, second[i], rest[i], flat ? "" : ": it GREW");
        grown |= !flat;
    }
    printf("soak: %llu calls were repeated because the server was late\n",
           (unsigned long long)aways);
    return grown;
}

static int
soak(wq_queue *const q[PLACES], int64_t length_ns)
{
    struct dice   dice = dice_seeded("soak");
    const int64_t start = now_ns();
    int64_t       elapsed = 0, next_line = 0;
    long          now[FIGURES], second[FIGURES] = {0}, rest[FIGURES] = {0};

    printf("%6s", "s");
    for (int i = 0; i < FIGURES; i++)
        printf("%20s", figures[i].name);
    printf("%14s\n", "runs");
    while (elapsed < length_ns) {
        play_round(q, &dice);
        read_figures(now);
        elapsed = now_ns() - start;
        if (elapsed >= length_ns / 2)
            keep_largest(rest, now);
        else if (elapsed >= length_ns / 4)
            keep_largest(second, now);
        if (elapsed >= next_line || elapsed >= length_ns) {
            print_figures(elapsed, now);
            next_line += length_ns / LINES;
        }
    }
    return judge(second, rest);
}

/* glibc keeps freed blocks for each thread, and counts them as in use: the heap
 * would seem to grow for a long time. Only the environment at the start of a
 * program can disable that. */
static void
disable_thread_caches(char **argv)
{
    const char *const wanted = "glibc.malloc.tcache_count=0";
    const char *const now = getenv("GLIBC_TUNABLES");

    if (now && strcmp(now, wanted) == 0)
        return;
    MUST(!setenv("GLIBC_TUNABLES", wanted, 1));
    MUST(execv("/proc/self/exe", argv) == 0);
}

int
main(int argc, char **argv)
{
    const int   seconds = argc > 1 ? atoi(argv[1]) : 60;
    wq_queue   *q[PLACES];
    wq_workers *pools[PLACES];

    if (seconds < 1 || argc > 2) {
        (void)fprintf(stderr, "usage: soak [SECONDS]\n");
        return 2;
    }
    disable_thread_caches(argv);
    if (!redis_server_is_installed()) {
        printf("soak: skipped: no redis-server\n");
        return 77;
    }
    redis_server_start(&server, NULL);
    (void)sqlite_queue_new_path();
    MUST(!wq_registry_create(&registry));
    for (int i = 0; i < PLACES; i++) {
        q[i] = open_place(i);
        pools[i] = start_pool(q[i], 2);
    }
    const int grown = soak(q, seconds * WQ_SECONDS(1));
    for (int i = 0; i < PLACES; i++) {
        MUST(!wq_workers_destroy(pools[i]));
        wq_destroy(q[i]);
    }
    wq_registry_destroy(registry);
    redis_server_stop(&server);
    return grown;
}
