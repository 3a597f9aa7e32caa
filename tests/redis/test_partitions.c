/* SPDX-License-Identifier: MIT */
/* test_partitions.c: is a queue that is spread over partitions one queue? (S-25)
 *
 * Handles a and b of a queue with PARTS partitions, in a server of its own. What
 * other files test of queues in Redis is tested with partitions, too: see
 * redis_parts_ in tests/CMakeLists.txt; and redis_cluster has nodes.
 */
#define _GNU_SOURCE
#include "redis/served.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include <wq/limiter.h>

enum { PARTS = 4, NAME_BYTES = 32 };

static wq_queue *
open_parts(unsigned partitions, const wq_config *config)
{
    wq_queue *q = NULL;

    assert_err(wq_redis_open(url_of(f.server.socket, "parts"),
                             WQ_REDIS_OPTIONS(.lease_ns = LEASE,
                                              .timeout_ns = WQ_SECONDS(10),
                                              .manual_renew = true,
                                              .partitions = partitions),
                             config, &q),
               WQ_OK);
    return q;
}

static int
set_up_parts(void **state)
{
    (void)state;
    need_server();
    redis_server_start(&f.server, NULL);
    f.a = open_parts(PARTS, NULL);
    f.b = open_parts(PARTS, NULL);
    return 0;
}

/* The n-th key of a partition, in a buffer of the caller. */
static const char *
key_of(unsigned part, unsigned n, char name[NAME_BYTES])
{
    for (unsigned i = 0; i < 1000000; i++) {
        (void)snprintf(name, NAME_BYTES, "k%u", i);
        if (redis_queue_partition(wq_str(name), PARTS) == part && n-- == 0)
            return name;
    }
    fail_msg("there is no key of partition %u", part);
    return NULL;
}

static void
add_to(wq_queue *q, unsigned part, unsigned n)
{
    char name[NAME_BYTES];

    assert_err(wq_add(q, wq_str(key_of(part, n, name))), WQ_OK);
}

static unsigned
part_of(const wq_item *item)
{
    return redis_queue_partition(item->key, PARTS);
}

/* A word to the server about a key of partition `part`. */
static const char *
say_of(const char *command, unsigned part, const char *rest)
{
    char words[200];

    (void)snprintf(words, sizeof words, "%s wq:{parts/%d.%u}:%s", command,
                   PARTS, part, rest);
    return redis_server_say(&f.server, words);
}

/* ---- which partition ------------------------------------------------------ */

/* The numbers were computed by another program, from docs/backends.md. */
TEST(partition_of_a_key_is_the_same_for_ever)
{
    (void)state;
    assert_int_equal(redis_queue_partition(wq_str("a"), 4), 3);
    assert_int_equal(redis_queue_partition(wq_str("k"), 4), 1);
    assert_int_equal(redis_queue_partition(wq_str("other"), 4), 0);
    assert_int_equal(redis_queue_partition(wq_str("foo"), 3), 1);
    assert_int_equal(redis_queue_partition(wq_str("orders/1"), 4), 2);
    for (unsigned i = 0; i < 40; i++) {
        char name[NAME_BYTES], rest[NAME_BYTES + 8];
        (void)snprintf(name, sizeof name, "k%u", i);
        (void)snprintf(rest, sizeof rest, "k %s", name);
        assert_err(wq_add(f.a, wq_str(name)), WQ_OK);
        assert_string_equal(
            say_of("HEXISTS", redis_queue_partition(wq_str(name), PARTS), rest),
            "1");
    }
    check(f.b);
}

/* Keys that differ in a few bits only, as counters do, are spread, too. */
TEST(numbers_are_spread_evenly)
{
    enum { NUMBERS = 4000 };
    unsigned count[PARTS] = {0};

    (void)state;
    for (uint64_t i = 0; i < NUMBERS; i++) {
        const uint64_t key = i * 64;
        count[redis_queue_partition(wq_u64(&key), PARTS)]++;
    }
    for (unsigned p = 0; p < PARTS; p++)
        assert_in_range(count[p], NUMBERS / PARTS * 9 / 10,
                        NUMBERS / PARTS * 11 / 10);
}

