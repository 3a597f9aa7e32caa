/* SPDX-License-Identifier: MIT */
/* chaos.c: does a queue in a server survive chaos (support/chaos.h)?
 *
 *     redis_chaos [server [SECONDS [PARTITIONS]] | hosts [SECONDS]]
 *
 * 10 s, and a queue without partitions, unless they are given.
 *
 * server: it is killed (kill -9) and started again with what it has written: it
 * syncs before it answers. Every second worker process is behind a proxy, which
 * is a process of its own, and damages connections, or cuts them for longer than
 * a lease.
 *
 * hosts: the server is on a host of its own, and the worker processes on two
 * others (network.h). Links are cut for longer than a lease, in both directions
 * or in one, also the server's; the janitor, at the server, always reaches it.
 *
 * Exit status: 0, 1 if a promise was broken, 77 without a server, or where the
 * kernel has no namespaces for this user.
 */
#define _GNU_SOURCE
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <wq/limiter.h>
#include <wq/redis.h>

#include "redis/network.h"
#include "redis/proxy.h"
#include "support/chaos.h"
#include "support/must.h"

static const char *const aof[] = {"--appendonly", "yes", "--appendfsync",
                                  "always", NULL};

static struct redis_server server;
static char                proxy_path[200];
static int                 to_proxy; /* a pipe: modes */
static long                restarts, cuts;
static unsigned            partitions = 1;

static wq_err
open_url(const char *url, int64_t timeout_ns, wq_queue **out)
{
    return wq_redis_open(
        url,
        WQ_REDIS_OPTIONS(.lease_ns = WQ_MS(CHAOS_LEASE_MS),
                         .timeout_ns = timeout_ns, .max_expiries = UINT_MAX,
                         .partitions = partitions),
        WQ_CONFIG(.limiter = wq_limiter_exponential(WQ_MS(1), WQ_MS(50))), out);
}

static wq_err
open_queue(unsigned slot, wq_queue **out)
{
    char url[300];

    (void)snprintf(url, sizeof url, "redis+unix://%s?queue=chaos",
                   slot % 2 ? proxy_path : server.socket);
    return open_url(url, 0, out);
}

/* ---- the proxy ------------------------------------------------------------ */

static _Noreturn void
keep_proxy(int in, int out)
{
    struct proxy *p = proxy_start(&server);
    char          mode = 0;

    MUST(snprintf(proxy_path, sizeof proxy_path, "%s", proxy_socket(p)) > 0);
    MUST(write(out, "x", 1) == 1);
    while (read(in, &mode, 1) == 1)
        proxy_set(p, (enum proxy_mode)mode);
    _exit(0);
}

static void
start_proxy(void)
{
    int  down[2], up[2];
    char byte;

    MUST(pipe(down) == 0 && pipe(up) == 0);
    const pid_t pid = fork();
    MUST(pid >= 0);
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        keep_proxy(down[0], up[1]);
    }
    to_proxy = down[1];
    MUST(read(up[0], &byte, 1) == 1);
    (void)snprintf(proxy_path, sizeof proxy_path, "%s/proxy", server.dir);
}

static void
set_proxy(enum proxy_mode mode)
{
    const char byte = (char)mode;

    MUST(write(to_proxy, &byte, 1) == 1);
    cuts += mode != PROXY_PASS;
}

/* ---- disturbances --------------------------------------------------------- */

static void
disturb(uint64_t random)
{
    static const enum proxy_mode modes[] = {PROXY_LOSE, PROXY_CUT,  PROXY_HANG,
                                            PROXY_HALF, PROXY_HOLD, PROXY_SPLIT,
                                            PROXY_PASS};

    if (random % 4) {
        set_proxy(modes[random / 4 % (sizeof modes / sizeof *modes)]);
        return;
    }
    redis_server_kill(&server);
    redis_server_restart(&server, aof);
    restarts++;
}

static void
calm(void)
{
    set_proxy(PROXY_PASS);
}

static void
print(void)
{
    printf(", servers killed %ld, links damaged %ld", restarts, cuts);
}

/* ---- hosts ---------------------------------------------------------------- */

static wq_err
open_on_host(unsigned slot, wq_queue **out)
{
    char url[100];

    if (slot == CHAOS_JANITOR) {
        (void)snprintf(url, sizeof url, "redis://127.0.0.1/0?queue=chaos");
        network_enter(0);
    } else {
        (void)snprintf(url, sizeof url, "redis://%s/0?queue=chaos",
                       network_address(0));
        network_enter(1 + (int)(slot % (NETWORK_HOSTS - 1)));
    }
    /* A call that hangs would make the rests between disturbances long. */
    return open_url(url, WQ_MS(CHAOS_LEASE_MS / 2), out);
}

static void
disturb_network(uint64_t random)
{
    const int host = 1 + (int)(random / 8 % (NETWORK_HOSTS - 1));

    network_join_all();
    switch (random % 8) {
    case 0:
        break;
    case 1:
        network_cut(0);
        break;
    case 2:
    case 3:
        network_lose(0, host);
        break;
    case 4:
        network_lose(host, 0);
        break;
    default:
        network_cut(host);
    }
    cuts += random % 8 != 0;
}

static void
print_cuts(void)
{
    printf(", links cut %ld", cuts);
}

/* ---- the program ----------------------------------------------------------- */

static const struct chaos with_server = {.name = "redis",
                                         .leases = true,
                                         .open = open_queue,
                                         .disturb = disturb,
                                         .calm = calm,
                                         .print = print};

static const struct chaos with_hosts = {.name = "redis hosts",
                                        .leases = true,
                                        .open = open_on_host,
                                        .disturb = disturb_network,
                                        .calm = network_join_all,
                                        .print = print_cuts};

static void
start_with_proxy(void)
{
    redis_server_start(&server, aof);
    start_proxy();
}

static void
start_on_host(void)
{
    const char *const args[] = {"--bind", "127.0.0.1", network_address(0),
                                "--port", "6379",      "--protected-mode",
                                "no",     NULL};

    network_enter(0);
    redis_server_start(&server, args);
    network_enter(-1);
}

/* The exit status of a test whose machine lacks something that could be
 * installed. */
static int
skip(const char *what)
{
    const char *ci = getenv("CI");

    (void)fprintf(stderr, "skipped: %s is not installed\n", what);
    return ci && strcmp(ci, "true") == 0 ? 1 : 77;
}

int
main(int argc, char **argv)
{
    const bool hosts = argc >= 2 && strcmp(argv[1], "hosts") == 0;
    const int at = 1 + (hosts || (argc >= 2 && strcmp(argv[1], "server") == 0));
    const long seconds = argc > at ? atol(argv[at]) : 10;

    if (argc > at + 1 && !hosts)
        partitions = (unsigned)atol(argv[at + 1]);
    if (seconds < 1 || partitions < 1) {
        (void)fprintf(stderr, "usage: redis_chaos [server [SECONDS "
                              "[PARTITIONS]] | hosts [SECONDS]]\n");
        return 2;
    }
    if (!redis_server_is_installed())
        return skip("redis-server");
    if (hosts && !network_has_tools())
        return skip("the command ip (iproute2)");
    const char *why = hosts ? network_make() : NULL;
    if (why) {
        (void)fprintf(stderr, "skipped: %s\n", why);
        return 77;
    }
    if (hosts)
        start_on_host();
    else
        start_with_proxy();
    const bool kept = chaos_run(hosts ? &with_hosts : &with_server, seconds);
    if (kept)
        redis_server_stop(&server);
    else
        (void)fprintf(stderr, "chaos: the files are in %s\n", server.dir);
    return !kept;
}
