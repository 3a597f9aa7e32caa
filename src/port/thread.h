/* SPDX-License-Identifier: MIT */
/* thread.h: how does a thread begin and end, and what is it called?
 *
 * Threads are joined, never detached: whoever starts one waits for its end, so
 * that nothing of the library runs on after it was told to stop.
 */
#ifndef WQ_PORT_THREAD_H
#define WQ_PORT_THREAD_H

#include <pthread.h>

#include <wq/wq.h>

/* What Linux allows, with the NUL; other systems allow more. */
enum { WQ__THREAD_NAME_MAX = 16 };

struct wq__thread {
    pthread_t id;
    void (*run)(void *arg); /* what it does */
    void *arg;
    char  name[WQ__THREAD_NAME_MAX]; /* empty: that of the program */
};

/* `name` and `suffix` in one, with `name` cut so that the suffix, which must
 * fit, does; empty if `name` is. */
void wq__thread_name(char out[WQ__THREAD_NAME_MAX], const char *name,
                     const char *suffix);

/* Start a thread; `t` must stay where it is until wq__thread_join(). `name` is
 * copied and has at most WQ__THREAD_NAME_MAX bytes. WQ_ENOMEM: no memory, or
 * there are as many threads as allowed. WQ_EIO: another reason. */
wq_err wq__thread_start(struct wq__thread *t, void (*run)(void *arg), void *arg,
                        const char *name);

/* Wait until it has ended. */
void wq__thread_join(struct wq__thread *t);

/* How many processors this process may use; at least 1. */
unsigned wq__thread_processors(void);

/* For tests: of the starts to come, the `nth` (1: the next) and all later ones
 * are refused. 0: none is. */
void wq__thread_refuse(unsigned nth);

#endif
