/* SPDX-License-Identifier: MIT */
/* test_cluster.c: does a queue follow its hash slot from node to node? (S-24)
 *
 * Two nodes, each with half of the slots. A node needs two seconds before it
 * serves anybody, so there are few tests.
 */
#include "redis/fixture.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

#define LEASE WQ_SECONDS(60)

struct node {
    struct redis_server server;
    char                port[16], bus[16], id[64];
};

static struct {
    struct node  nodes[2];
    struct node *owner, *other; /* of the slot of the queue */
    char         slot[16];
    wq_queue    *q;
} f;

static void
start(struct node *node, bool again)
{
    const char *const args[] = {"--port",
                                node->port,
                                "--bind",
                                "127.0.0.1",
                                "--cluster-enabled",
                                "yes",
                                "--cluster-port",
                                node->bus,
                                "--cluster-node-timeout",
                                "1000",
                                "--appendonly",
                                "yes",
                                "--appendfsync",
                                "always",
                                "--repl-diskless-sync-delay",
                                "0",
                                NULL};

    if (again) {
        redis_server_restart(&node->server, args);
        return;
    }
    (void)snprintf(node->port, sizeof node->port, "%u",
                   redis_server_free_port());
    (void)snprintf(node->bus, sizeof node->bus, "%u", redis_server_free_port());
    redis_server_start(&node->server, args);
    (void)snprintf(node->id, sizeof node->id, "%s",
                   redis_server_say(&node->server, "CLUSTER MYID"));
}

static int
set_up(void **state)
{
    struct node *a = &f.nodes[0], *b = &f.nodes[1];
    char         words[100];

    (void)state;
    need_server();
    start(a, false);
    start(b, false);
    tell(&a->server, "CLUSTER ADDSLOTSRANGE 0 8191");
    tell(&b->server, "CLUSTER ADDSLOTSRANGE 8192 16383");
    (void)snprintf(words, sizeof words, "CLUSTER MEET 127.0.0.1 %s %s", b->port,
                   b->bus);
    tell(&a->server, words);
    redis_server_await(&a->server, "CLUSTER INFO", "cluster_state:ok");
    redis_server_await(&b->server, "CLUSTER INFO", "cluster_state:ok");
    (void)snprintf(f.slot, sizeof f.slot, "%s",
                   redis_server_say(&a->server, "CLUSTER KEYSLOT wq:{q}:k"));
    f.owner = atoi(f.slot) < 8192 ? a : b;
    f.other = f.owner == a ? b : a;
    return 0;
}

static int
tear_down(void **state)
{
    (void)state;
    wq_destroy(f.q);
    f.q = NULL;
    redis_server_stop(&f.nodes[0].server);
    redis_server_stop(&f.nodes[1].server);
    return 0;
}

static const char *
url(const char *hosts, const struct node *node, const char *rest)
{
    static char text[300];

    (void)snprintf(text, sizeof text, "redis://%s127.0.0.1:%s%s", hosts,
                   node->port, rest);
    return text;
}

static wq_queue *
open_by(const struct node *node)
{
    wq_queue *q = NULL;

    assert_err(wq_redis_open(url("", node, "?queue=q"),
                             WQ_REDIS_OPTIONS(.lease_ns = LEASE,
                                              .timeout_ns = WQ_SECONDS(10)),
                             NULL, &q),
               WQ_OK);
    return q;
}

TEST(queue_is_found_from_any_node)
{
    struct node single;
    wq_queue   *q = NULL;

    (void)state;
    f.q = open_by(f.other);
    assert_err(wq_add(f.q, wq_str("k")), WQ_OK);
    expect_at(f.q, f.owner->port);
    q = open_by(f.owner);
    expect_at(q, f.owner->port);
    wq_item *item = take_key(q, "k");
    assert_err(wq_finish(q, item, wq_result_retry()), WQ_OK);
    item = NULL;
    assert_err(wq_get_within(f.q, WQ_SECONDS(30), &item), WQ_OK); /* sleeps */
    assert_err(wq_renew(f.q), WQ_OK);
    assert_err(wq_done(f.q, item), WQ_OK);
    check(f.q);
    assert_int_equal(server_of(f.q).reconnects, 0); /* to move is no loss */
    wq_destroy(q);

    /* a node that is not there, then one that is */
    assert_err(
        wq_open_redis(url("127.0.0.1:1,", f.other, "?queue=q"), NULL, &q),
        WQ_OK);
    wq_destroy(q);
    assert_err(wq_open_redis(url("", f.owner, "/1?queue=q"), NULL, &q),
               WQ_EINVAL);
    last_error_has("refuses the database"); /* only 0 is for all releases */

    /* several servers that are not a cluster would be several queues */
    redis_server_start_tcp(&single.server, single.port, NULL);
    assert_err(
        wq_open_redis(url("127.0.0.1:1,", &single, "?queue=q"), NULL, &q),
        WQ_EINVAL);
    last_error_has("is not a node of a cluster");
    redis_server_stop(&single.server);
}

