/* SPDX-License-Identifier: MIT */
/* child.h: how is a process started, signalled and reaped?
 *
 * A child gets /dev/null as stdin, a process group of its own, and SIGKILL when
 * wq dies. It is started as by vfork(): no page table is copied, and what exec
 * says is known when the call returns.
 */
#ifndef WQ_TOOL_CHILD_H
#define WQ_TOOL_CHILD_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* What to start. */
struct child_start {
    const char *path;      /* with a slash in it */
    char      **argv;      /* ends with NULL */
    char      **envp;      /* ends with NULL */
    int         out;       /* becomes 1; -1: stays ours */
    int         err;       /* becomes 2; -1: stays ours */
    int         result;    /* becomes result_as; -1: none */
    int         result_as; /* free in the child */
};

/* To be called first. Remembers what children shall have as it was given to us
 * (signals, the limit of open files), and raises that limit so that `files` can
 * be open, as far as it goes. Returns the number of a descriptor that is free
 * in children, and kept so: for result_as. -1: errno says why. */
int child_setup(uint64_t files);
/* The process id; or -1, and errno says what fork or exec said. */
pid_t child_start(const struct child_start *how);
/* Send a signal to the process group of a child that was not reaped. */
void child_signal(pid_t pid, int number);
/* The next child that has ended: its pid, and how; 0: none has. */
pid_t child_reap(int *exit_code, int *number);

/* Where is COMMAND? A path that exec takes (free() it); or NULL, and errno is
 * ENOENT or EACCES. */
char *child_find(const char *command);

#endif
