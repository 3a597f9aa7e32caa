/* SPDX-License-Identifier: MIT */
/* loop.h: what do the examples with an event loop work on?
 *
 * Ten thousand keys. Every tenth has a delay of 1, 11 or 21 ms; every seventh
 * is added again during its run, and so is handed out twice. After the last one
 * the queue is shut down. Each example has its own loop:
 *
 *     loop_epoll.c     epoll        loop_poll.c       poll() and wq_work_one()
 *     loop_libuv.c     libuv        loop_libevent.c   libevent
 *     loop_glib.c      GLib
 *
 * With the argument --idle there is one key now and one in an hour, and SIGTERM
 * ends the loop: this shows that it sleeps while the queue is idle.
 */
#ifndef WQ_EXAMPLES_LOOP_H
#define WQ_EXAMPLES_LOOP_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <wq/wq.h>

enum { KEYS = 10000 };

static struct {
    int      idle;      /* SIGTERM shuts the queue down */
    int      due[KEYS]; /* how often each key must still be handed out */
    unsigned left;      /* their sum */
} work;

static int
runs_twice(uint32_t key)
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
        work.due[i] = 1 + runs_twice(i);
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

/* Create the queue for these arguments; NULL on failure. */
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
    if (work.due[i]-- == 2 && wq_add(q, key)) /* it has changed */
        return;
    if (--work.left == 0 && !work.idle)
        wq_shutdown(q);
}

/* begin: work */
/* The queue is readable: work on some keys, then return to the loop, which
 * calls again while there are more. False: the queue is shut down and empty. */
static inline bool
work_on_keys(wq_queue *q)
{
    wq_item *item;
    wq_err   err = WQ_OK;

    for (int i = 0; i < 64 && !(err = wq_get_within(q, 0, &item)); i++) {
        work_on(q, item->key);
        wq_done(q, item);
    }
    return err != WQ_ESHUTDOWN; /* WQ_ETIMEDOUT: no key */
}
/* end: work */

/* The exit status: 0 if every key was handed out as often as expected. */
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
