/* SPDX-License-Identifier: MIT */
/* child.c: how is a process started, signalled and reaped?
 *
 * posix_spawn() would do, but for two things it cannot: ask for a signal when
 * the parent dies, and say which step failed. So this does what it does: a
 * clone() that shares our memory while we are suspended (as vfork(), on a stack
 * of its own), until exec. Between the two the child may only make system
 * calls, and what it writes to memory we see.
 *
 * Who has ended is asked when SIGCHLD came: that is one read of the signalfd
 * for all that ended since, where a pidfd each would have to be opened, watched
 * and closed; and it works with every kernel. A process id is not given to
 * another process before it was reaped, so signals cannot go astray.
 */
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* The child makes system calls on it, no more. */
#define STACK_SIZE 65536

static struct {
    sigset_t         mask;    /* as it was given to us */
    struct sigaction on_pipe; /* likewise */
    struct sigaction on_child;
    char            *stack; /* its lower end */
    int              null;  /* /dev/null */
    pid_t            self;
    struct rlimit    files;  /* as it was given to us */
    bool             raised; /* ours is another one */
} ours;

/* One start, as both processes see it. */
struct step {
    const struct child_start *how;
    sigset_t                  mask;  /* for the child */
    volatile int              error; /* what went wrong there; 0: nothing */
};

/* Every run has pipes; a limit of 1024 is for programs that use select(). */
static bool
raise_limit(uint64_t files)
{
    if (getrlimit(RLIMIT_NOFILE, &ours.files) != 0)
        return false;
    struct rlimit more = ours.files;
    if (files > more.rlim_cur)
        more.rlim_cur = files < more.rlim_max ? files : more.rlim_max;
    ours.raised = more.rlim_cur != ours.files.rlim_cur;
    return !ours.raised || setrlimit(RLIMIT_NOFILE, &more) == 0;
}

/* The first one above stdin, stdout and stderr; one of these that was closed
 * is open then, and no pipe will be taken for it. */
static int
open_null(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    while (fd >= 0 && fd <= STDERR_FILENO);
    return fd;
}

int
child_setup(uint64_t files)
{
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    const struct sigaction normal = {.sa_handler = SIG_DFL};

    ours.self = getpid();
    const int kept = open_null();
    ours.null = open_null();
    ours.stack = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (kept < 0 || ours.null < 0 || ours.stack == MAP_FAILED ||
        !raise_limit(files) ||
        sigprocmask(SIG_SETMASK, NULL, &ours.mask) != 0 ||
        sigaction(SIGPIPE, &ignore, &ours.on_pipe) != 0 ||
        sigaction(SIGCHLD, &normal, &ours.on_child) != 0)
        return -1;
    return kept;
}

/* ---------------------------------------------------------- in the child -- */

/* Puts `fd` where the child expects it; dup2() clears its close-on-exec flag,
 * unless it is there already. */
static bool
place(int fd, int as)
{
    if (fd < 0)
        return true;
    return fd == as ? fcntl(fd, F_SETFD, 0) == 0 : dup2(fd, as) >= 0;
}

/* A parent that died before the prctl() is not noticed by it. */
static bool
die_with_parent(void)
{
    return prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == ours.self;
}

__attribute__((no_sanitize("address", "thread"))) static int
become(void *arg)
{
    struct step              *step = arg;
    const struct child_start *how = step->how;

    if (setpgid(0, 0) == 0 && die_with_parent() &&
        place(ours.null, STDIN_FILENO) && place(how->out, STDOUT_FILENO) &&
        place(how->err, STDERR_FILENO) && place(how->result, how->result_as) &&
        (!ours.raised || setrlimit(RLIMIT_NOFILE, &ours.files) == 0) &&
        sigaction(SIGPIPE, &ours.on_pipe, NULL) == 0 &&
        sigaction(SIGCHLD, &ours.on_child, NULL) == 0 &&
        sigprocmask(SIG_SETMASK, &ours.mask, NULL) == 0)
        (void)execve(how->path, how->argv, how->envp);
    step->error = errno ? errno : ESRCH;
    _exit(127);
}

/* --------------------------------------------------------- in the parent -- */

static pid_t
start(const struct child_start *how)
{
    struct step step = {.how = how};
    sigset_t    all, before;

    /* A handler that ran in the child would do so on our memory. */
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, &before);
    const pid_t pid = clone(become, ours.stack + STACK_SIZE,
                            CLONE_VM | CLONE_VFORK | SIGCHLD, &step);
    const int   err = errno;
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    if (pid > 0 && !step.error)
        return pid;

    if (pid > 0)
        (void)waitpid(pid, NULL, 0);
    errno = pid > 0 ? step.error : err;
    return -1;
}

/* A script without #! is the shell's, as in a shell. */
static pid_t
start_script(const struct child_start *how)
{
    size_t n = 0;

    while (how->argv[n])
        n++;
    char **argv = calloc(n + 2, sizeof *argv);
    if (!argv)
        return -1;
    char sh[] = "sh";
    argv[0] = sh;
    (void)memcpy(argv + 1, how->argv, n * sizeof *argv);
    argv[1] = (char *)how->path; /* exec does not write to it */
    struct child_start by_shell = *how;
    by_shell.path = "/bin/sh";
    by_shell.argv = argv;
    const pid_t pid = start(&by_shell);
    free(argv);
    return pid;
}

pid_t
child_start(const struct child_start *how)
{
    const pid_t pid = start(how);

    return pid < 0 && errno == ENOEXEC ? start_script(how) : pid;
}

void
child_signal(pid_t pid, int number)
{
    /* The group may be gone although its first process was not reaped. */
    if (pid > 0 && kill(-pid, number) != 0)
        (void)kill(pid, number);
}

pid_t
child_reap(int *exit_code, int *number)
{
    int         status;
    const pid_t pid = waitpid(-1, &status, WNOHANG);

    if (pid <= 0)
        return 0;
    *exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    *number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    return pid;
}

/* ------------------------------------------------------- where is it? -- */

/* Could exec run it? */
static bool
executable(const char *path)
{
    struct stat about;

    if (stat(path, &about) != 0)
        return false;
    if (!S_ISREG(about.st_mode)) {
        errno = EACCES;
        return false;
    }
    return access(path, X_OK) == 0;
}

char *
child_find(const char *command)
{
    const char *path = getenv("PATH");
    int         err = ENOENT;

    if (strchr(command, '/'))
        return executable(command) ? strdup(command) : NULL;
    if (!path)
        path = "/bin:/usr/bin";
    while (*command) {
        const size_t len = strcspn(path, ":");
        char        *full;
        if (asprintf(&full, "%.*s%s%s", (int)len, path, len ? "/" : "./",
                     command) < 0)
            return NULL;
        if (executable(full))
            return full;
        if (errno == EACCES)
            err = EACCES; /* worth telling, unless another one can be run */
        free(full);
        if (!path[len])
            break;
        path += len + 1;
    }
    errno = err;
    return NULL;
}
