/* SPDX-License-Identifier: MIT */
/* time.h: what time is it? Nanoseconds on a clock that never goes back. */
#ifndef WQ_PORT_TIME_H
#define WQ_PORT_TIME_H

#include <stdint.h>

#include <wq/wq.h>

int64_t wq__time_now(void);

/* `now` + `delay_ns`, and WQ_FOREVER where that would be beyond it. */
static inline int64_t
wq__time_after(int64_t now, int64_t delay_ns)
{
    return delay_ns > WQ_FOREVER - now ? WQ_FOREVER : now + delay_ns;
}

#endif
