/* SPDX-License-Identifier: MIT */
/* sides.c: what does a thread do in a cycle?
 *
 * It adds a key of its own, takes any key, and finishes it.
 *
 *   wq          two or three calls; all threads share a handle
 *   lists       LPUSH, BRPOP: a key is lost with the client that popped it;
 *               LPUSH, BLMOVE, LREM: a list of keys that are worked on; each
 *               thread has a connection
 *   beanstalkd  put, reserve, delete: likewise
 *
 * Only wq merges duplicate keys and keeps a key from two workers.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <hiredis/hiredis.h>
#include <wq/redis.h>

#include "measure.h"

/* ---- wq -------------------------------------------------------------------- */

wq_queue *
queue_open(enum server server)
{
    char      url[512];
    wq_queue *q = NULL;

    (void)snprintf(url, sizeof url, "redis+unix://%s?queue=bench",
                   server_socket(server));
    must_ok(wq_redis_open(url, NULL, NULL, &q), "wq_redis_open");
    return q;
}

/* ---- lists ----------------------------------------------------------------- */

static void *
connect_redis(const char *socket)
{
    redisContext *c = redisConnectUnix(socket);

    must(c && !c->err, "redisConnectUnix");
    return c;
}

static void
disconnect_redis(void *own)
{
    redisFree(own);
}

/* Send a command; its reply must have this type. */
static redisReply *
say(const struct member *m, int type, int n, const char *const *words)
{
    const char *argv[8];

    memcpy(argv, words, (size_t)n * sizeof *words);
    redisReply *reply = redisCommandArgv(m->own, n, argv, NULL);
    must(reply && reply->type == type, words[0]);
    return reply;
}

#define SAY(m, type, ...)                                                      \
    say(m, type, sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *),       \
        (const char *[]){__VA_ARGS__})

static void
cycle_with_pop(struct member *m, wq_key key)
{
    freeReplyObject(SAY(m, REDIS_REPLY_INTEGER, "LPUSH", "list", key.data));
    freeReplyObject(SAY(m, REDIS_REPLY_ARRAY, "BRPOP", "list", "0"));
}

static void
cycle_with_move(struct member *m, wq_key key)
{
    freeReplyObject(SAY(m, REDIS_REPLY_INTEGER, "LPUSH", "list", key.data));
    redisReply *got = SAY(m, REDIS_REPLY_STRING, "BLMOVE", "list", "busy",
                          "RIGHT", "LEFT", "0");
    redisReply *removed =
        SAY(m, REDIS_REPLY_INTEGER, "LREM", "busy", "1", got->str);
    must(removed->integer == 1, "LREM");
    freeReplyObject(removed);
    freeReplyObject(got);
}

/* ---- beanstalkd ------------------------------------------------------------ */

static void *
connect_beanstalkd(const char *path)
{
    FILE    **both = calloc(2, sizeof *both);
    const int fd = server_connect(path);

    must(both && fd >= 0, "connect");
    both[0] = fdopen(fd, "re");
    both[1] = fdopen(dup(fd), "we");
    must(both[0] && both[1], "fdopen");
    return both;
}

static void
disconnect_beanstalkd(void *own)
{
    FILE **both = own;

    (void)fclose(both[0]);
    (void)fclose(both[1]);
    free(both);
}

/* What was written is sent; then the next line must begin so. */
static void
expect(FILE *const *both, const char *begin, char line[256])
{
    (void)fflush(both[1]);
    must(fgets(line, 256, both[0]) && !strncmp(line, begin, strlen(begin)),
         begin);
}

static void
cycle_with_jobs(struct member *m, wq_key key)
{
    FILE *const       *both = m->own;
    char               line[256];
    unsigned long long id;

    (void)fprintf(both[1], "put 0 0 60 %zu\r\n%s\r\n", key.len,
                  (const char *)key.data);
    expect(both, "INSERTED ", line);
    (void)fputs("reserve\r\n", both[1]);
    expect(both, "RESERVED ", line);
    must(sscanf(line, "RESERVED %llu", &id) == 1, "reserve");
    must(fgets(line, sizeof line, both[0]) != NULL, "reserve");
    (void)fprintf(both[1], "delete %llu\r\n", id);
    expect(both, "DELETED", line);
}

const struct side_of_store sides[SIDES] = {
    [WQ_NEXT] = {"wq: add, next", true, cycle_with_next, NULL, NULL},
    [WQ_GET] = {"wq: add, get, done", true, cycle_with_get, NULL, NULL},
    [POP] = {"LPUSH, BRPOP", false, cycle_with_pop, connect_redis,
             disconnect_redis},
    [MOVE] = {"LPUSH, BLMOVE, LREM", false, cycle_with_move, connect_redis,
              disconnect_redis},
    [JOBS] = {"beanstalkd: put, reserve, delete", false, cycle_with_jobs,
              connect_beanstalkd, disconnect_beanstalkd},
};
