/* SPDX-License-Identifier: MIT */
/* tail.c: which line did a run write last? See tail.h. */
#include "output/tail.h"

#include <string.h>

#include "base/text.h"

static bool
is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* The length without blanks at the end. */
static size_t
trimmed(const char *line, size_t len)
{
    while (len && is_blank(line[len - 1]))
        len--;
    return len;
}

/* Appends a piece of a line, without newlines. What follows a carriage return
 * replaces what is before it. */
static void
append(struct tail_line *line, const char *piece, size_t len)
{
    const char *back = memrchr(piece, '\r', trimmed(piece, len));

    if (back || (line->len && line->bytes[line->len - 1] == '\r' &&
                 trimmed(piece, len)))
        line->len = 0;
    if (back) {
        len -= (size_t)(back + 1 - piece);
        piece = back + 1;
    }
    const size_t space = sizeof line->bytes - line->len;
    const size_t n = len < space ? len : space;
    memcpy(line->bytes + line->len, piece, n);
    line->len += n;
}

/* Ends the current line with this piece. */
static void
complete(struct tail *tail, const char *piece, size_t len)
{
    append(&tail->current, piece, len);
    if (trimmed(tail->current.bytes, tail->current.len))
        tail->last = tail->current;
}

/* The complete lines that end at `end`, the last one first. */
static void
take_lines(struct tail *tail, const char *data, const char *end)
{
    const char *before;

    while ((before = memrchr(data, '\n', (size_t)(end - data)))) {
        if (trimmed(before + 1, (size_t)(end - before - 1))) {
            tail->current.len = 0;
            complete(tail, before + 1, (size_t)(end - before - 1));
            return;
        }
        end = before;
    }
    complete(tail, data, (size_t)(end - data));
}

void
tail_add(struct tail *tail, const char *data, size_t len)
{
    const char *newline = memrchr(data, '\n', len);

    if (newline) {
        take_lines(tail, data, newline);
        tail->current.len = 0;
        len -= (size_t)(newline + 1 - data);
        data = newline + 1;
    }
    append(&tail->current, data, len);
}

size_t
tail_read(const struct tail *tail, char out[RUN_LINE])
{
    const struct tail_line *line = &tail->current;
    size_t                  len = trimmed(line->bytes, line->len);

    if (!len) {
        line = &tail->last;
        len = trimmed(line->bytes, line->len);
    }
    len = text_cut(line->bytes, len, RUN_LINE);
    memcpy(out, line->bytes, len);
    return len;
}
