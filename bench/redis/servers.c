/* SPDX-License-Identifier: MIT */
/* servers.c: which servers are measured?
 *
 * Two of Redis, without a log and with one that is synced every second
 * (appendfsync everysec), and beanstalkd. Each listens on a unix socket in a
 * directory of its own, and ends with this process.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "measure.h"
#include "support/redis_server.h"

static struct redis_server servers[SERVERS];
/* Children of fork() leave the servers alone. */
static pid_t owner;

static void
stop_all(void)
{
    for (size_t i = 0; i < SERVERS && getpid() == owner; i++)
        if (servers[i].pid)
            redis_server_stop(&servers[i]);
}

/* ---- beanstalkd ------------------------------------------------------------ */

int
server_connect(const char *path)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    const size_t       len = strlen(path);
    const int          fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    must(fd >= 0 && len < sizeof addr.sun_path, "socket");
    memcpy(addr.sun_path, path, len);
    if (connect(fd, (const struct sockaddr *)&addr, sizeof addr) == 0)
        return fd;
    (void)close(fd);
    return -1;
}

static bool
is_listening(const char *path)
{
    const int fd = server_connect(path);

    if (fd >= 0)
        (void)close(fd);
    return fd >= 0;
}

/* It shares the directory of the plain server. */
static void
start_beanstalkd(const char *program)
{
    struct redis_server *s = &servers[BEANSTALKD];
    char                 address[sizeof s->socket + 8];
    const pid_t          parent = getpid();

    (void)snprintf(s->socket, sizeof s->socket, "%s/beanstalkd",
                   servers[PLAIN].dir);
    (void)snprintf(address, sizeof address, "unix:%s", s->socket);
    s->pid = fork();
    must(s->pid >= 0, "fork");
    if (s->pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == parent)
            (void)execlp(program, program, "-l", address, (char *)NULL);
        _exit(127);
    }
    for (int i = 0; i < 1000 && !is_listening(s->socket); i++) {
        if (waitpid(s->pid, NULL, WNOHANG) == s->pid) {
            printf("bench: cannot start %s; measuring without beanstalkd\n",
                   program);
            s->pid = 0;
            return;
        }
        bench_sleep_ns(10000000);
    }
}

/* ---- all ------------------------------------------------------------------- */

void
servers_begin(const char *beanstalkd)
{
    static const char *const logs[] = {"--appendonly", "yes", "--appendfsync",
                                       "everysec", NULL};

    owner = getpid();
    must(atexit(stop_all) == 0, "atexit");
    redis_server_start(&servers[PLAIN], NULL);
    redis_server_start(&servers[AOF], logs);
    if (beanstalkd)
        start_beanstalkd(beanstalkd);
}

bool
server_is_there(enum server server)
{
    return servers[server].pid != 0;
}

const char *
server_socket(enum server server)
{
    return servers[server].socket;
}

double
server_cpu_ns(enum server server)
{
    clockid_t clock;

    must(!clock_getcpuclockid(servers[server].pid, &clock),
         "clock_getcpuclockid");
    return bench_clock_ns(clock);
}

const char *
server_version(void)
{
    static char version[32];
    const char *info = redis_server_say(&servers[PLAIN], "INFO server");
    const char *at = strstr(info, "redis_version:");

    if (!at || sscanf(at, "redis_version:%31s", version) != 1)
        return "?";
    return version;
}

void
server_empty(enum server server)
{
    (void)redis_server_say(&servers[server], "FLUSHALL SYNC");
}