/* ---- a slot moves --------------------------------------------------------- */

enum { KEYS = 400, MOVE_AT = 50 };

static struct {
    atomic_int added, done;
    atomic_int seen[KEYS];
    atomic_int unexpected; /* an error other than those of the moment */
} use;

static void *
add_keys(void *q)
{
    char key[16];

    for (int i = 0; i < KEYS; i++) {
        (void)snprintf(key, sizeof key, "%d", i);
        const wq_err err = add_in_the_end(q, key);
        if (err)
            atomic_store(&use.unexpected, (int)err);
        atomic_fetch_add(&use.added, 1);
    }
    return NULL;
}

static void *
do_keys(void *q)
{
    while (atomic_load(&use.done) < KEYS && !atomic_load(&use.unexpected)) {
        wq_item *item = NULL;
        wq_err   err = wq_get_within(q, WQ_SECONDS(5), &item);

        if (!err) {
            char text[16] = "";
            memcpy(text, item->key.data, item->key.len);
            if (!atomic_fetch_add(&use.seen[atoi(text)], 1))
                atomic_fetch_add(&use.done, 1);
            while (is_for_now(err = wq_done(q, item)))
                (void)poll(NULL, 0, 5);
        } else if (is_for_now(err)) {
            (void)poll(NULL, 0, 5);
            err = WQ_OK;
        } else if (atomic_load(&use.done) == KEYS) {
            err = WQ_OK; /* the other thread has taken the last one */
        }
        if (err)
            atomic_store(&use.unexpected, (int)err);
    }
    return NULL;
}

static void
set_slot(const struct node *at, const char *state, const struct node *node)
{
    char words[128];

    (void)snprintf(words, sizeof words, "CLUSTER SETSLOT %s %s %s", f.slot,
                   state, node->id);
    tell(&at->server, words);
}

/* As redis-cli --cluster reshard does it, and slowly. */
static void
move_slot(void)
{
    char        words[1024], key[400];
    const char *reply;

    set_slot(f.other, "IMPORTING", f.owner);
    set_slot(f.owner, "MIGRATING", f.other);
    (void)snprintf(words, sizeof words, "CLUSTER GETKEYSINSLOT %s 1", f.slot);
    while (*(reply = redis_server_say(&f.owner->server, words))) {
        char migrate[600];
        (void)snprintf(key, sizeof key, "%s", reply);
        (void)snprintf(migrate, sizeof migrate,
                       "MIGRATE 127.0.0.1 %s %s 0 5000", f.other->port, key);
        tell(&f.owner->server, migrate);
        (void)poll(NULL, 0, 20); /* others try meanwhile */
    }
    set_slot(f.other, "NODE", f.other);
    set_slot(f.owner, "NODE", f.other);
}

TEST(queue_in_use_moves_with_its_slot)
{
    pthread_t threads[3];

    (void)state;
    memset(&use, 0, sizeof use);
    f.q = open_by(f.owner);
    wq_queue *worker = open_by(f.other);
    assert_int_equal(pthread_create(&threads[0], NULL, add_keys, f.q), 0);
    assert_int_equal(pthread_create(&threads[1], NULL, do_keys, worker), 0);
    assert_int_equal(pthread_create(&threads[2], NULL, do_keys, worker), 0);
    while (atomic_load(&use.added) < MOVE_AT)
        (void)poll(NULL, 0, 1);
    move_slot();
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(atomic_load(&use.unexpected), 0);
    assert_int_equal(atomic_load(&use.done), KEYS);
    assert_int_equal(stats_of(f.q).known, 0);
    check(f.q);
    wq_destroy(worker);
    /* nothing was left, or made, at the old node */
    assert_string_equal(redis_server_say(&f.owner->server, "DBSIZE"), "0");
}

/* The node has all keys of the queue, but the script deletes one, which would be
 * elsewhere then: it would end in the middle. */
