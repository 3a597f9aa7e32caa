/* SPDX-License-Identifier: MIT */
/* listen.c: how does the HTTP server run in our event loop?
 *
 * libmicrohttpd parses requests and writes responses. It starts no thread: it
 * has an epoll descriptor, which our loop watches. We accept connections and
 * decide which ones to drop (connections.h), so that each new client gets a
 * connection. Its mode with select() would notice clients that leave, but has no
 * room for descriptors above 1023.
 */
#include "http/listen.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/report.h"
#include "http/listener.h"

#define MS INT64_C(1000000)

/* How often streams get an event: after a change, and without one. */
#define SOON_NS (250 * MS)
#define REGULAR_NS (1000 * MS)
/* How long the program waits at its end for clients to take the last event. */
#define LAST_EVENT_NS (300 * MS)

/* How long a client may read nothing of a response. */
#define IDLE_SECONDS 60

/* ---- connections --------------------------------------------------------- */

/* The callback of `watch` and `again`. */
static void
run_daemon(void *listener)
{
    struct listener       *l = listener;
    MHD_UNSIGNED_LONG_LONG ms;

    (void)MHD_run(l->daemon);
    if (MHD_get_timeout(l->daemon, &ms) == MHD_YES)
        loop_timer_set(l->loop, &l->again, loop_now(l->loop) + (int64_t)ms * MS,
                       run_daemon, l);
    else
        loop_timer_clear(l->loop, &l->again);
}

/* The daemon could accept connections itself, but once it has had the maximum
 * it sometimes does not start again (0.9.75). */
static void
on_arrival(void *listener)
{
    struct listener        *l = listener;
    struct sockaddr_storage from = {0};
    socklen_t               len = sizeof from;

    if (!connections_make_room(&l->connections))
        run_daemon(l); /* closes the connection that was dropped */
    const int fd = accept4(l->socket.fd, (struct sockaddr *)&from, &len,
                           SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0 && errno != EAGAIN && errno != ECONNABORTED && errno != EINTR) {
        loop_rewatch(l->loop, &l->arrivals, 0); /* until the next tick */
        return;
    }
    if (fd >= 0) /* the daemon closes it if it does not take it */
        (void)MHD_add_connection(l->daemon, fd, (struct sockaddr *)&from, len);
    run_daemon(l);
}

/* ---- streams ------------------------------------------------------------- */

/* Has anything but the time changed? */
static bool
has_changed(const struct view *a, const struct view *b)
{
    return memcmp(&a->counts, &b->counts, sizeof a->counts) != 0 ||
           a->ready != b->ready || a->waiting != b->waiting ||
           a->running != b->running || a->dead != b->dead ||
           a->slots != b->slots || a->phase != b->phase;
}

/* Gives streams that are due their next event. */
static void
continue_streams(struct listener *l)
{
    streams_look(l);
    for (struct event_stream *s = l->streams; s; s = s->next)
        if (s->due)
            stream_continue(s);
}

static void
tick(void *listener)
{
    struct listener  *l = listener;
    const struct view before = l->view;

    loop_rewatch(l->loop, &l->arrivals, EPOLLIN);
    connections_sweep(&l->connections, loop_now(l->loop));
    listener_take_view(l);
    const bool changed = has_changed(&before, &l->view);
    for (struct event_stream *s = l->streams; s; s = s->next)
        s->due = s->suspended &&
                 (changed || l->view.now_ns - s->written_ns >= REGULAR_NS);
    continue_streams(l);
    run_daemon(l);
    loop_timer_set(l->loop, &l->tick,
                   loop_now(l->loop) + (l->streams ? SOON_NS : REGULAR_NS),
                   tick, l);
}

void
listener_tick_soon(struct listener *l)
{
    loop_timer_set(l->loop, &l->tick, loop_now(l->loop) + SOON_NS, tick, l);
}

/* Sends the last event to all streams that take it in time. */
static void
finish_streams(struct listener *l)
{
    struct pollfd epoll = {.fd = l->watch.fd, .events = POLLIN};
    const int64_t end_ns = loop_refresh(l->loop) + LAST_EVENT_NS;

    l->finished = true;
    l->ration = (struct keys_ration){0}; /* the last tables stay */
    listener_take_view(l);
    for (int64_t now_ns = loop_now(l->loop); l->streams && now_ns < end_ns;
         now_ns = loop_refresh(l->loop)) {
        for (struct event_stream *s = l->streams; s; s = s->next)
            s->due = s->suspended;
        continue_streams(l);
        (void)MHD_run(l->daemon);
        if (l->streams)
            (void)poll(&epoll, 1, 10);
    }
    for (struct event_stream *s = l->streams; s; s = s->next)
        stream_resume(s);
}

/* ---- create and destroy -------------------------------------------------- */

static bool
start(struct listener *l)
{
    l->daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_NO_LISTEN_SOCKET, 0,
        NULL, NULL, serve, l, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)IDLE_SECONDS, MHD_OPTION_NOTIFY_CONNECTION,
        connections_notify, l, MHD_OPTION_NOTIFY_COMPLETED,
        connections_completed, l, MHD_OPTION_END);
    if (!l->daemon)
        return false;
    const union MHD_DaemonInfo *info =
        MHD_get_daemon_info(l->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    return info &&
           loop_watch(l->loop, &l->watch, info->epoll_fd, EPOLLIN, run_daemon,
                      l) &&
           loop_watch(l->loop, &l->arrivals, l->socket.fd, EPOLLIN, on_arrival,
                      l);
}

bool
listen_create(const struct options *options, struct loop *loop,
              struct runner *runner, struct listener **out)
{
    char             why[320];
    struct listener *l;

    *out = NULL;
    if (!options->listen)
        return true;
    if (!(l = calloc(1, sizeof *l))) {
        report_errno("--listen");
        return false;
    }
    l->options = options;
    l->loop = loop;
    l->runner = runner;
    if (!socket_open(&l->socket, options->listen, why, sizeof why)) {
        report("--listen=%s: %s", options->listen, why);
        free(l);
        return false;
    }
    if (!start(l)) {
        report_errno("--listen=%s", options->listen);
        listen_destroy(l);
        return false;
    }
    if (!options->quiet || l->socket.chosen)
        report("listening on %s", l->socket.url);
    /* The first sample is from the start of the program. */
    loop_timer_set(loop, &l->tick, loop_now(loop), tick, l);
    *out = l;
    return true;
}

void
listen_destroy(struct listener *l)
{
    if (!l)
        return;
    if (l->daemon) {
        if (l->streams)
            finish_streams(l);
        loop_unwatch(l->loop, &l->watch);
        loop_unwatch(l->loop, &l->arrivals);
        loop_timer_clear(l->loop, &l->again);
        loop_timer_clear(l->loop, &l->tick);
        MHD_stop_daemon(l->daemon);
    }
    socket_close(&l->socket);
    free(l);
}
