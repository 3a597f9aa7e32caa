/* SPDX-License-Identifier: MIT */
/* loop_libevent.c: a queue in a loop of libevent. */
#include <event2/event.h>
#include <signal.h>

#include "loop.h"

/* begin: loop */
static struct event *keys, *term;

static void
on_keys(evutil_socket_t fd, short events, void *q)
{
    (void)fd;
    (void)events;
    if (!work_on_keys(q)) { /* without events the loop ends */
        (void)event_del(keys);
        (void)event_del(term);
    }
}

static void
on_term(evutil_socket_t signum, short events, void *q)
{
    (void)signum;
    (void)events;
    wq_shutdown(q); /* on_keys() sees it */
}

static int
run(struct event_base *base, wq_queue *q)
{
    keys = event_new(base, wq_fd(q), EV_READ | EV_PERSIST, on_keys, q);
    term = evsignal_new(base, SIGTERM, on_term, q);
    if (!keys || !term || event_add(keys, NULL) || event_add(term, NULL))
        return -1;
    return event_base_dispatch(base);
}
/* end: loop */

int
main(int argc, char **argv)
{
    wq_queue          *q = open_queue(argc, argv);
    struct event_base *base = event_base_new();

    if (!q || !base || run(base, q) < 0) {
        fputs("loop_libevent: failed\n", stderr);
        return 1;
    }
    event_free(keys);
    event_free(term);
    event_base_free(base);
    libevent_global_shutdown();
    return close_queue(q);
}
