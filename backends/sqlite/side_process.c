/* SPDX-License-Identifier: MIT */
/* side_process.c: has the process of a session died?
 *
 * A process is named by its pid, the time at which it started, and the
 * namespaces in which these two numbers mean something. Relies on /proc; where
 * it shows nothing, the answer is "not known to be dead", and the locks decide.
 *
 * Cost: 3 us for another process.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "side_inside.h"

/* Read a small file of /proc as a string. */
static bool
read_text(const char *path, char *out, size_t size)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;

    const ssize_t n = read(fd, out, size - 1);
    const int     cause = errno;
    (void)close(fd);
    errno = cause;
    if (n <= 0)
        return false;
    out[n] = '\0';
    return true;
}

bool
wq__process_read_boot(char out[static 40])
{
    char text[64];

    if (!read_text("/proc/sys/kernel/random/boot_id", text, sizeof text))
        return false;
    memset(out, 0, 40);
    memcpy(out, text, strnlen(text, 36)); /* a UUID, without the newline */
    return true;
}

/* What /proc says about a process. */
struct facts {
    uint32_t pid;
    char     state;
    long     threads;
    uint64_t start;
};

/* Fields are numbered as in proc_pid_stat(5); the second one, the name of the
 * program, may contain anything, but it ends with the last ')'. */
static bool
read_facts(const char *path, struct facts *out)
{
    char text[1024];

    if (!read_text(path, text, sizeof text))
        return false;
    out->pid = (uint32_t)strtoul(text, NULL, 10);

    char *at = strrchr(text, ')');
    if (!at || at[1] != ' ')
        return false;
    at += 2;
    out->state = *at;
    for (int field = 3; field < 22; field++) {
        if (field == 20)
            out->threads = strtol(at, NULL, 10);
        at = strchr(at, ' ');
        if (!at)
            return false;
        at++;
    }
    out->start = strtoull(at, NULL, 10);
    return true;
}

static bool
read_facts_of(uint32_t pid, struct facts *out)
{
    char path[32];

    (void)snprintf(path, sizeof path, "/proc/%u/stat", (unsigned)pid);
    return read_facts(path, out);
}

/* Namespaces are named by the inodes of these files. */
static uint64_t
read_namespace(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 ? st.st_ino : 0;
}

/* In a pid namespace with the /proc of another one, /proc shows other pids than
 * getpid(): then they are of no use. */
struct wq__process
wq__process_self(void)
{
    struct wq__process p = {.pid = (uint32_t)getpid()};
    struct facts       facts;

    if (!read_facts("/proc/self/stat", &facts) || facts.pid != p.pid)
        return p;
    p.start = facts.start;
    p.pid_ns = read_namespace("/proc/self/ns/pid");
    p.time_ns = read_namespace("/proc/self/ns/time");
    return p;
}

bool
wq__process_is_near(const struct wq__process *p, const struct wq__process *self)
{
    return p->pid != 0 && p->pid_ns != 0 && p->pid_ns == self->pid_ns;
}

/* A process whose first thread has ended, but not all of them, also has the
 * state of a zombie. */
static bool
has_ended(const struct facts *facts)
{
    return facts->state == 'X' || (facts->state == 'Z' && facts->threads <= 1);
}

bool
wq__process_find(uint32_t pid, const struct wq__process *self,
                 struct wq__process *out)
{
    struct facts facts;

    if (!self->pid_ns || !read_facts_of(pid, &facts) || has_ended(&facts))
        return false;
    *out = *self;
    out->pid = pid;
    out->start = facts.start;
    return true;
}

bool
wq__process_is_gone(const struct wq__process *p, const struct wq__process *self)
{
    struct facts facts;

    if (!wq__process_is_near(p, self))
        return false;
    if (kill((pid_t)p->pid, 0) != 0 && errno == ESRCH)
        return true;
    if (!read_facts_of(p->pid, &facts))
        return false; /* died this moment, or hidden (hidepid) */
    if (has_ended(&facts))
        return true;
    return p->start != 0 && p->time_ns == self->time_ns &&
           p->start != facts.start;
}
