/* SPDX-License-Identifier: MIT */
/* chaos.c: does a queue in a server survive chaos (support/chaos.h)?
 *
 *     redis_chaos [SECONDS [PARTITIONS]]    10 s, and a queue without partitions
 *
 * The server is killed (kill -9) and started again with what it has written: it
 * syncs before it answers. Every second worker process is behind a proxy, which
 * is a process of its own, and damages connections, or cuts them for longer than
 * a lease. Exit status: 0, 1 if a promise was broken, 77 without a server.
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
open_queue(unsigned slot, wq_queue **out)
{
    char url[300];

    (void)snprintf(url, sizeof url, "redis+unix://%s?queue=chaos",
                   slot % 2 ? proxy_path : server.socket);
    return wq_redis_open(
        url,
        WQ_REDIS_OPTIONS(.lease_ns = WQ_MS(CHAOS_LEASE_MS),
                         .max_expiries = UINT_MAX, .partitions = partitions),
        WQ_CONFIG(.limiter = wq_limiter_exponential(WQ_MS(1), WQ_MS(50))), out);
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

int
main(int argc, char **argv)
{
    const long  seconds = argc >= 2 ? atol(argv[1]) : 10;
    const char *ci = getenv("CI");

    if (argc >= 3)
        partitions = (unsigned)atol(argv[2]);
    if (seconds < 1 || partitions < 1) {
        (void)fprintf(stderr, "usage: redis_chaos [SECONDS [PARTITIONS]]\n");
        return 2;
    }
    if (!redis_server_is_installed()) {
        (void)fprintf(stderr, "skipped: redis-server is not installed\n");
        return ci && strcmp(ci, "true") == 0 ? 1 : 77;
    }
    redis_server_start(&server, aof);
    start_proxy();
    const bool kept = chaos_run(&(struct chaos){.name = "redis",
                                                .leases = true,
                                                .open = open_queue,
                                                .disturb = disturb,
                                                .calm = calm,
                                                .print = print},
                                seconds);
    if (kept)
        redis_server_stop(&server);
    else
        (void)fprintf(stderr, "chaos: the files are in %s\n", server.dir);
    return !kept;
}
