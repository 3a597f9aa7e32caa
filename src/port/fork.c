/* SPDX-License-Identifier: MIT */
/* fork.c: counting forks; see fork.h. */
#include "port/fork.h"

#include <pthread.h>

unsigned wq__forks; /* written by the only thread of a child */

static void
count_fork(void)
{
    wq__forks++;
}

static void
notice_forks(void)
{
    (void)pthread_atfork(NULL, NULL, count_fork);
}

unsigned
wq__fork_begin(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)pthread_once(&once, notice_forks);
    return wq__forks;
}
