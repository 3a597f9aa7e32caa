/* SPDX-License-Identifier: MIT */
/* handler.c: does another handler work on this key? A handler that is fast
 * enough to be run thousands of times. It holds a file lock named after the key
 * while it works, which the kernel releases however it ends, and appends to the
 * file "log":
 *
 *     begin KEY PID NS     overlap KEY PID NS     end KEY PID NS
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

static int log_fd;

/* One write() to a file opened for appending: lines do not mix. */
static void
note(const char *what, const char *key)
{
    struct timespec now;
    char            line[256];

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    const int n = snprintf(
        line, sizeof line, "%s %s %ld %lld\n", what, key, (long)getpid(),
        (long long)now.tv_sec * 1000000000 + (long long)now.tv_nsec);
    if (write(log_fd, line, (size_t)n) != n)
        abort();
}

/* handler KEY MICROSECONDS: works for up to so long. */
int
main(int argc, char **argv)
{
    char name[128];

    if (argc != 3)
        return 65;
    log_fd = open("log", O_WRONLY | O_CREAT | O_APPEND, 0600);
    (void)snprintf(name, sizeof name, "lock.%s", argv[1]);
    const int lock = open(name, O_RDWR | O_CREAT, 0600);
    if (log_fd < 0 || lock < 0)
        return 65;

    note(flock(lock, LOCK_EX | LOCK_NB) == 0 ? "begin" : "overlap", argv[1]);
    const long            longest_ns = atol(argv[2]) * 1000;
    const struct timespec pause = {
        .tv_nsec = longest_ns ? getpid() * 7919L % longest_ns : 0};
    (void)nanosleep(&pause, NULL);
    note("end", argv[1]);
    return 0;
}