static void
refuse(const char *queue, unsigned partitions, const char *says)
{
    wq_queue *q = NULL;

    assert_err(wq_redis_open(url_of(f.server.socket, queue),
                             WQ_REDIS_OPTIONS(.partitions = partitions), NULL,
                             &q),
               WQ_EINVAL);
    last_error_has(says);
}

TEST(another_number_of_partitions_is_refused)
{
    wq_queue *q = NULL;

    (void)state;
    refuse("parts", 3, "has partitions=4, not 3");
    refuse("parts", 1, "has partitions=4, not 1");
    refuse("parts", 0, "delete wq:{parts}:meta");
    refuse("parts", 65, "partitions=65 is too many; use 1 to 64");
    q = open_at(f.server.socket, "whole", LEASE, NULL);
    refuse("whole", 2, "has partitions=1, not 2");
    wq_destroy(q);

    /* as the message says */
    wq_destroy(f.a);
    wq_destroy(f.b);
    f.b = NULL;
    assert_string_equal(redis_server_say(&f.server, "DEL wq:{parts}:meta"),
                        "1");
    f.a = open_parts(3, NULL);
    refuse("parts", 4, "has partitions=3, not 4");
}

TEST(look_without_partitions_does_not_fix_their_number)
{
    wq_queue *q = open_at(f.server.socket, "whole", LEASE, NULL);

    (void)state;
    assert_err(wq_add(q, wq_str("k")), WQ_OK);
    wq_destroy(q);
    refuse("whole", 2, "has partitions=1, not 2"); /* for its key */
    q = open_at(f.server.socket, "whole", LEASE, NULL);
    assert_err(wq_remove(q, wq_str("k")), WQ_OK);
    refuse("whole", 2, "has partitions=1, not 2"); /* for its session */
    wq_destroy(q);
    assert_err(wq_redis_open(url_of(f.server.socket, "whole"),
                             WQ_REDIS_OPTIONS(.partitions = 2), NULL, &q),
               WQ_OK);
    refuse("whole", 1, "has partitions=2, not 1");
    wq_destroy(q);
}

TEST(open_that_fails_does_not_fix_the_number_of_partitions)
{
    wq_queue *q = NULL;

    (void)state;
    wq_destroy(f.a);
    wq_destroy(f.b);
    f.a = f.b = NULL;
    (void)redis_server_say(&f.server, "DEL wq:{parts}:meta");
    (void)redis_server_say(&f.server, "HSET wq:{parts/3.1}:meta version 9");
    assert_err(wq_redis_open(url_of(f.server.socket, "parts"),
                             WQ_REDIS_OPTIONS(.partitions = 3), NULL, &q),
               WQ_EVERSION);
    f.a = open_parts(PARTS, NULL);
    refuse("parts", 3, "has partitions=4, not 3");
}

TEST(bound_that_cannot_be_kept_is_refused)
{
    wq_queue *q = NULL;

    (void)state;
    assert_err(wq_redis_open(url_of(f.server.socket, "parts"),
                             WQ_REDIS_OPTIONS(.partitions = PARTS),
                             WQ_CONFIG(.max_len = 10), &q),
               WQ_ENOTSUP);
    last_error_has("max_len cannot be kept over several partitions");
}

/* ---- several keys --------------------------------------------------------- */

enum { MANY = 100 };

TEST(keys_of_one_add_reach_all_partitions)
{
    wq_key   keys[MANY];
    char     names[MANY][NAME_BYTES];
    wq_added added[MANY];
    wq_item *items[MANY] = {NULL};
    size_t   n = 0, visited = 0;

    (void)state;
    for (unsigned i = 0; i < MANY; i++) {
        (void)snprintf(names[i], sizeof names[i], "n%u", i);
        keys[i] = wq_str(names[i]);
        if (i % 3 == 0)
            assert_err(wq_add(f.b, keys[i]), WQ_OK);
    }
    assert_err(wq_add_with(f.a, WQ_ADD(.results = added), keys, MANY), WQ_OK);
    for (unsigned i = 0; i < MANY; i++)
        assert_int_equal(added[i], i % 3 ? WQ_ADDED_NEW : WQ_ADDED_MERGED);
    assert_int_equal(wq_len(f.b), MANY);
    assert_err(wq_each(f.b, 0, count_visit, &visited), WQ_OK);
    assert_int_equal(visited, MANY);
    assert_int_equal(stats_of(f.a).adds + stats_of(f.b).adds, MANY);

    assert_err(wq_get_many(f.b, items, MANY, 0, &n), WQ_OK);
    assert_int_equal(n, MANY);
    assert_int_equal(stats_of(f.a).held, MANY);
    assert_int_equal(stats_of(f.a).holders, 1); /* in four partitions */
    for (unsigned i = 1; i < MANY; i++) /* in order within each partition */
        for (unsigned k = 0; k < i; k++)
            assert_true(part_of(items[k]) != part_of(items[i]) ||
                        items[k]->fence < items[i]->fence);
    get_nothing(f.a);
    assert_err(wq_done_many(f.b, items, n), WQ_OK);
    assert_int_equal(stats_of(f.a).known, 0);
    check(f.a);
}

