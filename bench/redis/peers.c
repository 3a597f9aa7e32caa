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
    if (limit > 0 && threads_rate(p->threads) > 0)
        demand_at_least(limit, threads_rate(p->threads) / per_second, "x",
                        "add, next vs %s %s, %zu thread%s", p->name, p->mode,
                        p->threads, p->threads > 1 ? "s" : "");
}

void
peers_print(size_t rounds)
{
    puts("\n### Other queues in Redis\n\n"
         "| queue | mode | threads | keys/s | us/key | client CPU us/key |\n"
         "|---|---|--:|--:|--:|--:|");
    for (size_t i = 0; i < PEERS; i++)
        for (size_t k = 0; k < THREAD_COUNTS; k++) {
            const double per_second = peer_print(&peers[i].at[k], rounds);

            if (per_second > 0)
                demand(&peers[i].at[k], peers[i].asked[k], per_second);
        }
    for (size_t i = 0; i < PEERS; i++)
        if (!peers[i].at[0].program)
            printf("\n%s is not available; nothing is compared with it.\n",
                   peers[i].name);
}
