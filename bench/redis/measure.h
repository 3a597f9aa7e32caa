/* SPDX-License-Identifier: MIT */
/* measure.h: what does bench_redis measure?
 *
 * Parts as in stores/stores.h.
 *
 *   servers.c  the servers that are measured
 *   sides.c    what a thread does in a cycle: with wq, and without
 *   threads.c  keys/s and processor time of each side
 *   peers.c    other queues that are kept in Redis
 */
#ifndef WQ_BENCH_REDIS_H
#define WQ_BENCH_REDIS_H

#include "bench.h"
#include "crew.h"
#include "stores/stores.h"

/* ---- servers.c ------------------------------------------------------------- */

enum server { PLAIN, AOF, BEANSTALKD, SERVERS };

/* Start all servers; they end with this process. `beanstalkd`: the program, or
 * NULL: measure without it. */
void servers_begin(const char *beanstalkd);

bool        server_is_there(enum server server);
const char *server_socket(enum server server);
/* A connection to a unix socket; -1: nobody listens. */
int server_connect(const char *path);
/* Processor time so far. */
double      server_cpu_ns(enum server server);
const char *server_version(void);
/* Forget all keys of a Redis server. */
void server_empty(enum server server);

/* ---- sides.c --------------------------------------------------------------- */

enum { WQ_NEXT, WQ_GET, POP, MOVE, JOBS, SIDES };

struct side_of_store {
    const char *name;
    bool        is_wq; /* one handle for all threads */
    void (*cycle)(struct member *m, wq_key key);
    void *(*connect)(const char *socket); /* of a thread */
    void (*disconnect)(void *own);
};

extern const struct side_of_store sides[SIDES];

wq_queue *queue_open(enum server server);

/* ---- threads.c ------------------------------------------------------------- */

void threads_measure(size_t round);
void threads_print(size_t rounds);
/* The median of keys/s of a side. */
double threads_rate(size_t side, size_t threads);
/* Only add and next with so many threads, for a profiler. */
void threads_spin(size_t threads, double seconds);

/* ---- peers.c --------------------------------------------------------------- */

/* Programs that measure a peer; NULL: not available. */
void peers_use(const char *asynq, const char *bullmq);
void peers_measure(size_t round);
void peers_print(size_t rounds);

#endif