static unsigned dropped;

static void
count_drop(void *ctx, wq_key key, unsigned retries, wq_err why)
{
    (void)ctx;
    (void)retries;
    dropped += why == WQ_EGIVENUP && redis_queue_partition(key, PARTS) == 1;
}

/* Each partition does all or nothing, one after the other. */
TEST(key_that_is_given_up_ends_an_add_of_many)
{
    char         names[3][NAME_BYTES];
    const wq_key keys[] = {wq_str(key_of(2, 0, names[0])),
                           wq_str(key_of(1, 0, names[1])),
                           wq_str(key_of(0, 0, names[2]))};

    (void)state;
    dropped = 0;
    wq_queue *q =
        open_parts(PARTS, WQ_CONFIG(.max_retries = 1, .on_drop = count_drop,
                                    .limiter = wq_limiter_exponential(
                                        WQ_SECONDS(100), WQ_SECONDS(100))));
    assert_err(wq_add_rate_limited(q, keys[1]), WQ_OK);
    assert_err(wq_add_with(q, WQ_ADD(.rate_limited = true), keys, 3),
               WQ_EGIVENUP);
    assert_int_equal(dropped, 1);
    assert_int_equal(wq_num_requeues(q, keys[2]), 1); /* before it */
    assert_int_equal(wq_num_requeues(q, keys[0]), 0); /* after it */
    wq_destroy(q);
}

/* Together the partitions let pass no more than one bucket. */
TEST(partition_has_its_share_of_the_bucket_of_all_keys)
{
    char names[3][NAME_BYTES];

    (void)state;
    wq_queue *q = open_parts(
        PARTS, WQ_CONFIG(.limiter = wq_limiter_bucket(0.01 * PARTS, PARTS)));
    for (unsigned i = 0; i < 3; i++)
        assert_err(
            wq_add_rate_limited(q, wq_str(key_of(i == 2, i % 2, names[i]))),
            WQ_OK);
    assert_int_equal(info_of(q, names[0]).wait_ns, -1);
    assert_in_range(info_of(q, names[1]).wait_ns, WQ_SECONDS(50),
                    WQ_SECONDS(100));
    assert_int_equal(info_of(q, names[2]).wait_ns, -1);
    wq_destroy(q);
}

/* ---- turns ---------------------------------------------------------------- */

/* Handle a always finds keys where it takes them: and knows of no others. */
TEST(no_partition_starves)
{
    enum { MOST = 16 * PARTS + 1 };
    wq_item *item = NULL;
    bool     found[PARTS] = {false};

    (void)state;
    add_to(f.a, 0, 0);
    add_to(f.a, 0, 1);
    assert_err(wq_next(f.a, 0, &item), WQ_OK);
    for (unsigned p = 1; p < PARTS; p++)
        add_to(f.b, p, 0);
    for (int i = 0; i < MOST; i++) {
        const unsigned p = part_of(item);
        found[p] = true;
        if (p == 0)
            assert_err(wq_add(f.a, item->key), WQ_OK); /* it comes again */
        assert_err(wq_next(f.a, 0, &item), WQ_OK);
    }
    for (unsigned p = 0; p < PARTS; p++)
        assert_true(found[p]);
    assert_err(wq_done(f.a, item), WQ_OK);
}

/* ---- sessions ------------------------------------------------------------- */

static unsigned lost;

static void
count_lost(void *ctx, wq_key key, uint64_t fence)
{
    (void)ctx;
    (void)key;
    (void)fence;
    lost++;
}

