/* SPDX-License-Identifier: MIT */
/* test_hosts.c: what if a host cannot reach the others for longer than a lease?
 * (S-03, S-04, S-20)
 *
 * The server is on host 0. On hosts 1 and 2 an actor each has a handle, with a
 * thread that renews its lease. The test cuts links (network.h). The machine
 * needs no network, but a kernel that lets users make namespaces; where it does
 * not, the tests are skipped, also with CI=true.
 */
#include "redis/fixture.h"

#include "redis/network.h"
#include "support/actor.h"
#include "support/audit.h"

/* Shorter than what tests wait for; longer than a moment. */
#define SHORT_LEASE WQ_MS(900)
#define LONG_LEASE WQ_SECONDS(30)

static struct {
    int64_t             lease_ns;
    struct redis_server server;
    struct actor       *actors[NETWORK_HOSTS]; /* by host; none on 0 */
} f;

/* ---- tasks of actors ------------------------------------------------------ */

/* Of the actor's process. */
static struct {
    wq_queue *q;
    wq_item  *item;
    uint64_t  fence;
} own;

static int64_t
open_queue(const char *host)
{
    char url[200];

    network_enter(atoi(host));
    (void)snprintf(url, sizeof url, "redis://%s/0?queue=q", network_address(0));
    return wq_redis_open(
        url, WQ_REDIS_OPTIONS(.lease_ns = f.lease_ns, .timeout_ns = WQ_MS(300)),
        NULL, &own.q);
}

static bool
is_away(wq_err err)
{
    return err == WQ_EAWAY || err == WQ_EIO;
}

static int64_t
add(const char *key)
{
    return wq_add(own.q, wq_str(key));
}

static int64_t
add_again(const char *key)
{
    return add_in_the_end(own.q, key);
}

static int64_t
get(const char *unused)
{
    wq_err err = WQ_EAWAY;

    (void)unused;
    for (int i = 0; is_away(err) && i < 100; i++) {
        err = wq_get_within(own.q, WQ_SECONDS(15), &own.item);
        if (err)
            (void)poll(NULL, 0, 10);
    }
    if (!err)
        own.fence = own.item->fence;
    return err;
}

static int64_t
left(const char *unused)
{
    (void)unused;
    return wq_hold_left(own.q, own.item);
}

/* Until the hold is not certain any more. */
static int64_t
lose(const char *unused)
{
    (void)unused;
    while (wq_hold_left(own.q, own.item) > 0)
        (void)poll(NULL, 0, 5);
    return 0;
}

static int64_t
fence(const char *unused)
{
    (void)unused;
    return (int64_t)own.fence;
}

static int64_t
finish(const char *unused)
{
    wq_err err = WQ_EAWAY;

    (void)unused;
    for (int i = 0; is_away(err) && i < 1000; i++) {
        err = wq_finish(own.q, own.item, wq_result_done());
        if (is_away(err))
            (void)poll(NULL, 0, 10);
    }
    return err;
}

static int64_t
get_now(const char *unused)
{
    (void)unused;
    return wq_get_within(own.q, 0, &own.item);
}

/* Nothing is left, and all fits together. */
static int64_t
look(const char *unused)
{
    wq_stats stats = {.size = sizeof stats};

    (void)unused;
    const wq_err err = wq_read_stats(own.q, &stats);
    return err                                     ? err
           : stats.known || !audit_is_clean(own.q) ? WQ_ESTATE
                                                   : WQ_OK;
}

static int64_t
leave(const char *unused)
{
    (void)unused;
    wq_destroy(own.q);
    return 0;
}

/* ---- the hosts ------------------------------------------------------------ */

static void
ask(int host, actor_task task, const char *arg)
{
    assert_err((wq_err)actor_do(f.actors[host], task, arg), WQ_OK);
}

static int
begin(int64_t lease_ns)
{
    const char *const args[] = {
        "--port",           "6379", "--bind", network_address(0),
        "--protected-mode", "no",   NULL};

    need_server();
    f.lease_ns = lease_ns;
    if (!network_has_tools())
        wq_test_skip("the command ip is not installed (iproute2)");
    const char *why = network_make();
    if (why)
        wq_test_leave_out(why);
    network_enter(0);
    redis_server_start(&f.server, args);
    network_enter(-1);
    for (int host = 1; host < NETWORK_HOSTS; host++) {
        char name[16];

        (void)snprintf(name, sizeof name, "%d", host);
        f.actors[host] = actor_start();
        ask(host, open_queue, name);
    }
    ask(1, add, "k");
    ask(1, get, "");
    return 0;
}

