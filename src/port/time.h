/* SPDX-License-Identifier: MIT */
/* time.h: what time is it, in nanoseconds?
 *
 * wq__time_now() is CLOCK_MONOTONIC: it never goes back, and stands still while
 * the machine is suspended. CLOCK_BOOTTIME does not stand still then; not every
 * system has it. The wall clock serves only to sleep (park.c).
 */
#ifndef WQ_PORT_TIME_H
#define WQ_PORT_TIME_H

#include <stdbool.h>
#include <stdint.h>

#include <wq/wq.h>

int64_t wq__time_now(void);
int64_t wq__time_boottime(void); /* as wq__time_now() where there is none */
int64_t wq__time_wall(void);
bool    wq__time_has_boottime(void);

#endif