/* A handle that holds a key of partitions 0 and 1; the session of partition
 * `ends` is gone. */
static wq_queue *
lose_session(unsigned ends, wq_item *items[2])
{
    wq_queue *q = open_parts(PARTS, WQ_CONFIG(.on_lost = count_lost));
    size_t    n = 0;

    lost = 0;
    add_to(q, 0, 0);
    add_to(q, 1, 0);
    assert_err(wq_get_many(q, items, 2, 0, &n), WQ_OK);
    assert_int_equal(n, 2);
    if (part_of(items[0])) {
        wq_item *other = items[0];
        items[0] = items[1];
        items[1] = other;
    }
    assert_string_equal(say_of("DEL", ends, "sess"), "1");
    (void)say_of("HDEL", ends, "meta calm"); /* as scripts do */
    assert_string_equal(say_of("DEL", ends, "k"), "1");
    return q;
}

TEST(session_that_ends_in_a_partition_with_holds_loses_all)
{
    wq_item *items[2] = {NULL}, *item = NULL;
    char     name[NAME_BYTES];

    (void)state;
    wq_queue      *q = lose_session(1, items);
    const uint64_t session = wq_redis_session(q);
    assert_err(wq_add(q, wq_str(key_of(1, 5, name))), WQ_OK);
    assert_int_equal(lost, 2);
    assert_true(wq_redis_session(q) != session);
    assert_int_equal(wq_hold_left(q, items[0]), 0);
    assert_err(wq_get_within(f.b, 0, &item), WQ_OK); /* given back at once */
    while (part_of(item) != 0) {
        assert_err(wq_done(f.b, item), WQ_OK);
        assert_err(wq_get_within(f.b, 0, &item), WQ_OK);
    }
    assert_err(wq_done(q, items[0]), WQ_ELOST);
    assert_err(wq_done(q, items[1]), WQ_ELOST);
    assert_err(wq_renew(q), WQ_OK);
    assert_err(wq_done(f.b, item), WQ_OK);
    wq_destroy(q);
}

TEST(session_that_ends_in_a_partition_without_holds_is_no_loss)
{
    wq_item *items[2] = {NULL};

    (void)state;
    wq_queue *q = lose_session(2, items);
    assert_err(wq_renew(q), WQ_OK);
    add_to(q, 2, 0);
    assert_int_equal(lost, 0);
    assert_true(wq_hold_left(q, items[0]) > 0);
    assert_err(wq_done_many(q, items, 2), WQ_OK);
    wq_item *item = NULL;
    assert_err(wq_get_within(q, 0, &item), WQ_OK);
    assert_int_equal(part_of(item), 2);
    assert_err(wq_done(q, item), WQ_OK);
    wq_destroy(q);
}

TEST(renewal_notices_that_a_session_has_ended)
{
    wq_item *items[2] = {NULL};

    (void)state;
    wq_queue *q = lose_session(1, items);
    assert_err(wq_renew(q), WQ_ELOST);
    assert_int_equal(wq_hold_left(q, items[0]), 0);
    assert_int_equal(lost, 2);
    assert_err(wq_done(q, items[0]), WQ_ELOST);
    wq_destroy(q);
}

TEST(hold_of_any_partition_is_taken_over)
{
    (void)state;
    for (unsigned p = 0; p < PARTS; p++) {
        char            name[NAME_BYTES];
        wq_item        *item = NULL;
        wq_redis_server s = {.size = sizeof s};

        add_to(f.a, p, 0);
        wq_item *held = take_key(f.a, key_of(p, 0, name));
        assert_err(
            wq_redis_take_over(f.b, wq_redis_session(f.a), held->key, &item),
            WQ_OK);
        assert_err(wq_done(f.a, held), WQ_ELOST);
        assert_err(wq_done(f.b, item), WQ_OK);
        assert_err(wq_redis_read_server(f.a, &s), WQ_OK);
        assert_true(s.reachable);
        assert_int_equal(s.partitions, PARTS);
    }
}

/* ---- a partition is away -------------------------------------------------- */

