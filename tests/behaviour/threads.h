/* SPDX-License-Identifier: MIT */
/* threads.h: how many threads does this process have? */
#ifndef WQ_BEHAVIOUR_THREADS_H
#define WQ_BEHAVIOUR_THREADS_H

#include "support/wq_test.h"

#include <dirent.h>

/* Compare it with another call: it also counts "." and "..". Skips the test if
 * the system does not list threads. */
static inline int
count_threads(void)
{
    int  n = 0;
    DIR *tasks = opendir("/proc/self/task");

    if (!tasks)
        wq_test_skip("the system does not list the threads of a process");
    while (readdir(tasks))
        n++;
    (void)closedir(tasks);
    return n;
}

#endif
