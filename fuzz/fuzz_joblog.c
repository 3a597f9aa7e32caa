/* SPDX-License-Identifier: MIT */
/* fuzz_joblog.c: what does a job log say about keys?
 *
 * The input is a byte that chooses COMMAND, two keys, each ended by a NUL, and
 * the lines of an existing log. Whatever the lines are, the log can be resumed; a
 * key that is recorded then is skipped the next time, and another key is not
 * skipped because of it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "log/joblog.h"

#define COMMANDS 4
#define HEADING                                                                \
    "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tComman" \
    "d\n"

static char *commands[COMMANDS][4] = {
    {(char[]){"echo"}},
    {(char[]){"echo"}, (char[]){"x{}y"}},
    {(char[]){"{}"}, (char[]){"it's {#}"}, (char[]){"{}"}},
    {(char[]){"cp"}, (char[]){"{.} {//} {/}"}, (char[]){"{}"}},
};

/* The file of the log, in memory, under the name /proc/self/fd/N. */
static struct {
    int  fd;
    char path[64];
} file;

static void
make_file(const char *lines, size_t len)
{
    if (!file.path[0]) {
        file.fd = memfd_create("joblog", MFD_CLOEXEC);
        (void)snprintf(file.path, sizeof file.path, "/proc/self/fd/%d",
                       file.fd);
    }
    if (file.fd < 0 || ftruncate(file.fd, 0) != 0 ||
        pwrite(file.fd, HEADING, strlen(HEADING), 0) < 0 ||
        (len && pwrite(file.fd, lines, len, (off_t)strlen(HEADING)) < 0))
        fuzz_fail("cannot write the file");
}

static void
resume(struct joblog *log, struct options *options, size_t command)
{
    char *argv[10] = {(char[]){"run"}, (char[]){"--resume"},
                      (char[]){"--joblog"}, file.path, (char[]){"--"}};
    int   argc = 5;

    for (char **arg = commands[command]; *arg; arg++)
        argv[argc++] = *arg;
    if (options_parse(options, VERB_RUN, argc, argv) != ACTION_RUN)
        fuzz_fail("the command line is refused");
    /* The arguments of COMMAND outlive argv. */
    options->command = commands[command];
    if (!joblog_open(log, options))
        fuzz_fail("the log cannot be resumed");
}

static void
close_log(struct joblog *log, struct options *options)
{
    joblog_close(log);
    options_fini(options);
}

static void
try(size_t command, wq_key key, wq_key other)
{
    struct joblog  log;
    struct options options;
    struct run     run = {.key = key,
                          .line = key,
                          .started_ns = 1,
                          .ended_ns = 2,
                          .outcome = OUTCOME_OK};

    resume(&log, &options, command);
    const bool     skips_other = joblog_skips(&log, other);
    const uint64_t last = joblog_last(&log);
    run.number = last < INT64_MAX ? last + 1 : last;
    joblog_finished(&log, &run);
    if (joblog_failed(&log))
        fuzz_fail("the log cannot be written");
    close_log(&log, &options);

    resume(&log, &options, command);
    if (joblog_last(&log) != run.number)
        fuzz_fail("the last number is another one");
    if (!joblog_skips(&log, key))
        fuzz_fail("a recorded key is not skipped");
    const bool same =
        key.len == other.len && memcmp(key.data, other.data, key.len) == 0;
    if (!same && joblog_skips(&log, other) != skips_other)
        fuzz_fail("a key is skipped because of another one");
    close_log(&log, &options);
}

/* A key from *at on, up to a NUL. */
static wq_key
take_key(const char **at, const char *end)
{
    const char *start = *at;
    const char *nul = memchr(start, 0, (size_t)(end - start));

    *at = nul ? nul + 1 : end;
    return wq_bytes(start, (size_t)((nul ? nul : end) - start));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    if (len < 2)
        return 0;
    char *const  text = fuzz_text(data + 1, len - 1); /* keys end with a NUL */
    const char  *at = text, *end = text + len - 1;
    const wq_key key = take_key(&at, end), other = take_key(&at, end);

    if (key.len > 0 && other.len > 0) {
        make_file(at, (size_t)(end - at));
        try(data[0] % COMMANDS, key, other);
    }
    free(text);
    return 0;
}
