/* SPDX-License-Identifier: MIT */
/* redis_server.c: a server for tests; see redis_server.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "support/redis_server.h"

#include <errno.h>
#include <ftw.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <hiredis/hiredis.h>

enum { MOST_ARGS = 64 };

static _Noreturn void
die(const char *what)
{
    (void)fprintf(stderr, "redis_server: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* NULL: none is named. */
static const char *
named_program(void)
{
    const char *program = getenv("WQ_REDIS_SERVER");

    return program && *program ? program : NULL;
}

bool
redis_server_is_installed(void)
{
    if (named_program() && access(named_program(), X_OK) != 0)
        die(named_program());
    return named_program() || access("/usr/bin/redis-server", X_OK) == 0 ||
           access("/usr/local/bin/redis-server", X_OK) == 0;
}

static int
remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st, (void)kind, (void)at;
    (void)remove(path);
    return 0;
}

/* In the child: become the server. */
static _Noreturn void
become(const struct redis_server *s, const char *const *args, pid_t parent)
{
    const char *const usual[] = {
        "--port",
        "0",
        "--unixsocket",
        s->socket,
        "--dir",
        s->dir,
        "--save",
        "",
        "--appendonly",
        "no",
        "--daemonize",
        "no",
        "--logfile",
        "server.log",
        "--enable-debug-command",
        "yes",
    };
    const char *argv[MOST_ARGS] = {"redis-server"};
    size_t      n = 1;

    if (args && *args && **args != '-') /* a file comes first */
        argv[n++] = *args++;
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        argv[n++] = usual[i];
    while (args && *args && n + 1 < MOST_ARGS)
        argv[n++] = *args++;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    sigset_t none;
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)execvp(named_program() ? named_program() : argv[0],
                 (char *const *)(void *)argv);
    _exit(127);
}

static bool
answers(const struct redis_server *s)
{
    redisContext *c = redisConnectUnix(s->socket);
    bool          ok = false;

    if (c && !c->err) {
        redisReply *reply = redisCommand(c, "PING");
        ok = reply && (reply->type != REDIS_REPLY_ERROR ||
                       strncmp(reply->str, "NOAUTH", 6) == 0);
        freeReplyObject(reply);
    }
    redisFree(c);
    return ok;
}

void
redis_server_launch(struct redis_server *s, const char *const *args)
{
    const pid_t parent = getpid();

    (void)remove(s->socket);
    s->pid = fork();
    if (s->pid < 0)
        die("fork");
    if (s->pid == 0)
        become(s, args, parent);
}

bool
redis_server_gets_ready(struct redis_server *s)
{
    const struct timespec moment = {.tv_nsec = 1000000};

    for (int i = 0; i < 30000 && !answers(s); i++) {
        if (waitpid(s->pid, NULL, WNOHANG) == s->pid) {
            s->pid = 0;
            return false;
        }
        (void)nanosleep(&moment, NULL);
    }
    return true;
}

void
redis_server_restart(struct redis_server *s, const char *const *args)
{
    redis_server_launch(s, args);
    if (!redis_server_gets_ready(s))
        die("the server has ended");
}

void
redis_server_start(struct redis_server *s, const char *const *args)
{
    const char *tmp = getenv("TMPDIR");

    (void)snprintf(s->dir, sizeof s->dir, "%s/wq-redis-XXXXXX",
                   tmp && *tmp && strlen(tmp) < 60 ? tmp : "/tmp");
    if (!mkdtemp(s->dir))
        die(s->dir);
    (void)snprintf(s->socket, sizeof s->socket, "%s/socket", s->dir);
    redis_server_restart(s, args);
}

