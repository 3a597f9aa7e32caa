/* SPDX-License-Identifier: MIT */
/* peers.c: how fast are other queues that are kept in Redis?
 *
 * asynq, for Go, with Unique: bench/peers/redis. BullMQ, for Node.js:
 * bench/peers/bullmq.js. Both call the program's handler for each key, and are
 * measured in two phases: so many threads (promises) add the keys, then so many
 * workers process them.
 */
#include <stdio.h>

#include "measure.h"

enum { PEERS = 2 };

static struct {
    const char *name, *mode;
    double      asked[THREAD_COUNTS]; /* 0: nothing */
    struct peer at[THREAD_COUNTS];
} peers[PEERS] = {
    {"asynq", "Unique", {2, 2.5, 4}, {{0}}},
    {"BullMQ", "keepLastIfActive", {0}, {{0}}},
};

void
peers_use(const char *asynq, const char *bullmq)
{
    for (size_t i = 0; i < PEERS; i++)
        for (size_t k = 0; k < THREAD_COUNTS; k++) {
            peers[i].at[k].name = peers[i].name;
            peers[i].at[k].mode = peers[i].mode;
            peers[i].at[k].threads = thread_counts[k];
            peers[i].at[k].program = i ? bullmq : asynq;
        }
}

void
peers_measure(size_t round)
{
    for (size_t i = 0; i < PEERS; i++)
        for (size_t k = 0; k < THREAD_COUNTS; k++)
            if (peers[i].at[k].program) {
                peer_measure(&peers[i].at[k], round, server_socket(PLAIN));
                server_empty(PLAIN);
            }
}

static void
demand(const struct peer *p, double limit, double per_second)
{
    const double rate = threads_rate(WQ_NEXT, p->threads);

    if (limit > 0 && rate > 0)
        demand_at_least(limit, rate / per_second, "x",
                        "add, next vs %s %s, %zu thread%s", p->name, p->mode,
                        p->threads, p->threads > 1 ? "s" : "");
}

/* What is asked of wq beside what two commands without any promise reach: a demand
 * that these do not reach asks more than the server can give. */
static void
print_floor(const struct peer *p, double limit, double per_second)
{
    printf("| %s %s | %zu | %.2g | %.2f | %.2f |\n", p->name, p->mode,
           p->threads, limit, threads_rate(POP, p->threads) / per_second,
           threads_rate(WQ_NEXT, p->threads) / per_second);
}

void
peers_print(size_t rounds)
{
    double rates[PEERS][THREAD_COUNTS] = {{0}};

    puts("\n### Other queues in Redis\n\n"
         "| queue | mode | threads | keys/s | us/key | client CPU us/key |\n"
         "|---|---|--:|--:|--:|--:|");
    for (size_t i = 0; i < PEERS; i++)
        for (size_t k = 0; k < THREAD_COUNTS; k++) {
            const double per_second = peer_print(&peers[i].at[k], rounds);

            rates[i][k] = per_second;
            if (per_second > 0)
                demand(&peers[i].at[k], peers[i].asked[k], per_second);
        }
    puts("\n| vs | threads | asked of wq | LPUSH, BRPOP | wq: add, next |\n"
         "|---|--:|--:|--:|--:|");
    for (size_t i = 0; i < PEERS; i++)
        for (size_t k = 0; k < THREAD_COUNTS; k++)
            if (rates[i][k] > 0 && peers[i].asked[k] > 0 &&
                threads_rate(POP, thread_counts[k]) > 0)
                print_floor(&peers[i].at[k], peers[i].asked[k], rates[i][k]);
    for (size_t i = 0; i < PEERS; i++)
        if (!peers[i].at[0].program)
            printf("\n%s is not available; nothing is compared with it.\n",
                   peers[i].name);
}
