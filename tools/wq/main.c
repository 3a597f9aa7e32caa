/* SPDX-License-Identifier: MIT */
/* main.c: which verb? */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <wq/version.h>

#include "options.h"
#include "runner.h"
#include "tell.h"

/* Who started us shall see that a signal ended us: a shell then ends its loop,
 * and says 128 + N. */
static int
die_by(int number)
{
    sigset_t only;

    (void)signal(number, SIG_DFL);
    (void)raise(number);
    (void)sigemptyset(&only);
    (void)sigaddset(&only, number);
    (void)sigprocmask(SIG_UNBLOCK, &only, NULL);
    return 128 + number; /* not reached, but for signals that do not kill */
}

/* What was printed on stdout must have got there. */
static int
printed(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return STATUS_OK;
    tell_errno("stdout");
    return STATUS_ERROR;
}

static int
run(int argc, char **argv)
{
    struct options options;
    int            status = STATUS_ERROR;

    switch (options_parse(&options, argc, argv)) {
    case ASKED_RUN:
        status = runner_main(&options);
        break;
    case ASKED_NOTHING:
        status = printed();
        break;
    case ASKED_WRONGLY:
        break;
    }
    options_fini(&options);
    return status < 0 ? die_by(-status) : status;
}

int
main(int argc, char **argv)
{
    const char *verb = argc > 1 ? argv[1] : "";

    if (strcmp(verb, "run") == 0)
        return run(argc - 1, argv + 1);
    if (strcmp(verb, "help") == 0 || strcmp(verb, "--help") == 0 ||
        strcmp(verb, "-h") == 0) {
        options_help(stdout);
        return printed();
    }
    if (strcmp(verb, "--version") == 0 ||
        strncmp(verb, "--completion", strlen("--completion")) == 0)
        return run(argc, argv);
    if (*verb)
        tell("unknown verb '%s'; accepted: run, help", verb);
    else
        tell("which verb? Usage: wq run [OPTION]... [--] COMMAND [ARG]...; wq "
             "help");
    return STATUS_ERROR;
}