TEST(script_does_not_run_while_its_slot_moves)
{
    wq_item *item = NULL;
    char     words[64];

    (void)state;
    f.q = open_by(f.owner);
    assert_err(wq_add(f.q, wq_str("dead")), WQ_OK);
    item = take_key(f.q, "dead");
    assert_err(wq_finish(f.q, item, wq_result_bury()), WQ_OK);
    assert_err(wq_add(f.q, wq_str("held")), WQ_OK);
    wq_item *held = take_key(f.q, "held");
    assert_err(wq_add(f.q, wq_str("ready")), WQ_OK);
    assert_err(wq_add_after(f.q, wq_str("due"), WQ_SECONDS(100)), WQ_OK);
    const char *const rare[] = {"ZADD wq:{q}:used 1 x", "ZADD wq:{q}:idle 1 x",
                                "ZREM wq:{q}:used x", "ZREM wq:{q}:idle x"};
    for (int i = 0; i < 2; i++)
        assert_string_equal(redis_server_say(&f.owner->server, rare[i]), "1");
    set_slot(f.other, "IMPORTING", f.owner);
    set_slot(f.owner, "MIGRATING", f.other);
    assert_err(wq_get_within(f.q, 0, &item), WQ_EAWAY);
    last_error_has("is moving the queue to another node");
    (void)snprintf(words, sizeof words, "CLUSTER SETSLOT %s STABLE", f.slot);
    tell(&f.owner->server, words); /* it stays after all */
    for (int i = 2; i < 4; i++)
        assert_string_equal(redis_server_say(&f.owner->server, rare[i]), "1");
    assert_err(wq_done(f.q, take_key(f.q, "ready")), WQ_OK);
    assert_err(wq_done(f.q, held), WQ_OK);
    check(f.q);
}

/* ---- a node dies ---------------------------------------------------------- */

TEST(queue_of_a_dead_node_is_away_until_it_is_back)
{
    (void)state;
    f.q = open_by(f.other);
    assert_err(wq_add(f.q, wq_str("k")), WQ_OK);
    wq_item *item = take_key(f.q, "k");
    redis_server_kill(&f.owner->server);
    for (int i = 0; i < 3; i++)
        assert_err(wq_add(f.q, wq_str("other")), WQ_EAWAY);
    redis_server_await(&f.other->server, "CLUSTER INFO", "cluster_state:fail");
    assert_err(wq_add(f.q, wq_str("other")), WQ_EAWAY);
    start(f.owner, true);
    assert_err(add_in_the_end(f.q, "other"), WQ_OK);
    assert_err(wq_done(f.q, item), WQ_OK);
    assert_err(wq_done(f.q, take_key(f.q, "other")), WQ_OK);
    check(f.q);
}

/* No URL names the replica: the nodes do. */
TEST(queue_goes_on_at_the_replica_that_took_over)
{
    struct node replica;
    char        words[128];
    wq_queue   *q = NULL;

    (void)state;
    start(&replica, false);
    (void)snprintf(words, sizeof words, "CLUSTER MEET 127.0.0.1 %s %s",
                   f.other->port, f.other->bus);
    tell(&replica.server, words);
    (void)snprintf(words, sizeof words, "CLUSTER REPLICATE %s", f.owner->id);
    redis_server_await(&replica.server, words, "OK");
    redis_server_await(&replica.server, "INFO replication",
                       "master_link_status:up");
    redis_server_await(&replica.server, "CLUSTER INFO", "cluster_state:ok");

    assert_err(
        wq_open_redis(url("", &replica, "?queue=q&replicas=1"), NULL, &q),
        WQ_OK);
    f.q = open_by(f.owner);
    assert_err(wq_add(q, wq_str("k")), WQ_OK);
    wq_item *item = take_key(q, "k");
    redis_server_kill(&f.owner->server);
    assert_err(wq_add(f.q, wq_str("other")), WQ_EAWAY);
    tell(&replica.server, "CLUSTER FAILOVER TAKEOVER");
    assert_err(add_in_the_end(f.q, "other"), WQ_OK);
    assert_int_equal(stats_of(f.q).held, 1);
    /* it has no replica any more: the call has happened, but is not confirmed */
    for (int i = 0; stats_of(f.q).held && i < 100; i++)
        assert_true(is_for_now(wq_done(q, item)));
    assert_int_equal(stats_of(f.q).held, 0);
    check(f.q);
    wq_destroy(q);
    redis_server_stop(&replica.server);
}

/* ---- partitions ----------------------------------------------------------- */

enum { PARTS = 8, SPREAD = 40 };

