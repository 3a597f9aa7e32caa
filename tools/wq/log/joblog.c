/* SPDX-License-Identifier: MIT */
/* joblog.c: what does --joblog record?
 *
 * A line is one write() to the end of the file: it is there when the run is
 * over, and lines of several programs do not mix. A crash can leave an
 * incomplete last line. It is removed when the log is resumed, since the
 * beginning of a Command may be the Command of another key.
 *
 * The entries that were read are sorted by Command: a lookup costs O(log n).
 */
#include "log/joblog.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/report.h"
#include "base/write.h"
#include "process/words.h"

static const char heading[] = "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive"
                              "\tExitval\tSignal\tCommand\n";

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

/* Within '...'. A newline becomes a NUL, since it would end the line. */
static void
add_quoted(struct wq__text *line, const char *s, size_t len)
{
    const char *newline;

    while ((newline = memchr(s, '\n', len))) {
        const size_t n = (size_t)(newline - s);
        wq__text_add(line, s, n);
        wq__text_add(line, "", 1);
        s += n + 1;
        len -= n + 1;
    }
    wq__text_add(line, s, len);
}

/* Quotes as GNU parallel does: '...', in which each ' becomes '"'"', without the
 * '' that this leaves at the beginning and at the end. */
static void
add_argument(struct wq__text *line, const char *s, size_t len)
{
    const char *quote;

    if (is_plain(s, len)) {
        wq__text_add(line, s, len);
        return;
    }
    if (len == 0 || s[0] != '\'')
        wq__text_char(line, '\'');
    for (bool first = true; (quote = memchr(s, '\'', len)); first = false) {
        const size_t n = (size_t)(quote - s);
        add_quoted(line, s, n);
        if (n > 0 || !first)
            wq__text_char(line, '\'');
        wq__text_str(line, "\"'\"");
        s += n + 1;
        len -= n + 1;
        if (len == 0)
            return;
        wq__text_char(line, '\'');
    }
    add_quoted(line, s, len);
    wq__text_char(line, '\'');
}

/* Adds an argument of COMMAND, with the words in it that are the same in all runs
 * of the key; others do not change. As GNU parallel does, what replaces a word is
 * quoted for itself, not with the text around it: x'a b'y. */
static void
add_words(struct wq__text *line, const struct joblog *log, const char *from,
          wq_key key)
{
    const struct run run = {.key = key, .line = key};
    const char      *at, *s = from;
    struct word      word;
    char             buffer[WORD_MAX];

    for (; (at = word_find(log->options, s, &word)); s = at + word.len) {
        const wq_key value = word_is_constant(log->options, &word)
                                 ? word_value(log->options, &word, &run, buffer)
                                 : wq_bytes(at, word.len);
        if (at > s)
            add_argument(line, s, (size_t)(at - s));
        add_argument(line, value.data, value.len);
    }
    if (*s || s == from)
        add_argument(line, s, strlen(s));
}

/* The arguments of COMMAND with the key in them, as in process/command.c. */
static void
add_command(struct wq__text *line, const struct joblog *log, wq_key key)
{
    for (char **from = log->options->command; *from; from++) {
        if (from != log->options->command)
            wq__text_char(line, ' ');
        add_words(line, log, *from, key);
    }
    if (log->append) {
        wq__text_char(line, ' ');
        add_argument(line, key.data, key.len);
    }
}

/* --------------------------------------------------------------- reading -- */

static int
compare_commands(const struct joblog_entry *a, const struct joblog_entry *b)
{
    const size_t len = a->len < b->len ? a->len : b->len;
    const int    order = memcmp(a->command, b->command, len);

    return order ? order : (a->len > b->len) - (a->len < b->len);
}

static int
compare(const void *one, const void *other)
{
    const struct joblog_entry *a = one, *b = other;
    const int                  order = compare_commands(a, b);

    return order ? order : (a->number > b->number) - (a->number < b->number);
}

/* Sorts the entries and keeps the last one for each Command. */
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
add_entry(struct joblog *log, const struct joblog_entry *entry)
{
    if (log->n == log->capacity) {
        const size_t capacity = log->capacity ? 2 * log->capacity : 64;
        void *entries = realloc(log->entries, capacity * sizeof *log->entries);
        if (!entries)
            return false;
        log->entries = entries;
        log->capacity = capacity;
    }
    log->entries[log->n++] = *entry;
    return true;
}

/* Reads a numeric field and its tab at *at (GNU parallel writes -1 for some
 * failures). False: it is not a number. strtoll() would skip blanks, tabs and
 * newlines, beyond the end of the content if need be. */
