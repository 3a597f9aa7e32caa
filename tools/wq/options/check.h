/* SPDX-License-Identifier: MIT */
/* check.h: do the options go together? */
#ifndef WQ_TOOL_CHECK_H
#define WQ_TOOL_CHECK_H

#include "options/options.h"

/* Complete options that depend on others. Returns NULL, or what is missing or
 * contradictory. */
const char *options_check(struct options *options);

#endif
