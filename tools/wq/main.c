/* SPDX-License-Identifier: MIT */
/* main.c: which verb does the command line name? */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <wq/version.h>

#include "base/report.h"
#include "options/options.h"
#include "run/runner.h"
#include "verbs/verbs.h"

/* The parent must see that a signal ended us: a shell then ends its loop and
 * sets the status 128 + N. */
static int
die_by(int number)
{
    sigset_t only;

    (void)signal(number, SIG_DFL);
    (void)raise(number);
    (void)sigemptyset(&only);
    (void)sigaddset(&only, number);
    (void)sigprocmask(SIG_UNBLOCK, &only, NULL);
    return 128 + number; /* only for signals that do not kill */
}

/* The exit status after printing: writing to stdout may have failed. */
static int
print_status(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return STATUS_OK;
    report_errno("cannot write to stdout");
    return STATUS_ERROR;
}

static int
act(const struct options *options)
{
    return verbs_table[options->verb].runs ? runner_main(options)
                                           : verbs_main(options);
}

/* `argv[0]` is the verb. */
static int
run(enum verb verb, int argc, char **argv)
{
    struct options options;
    int            status = STATUS_ERROR;

    switch (options_parse(&options, verb, argc, argv)) {
    case ACTION_RUN:
        status = act(&options);
        break;
    case ACTION_EXIT:
        status = print_status();
        break;
    case ACTION_REFUSE:
        break;
    }
    options_fini(&options);
    return status < 0 ? die_by(-status) : status;
}

/* What follows the first letters of `word` may be a URL with a password. */
static int
refuse_verb(const char *word)
{
    const int len = (int)strspn(word, "abcdefghijklmnopqrstuvwxyz0123456789-");

    if (*word == '-')
        report("options follow a verb: wq VERB %.*s...; see wq help", len,
               word);
    else
        report("unknown verb '%.*s'; see wq help", len, word);
    return STATUS_ERROR;
}

/* `wq help`, `wq help VERB`. */
static int
help(const char *word)
{
    const enum verb verb = word ? verb_named(word) : VERBS;

    if (word && verb == VERBS)
        return refuse_verb(word);
    if (verb < VERBS)
        options_help(stdout, verb);
    else
        options_help_all(stdout);
    return print_status();
}

/* Without them, files and sockets would have their numbers, and messages would go
 * there. */
static void
open_standard_descriptors(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        (void)close(fd);
}

int
main(int argc, char **argv)
{
    open_standard_descriptors();
    const char     *word = argc > 1 ? argv[1] : "";
    const enum verb verb = verb_named(word);

    if (verb < VERBS)
        return run(verb, argc - 1, argv + 1);
    if (strcmp(word, "help") == 0 || strcmp(word, "--help") == 0 ||
        strcmp(word, "-h") == 0)
        return help(argc > 2 ? argv[2] : NULL);
    if (strcmp(word, "--version") == 0 ||
        strncmp(word, "--completion", strlen("--completion")) == 0)
        return run(VERB_RUN, argc, argv);
    if (*word)
        return refuse_verb(word);
    report("no verb given; usage: wq VERB [OPTION]...; see wq help");
    return STATUS_ERROR;
}