static bool
read_number(const char **at, const char *end, int64_t *out)
{
    const char *tab = memchr(*at, '\t', (size_t)(end - *at));
    char       *behind;

    if (!tab || tab == *at || !strchr("-0123456789", **at))
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

/* Reads a line, without its newline. A malformed line is ignored. False: out of
 * memory. */
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
    return add_entry(log,
                     &(struct joblog_entry){.command = at,
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
        wq__text_add(&log->content, data, (size_t)n);
        if (log->content.err) {
            errno = ENOMEM;
            return false;
        }
    }
    return true;
}

/* Removes an incomplete last line. */
static bool
remove_incomplete_line(struct joblog *log, size_t whole)
{
    if (whole == log->content.len)
        return true;
    report("--joblog: the last line of '%s' is incomplete; it is removed, and "
           "its key counts as not run",
           log->options->joblog);
    log->content.len = whole;
    return log->options->dry_run || ftruncate(log->fd, (off_t)whole) == 0;
}

/* Does it begin with the heading? Other files are not changed. */
static bool
is_log(const struct joblog *log)
{
    const size_t len = strlen(heading);
    const size_t n = log->content.len < len ? log->content.len : len;

    return memcmp(log->content.data, heading, n) == 0;
}

/* False: reported. */
static bool
read_log(struct joblog *log)
{
    const char *const file = log->options->joblog;

    if (!read_content(log)) {
        report_errno("--joblog: cannot read '%s'", file);
        return false;
    }
    if (log->content.len == 0)
        return true;
    if (!is_log(log)) {
        report("--joblog: '%s' is not a job log: its first line differs", file);
        return false;
    }
    const char *const start = log->content.data;
    const char       *newline = memrchr(start, '\n', log->content.len);
    if (!remove_incomplete_line(log,
                                newline ? (size_t)(newline - start) + 1 : 0)) {
        report_errno("--joblog: cannot truncate '%s'", file);
        return false;
    }

    const char *end = start + log->content.len;
    size_t      number = 0;
    for (const char *at = start; at < end; at = newline + 1, number++) {
        newline = memchr(
            at, '\n',
            (size_t)(end - at)); /* not NULL: the content ends with one */
        if (number > 0 && !read_line(log, at, newline, number)) {
            report("--joblog: out of memory");
            return false;
        }
    }
    sort(log);
    return true;
}

/* --------------------------------------------------------- the interface -- */

static void
write_line(struct joblog *log, const char *data, size_t len)
{
    if (write_all(log->fd, data, len, NULL))
        return;
    report_errno(
        "--joblog: cannot write to '%s'; nothing more is written there",
        log->options->joblog);
    log->failed = true;
}

/* With --dry-run the file is not changed, and may be absent. Workers of a shared
 * queue append: they are restarted, and several may write to one file. */
static bool
open_file(struct joblog *log)
{
    const struct options *options = log->options;
    const bool            resume = options->resume;
    const int             how = O_CREAT | O_APPEND |
                    (resume            ? O_RDWR
                     : options->shared ? O_WRONLY
                                       : O_WRONLY | O_TRUNC);

    if (options->dry_run && !resume)
        return true;
    log->fd = open(options->joblog,
                   (options->dry_run ? O_RDONLY : how) | O_CLOEXEC, 0666);
    if (log->fd >= 0 || (options->dry_run && errno == ENOENT))
        return true;
    report_errno("--joblog: cannot open '%s'", options->joblog);
    return false;
}

static bool
is_regular(int fd)
{
    struct stat about;

    return fstat(fd, &about) == 0 && S_ISREG(about.st_mode);
}

static bool
is_empty(int fd)
{
    struct stat about;

    return fstat(fd, &about) != 0 || about.st_size == 0;
}

/* Reads the log that is resumed, and writes a missing heading. */
static bool
prepare(struct joblog *log)
{
    const struct options *options = log->options;

    if (options->resume && is_regular(log->fd) && !read_log(log))
        return false;
    if (log->content.len == 0 && !options->dry_run && is_empty(log->fd))
        write_line(log, heading, strlen(heading));
    return !log->failed;
}

static void
look_for_words(struct joblog *log, const char *at)
{
    struct word word;

    for (; (at = word_find(log->options, at, &word)); at += word.len) {
        log->append = false;
        log->named |= word.kind == WORD_KEY;
    }
}

bool
joblog_open(struct joblog *log, const struct options *options)
{
    *log = (struct joblog){.options = options, .fd = -1, .append = true};
    if (!options->joblog)
        return true;
    for (char **arg = options->command; *arg; arg++)
        look_for_words(log, *arg);
    log->append &= !options->no_key_arg;
    log->named |= log->append || options->key_const;
    if (!options->resume || log->named)
        return open_file(log) && prepare(log);
    report("--resume: COMMAND needs %s: the log identifies keys by their "
           "commands",
           options->replace);
    return false;
}

void
joblog_close(struct joblog *log)
{
    if (log->fd >= 0)
        (void)close(log->fd);
    wq__text_fini(&log->content);
    wq__text_fini(&log->line);
    free(log->entries);
}

uint64_t
joblog_last(const struct joblog *log)
{
    return log->last;
}

bool
joblog_skips(struct joblog *log, wq_key key)
{
    if (log->n == 0)
        return false;
    text_clear(&log->line);
    add_command(&log->line, log, key);
    if (log->line.err)
        return false; /* better run it twice than never */

    const struct joblog_entry wanted = {.command = log->line.data,
                                        .len = log->line.len};
    size_t                    low = 0, high = log->n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const int    order = compare_commands(&wanted, &log->entries[middle]);
        if (order == 0)
            return log->entries[middle].ok || !log->options->resume_failed;
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
    if (log->fd < 0 || log->failed || log->options->dry_run ||
        run->outcome == OUTCOME_RETRY || run->outcome == OUTCOME_STOPPED ||
        run->outcome == OUTCOME_RESTARTED || run->outcome == OUTCOME_LOST)
        return;
    const bool    started = run->started_ns > 0;
    const int64_t ran_ns = started ? run->ended_ns - run->started_ns : 0;
    text_clear(&log->line);
    text_print(
        &log->line, "%" PRIu64 "\t:\t%.3f\t%10.3f\t0\t%" PRIu64 "\t%d\t%d\t",
        run->number, (double)run->started_wall_ns / 1e9, (double)ran_ns / 1e9,
        run->out_bytes, run->exit_code, run->signal);
    add_command(&log->line, log, run->key);
    wq__text_char(&log->line, '\n');
    if (!log->line.err) {
        write_line(log, log->line.data, log->line.len);
        return;
    }
    report("--joblog: out of memory; nothing more is written there");
    log->failed = true;
}

bool
joblog_failed(const struct joblog *log)
{
    return log->failed;
}
