/* SPDX-License-Identifier: MIT */
/* joblog.c: which runs were there, in the format of GNU parallel's --joblog?
 *
 * A line is one write() to the end of the file, so that it is there when the
 * run is over, and lines of several programs do not mix. A crash can leave a
 * part of the last one; a log that is resumed is cut behind the last line that
 * ended, since the beginning of a Command may be that of another key.
 *
 * What was read is kept sorted by Command: a question costs O(log n).
 */
#include "joblog.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "json.h"
#include "tell.h"

static const char heading[] = "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive"
                              "\tExitval\tSignal\tCommand\n";

/* A line of the log that was there. */
struct entry {
    const char *command; /* in `content` */
    size_t      len;     /* of it */
    size_t      number;  /* of the line: a later one counts more */
    bool        ok;      /* ended well */
};

struct joblog {
    const struct options *options;
    int                   fd;
    struct text           content; /* of the log that was there */
    struct entry         *entries; /* sorted; the last for each Command */
    size_t                n;       /* of them */
    size_t                room;    /* for them, while it is read */
    uint64_t              last;    /* highest Seq */
    bool                  append;  /* COMMAND does not say where the key goes */
    bool                  failed;  /* nothing is written any more */
    struct text           line;    /* at hand */
};

/* -------------------------------------------------------------- commands -- */

static bool
is_plain(const char *s, size_t len)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_+./-";

    for (size_t i = 0; i < len; i++)
        if (!s[i] || !strchr(plain, s[i]))
            return false;
    return len > 0;
}

/* Within '...': a newline is a NUL, for the line must not end there. */
static void
add_quoted(struct text *line, const char *s, size_t len)
{
    const char *newline;

    while ((newline = memchr(s, '\n', len))) {
        const size_t n = (size_t)(newline - s);
        text_add(line, s, n);
        text_add(line, "", 1);
        s += n + 1;
        len -= n + 1;
    }
    text_add(line, s, len);
}

/* As GNU parallel quotes: '...', in which each ' is '"'"', without the '' that
 * this leaves at the beginning and at the end. */
static void
add_argument(struct text *line, const char *s, size_t len)
{
    const char *quote;

    if (is_plain(s, len)) {
        text_add(line, s, len);
        return;
    }
    if (len == 0 || s[0] != '\'')
        text_add(line, "'", 1);
    for (bool first = true; (quote = memchr(s, '\'', len)); first = false) {
        const size_t n = (size_t)(quote - s);
        add_quoted(line, s, n);
        if (n > 0 || !first)
            text_add(line, "'", 1);
        text_add(line, "\"'\"", 3);
        s += n + 1;
        len -= n + 1;
        if (len == 0)
            return;
        text_add(line, "'", 1);
    }
    add_quoted(line, s, len);
    text_add(line, "'", 1);
}

/* The arguments of COMMAND with the key in them, as command.c makes them. */
static void
add_command(struct text *line, const struct joblog *log, wq_key key)
{
    const char *const replace = log->options->replace;
    struct text       argument = {0};
    const char       *at;

    for (char **from = log->options->command; *from; from++) {
        const char *s = *from;
        text_clear(&argument);
        for (; (at = strstr(s, replace)); s = at + strlen(replace)) {
            text_add(&argument, s, (size_t)(at - s));
            text_add(&argument, key.data, key.len);
        }
        text_add(&argument, s, strlen(s));
        if (from != log->options->command)
            text_add(line, " ", 1);
        if (!argument.failed)
            add_argument(line, argument.data, argument.len);
        line->failed |= argument.failed;
    }
    text_fini(&argument);
    if (log->append) {
        text_add(line, " ", 1);
        add_argument(line, key.data, key.len);
    }
}

/* --------------------------------------------------------------- reading -- */

static int
compare_commands(const struct entry *a, const struct entry *b)
{
    const size_t len = a->len < b->len ? a->len : b->len;
    const int    order = memcmp(a->command, b->command, len);

    return order ? order : (a->len > b->len) - (a->len < b->len);
}

static int
compare(const void *one, const void *other)
{
    const struct entry *a = one, *b = other;
    const int           order = compare_commands(a, b);

    return order ? order : (a->number > b->number) - (a->number < b->number);
}

