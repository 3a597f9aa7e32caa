/* SPDX-License-Identifier: MIT */
/* stepped_clock.c: how does the clock of a server step while it runs?
 *
 * A library for LD_PRELOAD: the wall clock of the process is that of the system
 * plus a number of nanoseconds, which is at the beginning of the file that
 * WQ_STEPPED_CLOCK names. A test writes it there. Other clocks are left alone.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static _Atomic int64_t *shift; /* in the file; NULL: there is none */

__attribute__((constructor)) static void
begin(void)
{
    const char *path = getenv("WQ_STEPPED_CLOCK");
    const int   fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;

    if (fd < 0)
        return;
    void *at = mmap(NULL, sizeof *shift, PROT_READ, MAP_SHARED, fd, 0);
    if (at != MAP_FAILED)
        shift = at;
    (void)close(fd);
}

int
clock_gettime(clockid_t clock, struct timespec *out)
{
    const int64_t second = 1000000000;
    const int     result = (int)syscall(SYS_clock_gettime, clock, out);

    if (result || !shift ||
        (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE))
        return result;
    const int64_t ns = (int64_t)out->tv_sec * second + out->tv_nsec + *shift;
    out->tv_sec = (time_t)(ns / second);
    out->tv_nsec = (long)(ns % second);
    return 0;
}

int
gettimeofday(struct timeval *restrict out, void *restrict zone)
{
    struct timespec now;

    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &now))
        return -1;
    out->tv_sec = now.tv_sec;
    out->tv_usec = (suseconds_t)(now.tv_nsec / 1000);
    return 0;
}

time_t
time(time_t *out)
{
    struct timespec now;

    if (clock_gettime(CLOCK_REALTIME, &now))
        return (time_t)-1;
    if (out)
        *out = now.tv_sec;
    return now.tv_sec;
}
