/* SPDX-License-Identifier: MIT */
/* print.c: how do verbs print keys and numbers on stdout? See print.h. */
#include "verbs/print.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "queue/words.h"

static bool
wants_color(void)
{
    const char *no = getenv("NO_COLOR");
    const char *term = getenv("TERM");

    return !(no && *no) && term && strcmp(term, "dumb") != 0;
}

void
print_init(struct print *print)
{
    *print = (struct print){.terminal = isatty(STDOUT_FILENO)};
    print->color = print->terminal && wants_color();
    printable_init(&print->printable);
}

void
print_fini(struct print *print)
{
    printable_fini(&print->printable);
    wq__text_fini(&print->line);
}

/* ------------------------------------------------------------ for people -- */

/* A character of the key takes at most ten columns: \U10ffff and the like. */
#define WIDEST 10

void
print_key(struct print *print, wq_key key)
{
    const size_t columns = key.len * WIDEST;
    size_t       used;
    char        *text = malloc(PRINTABLE_SIZE(columns));

    if (!text) {
        print->line.err = WQ_ENOMEM;
        return;
    }
    const size_t len = printable_key(&print->printable, key.data, key.len,
                                     columns, text, &used);
    wq__text_add(&print->line, text, len);
    free(text);
}

void
print_state(struct print *print, const char *word)
{
    static const struct {
        const char *word;
        int         color;
    } colors[] = {{"READY", 32}, {"HELD", 36}, {"WAITING", 33}, {"DEAD", 31}};
    int color = 0;

    for (size_t i = 0; i < sizeof colors / sizeof *colors; i++)
        if (strcmp(colors[i].word, word) == 0)
            color = colors[i].color;
    if (print->color && color)
        text_print(&print->line, "\033[%dm%s\033[0m", color, word);
    else
        wq__text_str(&print->line, word);
}

void
print_line(struct print *print)
{
    wq__text_char(&print->line, '\n');
    if (!print->line.err)
        (void)fwrite(print->line.data, 1, print->line.len, stdout);
    text_clear(&print->line);
}

void
print_raw(struct print *print, wq_key key, char end)
{
    if (print->terminal && end == '\n') {
        print_key(print, key);
        print_line(print);
    } else {
        (void)fwrite(key.data, 1, key.len, stdout);
        (void)fputc(end, stdout);
    }
}

const char *
print_time(int64_t ns)
{
    static char     texts[4][32];
    static unsigned turn;
    char           *text = texts[turn++ % 4];
    const int64_t   s = ns / 1000000000, m = s / 60, h = m / 60, d = h / 24;

    if (ns < 0)
        *text = '\0';
    else if (s < 1)
        (void)snprintf(text, sizeof *texts, "%" PRId64 "ms", ns / 1000000);
    else if (m < 1)
        (void)snprintf(text, sizeof *texts, "%" PRId64 "s", s);
    else if (h < 1)
        (void)snprintf(text, sizeof *texts, "%" PRId64 "m%02" PRId64 "s", m,
                       s % 60);
    else if (d < 1)
        (void)snprintf(text, sizeof *texts, "%" PRId64 "h%02" PRId64 "m", h,
                       m % 60);
    else
        (void)snprintf(text, sizeof *texts, "%" PRId64 "d%02" PRId64 "h", d,
                       h % 24);
    return text;
}

/* ---------------------------------------------------------- for programs -- */

static void
add_seconds(struct wq__text *line, const char *name, int64_t ns)
{
    if (ns >= 0)
        text_print(line, ",\"%s\":%" PRId64 ".%06" PRId64, name,
                   ns / 1000000000, ns % 1000000000 / 1000);
}

/* The failure that made a key DEAD is not one that it was retried after. If its
 * holders died, none did. */
unsigned
print_failures(const wq_key_info *info)
{
    const bool failed = info->states & WQ_STATE_DEAD && !info->expiries;

    return info->requeues + (failed ? 1 : 0);
}

void
print_info(struct print *print, wq_key key, const wq_key_info *info)
{
    struct wq__text *line = &print->line;
    unsigned         states = info->states;
    const char      *comma = "";

    wq__text_char(line, '{');
    wq__text_key(line, key.data, key.len);
    wq__text_str(line, ",\"states\":[");
    for (const char *word; (word = word_state(&states)); comma = ",")
        text_print(line, "%s\"%s\"", comma, word);
    text_print(line, "],\"priority\":%d,\"failures\":%u", info->priority,
               print_failures(info));
    if (info->expiries)
        text_print(line, ",\"expiries\":%u", info->expiries);
    add_seconds(line, "ready_for", info->ready_ns);
    add_seconds(line, "held_for", info->held_ns);
    add_seconds(line, "due_in", info->wait_ns);
    if (info->states & WQ_STATE_HELD)
        text_print(line, ",\"fence\":%" PRIu64, info->fence);
    if (*info->holder) {
        wq__text_str(line, ",\"holder\":");
        wq__text_json(line, info->holder, strlen(info->holder));
    }
    wq__text_char(line, '}');
    print_line(print);
}
