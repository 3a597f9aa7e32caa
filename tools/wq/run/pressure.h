/* SPDX-License-Identifier: MIT */
/* pressure.h: does the machine have room for one more run (--load, --memfree)?
 *
 * Read from loadavg and meminfo in /proc, or in $WQ_PROC, where a container may
 * have that of its host. At most once a second: an answer holds until then.
 */
#ifndef WQ_TOOL_PRESSURE_H
#define WQ_TOOL_PRESSURE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/loop.h"
#include "options/options.h"

/* Zero is one. */
struct pressure {
    bool         high;     /* the last answer */
    bool         reported; /* on stderr, once in the life of the program */
    int64_t      until_ns; /* it holds until then */
    struct timer again;    /* wakes the loop then, if it is high */
};

/* Can what the options need be read? False: reported on stderr. */
bool pressure_check(const struct options *options);
/* Is it too high for one more run? Then the loop wakes up for the next answer. */
bool pressure_is_high(struct pressure *pressure, struct loop *loop,
                      const struct options *options);

#endif
