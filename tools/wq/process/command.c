/* SPDX-License-Identifier: MIT */
/* command.c: which arguments and environment does COMMAND get for a key? */
#include "process/command.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/report.h"
#include "process/child.h"
#include "process/words.h"

/* The variables of a run; the user chooses the name of the first. */
enum variable {
    KEY,
    QUEUE,
    NAME,
    ATTEMPT,
    FENCE,
    PRIORITY,
    SLOT,
    DEADLINE,
    RESULT_FD,
    LINE,
    VARIABLES,
};

static const char *const names[VARIABLES] = {
    [QUEUE] = "WQ_QUEUE",       [NAME] = "WQ_NAME",
    [ATTEMPT] = "WQ_ATTEMPT",   [FENCE] = "WQ_FENCE",
    [PRIORITY] = "WQ_PRIORITY", [SLOT] = "WQ_SLOT",
    [DEADLINE] = "WQ_DEADLINE", [RESULT_FD] = "WQ_RESULT_FD",
    [LINE] = "WQ_LINE",
};

struct command {
    const struct options *options;
    char                 *path;   /* NULL: it depends on the key */
    char                 *found;  /* the path for the last key, if it does */
    size_t                n;      /* arguments, without an appended key */
    bool                  append; /* append the key as last argument */
    size_t               *times;  /* how many words each argument has */
    bool                 *of_key; /* is one of them of the key? Then a batch has
                                     the argument once for each key */
    size_t                words;  /* in all arguments */
    size_t                bytes;  /* of all arguments with words */
    size_t                repeated; /* arguments that are of the key */
    size_t                space;    /* bytes of arguments that keys may add */
    char **env;   /* inherited ones, then the variables, then NULL */
    size_t n_env; /* inherited ones */
    char **plain; /* inherited ones and WQ_QUEUE, then NULL; in `env` */
    char  *queue; /* "WQ_QUEUE=..."; NULL: the inherited one, if any */
    char  *name;  /* "WQ_NAME=..." */
    char   numbers[VARIABLES][48]; /* "WQ_SLOT=1" and so on */
};

/* -------------------------------------------------------------- creating -- */

/* Is "NAME=..." one of the variables that a run gets from us? WQ_QUEUE is the
 * URL of a shared queue, so that a handler can call `wq add`. A queue in memory
 * has none: then a variable that the user has set for other queues stays. */
static bool
is_ours(const struct options *options, const char *variable)
{
    for (int i = 0; i < VARIABLES; i++) {
        if ((i == QUEUE && !options->shared) || (i == LINE && !options->mapped))
            continue;
        const char  *name = i == KEY ? options->env_key : names[i];
        const size_t len = strlen(name);
        if (strncmp(variable, name, len) == 0 && variable[len] == '=')
            return true;
    }
    return false;
}

static bool
copy_env(struct command *command)
{
    size_t n = 0;

    while (environ[n])
        n++;
    command->env = calloc(2 * n + VARIABLES + 3, sizeof *command->env);
    if (!command->env)
        return false;
    command->plain = command->env + n + VARIABLES + 1;
    for (size_t i = 0; i < n; i++)
        if (!is_ours(command->options, environ[i])) {
            command->plain[command->n_env] = environ[i];
            command->env[command->n_env++] = environ[i];
        }
    if (command->options->shared &&
        asprintf(&command->queue, "%s=%s", names[QUEUE],
                 command->options->queue) < 0)
        return false;
    command->plain[command->n_env] = command->queue; /* for --list, too */
    return asprintf(&command->name, "%s=%s", names[NAME],
                    command->options->name) >= 0;
}

static void
count_words(struct command *command, size_t i)
{
    const char *text = command->options->command[i];
    const char *at = text;
    struct word word;

    while ((at = word_find(command->options, at, &word))) {
        command->times[i]++;
        command->of_key[i] |= word_is_of_key(&word);
        at += word.len;
    }
    command->words += command->times[i];
    command->repeated += command->of_key[i];
    if (command->times[i] > 0)
        command->bytes += strlen(text) + 1;
}

static bool
count_arguments(struct command *command)
{
    while (command->options->command[command->n])
        command->n++;
    command->times = calloc(command->n, sizeof *command->times);
    command->of_key = calloc(command->n, sizeof *command->of_key);
    if (!command->times || !command->of_key)
        return false;
    for (size_t i = 0; i < command->n; i++)
        count_words(command, i);
    command->append = command->words == 0 && !command->options->no_key_arg;
    return true;
}

/* What exec needs for these strings. */
static size_t
cost_of(char *const *strings)
{
    size_t size = sizeof(char *);

    for (; *strings; strings++)
        size += strlen(*strings) + 1 + sizeof(char *);
    return size;
}

