/* SPDX-License-Identifier: MIT */
/* thread.h: how are threads started, named and joined?
 *
 * Threads are joined, never detached: the code that starts a thread waits for
 * its end, so that no thread of the library runs after a stop has returned.
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

/* `name` and `suffix` together; `name` is cut so that the suffix fits, which
 * must be short enough. Empty if `name` is. */
void wq__thread_name(char out[WQ__THREAD_NAME_MAX], const char *name,
                     const char *suffix);

/* Start a thread; do not move `t` until wq__thread_join(). `name` is copied and
 * has at most WQ__THREAD_NAME_MAX bytes. WQ_ENOMEM: out of memory, or too many
 * threads. WQ_EIO: another reason. */
wq_err wq__thread_start(struct wq__thread *t, void (*run)(void *arg), void *arg,
                        const char *name);

/* Wait until it has ended. */
void wq__thread_join(struct wq__thread *t);

/* How many processors this process may use; at least 1. */
unsigned wq__thread_processors(void);

/* For tests: refuse the `nth` start from now on (1: the next) and all later
 * ones. 0: none. */
void wq__thread_refuse(unsigned nth);

#endif
