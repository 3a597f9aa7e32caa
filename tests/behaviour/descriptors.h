/* SPDX-License-Identifier: MIT */
/* descriptors.h: how does a test look at file descriptors? */
#ifndef WQ_BEHAVIOUR_DESCRIPTORS_H
#define WQ_BEHAVIOUR_DESCRIPTORS_H

#include "fixture.h"

#include <fcntl.h>
#include <poll.h>

/* Does wq_fd() exist on this system? */
#if defined(__linux__) && !defined(WQ_PORT_POSIX)
#define HAS_WQ_FD 1
#else
#define HAS_WQ_FD 0
#endif

/* Would an event loop wake up for this queue? */
static inline bool
readable(wq_queue *q)
{
    struct pollfd p = {.fd = wq_fd(q), .events = POLLIN};

    assert_true(p.fd >= 0);
    const int n = poll(&p, 1, 0);
    assert_true(n == 0 || (n == 1 && p.revents == POLLIN));
    return n == 1;
}

/* Which of the first 64 descriptors are open: a bit for each. */
static inline uint64_t
open_descriptors(void)
{
    uint64_t set = 0;

    for (int fd = 0; fd < 64; fd++)
        if (fcntl(fd, F_GETFD) != -1)
            set |= UINT64_C(1) << fd;
    return set;
}

#endif
