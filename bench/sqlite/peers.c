/* SPDX-License-Identifier: MIT */
/* peers.c: how fast are other queues that are kept in SQLite?
 *
 * goqite, for Go, with mattn/go-sqlite3: bench/peers/sqlite. litequeue, for
 * Python: bench/peers/litequeue.py. Both have the loop of cycles.c: a thread
 * sends a message, receives one, and deletes it.
 */
#include <stdio.h>

#include "bench.h"
#include "measure.h"

enum { PEERS = 7 };

static struct peer peers[PEERS] = {
    {.name = "goqite", .mode = "NORMAL", .threads = 1},
    {.name = "goqite", .mode = "NORMAL", .threads = 8},
    {.name = "goqite", .mode = "NORMAL", .threads = 64},
    {.name = "goqite", .mode = "FULL", .threads = 1},
    {.name = "goqite", .mode = "FULL", .threads = 8},
    {.name = "goqite", .mode = "FULL", .threads = 64},
    {.name = "litequeue", .mode = "as it is", .threads = 1},
};

void
peers_use(const char *goqite, const char *litequeue)
{
    for (size_t i = 0; i < PEERS; i++)
        peers[i].program = i + 1 < PEERS ? goqite : litequeue;
}

void
peers_measure(size_t round)
{
    for (size_t i = 0; i < PEERS; i++) {
        const char *path = files_new();

        peer_measure(&peers[i], round, path);
        files_delete(path);
    }
}

static void
demand(const struct peer *p, double per_second)
{
    static const struct {
        size_t peer;
        double limit;
    } asked[] = {{0, 3.5}, {1, 5}, {2, 7}, {3, 3}, {4, 10}};
    const bool           full = p >= &peers[3];
    const wq_sqlite_sync sync =
        full ? WQ_SQLITE_SYNC_ADDS : WQ_SQLITE_SYNC_LAZY;

    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++)
        if (p == &peers[asked[i].peer])
            demand_at_least(asked[i].limit,
                            cycles_rate(sync, p->threads) / per_second, "x",
                            "%s vs goqite %s, %zu thread%s", sync_name(sync),
                            p->mode, p->threads, p->threads > 1 ? "s" : "");
}

void
peers_print(size_t rounds)
{
    puts("\n### Other queues in SQLite\n\n"
         "| queue | synchronous | threads | keys/s | us/key | CPU us/key |\n"
         "|---|---|--:|--:|--:|--:|");
    for (size_t i = 0; i < PEERS; i++) {
        const double per_second = peer_print(&peers[i], rounds);

        if (per_second > 0)
            demand(&peers[i], per_second);
    }
    for (size_t i = 0; i < PEERS; i += PEERS - 1)
        if (!peers[i].program)
            printf("\n%s is not available; nothing is compared with it.\n",
                   peers[i].name);
}
