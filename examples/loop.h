/* SPDX-License-Identifier: MIT */
/* loop.h: what do the examples with an event loop work on?
 *
 * Ten thousand keys. Every tenth comes 1, 11 or 21 ms later; every seventh
 * changes while it is worked on, and so comes twice. After the last one the
 * queue is shut down. Each example brings its loop:
 *
 *     loop_epoll.c     epoll        loop_poll.c       poll() and wq_work_one()
 *     loop_libuv.c     libuv        loop_libevent.c   libevent
 *     loop_glib.c      GLib
 *
 * With the argument --idle there is one key now and one in an hour, and the
 * loop ends with SIGTERM: to see that it sleeps meanwhile.
 */
#ifndef WQ_EXAMPLES_LOOP_H
#define WQ_EXAMPLES_LOOP_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <wq/wq.h>

enum { KEYS = 10000 };

static struct {
    int      idle;      /* the queue is not shut down by us */
    int      due[KEYS]; /* how often each key is still to come */
    unsigned left;      /* the sum of them */
} work;

static int
comes_twice(uint32_t key)
{
    return key % 7 == 0;
}

static inline wq_err
add_later(wq_queue *q, uint32_t key, int64_t delay_ns)
{
    return wq_add_after(q, (wq_key){&key, sizeof key}, delay_ns);
}

static inline wq_err
fill(wq_queue *q)
{
    wq_err err = WQ_OK;

    for (uint32_t i = 0; i < KEYS && !err; i++) {
        work.due[i] = 1 + comes_twice(i);
        work.left += (unsigned)work.due[i];
        err = add_later(q, i, i % 10 == 0 ? WQ_MS(1 + i % 30) : 0);
    }
    return err;
}

static inline wq_err
fill_idle(wq_queue *q)
{
    work.idle = 1;
    work.left = (unsigned)(work.due[1] = 1);
    const wq_err err = add_later(q, 1, 0);
    return err ? err : add_later(q, 2, WQ_SECONDS(3600));
}

/* The queue that the arguments ask for; NULL if something fails. */
static inline wq_queue *
open_queue(int argc, char **argv)
{
    const int idle = argc > 1 && strcmp(argv[1], "--idle") == 0;
    wq_queue *q;

    if (wq_create(NULL, &q))
        return NULL;
    if (idle ? fill_idle(q) : fill(q)) {
        wq_destroy(q);
        return NULL;
    }
    puts("begin");
    (void)fflush(stdout);
    return q;
}

static inline void
work_on(wq_queue *q, wq_key key)
{
    uint32_t i;

    memcpy(&i, key.data, sizeof i);
    if (work.due[i]-- == 2 && wq_add(q, key)) /* it changed meanwhile */
        return;
    if (--work.left == 0 && !work.idle)
        wq_shutdown(q);
}

/* What the program exits with: 0 if every key came as often as it should. */
static inline int
close_queue(wq_queue *q)
{
    int wrong = work.left != 0;

    for (int i = 0; i < KEYS; i++)
        wrong |= work.due[i] != 0;
    wq_destroy(q);
    puts(wrong ? "some keys are missing" : "end");
    return wrong;
}

#endif
