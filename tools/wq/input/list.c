/* SPDX-License-Identifier: MIT */
/* list.c: which keys does --list=CMD print, now and at every --resync? */
#include "input/list.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/report.h"
#include "options/values.h"
#include "process/child.h"

#define PIECE 65536 /* bytes read at a time */

struct list {
    const struct options    *options;
    struct loop             *loop;
    char                   **envp; /* not owned */
    const struct input_sink *sink;
    struct records           records;
    pid_t                    pid;    /* of CMD; 0: it is not running */
    int                      fd;     /* its output; -1: ended */
    struct watch             watch;  /* of fd */
    struct timer             next;   /* --resync */
    bool                     failed; /* the last run of CMD did */
};

/* The source ends when CMD has exited and its output has ended. */
static void
end_if_over(struct list *list)
{
    if (list->pid || list->fd >= 0 || list->options->resync_ns)
        return;
    list->sink->ended(list->sink->ctx, list->failed);
}

static void
stop_reading(struct list *list)
{
    if (list->fd < 0)
        return;
    loop_unwatch(list->loop, &list->watch);
    (void)close(list->fd);
    list->fd = -1;
}

static void
on_ready(void *ctx)
{
    struct list  *list = ctx;
    static char   piece[PIECE];
    const ssize_t n = read(list->fd, piece, sizeof piece);

    if (n > 0) {
        records_feed(&list->records, piece, (size_t)n);
    } else if (n == 0 || (errno != EINTR && errno != EAGAIN)) {
        records_end(&list->records);
        stop_reading(list);
        end_if_over(list);
    }
}

/* False: errno says why. */
static bool
start(struct list *list)
{
    char  sh[] = "sh", c[] = "-c";
    char *argv[] = {sh, c, (char *)list->options->list, NULL};
    int   ends[2];

    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    list->pid = child_start(&(struct child_start){.path = "/bin/sh",
                                                  .argv = argv,
                                                  .envp = list->envp,
                                                  .out = ends[1],
                                                  .err = -1,
                                                  .result = -1});
    const int err = errno;
    (void)close(ends[1]);
    if (list->pid < 0 || fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0 ||
        !loop_watch(list->loop, &list->watch, ends[0], EPOLLIN, on_ready,
                    list)) {
        if (list->pid < 0) {
            list->pid = 0;
            errno = err;
        }
        (void)close(ends[0]);
        return false;
    }
    list->fd = ends[0];
    list->records.line = 1;
    return true;
}

/* Intervals are counted from start to start. If CMD takes longer than one, that
 * start is skipped. */
static void
on_next(void *ctx)
{
    struct list *list = ctx;

    loop_timer_set(list->loop, &list->next,
                   loop_now(list->loop) + list->options->resync_ns, on_next,
                   list);
    if (!list->pid && list->fd < 0 && !start(list))
        report_errno("--list: cannot start /bin/sh");
}

bool
list_open(const struct options *options, struct loop *loop, char **envp,
          const struct input_sink *sink, struct list **out)
{
    struct list *list = calloc(1, sizeof *list);

    if (list) {
        *list = (struct list){.options = options,
                              .loop = loop,
                              .envp = envp,
                              .sink = sink,
                              .fd = -1};
        records_init(&list->records, options, sink, "--list");
    }
    if (!list || !start(list)) {
        report_errno("--list: cannot start /bin/sh");
        list_close(list);
        return false;
    }
    if (options->resync_ns)
        loop_timer_set(loop, &list->next, loop_now(loop) + options->resync_ns,
                       on_next, list);
    *out = list;
    return true;
}

void
list_read_rest(struct list *list)
{
    if (list && list->fd >= 0)
        records_feed_pipe(&list->records, list->fd);
}

bool
list_is_unread(const struct list *list)
{
    return list && (list->pid || list->fd >= 0);
}

void
list_close(struct list *list)
{
    if (!list)
        return;
    if (list->pid)
        child_signal(list->pid, SIGTERM);
    stop_reading(list);
    loop_timer_clear(list->loop, &list->next);
    records_fini(&list->records);
    free(list);
}

bool
list_reaped(struct list *list, pid_t pid, int exit_code, int number)
{
    if (!list || pid != list->pid)
        return false;
    list->pid = 0;
    list->failed = exit_code || number;
    if (number)
        report("--list: '%s' was killed by SIG%s", list->options->list,
               value_signal_name(number));
    else if (exit_code)
        report("--list: '%s' exited with %d", list->options->list, exit_code);
    end_if_over(list);
    return true;
}

pid_t
list_pid(const struct list *list)
{
    return list ? list->pid : 0;
}