static void
forbid(unsigned part)
{
    char words[300];
    int  len = snprintf(words, sizeof words, "ACL SETUSER default resetkeys");

    for (unsigned p = 0; p < PARTS; p++)
        if (p != part)
            len += snprintf(words + len, sizeof words - (size_t)len,
                            " ~wq:{parts/%d.%u}:*", PARTS, p);
    tell(&f.server, words);
}

TEST(others_go_on_while_a_partition_is_away)
{
    char         names[2][NAME_BYTES];
    const wq_key keys[] = {wq_str(key_of(0, 0, names[0])),
                           wq_str(key_of(1, 0, names[1]))};
    wq_item     *item = NULL;
    wq_stats     stats = {.size = sizeof stats};

    (void)state;
    add_to(f.a, 0, 1);
    wq_item *held = take_key(f.a, key_of(0, 1, names[0]));
    (void)key_of(0, 0, names[0]);
    forbid(1);
    assert_err(wq_add(f.a, keys[1]), WQ_EAWAY);
    last_error_has("does not let this user");
    assert_err(wq_add(f.a, keys[0]), WQ_OK);
    assert_err(wq_done(f.a, held), WQ_OK);
    item = take_key(f.a, names[0]);
    assert_err(wq_next(f.a, 0, &item), WQ_EAWAY); /* not: there is none */
    assert_null(item);
    assert_err(wq_read_stats(f.a, &stats), WQ_EAWAY);
    /* in part: it may be repeated */
    assert_err(wq_add_with(f.a, NULL, keys, 2), WQ_EIO);
    assert_err(wq_add_with(f.a, NULL, keys + 1, 1), WQ_EAWAY);

    tell(&f.server, "ACL SETUSER default allkeys");
    assert_err(wq_add_with(f.a, NULL, keys, 2), WQ_OK);
    assert_int_equal(stats_of(f.a).ready, 2);
    check(f.a);
}

/* Holds of others are certain as long as they are renewed. */
TEST(renewal_needs_only_partitions_with_holds)
{
    char     name[NAME_BYTES];
    wq_item *item = NULL;

    (void)state;
    add_to(f.a, 0, 0);
    wq_item *held = take_key(f.a, key_of(0, 0, name));
    forbid(1);
    assert_err(wq_renew(f.a), WQ_OK);
    tell(&f.server, "ACL SETUSER default allkeys");
    add_to(f.a, 1, 0); /* it is used again */
    assert_err(wq_get_within(f.a, 0, &item), WQ_OK);
    assert_int_equal(part_of(item), 1);
    assert_err(wq_renew(f.a), WQ_OK);
    forbid(1);
    assert_true(wq_renew(f.a) != WQ_OK);
    assert_true(wq_hold_left(f.a, held) > 0); /* not yet */
    tell(&f.server, "ACL SETUSER default allkeys");
    assert_err(wq_renew(f.a), WQ_OK);
    assert_err(wq_done(f.a, held), WQ_OK);
    assert_err(wq_done(f.a, item), WQ_OK);
}

/* All connections are gone, and the server hangs: each attempt takes a second. */
TEST(renewal_of_all_partitions_leaves_time_for_another_one)
{
    const int64_t lease_ns = WQ_SECONDS(3);
    wq_queue     *q = NULL;

    (void)state;
    assert_err(wq_redis_open(url_of(f.server.socket, "parts"),
                             WQ_REDIS_OPTIONS(.lease_ns = lease_ns,
                                              .timeout_ns = WQ_SECONDS(1),
                                              .manual_renew = true,
                                              .partitions = PARTS),
                             NULL, &q),
               WQ_OK);
    assert_err(wq_renew(q), WQ_OK);
    assert_true(atoi(redis_server_say(&f.server, "CLIENT KILL TYPE normal")) >=
                PARTS);
    assert_int_equal(kill(f.server.pid, SIGSTOP), 0);
    const int64_t begin_ns = now_ns();
    assert_err(wq_renew(q), WQ_EAWAY);
    const int64_t took_ns = now_ns() - begin_ns;
    assert_int_equal(kill(f.server.pid, SIGCONT), 0);
    assert_true(took_ns < lease_ns);
    wq_destroy(q);
}

