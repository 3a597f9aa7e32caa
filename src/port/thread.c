/* SPDX-License-Identifier: MIT */
/* thread.c: threads of the system; see thread.h. */
#include "port/thread.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#if defined(__linux__)
#include <sched.h>
#endif

#include "port/cancel.h"

/* Counts down to the start that is refused, and stays at 1; 0: none is
 * refused. */
static atomic_uint refuse_at;

void
wq__thread_refuse(unsigned nth)
{
    atomic_store(&refuse_at, nth);
}

static bool
is_refused(void)
{
    unsigned at = atomic_load(&refuse_at);

    while (at > 1 && !atomic_compare_exchange_weak(&refuse_at, &at, at - 1))
        ;
    return at == 1;
}

void
wq__thread_name(char out[WQ__THREAD_NAME_MAX], const char *name,
                const char *suffix)
{
    const size_t tail = strlen(suffix);
    const size_t head = strnlen(name, WQ__THREAD_NAME_MAX - 1 - tail);

    out[0] = '\0';
    if (head) {
        memcpy(out, name, head);
        memcpy(out + head, suffix, tail + 1);
    }
}

/* Names are for people only: it is no error if the system has none. */
static void
take_name(const char *name)
{
    if (!name[0])
        return;
#if defined(__linux__)
    (void)pthread_setname_np(pthread_self(), name);
#elif defined(__APPLE__)
    (void)pthread_setname_np(name);
#endif
}

static void *
thread_main(void *arg)
{
    struct wq__thread *t = arg;

    /* In the thread itself, so that it never runs without its name. */
    take_name(t->name);
    t->run(t->arg);
    return NULL;
}

wq_err
wq__thread_start(struct wq__thread *t, void (*run)(void *arg), void *arg,
                 const char *name)
{
    t->run = run;
    t->arg = arg;
    (void)snprintf(t->name, sizeof t->name, "%s", name);
    const int rc =
        is_refused() ? EAGAIN : pthread_create(&t->id, NULL, thread_main, t);
    if (rc == 0)
        return WQ_OK;
    return rc == EAGAIN || rc == ENOMEM ? WQ_ENOMEM : WQ_EIO;
}

void
wq__thread_join(struct wq__thread *t)
{
    const int state = wq__cancel_off();

    (void)pthread_join(t->id, NULL); /* fails only for threads not started */
    wq__cancel_restore(state);
}

unsigned
wq__thread_processors(void)
{
#if defined(__linux__)
    cpu_set_t set; /* 1024 processors; with more the call fails */

    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
        return (unsigned)CPU_COUNT(&set);
#endif
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (unsigned)online : 1;
}