void
redis_server_kill(struct redis_server *s)
{
    if (!s->pid)
        return;
    (void)kill(s->pid, SIGKILL);
    while (waitpid(s->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    s->pid = 0;
}

void
redis_server_stop(struct redis_server *s)
{
    redis_server_kill(s);
    (void)nftw(s->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* ---- commands ------------------------------------------------------------- */

static void
append(char *out, size_t size, const redisReply *reply)
{
    const size_t len = strlen(out);

    switch (reply->type) {
    case REDIS_REPLY_ARRAY:
        for (size_t i = 0; i < reply->elements; i++) {
            append(out, size, reply->element[i]);
            if (i + 1 < reply->elements)
                (void)strncat(out, " ", size - strlen(out) - 1);
        }
        break;
    case REDIS_REPLY_INTEGER:
        (void)snprintf(out + len, size - len, "%lld", reply->integer);
        break;
    case REDIS_REPLY_NIL:
        (void)snprintf(out + len, size - len, "(nil)");
        break;
    default:
        (void)snprintf(out + len, size - len, "%s%s",
                       reply->type == REDIS_REPLY_ERROR ? "-" : "", reply->str);
    }
}

const char *
redis_server_say(const struct redis_server *s, const char *words)
{
    static char   out[65536];
    char          copy[1024];
    const char   *argv[MOST_ARGS];
    int           n = 0;
    char         *rest = NULL;
    redisContext *c = redisConnectUnix(s->socket);

    (void)snprintf(copy, sizeof copy, "%s", words);
    for (char *word = strtok_r(copy, " ", &rest); word && n < MOST_ARGS;
         word = strtok_r(NULL, " ", &rest))
        argv[n++] = strcmp(word, "''") == 0 ? "" : word;
    redisReply *reply =
        c && !c->err ? redisCommandArgv(c, n, argv, NULL) : NULL;
    if (!reply)
        (void)snprintf(out, sizeof out, "-%s", c ? c->errstr : "out of memory");
    out[reply ? 0 : strlen(out)] = '\0';
    if (reply)
        append(out, sizeof out, reply);
    freeReplyObject(reply);
    redisFree(c);
    return out;
}

void
redis_server_await(const struct redis_server *s, const char *words,
                   const char *wanted)
{
    const struct timespec moment = {.tv_nsec = 2000000};

    for (int i = 0; i < 15000; i++) {
        if (strstr(redis_server_say(s, words), wanted))
            return;
        (void)nanosleep(&moment, NULL);
    }
    (void)fprintf(stderr, "redis_server: %s: no '%s' in '%s'\n", words, wanted,
                  redis_server_say(s, words));
    exit(1);
}

unsigned
redis_server_free_port(void)
{
    struct sockaddr_in addr = {.sin_family = AF_INET};
    socklen_t          len = sizeof addr;
    const int          fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || bind(fd, (struct sockaddr *)(void *)&addr, len) ||
        getsockname(fd, (struct sockaddr *)(void *)&addr, &len))
        die("no free port");
    (void)close(fd);
    return ntohs(addr.sin_port);
}

void
redis_server_start_tcp(struct redis_server *s, char port[16],
                       const char *const *args)
{
    const char *all[MOST_ARGS] = {NULL};
    size_t      n = 0;

    (void)snprintf(port, 16, "%u", redis_server_free_port());
    if (args && *args && **args != '-')
        all[n++] = *args++;
    const char *const own[] = {
        "--port", port, "--bind", "127.0.0.1", "--repl-diskless-sync-delay",
        "0"};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        all[n++] = own[i];
    while (args && *args && n + 1 < MOST_ARGS)
        all[n++] = *args++;
    redis_server_start(s, all);
}

void
redis_server_follow(const struct redis_server *s,
                    const struct redis_server *primary, const char *port)
{
    char words[64];

    (void)snprintf(words, sizeof words, "REPLICAOF 127.0.0.1 %s", port);
    redis_server_await(s, words, "OK");
    redis_server_await(s, "INFO replication", "master_link_status:up");
    redis_server_await(primary, "INFO replication", "state=online");
}

/* ---- the server of the process -------------------------------------------- */

static struct redis_server mine;
static pid_t               owner; /* children leave it alone */

static void
stop_mine(void)
{
    if (getpid() == owner)
        redis_server_stop(&mine);
}

const struct redis_server *
redis_server_of_process(void)
{
    if (!owner) {
        owner = getpid();
        redis_server_start(&mine, NULL);
        (void)atexit(stop_mine);
    }
    return &mine;
}