/* On a fake clock: the lease ends while partition 1 is away. */
TEST(handle_goes_on_without_a_partition_that_is_away_for_too_long)
{
    wq_clock *clock = wq_clock_fake_create(WQ_SECONDS(1000));
    wq_item  *items[2] = {NULL};
    size_t    n = 0;
    char      name[NAME_BYTES];

    (void)state;
    wq_destroy(f.a);
    wq_destroy(f.b);
    f.b = NULL;
    lost = 0;
    tell(&f.server, "FLUSHALL");
    f.a = open_parts(PARTS, WQ_CONFIG(.clock = clock, .on_lost = count_lost));
    add_to(f.a, 0, 0);
    add_to(f.a, 1, 0);
    assert_err(wq_get_many(f.a, items, 2, 0, &n), WQ_OK);
    forbid(1);
    wq_clock_fake_step(clock, LEASE / 2);
    assert_true(wq_renew(f.a) != WQ_OK);
    assert_int_equal(lost, 0);
    wq_clock_fake_step(clock, LEASE);
    add_to(f.a, 2, 0);
    assert_int_equal(lost, 2);
    assert_err(wq_renew(f.a), WQ_OK);
    for (int i = 0; i < 2; i++) { /* those of 0 and 2 */
        wq_item *item = NULL;
        assert_err(wq_get_within(f.a, 0, &item), WQ_OK);
        assert_true(part_of(item) != 1);
        assert_true(wq_hold_left(f.a, item) > 0);
        assert_err(wq_done(f.a, item), WQ_OK);
    }
    tell(&f.server, "ACL SETUSER default allkeys");
    wq_item *item = NULL;
    wq_err   err = WQ_EAWAY; /* it is tried again after a tenth of a second */
    for (int i = 0; err == WQ_EAWAY && i < 3000; i++) {
        err = wq_get_within(f.a, 0, &item);
        (void)poll(NULL, 0, err ? 5 : 0);
    }
    assert_err(err, WQ_OK);
    assert_string_equal((const char *)item->key.data, key_of(1, 0, name));
    assert_err(wq_done(f.a, item), WQ_OK);
    assert_err(wq_done(f.a, items[0]), WQ_ELOST);
    assert_err(wq_done(f.a, items[1]), WQ_ELOST);
    check(f.a);
    wq_destroy(f.a);
    f.a = NULL;
    wq_clock_destroy(clock);
}

/* ---- sleeping ------------------------------------------------------------- */

struct sleeper {
    pthread_t  thread;
    wq_queue  *q;
    atomic_int part;   /* of the key that it holds, or -1 */
    atomic_int may_go; /* ... and may finish */
    atomic_int tid;
    wq_err     err;
};

static void *
sleep_and_hold(void *arg)
{
    struct sleeper *s = arg;
    wq_item        *item = NULL;

    atomic_store(&s->tid, (int)gettid());
    s->err = wq_get_within(s->q, WQ_SECONDS(60), &item);
    if (s->err)
        return NULL;
    atomic_store(&s->part, (int)part_of(item));
    while (!atomic_load(&s->may_go))
        (void)poll(NULL, 0, 1);
    s->err = wq_done(s->q, item);
    return NULL;
}

static void
begin_sleep(struct sleeper *s, wq_queue *q)
{
    *s = (struct sleeper){.q = q};
    atomic_init(&s->part, -1);
    assert_int_equal(pthread_create(&s->thread, NULL, sleep_and_hold, s), 0);
}

static void
end_sleep(struct sleeper *s)
{
    atomic_store(&s->may_go, 1);
    assert_int_equal(pthread_join(s->thread, NULL), 0);
    assert_err(s->err, WQ_OK);
}

/* So many sessions sleep, in all partitions. */
static void
await_sleepers(const char *n)
{
    char words[100];

    for (unsigned p = 0; p < PARTS; p++) {
        (void)snprintf(words, sizeof words, "ZCARD wq:{parts/%d.%u}:idle",
                       PARTS, p);
        redis_server_await(&f.server, words, n);
    }
}

/* The first handle that was woken is busy, and must not keep the wake-ups of
 * other partitions for itself: the second one would look after 1.25 s. */
