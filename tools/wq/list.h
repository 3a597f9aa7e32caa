/* SPDX-License-Identifier: MIT */
/* list.h: what does --list=CMD print, now and every --resync?
 *
 * CMD is run by /bin/sh. Without --resync the source ends with it, and its
 * failure is an error; with it, a failure is told, and the next time comes.
 */
#ifndef WQ_TOOL_LIST_H
#define WQ_TOOL_LIST_H

#include <stdbool.h>
#include <sys/types.h>

#include "input.h"
#include "loop.h"
#include "options.h"

struct list; /* opaque */

/* False: told on stderr. `envp` is what CMD gets, and must outlive it. */
bool list_open(const struct options *options, struct loop *loop, char **envp,
               const struct input_sink *sink, struct list **out);
/* Stop CMD, and free. NULL is allowed. */
void list_close(struct list *list);
/* A child was reaped. Was it CMD? */
bool list_reaped(struct list *list, pid_t pid, int exit_code, int number);
/* The process group of CMD; 0: it does not run. */
pid_t list_pid(const struct list *list);

#endif
