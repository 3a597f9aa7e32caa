/* SPDX-License-Identifier: MIT */
/* threads.c: how many keys go through a server in a second, and how much of its
 * processor time does a key take?
 *
 * All sides take turns, with the same server, with 1, 8 and 64 threads. Clients
 * and server share the processors.
 */
#include <stdio.h>

#include "measure.h"
#include "shared/shared.h"

enum figure { RATE, SERVER_US, CLIENT_US, OPERATIONS, FIGURES };

/* AOF: only with 64 threads. */
enum { LOADS = THREAD_COUNTS + 1 };

static double figures[SIDES][LOADS][FIGURES][MOST_ROUNDS];

/* ---- measuring ------------------------------------------------------------- */

static void
connect_all(const struct side_of_store *side, struct crew *crew,
            const char *socket)
{
    for (size_t i = 0; side->connect && i < crew->threads; i++)
        crew->members[i].own = side->connect(socket);
}

static void
disconnect_all(const struct side_of_store *side, const struct crew *crew)
{
    for (size_t i = 0; side->disconnect && i < crew->threads; i++)
        side->disconnect(crew->members[i].own);
}

static void
measure(const struct side_of_store *side, enum server server, size_t threads,
        double out[FIGURES], double span)
{
    wq_queue          *q = side->is_wq ? queue_open(server) : NULL;
    struct wq__shared *s = q ? wq__shared_of(q) : NULL;
    struct crew        crew = {.threads = threads, .cycle = side->cycle};
    double             took_ns;

    connect_all(side, &crew, server_socket(server));
    const uint64_t batches = s ? s->batches : 0, ops = s ? s->operations : 0;
    const double   served = server_cpu_ns(server), cpu = cpu_ns();
    const double   n = (double)crew_run(&crew, q, span, &took_ns);

    out[RATE] = n * 1e9 / took_ns;
    out[SERVER_US] = (server_cpu_ns(server) - served) / n / 1000;
    out[CLIENT_US] = (cpu_ns() - cpu) / n / 1000;
    out[OPERATIONS] =
        s ? (double)(s->operations - ops) / (double)(s->batches - batches) : 0;
    disconnect_all(side, &crew);
    if (!q)
        return;
    must(wq_len(q) == 0, "number of keys handed out");
    wq_destroy(q);
    server_empty(server);
}

static enum server
server_of(size_t side, size_t load)
{
    return side == JOBS ? BEANSTALKD : load < THREAD_COUNTS ? PLAIN : AOF;
}

static bool
is_measured(size_t side, size_t load)
{
    return server_is_there(server_of(side, load)) &&
           (side != JOBS || load < THREAD_COUNTS);
}

static size_t
threads_of(size_t load)
{
    return thread_counts[load < THREAD_COUNTS ? load : THREAD_COUNTS - 1];
}

void
threads_measure(size_t round)
{
    double out[FIGURES];

    for (size_t load = 0; load < LOADS; load++)
        for (size_t i = 0; i < SIDES; i++) {
            if (!is_measured(i, load))
                continue;
            measure(&sides[i], server_of(i, load), threads_of(load), out,
                    span_ns());
            for (size_t f = 0; f < FIGURES; f++)
                figures[i][load][f][round] = out[f];
        }
}

void
threads_spin(size_t threads, double seconds)
{
    double out[FIGURES];

    measure(&sides[WQ_NEXT], PLAIN, threads, out, seconds * 1e9);
    printf("%.0f keys/s, %.1f us of the server, %.1f of the client, %.1f "
           "operations/batch\n",
           out[RATE], out[SERVER_US], out[CLIENT_US], out[OPERATIONS]);
}

/* ---- tables ---------------------------------------------------------------- */

/* Medians replace the figures of the first round. */
static void
find_medians(size_t rounds)
{
    for (size_t i = 0; i < SIDES; i++)
        for (size_t load = 0; load < LOADS; load++)
            for (size_t f = 0; f < FIGURES; f++)
                figures[i][load][f][0] =
                    bench_median(figures[i][load][f], rounds);
}

/* A side divided by another one. */
static double
ratio(enum figure f, size_t load, size_t side, size_t by)
{
    return figures[side][load][f][0] / figures[by][load][f][0];
}

double
threads_rate(size_t side, size_t threads)
{
    for (size_t load = 0; load < THREAD_COUNTS; load++)
        if (thread_counts[load] == threads)
            return figures[side][load][RATE][0];
    return 0;
}

static void
demand(void)
{
    static const double than_pop[THREAD_COUNTS] = {0.4, 0.75, 1.2};
    enum { MOST = THREAD_COUNTS - 1 };

    for (size_t load = 0; load < THREAD_COUNTS; load++)
        demand_at_least(than_pop[load], ratio(RATE, load, WQ_NEXT, POP), "x",
                        "add, next vs LPUSH, BRPOP, %zu thread%s",
                        thread_counts[load], load ? "s" : "");
    demand_at_most(0.7, ratio(SERVER_US, MOST, WQ_NEXT, POP), "x",
                   "add, next vs LPUSH, BRPOP, 64 threads: CPU of the server");
    demand_at_least(1.6, ratio(RATE, MOST, WQ_NEXT, MOVE), "x",
                    "add, next vs LPUSH, BLMOVE, LREM, 64 threads");
    if (server_is_there(BEANSTALKD))
        demand_at_least(1.3, ratio(RATE, MOST, WQ_NEXT, JOBS), "x",
                        "add, next vs beanstalkd in memory, 64 threads");
}

static void
print_row(size_t i, size_t load)
{
    const bool is_of_redis = i != JOBS;

    printf("| %s | %zu%s | %.0f | %.1f | %.1f |", sides[i].name,
           threads_of(load), load < THREAD_COUNTS ? "" : ", AOF everysec",
           figures[i][load][RATE][0], figures[i][load][SERVER_US][0],
           figures[i][load][CLIENT_US][0]);
    if (is_of_redis)
        printf(" %.2f | %.2f |", ratio(RATE, load, i, POP),
               ratio(SERVER_US, load, i, POP));
    else
        printf(" | |");
    if (sides[i].is_wq)
        printf(" %.1f |\n", figures[i][load][OPERATIONS][0]);
    else
        puts(" |");
}

void
threads_print(size_t rounds)
{
    find_medians(rounds);
    puts("\n### Threads\n\n"
         "| cycle | threads | keys/s | server CPU us/key | client CPU us/key | "
         "keys/s vs LPUSH, BRPOP | server CPU vs LPUSH, BRPOP | "
         "operations/batch |\n|---|---|--:|--:|--:|--:|--:|--:|");
    for (size_t load = 0; load < LOADS; load++)
        for (size_t i = 0; i < SIDES; i++)
            if (is_measured(i, load))
                print_row(i, load);
    if (!server_is_there(BEANSTALKD))
        puts("\nbeanstalkd is not available; nothing is compared with it.");
    demand();
}