/* POSIX wants 2048 bytes for the child to change its environment; our variables
 * and the path need less than as much again. */
static void
measure_space(struct command *command)
{
    const long   most = sysconf(_SC_ARG_MAX);
    const size_t limit = most > 0 ? (size_t)most : _POSIX_ARG_MAX;
    const size_t used =
        4096 + cost_of(command->env) + cost_of(command->options->command) +
        strlen(command->name) + (command->queue ? strlen(command->queue) : 0);

    command->space = limit > used ? limit - used : 0;
}

/* False: reported. */
static bool
find(struct command *command, int *status)
{
    const char *name = command->options->command[0];

    if (command->of_key[0] && command->options->max_args > 1) {
        report("--max-args: the program of COMMAND must not depend on the key: "
               "'%s'",
               name);
        return false;
    }
    if (command->times[0] > 0)
        return true;
    command->path = child_find(name);
    if (command->path)
        return true;
    *status = errno == ENOENT || errno == ENOTDIR ? STATUS_NOT_FOUND
                                                  : STATUS_CANNOT_RUN;
    report_errno("cannot run '%s'", name);
    return false;
}

bool
command_create(const struct options *options, struct command **out, int *status)
{
    struct command *command = calloc(1, sizeof *command);

    *status = STATUS_ERROR;
    if (command)
        command->options = options;
    if (!command || !copy_env(command) || !count_arguments(command))
        report_errno("cannot prepare '%s'", options->command[0]);
    else if (find(command, status)) {
        measure_space(command);
        *out = command;
        return true;
    }
    command_destroy(command);
    return false;
}

void
command_destroy(struct command *command)
{
    if (!command)
        return;
    free(command->path);
    free(command->found);
    free(command->times);
    free(command->of_key);
    free(command->env);
    free(command->queue);
    free(command->name);
    free(command);
}

bool
command_is_fixed(const struct command *command)
{
    return command->path != NULL;
}

char **
command_plain_env(const struct command *command)
{
    return command->plain;
}

/* ------------------------------------------------------------- for a key -- */

/* No word of this key has a longer value. */
static size_t
longest(const struct run *run)
{
    const size_t len =
        run->key.len > run->line.len ? run->key.len : run->line.len;

    return len > WORD_MAX ? len : WORD_MAX;
}

static size_t
cost_of_key(const struct command *command, size_t longest_value)
{
    return command->bytes + command->words * longest_value +
           (command->append ? longest_value + 1 : 0) +
           (command->repeated + command->append) * sizeof(char *);
}

size_t
command_cost(const struct command *command, const struct run *run)
{
    return cost_of_key(command, longest(run));
}

bool
command_has_space(const struct command *command, size_t used)
{
    return used + cost_of_key(command, WQ_KEY_MAX) <= command->space;
}

/* At least the bytes of all strings in the block, except the variables. */
static size_t
measure(const struct command *command, const struct run *run)
{
    size_t size = 0;

    for (; run; run = run->rest)
        size +=
            command->bytes + command->words * longest(run) + run->key.len + 1;
    return size;
}

/* Writes `from` with the values of its words to `to`; returns the end. */
static char *
put_in(char *to, const struct command *command, const char *from,
       const struct run *run)
{
    struct word word;
    const char *at;
    char        buffer[WORD_MAX];

    for (; (at = word_find(command->options, from, &word));
         from = at + word.len) {
        const wq_key value = word_value(command->options, &word, run, buffer);
        to = mempcpy(to, from, (size_t)(at - from));
        to = mempcpy(to, value.data, value.len);
    }
    return stpcpy(to, from) + 1;
}

static bool
reserve(struct arguments *arguments, size_t size)
{
    if (size > arguments->size) {
        free(arguments->block); /* the old content is not needed */
        arguments->block = malloc(size);
        arguments->size = arguments->block ? size : 0;
    }
    return arguments->size >= size;
}

/* Writes "NAME=value"; returns the end. */
static char *
put_variable(char *to, const char *name, wq_key value)
{
    to = mempcpy(stpcpy(stpcpy(to, name), "="), value.data, value.len);
    *to++ = '\0';
    return to;
}

/* Writes argument `i` for each key of the batch, or once; returns the end of the
 * strings. */
static char *
put_argument(char *end, const struct command *command, size_t i,
             const struct run *run, char ***argv, char *key)
{
    char *const from = command->options->command[i];

    if (command->times[i] == 0) {
        *(*argv)++ = from;
        return end;
    }
    for (; run; run = command->of_key[i] ? run->rest : NULL) {
        if (key && strcmp(from, command->options->replace) == 0) {
            *(*argv)++ = key;
        } else {
            *(*argv)++ = end;
            end = put_in(end, command, from, run);
        }
        key = NULL; /* is that of the first run */
    }
    return end;
}

