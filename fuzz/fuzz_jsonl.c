/* SPDX-License-Identifier: MIT */
/* fuzz_jsonl.c: which keys does --input=jsonl find?
 *
 * The input is a byte n, and lines. The lines give the same keys and the same
 * errors whether they arrive as a whole or in pieces of n bytes. A line that a
 * strict validator (tests/support/json.h) accepts is not refused as "not JSON",
 * and the other way round, except for what input/json.h says. A key that is
 * written as wq writes it is read as the same bytes.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "fuzz.h"
#include "input/jsonl.h"
#include "input/records.h"
#include "support/json.h"

/* ---- whole and in pieces --------------------------------------------------- */

static void
note_key(void *ctx, const void *data, size_t len, int64_t after_ns,
         bool prioritized, int priority)
{
    struct wq__text *seen = ctx;

    if (len == 0 || len > WQ_KEY_MAX || memchr(data, 0, len) ||
        (prioritized ? after_ns < -1 : priority != 0))
        fuzz_fail("not a key, or not its members");
    text_print(seen, "key %zu %" PRId64 " %d:", len, after_ns, priority);
    wq__text_add(seen, data, len);
}

static void
note_bad(void *ctx)
{
    wq__text_str(ctx, "bad ");
}

static void
feed(struct wq__text *seen, const char *data, size_t len, size_t piece)
{
    static const struct options options = {.format = INPUT_JSONL,
                                           .delimiter = '\n'};
    const struct input_sink     sink = {
            .key = note_key, .bad = note_bad, .ctx = seen};
    struct records records;

    records_init(&records, &options, &sink, "input");
    for (; len > piece; data += piece, len -= piece)
        records_feed(&records, data, piece);
    records_feed(&records, data, len);
    records_end(&records);
    records_fini(&records);
}

static void
try_pieces(const char *data, size_t len, size_t piece)
{
    struct wq__text whole = {0}, pieces = {0};

    feed(&whole, data, len, len + 1);
    feed(&pieces, data, len, piece);
    if (whole.err || pieces.err || whole.len != pieces.len ||
        (whole.len && memcmp(whole.data, pieces.data, whole.len) != 0))
        fuzz_fail("pieces of %zu bytes give other keys", piece);
    wq__text_fini(&whole);
    wq__text_fini(&pieces);
}

/* ---- a line, against the validator ------------------------------------------ */

/* Does it have what input/json.h, or the validator, limits or judges in another
 * way: depth, long numbers, lone surrogates, control characters? */
static bool
is_special(const char *line, size_t len)
{
    size_t depth = 0, number = 0;

    for (size_t i = 0; i < len; i++) {
        const char c = line[i];
        if ((unsigned char)c < 0x20)
            return true;
        if (c == '\\' && i + 2 < len && strchr("uU", line[i + 1]) &&
            strchr("dD", line[i + 2]))
            return true;
        depth += c == '[' || c == '{';
        number = c && strchr("+-.0123456789eE", c) ? number + 1 : 0;
        if (depth > 60 || number > 60)
            return true;
    }
    return false;
}

static bool
is_utf8(const char *line, size_t len)
{
    for (size_t i = 0, n; i < len; i += n)
        if (!(n = utf8_length(line + i, len - i)))
            return false;
    return true;
}

/* Are scalars the only values that it could have? They are JSON, and no keys. */
static bool
is_scalar(const char *line, size_t len)
{
    const char *at = line;

    while (at < line + len && *at == ' ')
        at++;
    return at == line + len || (*at != '{' && *at != '"');
}

static void
try_line(const char *line, size_t len)
{
    char *const  copy = fuzz_text((const uint8_t *)line, len);
    struct jsonl read = {.after_ns = -7};
    const bool   valid = json_is_valid(line, len);
    const char  *wrong = jsonl_read(copy, len, &read);

    if (wrong && read.after_ns != -7)
        fuzz_fail("%s, but something was stored", wrong);
    if (!is_special(line, len) && is_utf8(line, len)) {
        if (valid && wrong && strncmp(wrong, "not JSON", 8) == 0 &&
            !is_scalar(line, len))
            fuzz_fail("valid JSON is refused: %s", wrong);
        if (!valid && !wrong)
            fuzz_fail("accepted, but not JSON");
    }
    free(copy);
}

/* ---- there and back --------------------------------------------------------- */

static void
try_key(const char *key, size_t len)
{
    struct wq__text line = {0};
    struct jsonl    read;

    wq__text_char(&line, '{');
    wq__text_key(&line, key, len);
    wq__text_char(&line, '}');
    if (!json_is_valid(line.data, line.len))
        fuzz_fail("a key is not written as JSON");
    const char *wrong = jsonl_read(line.data, line.len, &read);
    if (wrong)
        fuzz_fail("a key that wq has written is refused: %s", wrong);
    if (read.key_len != len || memcmp(read.key, key, len) != 0)
        fuzz_fail("a key is read as another one");
    wq__text_fini(&line);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    if (len < 2)
        return 0;
    const size_t piece = (size_t)data[0] + 1;
    const char  *lines = (const char *)data + 1, *end = lines + len - 1;

    try_pieces(lines, len - 1, piece);
    for (const char *newline; lines < end; lines = newline + 1) {
        newline = memchr(lines, '\n', (size_t)(end - lines));
        newline = newline ? newline : end;
        try_line(lines, (size_t)(newline - lines));
        try_key(lines, (size_t)(newline - lines));
    }
    return 0;
}
