/* SPDX-License-Identifier: MIT */
/* records.c: where does a key end, and is it one? See records.h. */
#include "input/records.h"

#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <wq/wq.h>

#include "base/report.h"
#include "input/jsonl.h"

/* The longest line of JSON: a key with every byte written as \u00XX, and the
 * other members. */
#define LONGEST_JSON (6 * WQ_KEY_MAX + 4096)

#define TOO_LONG "the key is longer than 65536 bytes"

static bool
is_jsonl(const struct records *records)
{
    return records->options->format == INPUT_JSONL;
}

void
records_init(struct records *records, const struct options *options,
             const struct input_sink *sink, const char *name)
{
    *records = (struct records){
        .options = options, .sink = sink, .name = name, .line = 1};
}

void
records_fini(struct records *records)
{
    wq__text_fini(&records->part);
}

static void
refuse(struct records *records, const char *why)
{
    report("%s:%llu: %s", records->name, (unsigned long long)records->line,
           why);
    records->sink->bad(records->sink->ctx);
}

static void
give(struct records *records, const char *data, size_t len, int64_t after_ns,
     bool prioritized, int priority)
{
    if (len > WQ_KEY_MAX)
        refuse(records, TOO_LONG);
    else if (memchr(data, 0, len))
        refuse(records, "the key contains a NUL; use -0 if keys end with NUL");
    else if (len > 0)
        records->sink->key(records->sink->ctx, data, len, after_ns, prioritized,
                           priority);
}

/* Decodes `data` in place. */
static void
give_json(struct records *records, char *data, size_t len)
{
    struct jsonl line = {.after_ns = -1};

    if (strspn(data, " \t\r") >= len)
        return;
    const char *wrong = jsonl_read(data, len, &line);
    if (wrong)
        refuse(records, wrong);
    else if (line.key_len == 0)
        refuse(records, "the key is empty");
    else
        give(records, line.key, line.key_len, line.after_ns, line.prioritized,
             line.priority);
}

/* Appends to `part`. */
static void
keep(struct records *records, const char *data, size_t len)
{
    const size_t longest = is_jsonl(records) ? LONGEST_JSON : WQ_KEY_MAX;

    records->overlong |= records->part.len + len > longest;
    if (!records->overlong)
        wq__text_add(&records->part, data, len);
}

/* A record that is split over several pieces, or is JSON. */
static void
give_part(struct records *records)
{
    char        *data = text_terminate(&records->part);
    const size_t len = records->part.len;

    if (!data || records->overlong)
        refuse(records, records->overlong ? TOO_LONG : "out of memory");
    else if (is_jsonl(records))
        give_json(records, data, len);
    else
        give(records, data, len, -1, false, 0);
    text_clear(&records->part);
    records->overlong = false;
}

/* These are the last bytes of a record. */
static void
end_record(struct records *records, const char *data, size_t len)
{
    if (records->part.len > 0 || records->overlong || is_jsonl(records)) {
        keep(records, data, len);
        give_part(records);
    } else {
        give(records, data, len, -1, false, 0); /* without a copy */
    }
    records->line++;
}

void
records_feed(struct records *records, const char *data, size_t len)
{
    const char *end;

    while ((end = memchr(data, records->options->delimiter, len))) {
        const size_t n = (size_t)(end - data);
        end_record(records, data, n);
        data += n + 1;
        len -= n + 1;
    }
    if (len > 0)
        keep(records, data, len);
}

/* A writer that never stops would never let it become empty: so many bytes as
 * there are at first. */
void
records_feed_pipe(struct records *records, int fd)
{
    char piece[4096];
    int  left;

    if (ioctl(fd, FIONREAD, &left) != 0)
        return;
    while (left > 0) {
        const size_t most =
            (size_t)left < sizeof piece ? (size_t)left : sizeof piece;
        const ssize_t n = read(fd, piece, most);
        if (n <= 0)
            return;
        records_feed(records, piece, (size_t)n);
        left -= (int)n;
    }
}

bool
records_has_part(const struct records *records)
{
    return records->part.len > 0 || records->overlong;
}

void
records_begin_anew(struct records *records)
{
    text_clear(&records->part);
    records->overlong = false;
    records->line = 1;
}

void
records_end(struct records *records)
{
    if (records_has_part(records))
        end_record(records, "", 0);
}
