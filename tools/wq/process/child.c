/* SPDX-License-Identifier: MIT */
/* child.c: how is a process started, signalled and reaped?
 *
 * posix_spawn() cannot set a signal for the death of the parent, and does not
 * report which step failed. So this does what posix_spawn() does: a clone() that
 * shares our memory while we are suspended (as vfork(), but on its own stack),
 * until exec. Before exec the child may only make system calls, and we see what
 * it writes to memory.
 *
 * Children are reaped after SIGCHLD: one read of the signalfd serves all that
 * have ended, while a pidfd for each would have to be opened, watched and
 * closed; and it works on every kernel. A process id is not reused before its
 * process is reaped, so signals cannot reach another process.
 */
#include "process/child.h"

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
#include <time.h>
#include <unistd.h>

/* Enough: the child only makes system calls on it. */
#define STACK_SIZE 65536

static struct {
    sigset_t         mask;    /* as inherited */
    struct sigaction on_pipe; /* likewise */
    struct sigaction on_child;
    char            *stack; /* of the child: its lower end */
    int              null;  /* /dev/null */
    pid_t            self;
    struct rlimit    files;  /* as inherited */
    bool             raised; /* we changed ours */
} ours;

/* One start; both processes see it. */
struct step {
    const struct child_start *how;
    sigset_t                  mask;  /* for the child */
    volatile int              error; /* an errno of the child; 0: none */
};

/* Every run has pipes, and the usual limit of 1024 is low. */
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

/* Returns a descriptor above stderr. If stdin, stdout or stderr was closed, it
 * is open then, so that no pipe gets its number. */
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

/* Makes `fd` the descriptor `as`, without close-on-exec: dup2() clears the flag
 * unless both are equal. */
static bool
place(int fd, int as)
{
    if (fd < 0)
        return true;
    return fd == as ? fcntl(fd, F_SETFD, 0) == 0 : dup2(fd, as) >= 0;
}

/* prctl() does not notice a parent that died before it: check the parent. */
static bool
die_with_parent(void)
{
    return prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == ours.self;
}

/* A signal that the terminal sent to our group before setpgid(), such as that of
 * Ctrl-C, is pending here, too. It was for us: we decide what becomes of the
 * run. All signals are blocked, so that none is delivered meanwhile. */
__attribute__((no_sanitize("address", "thread"))) static bool
leave_group(void)
{
    const struct timespec at_once = {0};
    sigset_t              all;

    if (setpgid(0, 0) != 0)
        return false;
    (void)sigfillset(&all);
    while (sigtimedwait(&all, NULL, &at_once) > 0)
        ;
    return true;
}

__attribute__((no_sanitize("address", "thread"))) static int
become(void *arg)
{
    struct step              *step = arg;
    const struct child_start *how = step->how;

    if (leave_group() && die_with_parent() && place(ours.null, STDIN_FILENO) &&
        place(how->out, STDOUT_FILENO) && place(how->err, STDERR_FILENO) &&
        place(how->result, how->result_as) &&
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

    /* A signal handler in the child would change our memory. */
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

/* A script without #! is run by /bin/sh, as shells do. */
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

/* --------------------------------------------------------- search PATH -- */

/* Can exec run it? False: errno says why. */
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
            err = EACCES; /* reported unless another one can be run */
        free(full);
        if (!path[len])
            break;
        path += len + 1;
    }
    errno = err;
    return NULL;
}