/* For each Command the last line is kept. */
static void
sort(struct joblog *log)
{
    size_t n = 0;

    if (log->n > 0)
        qsort(log->entries, log->n, sizeof *log->entries, compare);
    for (size_t i = 0; i < log->n; i++) {
        if (i + 1 < log->n &&
            compare_commands(&log->entries[i], &log->entries[i + 1]) == 0)
            continue;
        log->entries[n++] = log->entries[i];
    }
    log->n = n;
}

static bool
add_entry(struct joblog *log, const struct entry *entry)
{
    if (log->n == log->room) {
        const size_t room = log->room ? 2 * log->room : 64;
        void *entries = realloc(log->entries, room * sizeof *log->entries);
        if (!entries)
            return false;
        log->entries = entries;
        log->room = room;
    }
    log->entries[log->n++] = *entry;
    return true;
}

/* The field at *at, up to a tab, which is stepped over; a number (GNU parallel
 * writes -1 for some failures). False: it is none. */
static bool
read_number(const char **at, const char *end, int64_t *out)
{
    const char *tab = memchr(*at, '\t', (size_t)(end - *at));
    char       *behind;

    if (!tab || tab == *at)
        return false;
    *out = strtoll(*at, &behind, 10); /* stops at the tab */
    if (behind != tab)
        return false;
    *at = tab + 1;
    return true;
}

static bool
skip_fields(const char **at, const char *end, int n)
{
    for (int i = 0; i < n; i++) {
        const char *tab = memchr(*at, '\t', (size_t)(end - *at));
        if (!tab)
            return false;
        *at = tab + 1;
    }
    return true;
}

/* A line without its newline; one that has another shape is left out. False:
 * no memory. */
static bool
read_line(struct joblog *log, const char *at, const char *end, size_t number)
{
    int64_t seq, code, killed;

    if (!read_number(&at, end, &seq) || !skip_fields(&at, end, 5) ||
        !read_number(&at, end, &code) || !read_number(&at, end, &killed) ||
        seq < 0)
        return true;
    if ((uint64_t)seq > log->last)
        log->last = (uint64_t)seq;
    return add_entry(log, &(struct entry){.command = at,
                                          .len = (size_t)(end - at),
                                          .number = number,
                                          .ok = code == 0 && killed == 0});
}

