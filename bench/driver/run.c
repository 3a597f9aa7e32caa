/* SPDX-License-Identifier: MIT */
/* run.c: how is one row of one side measured? In a process of its own, so that
 * no row profits from the memory of another, and a crash is noticed. */
#include <errno.h>
#include <sched.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver.h"

void
program_path(char path[MOST_PATH], const char *program)
{
    char          self[MOST_PATH - 100] = "./";
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

    if (n > 0)
        self[n] = '\0';
    strrchr(self, '/')[1] = '\0';
    (void)snprintf(path, MOST_PATH, "%s%.99s", self, program);
}

bool
is_there(const struct peer *p)
{
    char path[MOST_PATH];

    program_path(path, p->program);
    return access(path, X_OK) == 0;
}

/* ---- on few processors -------------------------------------------------- */

/* A child inherits the processors of its parent: restrict this process to the
 * first `n` of its own while it starts the child. Go then counts as many,
 * too. */
static void
confine(cpu_set_t *ours, int n)
{
    cpu_set_t few;
    int       chosen = 0;

    if (sched_getaffinity(0, sizeof *ours, ours))
        return;
    CPU_ZERO(&few);
    for (size_t c = 0; c < CPU_SETSIZE && chosen < n; c++)
        if (CPU_ISSET(c, ours)) {
            CPU_SET(c, &few);
            chosen++;
        }
    (void)sched_setaffinity(0, sizeof few, &few);
}

/* ---- a process ---------------------------------------------------------- */

/* Start `path`; returns the read end of a pipe from its standard output, or
 * NULL. */
static FILE *
start(const char *path, const char *const args[3], pid_t *pid)
{
    /* posix_spawn() does not write to what its argv points to. */
    char *const argv[] = {(char *)path, (char *)args[0], (char *)args[1],
                          (char *)args[2], NULL};
    int         ends[2];
    posix_spawn_file_actions_t actions;

    if (pipe(ends))
        return NULL;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    posix_spawn_file_actions_addclose(&actions, ends[1]);
    const int err = posix_spawn(pid, path, &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    (void)close(ends[1]);
    if (!err)
        return fdopen(ends[0], "r");
    (void)close(ends[0]);
    errno = err;
    return NULL;
}

static void
read_lines(FILE *f,
           void (*line)(void *ctx, const char *name, const char *value),
           void *ctx)
{
    char text[400];

    while (fgets(text, sizeof text, f)) {
        text[strcspn(text, "\n")] = '\0';
        char *gap = strchr(text, ' ');
        if (!gap)
            continue;
        *gap = '\0';
        line(ctx, text, gap + 1);
    }
}

static enum ran
how_it_went(const char *path, const char *const args[3], int status)
{
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return RAN;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 3)
        return RAN_NOT;
    (void)fprintf(stderr, "wq_bench: %s %s %s: %s %d\n", path, args[0],
                  args[1] ? args[1] : "",
                  WIFSIGNALED(status) ? "killed by signal" : "exited with",
                  WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    return RAN_BADLY;
}

enum ran
run_program(const char *program, const char *const args[3], int cpus,
            void (*line)(void *ctx, const char *name, const char *value),
            void *ctx)
{
    char      path[MOST_PATH];
    cpu_set_t ours;
    pid_t     pid;
    int       status;

    program_path(path, program);
    if (cpus)
        confine(&ours, cpus);
    FILE *f = start(path, args, &pid);
    if (cpus)
        (void)sched_setaffinity(0, sizeof ours, &ours);
    if (!f) {
        perror(path);
        return RAN_BADLY;
    }
    read_lines(f, line, ctx);
    (void)fclose(f);
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return RAN_BADLY;
    return how_it_went(path, args, status);
}
