/* SPDX-License-Identifier: MIT */
/* command.h: which arguments and environment does COMMAND get for a key?
 *
 * The key is put into arguments unchanged: no shell sees it.
 */
#ifndef WQ_TOOL_COMMAND_H
#define WQ_TOOL_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"
#include "options/options.h"
#include "process/run.h"

struct command; /* opaque */

/* Find COMMAND. False: reported on stderr; *status is the exit status. */
bool command_create(const struct options *options, struct command **out,
                    int *status);
void command_destroy(struct command *command); /* NULL is allowed */

/* Is it the same program for every key? Then an exec that fails once always
 * fails. */
bool command_is_fixed(const struct command *command);

/* Our environment without the variables that runs get. */
char **command_plain_env(const struct command *command);

/* The bytes that a key adds to the arguments of a batch; and does one more key
 * fit behind keys that add `used` bytes, however long it is? The system limits
 * arguments and environment together (ARG_MAX). */
size_t command_cost(const struct command *command, const struct run *run);
bool   command_has_space(const struct command *command, size_t used);

/* The memory for the arguments of a run. */
struct arguments {
    char  *block; /* owned; grows as needed */
    size_t size;  /* of it */
};

/* For run->rest, too. Fill in run->argv, the *path to execute and *envp; the latter two are valid
 * until the next call. `result_fd` is for WQ_RESULT_FD. False: out of memory. */
bool command_prepare(struct command *command, struct run *run,
                     struct arguments *arguments, int result_fd,
                     const char **path, char ***envp);
void arguments_fini(struct arguments *arguments);

/* Add the arguments to `text`, quoted for a shell. */
void command_print(struct wq__text *text, char *const *argv);

#endif
