/* SPDX-License-Identifier: MIT */
/* command.h: how does COMMAND look for a key? Arguments and environment.
 *
 * The key is put into arguments as it is: no shell sees it.
 */
#ifndef WQ_TOOL_COMMAND_H
#define WQ_TOOL_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

#include "json.h"
#include "options.h"
#include "run.h"

struct command; /* opaque */

/* Find COMMAND. False: told on stderr, and *status is the one to exit with. */
bool command_create(const struct options *options, struct command **out,
                    int *status);
void command_destroy(struct command *command); /* NULL is allowed */

/* Is it the same program for each key? Then that it cannot be started once
 * means never. */
bool command_is_fixed(const struct command *command);

/* Our environment without the variables that are set for each run. */
char **command_plain_env(const struct command *command);

/* A run's arguments, made in one block. */
struct arguments {
    char  *block; /* owned; grows as needed */
    size_t room;  /* of it */
};

/* Fill in run->argv, *path to be executed and *envp; both of these are valid
 * until the next call. `result_fd` is WQ_RESULT_FD. False: no memory. */
bool command_prepare(struct command *command, struct run *run,
                     struct arguments *arguments, int result_fd,
                     const char **path, char ***envp);
void arguments_fini(struct arguments *arguments);

/* Add the arguments to `text` as a shell would need them quoted. */
void command_say(struct text *text, char *const *argv);

#endif
