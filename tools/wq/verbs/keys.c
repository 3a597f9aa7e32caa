/* SPDX-License-Identifier: MIT */
/* keys.c: which keys does a verb act on? See keys.h. */
#include "verbs/keys.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/report.h"
#include "input/records.h"

#define PIECE 65536 /* bytes read at a time */

struct reader {
    const struct options   *options;
    const struct keys_sink *sink;
    bool                    bad;     /* something was not a key */
    bool                    stopped; /* by the sink, or an error */
};

static void
on_key(void *ctx, const void *data, size_t len, int64_t after_ns,
       bool prioritized, int priority)
{
    struct reader *reader = ctx;

    if (!reader->stopped &&
        !reader->sink->key(reader->sink->ctx, wq_bytes(data, len), after_ns,
                           prioritized ? priority : reader->options->priority))
        reader->stopped = true;
}

static void
on_bad(void *ctx)
{
    struct reader *reader = ctx;

    reader->bad = true;
}

/* Elsewhere "-" is standard input: a user who means that loses its keys. */
static void
warn_of_dash(const struct reader *reader)
{
    char *const *operands = reader->options->operands;

    if (operands[0] && strcmp(operands[0], "-") == 0 && !operands[1])
        report("%s: '-' is taken as a key; name no key to read keys from stdin",
               verbs_table[reader->options->verb].name);
}

static void
read_operands(struct reader *reader)
{
    warn_of_dash(reader);
    for (char **key = reader->options->operands; *key; key++) {
        const size_t len = strlen(*key);
        if (len == 0 || len > WQ_KEY_MAX) {
            report("%s: %s", verbs_table[reader->options->verb].name,
                   len == 0 ? "a key is empty"
                            : "a key is longer than 65536 bytes");
            reader->bad = true;
        } else {
            on_key(reader, *key, len, -1, false, 0);
        }
    }
}

static void
fail(struct reader *reader, const char *name)
{
    report_errno("%s: cannot read %s", verbs_table[reader->options->verb].name,
                 name);
    reader->stopped = true;
}

static void
read_file(struct reader *reader, const char *file)
{
    static char piece[PIECE];
    const bool  is_stdin = strcmp(file, "-") == 0;
    const char *name = is_stdin ? "stdin" : file;
    const int   fd =
        is_stdin ? STDIN_FILENO : open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    const struct input_sink sink = {
        .key = on_key, .bad = on_bad, .ctx = reader};
    struct records records;
    ssize_t        n = 0;

    if (fd < 0) {
        fail(reader, name);
        return;
    }
    records_init(&records, reader->options, &sink, name);
    while (!reader->stopped && ((n = read(fd, piece, sizeof piece)) > 0 ||
                                (n < 0 && errno == EINTR))) {
        if (n > 0)
            records_feed(&records, piece, (size_t)n);
        if (!reader->stopped && !reader->sink->pause(reader->sink->ctx))
            reader->stopped = true;
    }
    if (n < 0)
        fail(reader, name);
    else
        records_end(&records);
    records_fini(&records);
    if (!is_stdin)
        (void)close(fd);
}

int
keys_read(const struct options *options, const struct keys_sink *sink)
{
    struct reader reader = {.options = options, .sink = sink};

    read_operands(&reader);
    for (size_t i = 0; i < options->n_files && !reader.stopped; i++)
        read_file(&reader, options->files[i]);
    if (!options->operands[0] && options->n_files == 0)
        read_file(&reader, "-");
    if (!reader.stopped && !sink->pause(sink->ctx))
        reader.stopped = true;
    return reader.stopped ? STATUS_ERROR
           : reader.bad   ? STATUS_FAILED
                          : STATUS_OK;
}
