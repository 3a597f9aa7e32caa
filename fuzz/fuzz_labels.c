/* SPDX-License-Identifier: MIT */
/* fuzz_labels.c: can a scraper read the metrics of a queue with this name?
 *
 * The input is the name of a queue, and a key in it. Both formats of the metrics
 * pass a strict reader (tests/support/exposition.h), the label is the name with
 * U+FFFD for bytes that are not UTF-8, and the dump of the queue is JSON.
 */
#include <stdlib.h>
#include <string.h>

#include <wq/inspect.h>
#include <wq/metrics.h>

#include "fuzz.h"
#include "support/exposition.h"
#include "support/json.h"
#include "text/escape.h"
#include "text/utf8.h"

/* A text has the name a hundred times, and reading it is slow. */
enum { NAME_MAX_TRIED = 64 };

/* ---- the label alone, of any bytes ------------------------------------------ */

/* Undoes the escapes in place; returns the length. Fails on a byte that must not
 * be there. */
static size_t
unescape(char *label, size_t len)
{
    char *to = label;

    for (size_t i = 0; i < len; i++) {
        char c = label[i];
        if (c == '"' || c == '\n')
            fuzz_fail("a label is not escaped");
        if (c == '\\') {
            c = ++i < len ? label[i] : '\0';
            if (c != '\\' && c != '"' && c != 'n')
                fuzz_fail("a label has an unknown escape");
            c = c == 'n' ? '\n' : c;
        }
        *to++ = c;
    }
    return (size_t)(to - label);
}

static void
try_label(const char *bytes, size_t len)
{
    struct wq__text label = {0}, plain = {0};

    wq__text_label(&label, bytes, len);
    wq__utf8_add(&plain, bytes, len);
    if (label.len < 2 || label.data[0] != '"' ||
        label.data[label.len - 1] != '"')
        fuzz_fail("a label without quotes");
    const size_t n = unescape(label.data + 1, label.len - 2);
    if (n != plain.len || (n && memcmp(label.data + 1, plain.data, n) != 0))
        fuzz_fail("a label is read as another one");
    for (size_t i = 0, step; i < n; i += step)
        if (!(step = utf8_length(label.data + 1 + i, n - i)))
            fuzz_fail("a label is not UTF-8");
    wq__text_fini(&label);
    wq__text_fini(&plain);
}

/* ---- the text of a registry, and a dump -------------------------------------- */

static void
check_registry(wq_registry *registry, wq_text format)
{
    char  *text;
    size_t len;

    if (wq_registry_text(registry, format, &text, &len))
        fuzz_fail("no text: %s", wq_last_error());
    const char *wrong = exposition_check(text, len, format);
    if (wrong)
        fuzz_fail("%s\n%s", wrong, text);
    free(text);
}

static wq_err
collect(void *ctx, const char *text, size_t len)
{
    wq__text_add(ctx, text, len);
    return WQ_OK;
}

static void
check_dump(wq_queue *q)
{
    struct wq__text dump = {0};

    if (wq_dump(q, collect, &dump))
        fuzz_fail("no dump: %s", wq_last_error());
    for (const char *line = dump.data, *end = line + dump.len; line < end;) {
        const char  *newline = memchr(line, '\n', (size_t)(end - line));
        const size_t len = newline ? (size_t)(newline - line) : 0;
        if (!newline || !json_is_valid(line, len))
            fuzz_fail("a line of the dump is not JSON: %.*s", (int)len, line);
        line = newline + 1;
    }
    wq__text_fini(&dump);
}

static void
try_queue(const char *name)
{
    wq_registry *registry;
    wq_queue    *q;

    if (wq_registry_create(&registry) ||
        wq_create(
            WQ_CONFIG(.name = name, .metrics = wq_registry_sink(registry)), &q))
        fuzz_fail("no queue: %s", wq_last_error());
    if (*name && wq_add_str(q, name))
        fuzz_fail("no add: %s", wq_last_error());
    check_registry(registry, WQ_TEXT_PROMETHEUS);
    check_registry(registry, WQ_TEXT_OPENMETRICS);
    check_dump(q);
    wq_destroy(q);
    wq_registry_destroy(registry);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    char *name = fuzz_text(data, len);

    try_label(name, len);
    if (strlen(name) <= NAME_MAX_TRIED)
        try_queue(name);
    free(name);
    return 0;
}