TEST(sleepers_are_woken_by_any_partition)
{
    int64_t took_ns = 0;

    (void)state;
    wq_queue *c = open_parts(PARTS, NULL);
    for (unsigned p = 0; p < PARTS; p++) {
        struct sleeper first, second;

        begin_sleep(&first, f.a);
        await_sleepers("1");
        begin_sleep(&second, c);
        await_sleepers("2");
        add_to(f.b, p, 0);
        while (atomic_load(&first.part) < 0 && atomic_load(&second.part) < 0)
            (void)poll(NULL, 0, 1);
        const int64_t begin_ns = now_ns();
        add_to(f.b, (p + 1) % PARTS, 0);
        while (atomic_load(&first.part) < 0 || atomic_load(&second.part) < 0)
            (void)poll(NULL, 0, 1);
        took_ns += now_ns() - begin_ns;
        assert_int_equal(atomic_load(&first.part) + atomic_load(&second.part),
                         (int)(p + (p + 1) % PARTS));
        end_sleep(&first);
        end_sleep(&second);
    }
    wq_destroy(c);
    if (took_ns > PARTS * WQ_MS(600))
        fail_msg("%d wake-ups took %lld ms", PARTS,
                 (long long)(took_ns / 1000000));
}

/* How often a thread has slept. */
static long
sleeps_of(struct sleeper *s)
{
    char  path[64], line[128];
    long  n = -1;
    FILE *file;

    (void)snprintf(path, sizeof path, "/proc/self/task/%d/status",
                   atomic_load(&s->tid));
    file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file))
        if (strncmp(line, "voluntary_ctxt_switches:", 24) == 0)
            n = strtol(line + 24, NULL, 10);
    (void)fclose(file);
    return n;
}

/* A look at all partitions is mostly two wake-ups, every 1.25 s: the timer, and
 * the replies together; on a busy machine they may come one by one. */
TEST(idle_handle_hardly_wakes_up)
{
    enum { LOOKS = 2 };
    struct sleeper s;

    (void)state;
    begin_sleep(&s, f.a);
    await_sleepers("1");
    (void)poll(NULL, 0, 100);
    const long before = sleeps_of(&s);
    (void)poll(NULL, 0, LOOKS * 1250);
    const long n = sleeps_of(&s) - before;
    print_message("%ld wake-ups in %d ms\n", n, LOOKS * 1250);
    add_to(f.b, 3, 0);
    end_sleep(&s);
    assert_in_range(n, 0, LOOKS * (1 + PARTS));
}

/* ---- the check ------------------------------------------------------------ */

static void
note_problem(void *ctx, const char *text)
{
    *(bool *)ctx |= strstr(text, "in another partition") != NULL;
}

TEST(check_finds_a_key_in_a_wrong_partition)
{
    bool found = false;

    (void)state;
    add_to(f.a, 0, 0);
    check(f.a);
    assert_string_equal(say_of("DEL", 1, "k"), "1");
    assert_string_equal(say_of("RENAME", 0, "k wq:{parts/4.1}:k"), "OK");
    assert_err(wq_check(f.a, note_problem, &found), WQ_OK);
    assert_true(found);
}

#define parted(name)                                                           \
    cmocka_unit_test_setup_teardown(name, set_up_parts, tear_down)

WQ_TESTS(parted(partition_of_a_key_is_the_same_for_ever),
         test(numbers_are_spread_evenly),
         parted(another_number_of_partitions_is_refused),
         parted(look_without_partitions_does_not_fix_their_number),
         parted(open_that_fails_does_not_fix_the_number_of_partitions),
         parted(bound_that_cannot_be_kept_is_refused),
         parted(keys_of_one_add_reach_all_partitions),
         parted(key_that_is_given_up_ends_an_add_of_many),
         parted(partition_has_its_share_of_the_bucket_of_all_keys),
         parted(no_partition_starves),
         parted(session_that_ends_in_a_partition_with_holds_loses_all),
         parted(session_that_ends_in_a_partition_without_holds_is_no_loss),
         parted(renewal_notices_that_a_session_has_ended),
         parted(hold_of_any_partition_is_taken_over),
         parted(others_go_on_while_a_partition_is_away),
         parted(renewal_needs_only_partitions_with_holds),
         parted(renewal_of_all_partitions_leaves_time_for_another_one),
         parted(handle_goes_on_without_a_partition_that_is_away_for_too_long),
         parted(sleepers_are_woken_by_any_partition),
         parted(idle_handle_hardly_wakes_up),
         parted(check_finds_a_key_in_a_wrong_partition));
