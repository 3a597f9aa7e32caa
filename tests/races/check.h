/* SPDX-License-Identifier: MIT */
/* check.h: how do the programs in this directory report a failure? They exit
 * with 2, which no race detector does. */
#ifndef WQ_RACES_CHECK_H
#define WQ_RACES_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                       \
    do {                                                                       \
        if (!(condition)) {                                                    \
            fprintf(stderr, "%s:%d: %s is false\n", __FILE__, __LINE__,        \
                    #condition);                                               \
            exit(2);                                                           \
        }                                                                      \
    } while (0)

#endif
