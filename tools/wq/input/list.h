/* SPDX-License-Identifier: MIT */
/* list.h: which keys does --list=CMD print, now and at every --resync?
 *
 * /bin/sh runs CMD. Without --resync, the source ends when CMD exits, and a
 * failure of CMD is an error. With --resync, a failure is reported and CMD is
 * run again at the next interval.
 */
#ifndef WQ_TOOL_LIST_H
#define WQ_TOOL_LIST_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/loop.h"
#include "input/records.h"
#include "options/options.h"

struct list; /* opaque */

/* Start CMD with environment `envp`, which must outlive the list. False:
 * reported on stderr. */
bool list_open(const struct options *options, struct loop *loop, char **envp,
               const struct input_sink *sink, struct list **out);
/* Read what is in the pipe now; see input_read_rest(). NULL is allowed. */
void list_read_rest(struct list *list);
/* Is CMD running, so that it may print more? NULL is allowed. */
bool list_is_unread(const struct list *list);
/* Stop CMD, and free. NULL is allowed. */
void list_close(struct list *list);
/* A child was reaped. Returns whether it was CMD. */
bool list_reaped(struct list *list, pid_t pid, int exit_code, int number);
/* The process group of CMD; 0: it is not running. */
pid_t list_pid(const struct list *list);

#endif
