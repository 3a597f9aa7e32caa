/* SPDX-License-Identifier: MIT */
/* summary.h: what do the last lines on stderr say? */
#ifndef WQ_TOOL_SUMMARY_H
#define WQ_TOOL_SUMMARY_H

#include <stddef.h>

#include "run/view.h"

/* "1204 keys, 1190 ok, 3 failed, 11 left; 4310 adds (71% deduplicated); 37
 * retries"; "12 keys settled 81 times, 80 ok, ...". Writes at most `size` bytes to `text`, and returns it. */
char *summary_line(const struct view *view, char *text, size_t size);

/* Report the first keys that failed, each with its reason and its last line on
 * stderr, and how many more there are. `joblog`: where all are; NULL: nowhere. */
void summary_failures(const struct failures *failures, const char *joblog);

#endif
