/* SPDX-License-Identifier: MIT */
/* main.c: which verb does the command line name? */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <wq/version.h>

#include "base/report.h"
#include "options/options.h"
#include "run/runner.h"

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
run(int argc, char **argv)
{
    struct options options;
    int            status = STATUS_ERROR;

    switch (options_parse(&options, argc, argv)) {
    case ACTION_RUN:
        status = runner_main(&options);
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

int
main(int argc, char **argv)
{
    const char *verb = argc > 1 ? argv[1] : "";

    if (strcmp(verb, "run") == 0)
        return run(argc - 1, argv + 1);
    if (strcmp(verb, "help") == 0 || strcmp(verb, "--help") == 0 ||
        strcmp(verb, "-h") == 0) {
        options_help(stdout);
        return print_status();
    }
    if (strcmp(verb, "--version") == 0 ||
        strncmp(verb, "--completion", strlen("--completion")) == 0)
        return run(argc, argv);
    if (*verb)
        report("unknown verb '%s'; accepted: run, help", verb);
    else
        report("no verb given; usage: wq run [OPTION]... [--] COMMAND "
               "[ARG]...; wq "
               "help");
    return STATUS_ERROR;
}
