/* SPDX-License-Identifier: MIT */
/* child.h: how is a process started, signalled and reaped?
 *
 * A child gets /dev/null as stdin, a process group of its own, and SIGKILL when
 * wq dies. It is started as by vfork(): no page table is copied, and an error of
 * exec is known when the call returns.
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
    int         out;       /* becomes stdout; -1: it shares ours */
    int         err;       /* becomes stderr; -1: it shares ours */
    int         result;    /* becomes result_as; -1: none */
    int         result_as; /* free in the child */
};

/* Call this first. Saves the signal mask and the limit of open files, which
 * children get back, and raises our limit to `files` as far as allowed. Returns
 * the number of a reserved descriptor, for result_as. -1: errno says why. */
int child_setup(uint64_t files);
/* Returns the process id; or -1 with the errno of clone or exec. */
pid_t child_start(const struct child_start *how);
/* Send a signal to the process group of a child that was not reaped. */
void child_signal(pid_t pid, int number);
/* Reap the next child that has ended; returns its pid. 0: none has. */
pid_t child_reap(int *exit_code, int *number);

/* Search COMMAND in $PATH. Returns a path for exec (free() it); or NULL with
 * errno ENOENT or EACCES. */
char *child_find(const char *command);

#endif
