/* SPDX-License-Identifier: MIT */
/* pressure.c: does the machine have room for one more run? See pressure.h. */
#include "run/pressure.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/report.h"

/* The load average itself changes every five seconds. */
#define INTERVAL_NS 1000000000

/* Opens a file of /proc. */
static FILE *
open_proc(const char *name)
{
    const char *dir = getenv("WQ_PROC");
    char       *path;

    if (asprintf(&path, "%s/%s", dir && *dir ? dir : "/proc", name) < 0)
        return NULL;
    FILE *file = fopen(path, "re");
    free(path);
    return file;
}

/* The load average of the last minute. False: errno says why. */
static bool
read_load(double *out)
{
    FILE *file = open_proc("loadavg");

    if (!file)
        return false;
    const bool found = fscanf(file, "%lf", out) == 1;
    (void)fclose(file);
    if (!found)
        errno = EBADMSG;
    return found;
}

/* The memory that is available without swapping, in bytes. */
static bool
read_memory(int64_t *out)
{
    FILE     *file = open_proc("meminfo");
    char      line[256];
    long long kilobytes;
    bool      found = false;

    if (!file)
        return false;
    while (!found && fgets(line, sizeof line, file))
        found = sscanf(line, "MemAvailable: %lld kB", &kilobytes) == 1;
    (void)fclose(file);
    if (found)
        *out = (int64_t)kilobytes * 1024;
    else
        errno = EBADMSG;
    return found;
}

bool
pressure_check(const struct options *options)
{
    double  load;
    int64_t bytes;

    if (options->load > 0 && !read_load(&load)) {
        report_errno("--load: cannot read the load average");
        return false;
    }
    if (options->memfree > 0 && !read_memory(&bytes)) {
        report_errno("--memfree: cannot read the available memory");
        return false;
    }
    return true;
}

/* Is this the first time? */
static bool
is_news(struct pressure *pressure, const struct options *options)
{
    const bool news = !pressure->reported && !options->quiet;

    pressure->reported = true;
    return news;
}

static bool
load_is_high(struct pressure *pressure, const struct options *options)
{
    double load;

    if (options->load <= 0 || !read_load(&load) || load <= options->load)
        return false;
    if (is_news(pressure, options))
        report("--load: the load average is %.2f, above %.2f: no run starts "
               "until it is lower",
               load, options->load);
    return true;
}

static bool
memory_is_low(struct pressure *pressure, const struct options *options)
{
    const double mega = 1024 * 1024;
    int64_t      bytes;

    if (options->memfree <= 0 || !read_memory(&bytes) ||
        bytes >= options->memfree)
        return false;
    if (is_news(pressure, options))
        report("--memfree: %.1f MiB are available, less than %.1f: no run "
               "starts until there are more",
               (double)bytes / mega, (double)options->memfree / mega);
    return true;
}

/* What cannot be read any more does not count. */
static bool
is_high(struct pressure *pressure, const struct options *options)
{
    return load_is_high(pressure, options) || memory_is_low(pressure, options);
}

static void
on_again(void *ctx)
{
    (void)ctx; /* before_sleep() asks again */
}

bool
pressure_is_high(struct pressure *pressure, struct loop *loop,
                 const struct options *options)
{
    const int64_t now_ns = loop_now(loop);

    if (now_ns >= pressure->until_ns) {
        pressure->high = is_high(pressure, options);
        pressure->until_ns = now_ns + INTERVAL_NS;
    }
    if (pressure->high && !pressure->again.set)
        loop_timer_set(loop, &pressure->again, pressure->until_ns, on_again,
                       NULL);
    return pressure->high;
}
