/* SPDX-License-Identifier: MIT */
/* result.c: what does a run write to $WQ_RESULT_FD? */
#include "process/result.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <wq/wq.h>

#include "base/report.h"
#include "options/values.h"
#include "process/run.h"

/* "add=" and the longest key. */
#define LONGEST (4 + WQ_KEY_MAX)
#define PIECE 4096
/* Most runs are short and write nothing; watching their pipes would be a waste.
 * Until then the pipe holds what they write. */
#define WATCH_AFTER_NS 5000000

static void
complain(struct result *result, const struct run *run, const char *line,
         size_t len)
{
    if (result->complained)
        return;
    result->complained = true;
    report("%s: bad line on $WQ_RESULT_FD: '%s'; accepted: "
           "requeue-after=DURATION, priority=N, add=KEY",
           report_key(run->key.data, run->key.len), report_key(line, len));
}

/* The rest of the line after `name`; NULL: the line begins otherwise. */
static char *
after(char *line, const char *name)
{
    const size_t len = strlen(name);

    return strncmp(line, name, len) == 0 ? line + len : NULL;
}

/* A NUL follows the `len` bytes of the line. */
static void
interpret(struct result *result, struct run *run, char *line, size_t len)
{
    const char *value;
    int64_t     n;

    if (len == 0)
        return;
    if ((value = after(line, "add="))) {
        const size_t key_len = len - (size_t)(value - line);
        if (!key_len || memchr(value, 0, key_len))
            complain(result, run, line, len);
        else
            result->sink->add(result->sink->ctx, run, value, key_len);
    } else if ((value = after(line, "requeue-after=")) &&
               value_duration(value, &n)) {
        result->requeue = true;
        result->requeue_ns = n;
    } else if ((value = after(line, "priority=")) &&
               value_number(value, INT_MIN, INT_MAX, &n)) {
        result->prioritized = true;
        result->priority = (int)n;
    } else {
        complain(result, run, line, len);
    }
}

static void
end_line(struct result *result, struct run *run)
{
    if (result->line.len == 0 && !result->overlong)
        return;
    char *line = text_terminate(&result->line);
    if (!line || result->overlong)
        complain(result, run, line ? line : "", line ? result->line.len : 0);
    else
        interpret(result, run, line, result->line.len);
    text_clear(&result->line);
    result->overlong = false;
}

/* Appends to the current line. */
static void
keep(struct result *result, const char *data, size_t len)
{
    if (result->line.len + len > LONGEST) {
        result->overlong = true;
        len = LONGEST - result->line.len;
    }
    wq__text_add(&result->line, data, len);
}

static void
take(struct result *result, struct run *run, const char *data, size_t len)
{
    const char *end;

    while ((end = memchr(data, '\n', len))) {
        const size_t n = (size_t)(end - data);
        keep(result, data, n);
        end_line(result, run);
        data += n + 1;
        len -= n + 1;
    }
    if (len > 0)
        keep(result, data, len);
}

/* Reads a piece; the pipe must be ready. False: all writers have closed it. */
static bool
read_piece(struct run *run)
{
    char          data[PIECE];
    const ssize_t n = read(run->result.fd, data, sizeof data);

    if (n > 0)
        take(&run->result, run, data, (size_t)n);
    return n > 0;
}

static void
on_ready(void *ctx)
{
    struct run *run = ctx;

    if (!read_piece(run)) /* one piece at a time */
        loop_unwatch(run->result.loop, &run->result.watch);
}

/* If the watch fails, the pipe is read when the run is over. */
static void
on_late(void *ctx)
{
    struct run *run = ctx;

    (void)loop_watch(run->result.loop, &run->result.watch, run->result.fd,
                     EPOLLIN, on_ready, run);
}

bool
result_open(struct result *result, struct loop *loop, struct run *run,
            const struct result_sink *sink, int *child_fd)
{
    int ends[2];

    *result = (struct result){.fd = -1, .loop = loop, .sink = sink};
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    result->fd = ends[0];
    *child_fd = ends[1];
    loop_timer_set(loop, &result->late, loop_now(loop) + WATCH_AFTER_NS,
                   on_late, run);
    return true;
}

/* Are there bytes to read? */
static bool
has_piece(const struct result *result)
{
    struct pollfd ask = {.fd = result->fd, .events = POLLIN};

    return poll(&ask, 1, 0) == 1 && (ask.revents & POLLIN);
}

void
result_finish(struct result *result, struct run *run)
{
    if (result->fd < 0)
        return;
    /* At most what a pipe holds: a process that outlives the run may go on
     * writing. */
    for (int i = 0; i < 65536 / PIECE && has_piece(result); i++)
        (void)read_piece(run);
    end_line(result, run);
    loop_timer_clear(result->loop, &result->late);
    loop_unwatch(result->loop, &result->watch);
    (void)close(result->fd);
    result->fd = -1;
    wq__text_fini(&result->line);
}