/* The strings of the variables that depend on the key. */
struct strings {
    char *key;  /* "WQ_KEY=key" */
    char *line; /* "WQ_LINE=line" */
};

/* The block: the array argv, the variables, arguments that contain words. An
 * argument that is only the key points into "WQ_KEY=key". False: out of memory.
 */
static bool
make_arguments(const struct command *command, struct run *run,
               struct arguments *arguments, struct strings *strings)
{
    const char  *name = command->options->env_key;
    const size_t keys = 1 + run_rest(run);
    const size_t pointers =
        (command->n + keys * (command->repeated + 1) + 1) * sizeof(char *);
    const size_t variables = strlen(name) + run->key.len + 2 +
                             strlen(names[LINE]) + run->line.len + 2;
    if (!reserve(arguments, pointers + variables + measure(command, run)))
        return false;

    char **argv = (char **)(void *)arguments->block; /* aligned by malloc() */
    run->argv = argv;
    strings->key = arguments->block + pointers;
    strings->line = put_variable(strings->key, name, run->key);
    char *end = put_variable(strings->line, names[LINE], run->line);
    char *key = strings->key + strlen(name) + 1;
    for (size_t i = 0; i < command->n; i++)
        end = put_argument(end, command, i, run, &argv, key);
    for (const struct run *r = run; r && command->append; r = r->rest) {
        *argv++ = r == run ? key : end;
        if (r != run) {
            end = mempcpy(end, r->key.data, r->key.len);
            *end++ = '\0';
        }
    }
    *argv = NULL;
    return true;
}

static char *
number(struct command *command, enum variable which, int64_t n)
{
    char *text = command->numbers[which];

    (void)snprintf(text, sizeof command->numbers[which], "%s=%" PRId64,
                   names[which], n);
    return text;
}

/* The sum in seconds; in nanoseconds it may overflow. */
static int64_t
seconds(int64_t a_ns, int64_t b_ns)
{
    const int64_t second = 1000000000;

    return a_ns / second + b_ns / second +
           (a_ns % second + b_ns % second) / second;
}

static void
make_env(struct command *command, const struct run *run, int result_fd,
         const struct strings *strings)
{
    char **env = command->env + command->n_env;

    *env++ = command->name;
    if (command->queue)
        *env++ = command->queue;
    if (command->options->max_args == 1) { /* the keys of a batch differ */
        *env++ = strings->key;
        if (command->options->mapped)
            *env++ = strings->line;
        *env++ = number(command, ATTEMPT, run->attempt);
        *env++ = number(command, FENCE, (int64_t)run->item->fence);
        *env++ = number(command, PRIORITY, run->priority);
    }
    *env++ = number(command, SLOT, run->slot);
    *env++ = number(command, RESULT_FD, result_fd);
    if (command->options->timeout_ns)
        *env++ =
            number(command, DEADLINE,
                   seconds(run->started_wall_ns, command->options->timeout_ns));
    *env = NULL;
}

bool
command_prepare(struct command *command, struct run *run,
                struct arguments *arguments, int result_fd, const char **path,
                char ***envp)
{
    struct strings strings;

    if (!make_arguments(command, run, arguments, &strings))
        return false;
    make_env(command, run, result_fd, &strings);
    *envp = command->env;
    *path = command->path;
    if (!command->path) {
        free(command->found);
        command->found = child_find(run->argv[0]);
        /* If it was not found, exec reports why. */
        *path = command->found ? command->found : run->argv[0];
    }
    return true;
}

void
arguments_fini(struct arguments *arguments)
{
    free(arguments->block);
    *arguments = (struct arguments){0};
}

/* --------------------------------------------------------------- quoting -- */

void
command_print(struct wq__text *text, char *const *argv)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789_@%+=:,./-";

    for (size_t i = 0; argv[i]; i++) {
        const char *arg = argv[i];
        if (i > 0)
            wq__text_char(text, ' ');
        if (*arg && arg[strspn(arg, plain)] == '\0') {
            wq__text_str(text, arg);
            continue;
        }
        wq__text_char(text, '\'');
        for (const char *quote; (quote = strchr(arg, '\'')); arg = quote + 1) {
            wq__text_add(text, arg, (size_t)(quote - arg));
            wq__text_str(text, "'\\''");
        }
        wq__text_str(text, arg);
        wq__text_char(text, '\'');
    }
}
