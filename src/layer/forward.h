/* SPDX-License-Identifier: MIT */
/* forward.h: which verbs does a layer only pass on to its inner queue?
 *
 * For the tables of verbs of layers. They do not use the layer after the call,
 * so they need not count as calls in progress (calls.h).
 */
#ifndef WQ_LAYER_FORWARD_H
#define WQ_LAYER_FORWARD_H

#include <wq/backend.h>

/* The beginning of every layer. */
struct wq__layer {
    wq_queue  base;  /* first: a queue is the beginning of its backend */
    wq_queue *inner; /* owned */
};

static inline wq_queue *
wq__layer_inner(const wq_queue *q)
{
    return ((const struct wq__layer *)(const void *)q)->inner;
}

wq_err  wq__forward_add(wq_queue *q, wq_key key);
wq_err  wq__forward_add_after(wq_queue *q, wq_key key, int64_t delay_ns);
wq_err  wq__forward_remove(wq_queue *q, wq_key key);
wq_err  wq__forward_remove_wait(wq_queue *q, wq_key key, int64_t timeout_ns);
wq_err  wq__forward_cancel_after(wq_queue *q, wq_key key);
wq_err  wq__forward_get(wq_queue *q, int64_t timeout_ns, wq_item **out);
wq_err  wq__forward_get_many(wq_queue *q, wq_item **out, size_t max,
                             int64_t timeout_ns, size_t *n);
wq_err  wq__forward_done(wq_queue *q, wq_item *item);
wq_err  wq__forward_done_many(wq_queue *q, wq_item **items, size_t n);
wq_err  wq__forward_done_key(wq_queue *q, wq_key key);
wq_err  wq__forward_next(wq_queue *q, int64_t timeout_ns, wq_item **item);
int64_t wq__forward_hold_left(wq_queue *q, const wq_item *item);
wq_err  wq__forward_renew(wq_queue *q);
wq_err  wq__forward_revive(wq_queue *q, wq_key key);
wq_err  wq__forward_count_drops(wq_queue *q, uint64_t n);
wq_err  wq__forward_flush(wq_queue *q, int64_t timeout_ns);
wq_err  wq__forward_flush_key(wq_queue *q, wq_key key, int64_t timeout_ns);
wq_err  wq__forward_wait_idle(wq_queue *q, int64_t timeout_ns);
wq_err  wq__forward_pause(wq_queue *q);
wq_err  wq__forward_resume(wq_queue *q);
wq_err  wq__forward_drain(wq_queue *q, int64_t timeout_ns);
void    wq__forward_shutdown(wq_queue *q);
bool    wq__forward_shutting_down(const wq_queue *q);
void    wq__forward_interrupt(wq_queue *q);
int     wq__forward_fd(wq_queue *q);
wq_err  wq__forward_len(wq_queue *q, size_t *out);
wq_err  wq__forward_depths(wq_queue *q, wq_depth *out, size_t max, size_t *n);
wq_err  wq__forward_check(wq_queue *q, wq_problem problem, void *ctx);
const char *wq__forward_queue_name(wq_queue *q);

#endif