/* The node of a slot; any node that lives knows its number. */
static struct node *
node_of_slot(const char *words)
{
    const char *slot = redis_server_say(&f.nodes[0].server, words);

    if (*slot == '-')
        slot = redis_server_say(&f.nodes[1].server, words);
    return &f.nodes[atoi(slot) < 8192 ? 0 : 1];
}

/* The node of the partition of key number `n`. */
static const struct node *
node_of(int n)
{
    char key[16], words[100];

    (void)snprintf(key, sizeof key, "%d", n);
    (void)snprintf(words, sizeof words, "CLUSTER KEYSLOT wq:{q/%d.%u}:k", PARTS,
                   redis_queue_partition(wq_str(key), PARTS));
    return node_of_slot(words);
}

/* The node serves its slots while the other one is dead: alone it is no majority, and
 * would be down after a second. */
static void
keep_up(const struct node *node)
{
    tell(&node->server, "CONFIG SET cluster-require-full-coverage no");
    tell(&node->server, "CONFIG SET cluster-node-timeout 600000");
}

/* Get and finish all keys; how many there were. Errors of the moment: those of
 * partitions that are away. */
static int
work_on_all(void)
{
    wq_item *item = NULL;
    int      n = 0;
    wq_err   err;

    while ((err = wq_get_within(f.q, 0, &item)) != WQ_ETIMEDOUT) {
        if (err)
            break;
        assert_err(wq_done(f.q, item), WQ_OK);
        n++;
    }
    return n;
}

static void
add_number(int n, bool is_away)
{
    char key[16];

    (void)snprintf(key, sizeof key, "%d", n);
    if (is_away)
        assert_true(is_for_now(wq_add(f.q, wq_str(key))));
    else
        assert_err(add_in_the_end(f.q, key), WQ_OK);
}

static int warnings; /* that a partition cannot be reached */

static void
count_warning(void *ctx, const char *text)
{
    (void)ctx;
    warnings += strstr(text, " of the queue cannot be reached") != NULL;
}

static wq_err
open_spread(const struct node *node, wq_queue **q)
{
    const wq_redis_options *options =
        WQ_REDIS_OPTIONS(.lease_ns = LEASE, .timeout_ns = WQ_SECONDS(10),
                         .on_warning = count_warning);

    warnings = 0;
    return wq_redis_open(url("", node, "?queue=q&partitions=8"), options, NULL,
                         q);
}

/* How many partitions are in a node. */
static int
count_partitions(const struct node *node)
{
    int n = 0;

    for (int p = 0; p < PARTS; p++) {
        char words[100];
        (void)snprintf(words, sizeof words, "CLUSTER KEYSLOT wq:{q/%d.%d}:k",
                       PARTS, p);
        n += node_of_slot(words) == node;
    }
    return n;
}

/* S-25: a new handle, too, goes on without partitions that are away, but not if
 * nobody knows the number of partitions yet. */
TEST(handle_is_opened_while_a_node_with_partitions_is_dead)
{
    struct node *a = node_of_slot("CLUSTER KEYSLOT wq:{q}:meta"); /* number */
    struct node *b = a == &f.nodes[0] ? &f.nodes[1] : &f.nodes[0];
    int          of_a = 0;

    (void)state;
    keep_up(a);
    redis_server_kill(&b->server);
    assert_err(open_spread(a, &f.q), WQ_EAWAY);
    start(b, true);
    wq_err err = WQ_EAWAY;
    for (int i = 0; i < 3000 && err; i++) {
        err = open_spread(a, &f.q);
        if (err)
            (void)poll(NULL, 0, 10);
    }
    assert_err(err, WQ_OK);
    wq_destroy(f.q);
    f.q = NULL;

    redis_server_kill(&b->server);
    assert_err(open_spread(a, &f.q), WQ_OK);
    assert_int_equal(warnings, count_partitions(b));
    assert_int_equal(server_of(f.q).partitions_away, count_partitions(b));
    assert_true(wq_fd(f.q) >= 0);
    for (int i = 0; i < SPREAD; i++) {
        of_a += node_of(i) == a;
        add_number(i, node_of(i) == b);
    }
    assert_int_equal(work_on_all(), of_a);
    assert_err(wq_renew(f.q), WQ_OK);
    start(b, true);
    for (int i = 0; i < SPREAD; i++)
        add_number(i, false);
    assert_int_equal(work_on_all(), SPREAD);
    check(f.q);
}

/* Get keys, and give them back, until one of that node comes: the others always have
 * some. */
