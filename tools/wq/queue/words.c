/* SPDX-License-Identifier: MIT */
/* words.c: which words stand for what a queue says? See words.h. */
#include "queue/words.h"

#include <stddef.h>

const char *
word_added(wq_added added)
{
    static const char *const words[] = {
        [WQ_ADDED_NEW] = "new",       [WQ_ADDED_MERGED] = "merged",
        [WQ_ADDED_DIRTY] = "dirty",   [WQ_ADDED_RAISED] = "raised",
        [WQ_ADDED_KEPT] = "kept",     [WQ_ADDED_SCHEDULED] = "scheduled",
        [WQ_ADDED_SOONER] = "sooner", [WQ_ADDED_LATER] = "later",
        [WQ_ADDED_DEAD] = "dead",
    };

    return (size_t)added < sizeof words / sizeof *words ? words[added]
                                                        : "added";
}

const char *
word_state(unsigned *states)
{
    static const char *const words[] = {"READY",   "HELD",    "DIRTY",
                                        "WAITING", "BACKOFF", "DEAD"};

    for (unsigned i = 0; i < sizeof words / sizeof *words; i++)
        if (*states & 1U << i) {
            *states &= ~(1U << i);
            return words[i];
        }
    return NULL;
}
