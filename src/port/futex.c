/* SPDX-License-Identifier: MIT */
/* futex.c: sleeping on a word of memory; see futex.h. */
#include "port/futex.h"

typedef int wq__futex_not_empty; /* a file must declare something */

#if WQ__HAVE_FUTEX

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <wq/wq.h>

#include "port/time.h"

/* Where time_t is longer than long, the plain system call takes another
 * struct. */
#if defined(SYS_futex_time64) && !defined(__LP64__)
#define FUTEX (sizeof(time_t) > sizeof(long) ? SYS_futex_time64 : SYS_futex)
#else
#define FUTEX SYS_futex
#endif

/* The BITSET form takes an absolute time. */
static bool
wait_until(_Atomic uint32_t *word, int op, uint32_t expected,
           int64_t deadline_ns)
{
    const struct timespec until = wq__time_spec(deadline_ns);
    const long            rc = syscall(FUTEX, word, op, expected,
                            deadline_ns == WQ_FOREVER ? NULL : &until, NULL,
                                       FUTEX_BITSET_MATCH_ANY);
    return rc == 0 || errno != ETIMEDOUT;
}

bool
wq__futex_wait(_Atomic uint32_t *word, uint32_t expected, int64_t deadline_ns)
{
    return wait_until(word, FUTEX_WAIT_BITSET_PRIVATE, expected, deadline_ns);
}

bool
wq__futex_wait_wall(_Atomic uint32_t *word, uint32_t expected,
                    int64_t deadline_ns)
{
    return wait_until(word, FUTEX_WAIT_BITSET_PRIVATE | FUTEX_CLOCK_REALTIME,
                      expected, deadline_ns);
}

void
wq__futex_wake_one(_Atomic uint32_t *word)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

#endif