static bool
finds_key_of(const struct node *node)
{
    wq_item *item = NULL;
    bool     found = false;

    for (int i = 0; i < 20000 && !found; i++) {
        const wq_err err = wq_get_within(f.q, 0, &item);
        if (err) {
            assert_true(is_for_now(err));
            continue;
        }
        found = node_of(atoi(item->key.data)) == node;
        (void)wq_finish(f.q, item, wq_result_back());
    }
    return found;
}

/* S-25: keys of a partition that was away when the queue was opened do not wait until
 * the others have none. */
TEST(keys_of_a_partition_that_is_back_come_although_others_have_some)
{
    struct node *a = node_of_slot("CLUSTER KEYSLOT wq:{q}:meta");
    struct node *b = a == &f.nodes[0] ? &f.nodes[1] : &f.nodes[0];

    (void)state;
    keep_up(a);
    assert_err(open_spread(a, &f.q), WQ_OK);
    for (int i = 0; i < SPREAD; i++)
        add_number(i, false);
    wq_destroy(f.q);
    f.q = NULL;

    redis_server_kill(&b->server);
    assert_err(open_spread(a, &f.q), WQ_OK);
    assert_true(finds_key_of(a));
    start(b, true);
    redis_server_await(&b->server, "CLUSTER INFO", "cluster_state:ok");
    assert_true(finds_key_of(b));
    check(f.q);
}

/* A node that hangs costs an open, and the calls after it, little more than one
 * timeout. */
TEST(handle_is_opened_while_a_node_with_partitions_hangs)
{
    const int64_t timeout_ns = WQ_SECONDS(2);
    struct node  *a = node_of_slot("CLUSTER KEYSLOT wq:{q}:meta");
    struct node  *b = a == &f.nodes[0] ? &f.nodes[1] : &f.nodes[0];

    (void)state;
    keep_up(a);
    assert_err(open_spread(a, &f.q), WQ_OK);
    assert_true(count_partitions(b) > 1);
    wq_destroy(f.q);
    f.q = NULL;
    assert_int_equal(kill(b->server.pid, SIGSTOP), 0);
    const int64_t           begin_ns = now_ns();
    const wq_redis_options *options =
        WQ_REDIS_OPTIONS(.lease_ns = LEASE, .timeout_ns = timeout_ns);
    const wq_err err =
        wq_redis_open(url("", a, "?queue=q&partitions=8"), options, NULL, &f.q);
    const int64_t opened_ns = now_ns();
    const wq_err  added = err ? err : wq_add_str(f.q, "x");
    const int64_t took_ns = now_ns() - opened_ns;
    assert_int_equal(kill(b->server.pid, SIGCONT), 0);
    if (err)
        fail_msg("%s", wq_last_error());
    assert_true(opened_ns - begin_ns < 3 * timeout_ns);
    assert_true(added == WQ_OK || added == WQ_EAWAY);
    assert_true(took_ns < timeout_ns);
}

/* S-25: partitions are in both nodes; those of one go on while the other is
 * dead. */
TEST(partitions_are_in_several_nodes)
{
    struct node *a = &f.nodes[0], *b = &f.nodes[1];
    int          of_a = 0;

    (void)state;
    assert_err(open_spread(a, &f.q), WQ_OK);
    for (int i = 0; i < SPREAD; i++) {
        of_a += node_of(i) == a;
        add_number(i, false);
    }
    assert_in_range(of_a, 1, SPREAD - 1);
    assert_int_equal(stats_of(f.q).ready, SPREAD);
    assert_int_equal(work_on_all(), SPREAD);

    keep_up(a);
    redis_server_kill(&b->server);
    for (int i = 0; i < SPREAD; i++)
        add_number(i, node_of(i) == b);
    assert_int_equal(work_on_all(), of_a);
    start(b, true);
    for (int i = 0; i < SPREAD; i++)
        add_number(i, false);
    assert_int_equal(work_on_all(), SPREAD);
    check(f.q);
}

#define with_cluster(name)                                                     \
    cmocka_unit_test_setup_teardown(name, set_up, tear_down)

WQ_TESTS(with_cluster(queue_is_found_from_any_node),
         with_cluster(queue_in_use_moves_with_its_slot),
         with_cluster(script_does_not_run_while_its_slot_moves),
         with_cluster(queue_goes_on_at_the_replica_that_took_over),
         with_cluster(queue_of_a_dead_node_is_away_until_it_is_back),
         with_cluster(handle_is_opened_while_a_node_with_partitions_is_dead),
         with_cluster(
             keys_of_a_partition_that_is_back_come_although_others_have_some),
         with_cluster(handle_is_opened_while_a_node_with_partitions_hangs),
         with_cluster(partitions_are_in_several_nodes));