static bool
read_content(struct joblog *log)
{
    ssize_t n;
    char    data[65536];

    while ((n = read(log->fd, data, sizeof data)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return false;
        text_add(&log->content, data, (size_t)n);
        if (log->content.failed) {
            errno = ENOMEM;
            return false;
        }
    }
    return true;
}

/* Cuts off what is behind the last line that ended. */
static bool
cut_torn_line(struct joblog *log, size_t whole)
{
    if (whole == log->content.len)
        return true;
    tell("--joblog: the last line of '%s' is torn: it is cut off, and its key "
         "counts as not run",
         log->options->joblog);
    log->content.len = whole;
    return log->options->dry_run || ftruncate(log->fd, (off_t)whole) == 0;
}

/* Is it a log, or the beginning of one? Others' files are not touched. */
static bool
is_log(const struct joblog *log)
{
    const size_t len = strlen(heading);
    const size_t n = log->content.len < len ? log->content.len : len;

    return memcmp(log->content.data, heading, n) == 0;
}

/* False: told. */
static bool
read_log(struct joblog *log)
{
    const char *const file = log->options->joblog;

    if (!read_content(log)) {
        tell_errno("--joblog: cannot read '%s'", file);
        return false;
    }
    if (log->content.len == 0)
        return true;
    if (!is_log(log)) {
        tell("--joblog: '%s' is not a job log: its first line is another one",
             file);
        return false;
    }
    const char *const start = log->content.data;
    const char       *newline = memrchr(start, '\n', log->content.len);
    if (!cut_torn_line(log, newline ? (size_t)(newline - start) + 1 : 0)) {
        tell_errno("--joblog: cannot cut '%s'", file);
        return false;
    }

    const char *end = start + log->content.len;
    size_t      number = 0;
    for (const char *at = start; at < end; at = newline + 1, number++) {
        newline = memchr(at, '\n', (size_t)(end - at)); /* it ends with one */
        if (number > 0 && !read_line(log, at, newline, number)) {
            tell("--joblog: out of memory");
            return false;
        }
    }
    sort(log);
    return true;
}

/* --------------------------------------------------------------- offered -- */

static void
write_line(struct joblog *log, const char *data, size_t len)
{
    while (len > 0) {
        const ssize_t n = write(log->fd, data, len);
        if (n > 0) {
            data += n;
            len -= (size_t)n;
        } else if (n == 0 || errno != EINTR) {
            tell_errno("--joblog: cannot write to '%s'; it ends here",
                       log->options->joblog);
            log->failed = true;
            return;
        }
    }
}

/* With --dry-run nothing happens to the file, and it need not be there. */
static bool
open_file(struct joblog *log)
{
    const struct options *options = log->options;
    const bool            resume = options->resume != RESUME_NO;
    const int how = O_CREAT | O_APPEND | (resume ? O_RDWR : O_WRONLY | O_TRUNC);

    if (options->dry_run && !resume)
        return true;
    log->fd = open(options->joblog,
                   (options->dry_run ? O_RDONLY : how) | O_CLOEXEC, 0666);
    if (log->fd >= 0 || (options->dry_run && errno == ENOENT))
        return true;
    tell_errno("--joblog: cannot open '%s'", options->joblog);
    return false;
}

static bool
is_regular(int fd)
{
    struct stat about;

    return fstat(fd, &about) == 0 && S_ISREG(about.st_mode);
}

/* Reads what is to be resumed, and sees that there is a heading. */
static bool
prepare(struct joblog *log)
{
    const struct options *options = log->options;

    if (options->resume != RESUME_NO && is_regular(log->fd) && !read_log(log))
        return false;
    if (log->content.len == 0 && !options->dry_run)
        write_line(log, heading, strlen(heading));
    return !log->failed;
}

bool
joblog_open(const struct options *options, struct joblog **out)
{
    *out = NULL;
    if (!options->joblog)
        return true;
    struct joblog *log = calloc(1, sizeof *log);
    if (!log) {
        tell("--joblog: out of memory");
        return false;
    }
    log->options = options;
    log->fd = -1;
    log->append = true;
    for (char **arg = options->command; *arg; arg++)
        log->append &= !strstr(*arg, options->replace);
    if (!open_file(log) || !prepare(log)) {
        joblog_close(log);
        return false;
    }
    *out = log;
    return true;
}

void
joblog_close(struct joblog *log)
{
    if (!log)
        return;
    if (log->fd >= 0)
        (void)close(log->fd);
    text_fini(&log->content);
    text_fini(&log->line);
    free(log->entries);
    free(log);
}

uint64_t
joblog_last(const struct joblog *log)
{
    return log ? log->last : 0;
}

bool
joblog_skips(struct joblog *log, wq_key key)
{
    if (!log || log->n == 0)
        return false;
    text_clear(&log->line);
    add_command(&log->line, log, key);
    if (log->line.failed)
        return false; /* rather twice than never */

    const struct entry asked = {.command = log->line.data,
                                .len = log->line.len};
    size_t             low = 0, high = log->n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const int    order = compare_commands(&asked, &log->entries[middle]);
        if (order == 0)
            return log->entries[middle].ok ||
                   log->options->resume == RESUME_ALL;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return false;
}

void
joblog_finished(struct joblog *log, const struct run *run)
{
    if (!log || log->failed || log->options->dry_run ||
        run->outcome == OUTCOME_RETRY || run->outcome == OUTCOME_STOPPED)
        return;
    const bool    started = run->started_ns > 0;
    const int64_t ran_ns = started ? run->ended_ns - run->started_ns : 0;
    text_clear(&log->line);
    text_print(
        &log->line, "%" PRIu64 "\t:\t%.3f\t%10.3f\t0\t%" PRIu64 "\t%d\t%d\t",
        run->number, (double)run->started_wall_ns / 1e9, (double)ran_ns / 1e9,
        run->out_bytes, run->exit_code, run->signal);
    add_command(&log->line, log, run->key);
    text_add(&log->line, "\n", 1);
    if (!log->line.failed) {
        write_line(log, log->line.data, log->line.len);
        return;
    }
    tell("--joblog: out of memory for a line; it ends here");
    log->failed = true;
}

bool
joblog_failed(const struct joblog *log)
{
    return log && log->failed;
}