static int
set_up(void **state)
{
    (void)state;
    return begin(SHORT_LEASE);
}

static int
set_up_long(void **state)
{
    (void)state;
    return begin(LONG_LEASE);
}

static int
tear_down(void **state)
{
    (void)actor_end_all(state);
    if (f.server.pid)
        redis_server_stop(&f.server);
    network_join_all();
    return 0;
}

/* Host 2 has the key that host 1 had. */
static void
expect_handed_over(void)
{
    assert_int_equal(actor_await(f.actors[2]), WQ_OK);
    assert_int_equal(actor_do(f.actors[1], left, ""), 0);
    assert_true(actor_do(f.actors[2], left, "") > 0);
    assert_true(actor_do(f.actors[2], fence, "") >
                actor_do(f.actors[1], fence, ""));
}

/* All links are good again: host 1 learns what it has lost, and goes on. */
static void
expect_all_well(void)
{
    network_join_all();
    assert_int_equal(actor_do(f.actors[1], finish, ""), WQ_ELOST);
    ask(2, finish, "");
    ask(1, add_again, "next");
    ask(1, get, "");
    assert_true(actor_do(f.actors[1], left, "") > 0);
    ask(1, finish, "");
    ask(2, look, "");
    ask(1, leave, "");
    ask(2, leave, "");
}

/* ---- tests ---------------------------------------------------------------- */

TEST(host_that_is_cut_off_for_longer_than_its_lease_loses_its_key)
{
    (void)state;
    actor_post(f.actors[2], get, "");
    network_cut(1);
    expect_handed_over();
    expect_all_well();
}

/* What it sends arrives, and nothing comes back. */
TEST(host_that_hears_nothing_loses_its_key)
{
    (void)state;
    actor_post(f.actors[2], get, "");
    network_lose(0, 1);
    expect_handed_over();
    expect_all_well();
}

/* What it sends does not arrive. */
TEST(host_that_nobody_hears_loses_its_key)
{
    (void)state;
    actor_post(f.actors[2], get, "");
    network_lose(1, 0);
    expect_handed_over();
    expect_all_well();
}

TEST(hosts_go_on_when_the_server_was_cut_off_for_longer_than_a_lease)
{
    (void)state;
    network_cut(0);
    ask(1, lose, "");
    assert_true(is_away((wq_err)actor_do(f.actors[2], add, "other")));
    actor_post(f.actors[2], get, "");
    network_join_all();
    expect_handed_over();
    expect_all_well();
}

/* A cut that is shorter than the lease is not noticed. */
TEST(host_that_is_cut_off_for_a_moment_keeps_its_key)
{
    (void)state;
    network_cut(1);
    network_join_all();
    assert_int_equal(actor_do(f.actors[1], finish, ""), WQ_OK);
    ask(2, look, "");
    ask(1, leave, "");
    ask(2, leave, "");
}

/* The kernel would send it again when the link is back, half a second later, or
 * a whole one: host 1 would hold a key without knowing it. */
TEST(request_of_a_call_that_has_failed_does_not_arrive_later)
{
    enum { RESENT_MS = 2000 };

    (void)state;
    ask(1, finish, "");
    ask(2, add, "k");
    network_cut(1);
    assert_true(is_away((wq_err)actor_do(f.actors[1], get_now, "")));
    network_join_all();
    ask(1, add_again, "k"); /* gives back first what it may have got */
    (void)poll(NULL, 0, RESENT_MS);
    ask(2, get_now, "");
    ask(2, finish, "");
    ask(1, look, "");
    ask(1, leave, "");
    ask(2, leave, "");
}

#define on_hosts(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

WQ_TESTS(
    on_hosts(host_that_is_cut_off_for_longer_than_its_lease_loses_its_key),
    on_hosts(host_that_hears_nothing_loses_its_key),
    on_hosts(host_that_nobody_hears_loses_its_key),
    on_hosts(hosts_go_on_when_the_server_was_cut_off_for_longer_than_a_lease),
    cmocka_unit_test_setup_teardown(
        host_that_is_cut_off_for_a_moment_keeps_its_key, set_up_long,
        tear_down),
    cmocka_unit_test_setup_teardown(
        request_of_a_call_that_has_failed_does_not_arrive_later, set_up_long,
        tear_down));
