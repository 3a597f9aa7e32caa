/* SPDX-License-Identifier: MIT */
/* redis_queue.c: opening queues in a Redis server in tests; see redis_queue.h. */
#include "support/redis_queue.h"

#include <stdatomic.h>
#include <stdio.h>

#include <hiredis/hiredis.h>

#include <wq/redis.h>

#include "support/redis_server.h"
#include "support/wq_test.h"

static atomic_uint queues;

static wq_err
open_number(unsigned number, unsigned partitions, const wq_config *config,
            wq_queue **out)
{
    char url[256];

    if (!redis_server_is_installed())
        wq_test_skip("redis-server is not installed");
    (void)snprintf(url, sizeof url, "redis+unix://%s?queue=t%u",
                   redis_server_of_process()->socket, number);
    return wq_redis_open(url,
                         WQ_REDIS_OPTIONS(.lease_ns = INT64_C(100) * 365 * 24 *
                                                      3600 * WQ_SECONDS(1),
                                          .timeout_ns = WQ_SECONDS(60),
                                          .manual_renew = true,
                                          .partitions = partitions),
                         config, out);
}

wq_err
redis_queue_open(const wq_config *config, wq_queue **out)
{
    return open_number(atomic_fetch_add(&queues, 1) + 1, 1, config, out);
}

wq_err
redis_queue_open_again(const wq_config *config, wq_queue **out)
{
    return open_number(atomic_load(&queues), 1, config, out);
}

wq_err
redis_queue_open_spread(const wq_config *config, wq_queue **out)
{
    return open_number(atomic_fetch_add(&queues, 1) + 1, REDIS_QUEUE_PARTITIONS,
                       config, out);
}

wq_err
redis_queue_open_spread_again(const wq_config *config, wq_queue **out)
{
    return open_number(atomic_load(&queues), REDIS_QUEUE_PARTITIONS, config,
                       out);
}

unsigned
redis_queue_partition(wq_key key, unsigned n)
{
    const uint64_t mixers[] = {0xff51afd7ed558ccd, 0xc4ceb9fe1a85ec53, 1};
    uint64_t       h = 14695981039346656037U; /* FNV-1a */

    for (const unsigned char *at = key.data, *end = at + key.len; at < end;
         at++) {
        h ^= *at;
        h *= 1099511628211U;
    }
    for (int i = 0; i < 3; i++) { /* MurmurHash3 */
        h ^= h >> 33;
        h *= mixers[i];
    }
    return (unsigned)(h % n);
}

/* It reads all that has come before it answers any of it. The connection stays,
 * because sleepers look once a second, and this must be much faster. */
void
redis_queue_settle(void)
{
    static redisContext *c;

    if (!c)
        c = redisConnectUnix(redis_server_of_process()->socket);
    for (int i = 0; i < 2; i++) {
        redisReply *reply = redisCommand(c, "PING");
        assert_non_null(reply);
        freeReplyObject(reply);
    }
}
