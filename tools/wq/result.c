/* SPDX-License-Identifier: MIT */
/* result.c: what does a child say on $WQ_RESULT_FD? */
#include "result.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <wq/wq.h>

#include "run.h"
#include "tell.h"
#include "values.h"

/* "add=" and the longest key. */
#define LONGEST (4 + WQ_KEY_MAX)
#define PIECE 4096
/* Most children are quick and say nothing, and watching them would cost more
 * than all they say: the pipe has room for it until then. */
#define WATCH_AFTER_NS 5000000

static void
complain(struct result *result, const struct run *run, const char *line,
         size_t len)
{
    if (result->complained)
        return;
    result->complained = true;
    tell("%s: not understood on $WQ_RESULT_FD: '%s' (accepted: "
         "requeue-after=DURATION, priority=N, add=KEY)",
         tell_key(run->key.data, run->key.len), tell_key(line, len));
}

/* What is behind `name`= in the line; NULL: it is another one. */
static char *
behind(char *line, const char *name)
{
    const size_t len = strlen(name);

    return strncmp(line, name, len) == 0 ? line + len : NULL;
}

/* `line` ends with a NUL behind its `len` bytes. */
static void
understand(struct result *result, struct run *run, char *line, size_t len)
{
    const char *value;
    int64_t     n;

    if (len == 0)
        return;
    if ((value = behind(line, "add="))) {
        const size_t key_len = len - (size_t)(value - line);
        if (!key_len || memchr(value, 0, key_len))
            complain(result, run, line, len);
        else
            result->sink->add(result->sink->ctx, run, value, key_len);
    } else if ((value = behind(line, "requeue-after=")) &&
               value_duration(value, &n)) {
        result->requeue = true;
        result->requeue_ns = n;
    } else if ((value = behind(line, "priority=")) &&
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
    if (result->overlong) {
        complain(result, run, result->line, result->len);
    } else if (result->len > 0) {
        result->line[result->len] = '\0';
        understand(result, run, result->line, result->len);
    }
    result->len = 0;
    result->overlong = false;
}

/* Keeps what belongs to a line, with room for a NUL. */
static void
keep(struct result *result, const char *data, size_t len)
{
    if (result->len + len > LONGEST) {
        result->overlong = true;
        len = LONGEST - result->len;
    }
    if (result->len + len + 1 > result->room) {
        const size_t room = result->len + len + 1 + result->room;
        char        *line = realloc(result->line, room);
        if (!line) {
            result->overlong = true;
            return;
        }
        result->line = line;
        result->room = room;
    }
    if (len > 0)
        (void)memcpy(result->line + result->len, data, len);
    result->len += len;
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

/* Reads a piece, of which there is one. False: everybody has closed it. */
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
on_ready(void *ctx, uint32_t events)
{
    struct run *run = ctx;

    (void)events;
    if (!read_piece(run)) /* one at a time: others want their turn, too */
        loop_unwatch(run->result.loop, &run->result.watch);
}

/* If it cannot be watched, what it says is read in the end. */
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

/* Something is there, not just its end. */
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
    /* What fits into a pipe, and no more: somebody it started may go on. */
    for (int i = 0; i < 65536 / PIECE && has_piece(result); i++)
        (void)read_piece(run);
    end_line(result, run);
    loop_timer_clear(result->loop, &result->late);
    loop_unwatch(result->loop, &result->watch);
    (void)close(result->fd);
    result->fd = -1;
    free(result->line);
    result->line = NULL;
}
