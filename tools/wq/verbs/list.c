/* SPDX-License-Identifier: MIT */
/* list.c: what does `wq list` print? A line for each key. */
#include <stdio.h>
#include <string.h>

#include "queue/open.h"
#include "queue/words.h"
#include "verbs/print.h"
#include "verbs/verbs.h"

struct listing {
    const struct options *options;
    struct print          print;
};

/* A key can have several states; the column shows the one that matters. */
static const char *
main_state(unsigned states)
{
    static const unsigned order[] = {WQ_STATE_HELD, WQ_STATE_READY,
                                     WQ_STATE_WAITING, WQ_STATE_DEAD};

    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        unsigned one = order[i];
        if (states & one)
            return word_state(&one);
    }
    return "";
}

/* What the column of notes says: a HELD key runs again, a WAITING key failed, the
 * holders of a DEAD key died or lost it. */
static const char *
note(const wq_key_info *info)
{
    return info->states & WQ_STATE_DIRTY                    ? "again"
           : info->states & WQ_STATE_BACKOFF                ? "retry"
           : info->states & WQ_STATE_DEAD && info->expiries ? "lost"
                                                            : "";
}

/* The color codes of the first column take no space on the screen. */
static void
print_row(struct print *print, wq_key key, const wq_key_info *info)
{
    const char   *state = main_state(info->states);
    const int64_t since =
        info->states & WQ_STATE_HELD ? info->held_ns : info->ready_ns;

    print_state(print, state);
    text_print(&print->line, "%*s  %-5s  %8d  %8u  %6s  %6s  ",
               (int)(7 - strlen(state)), "", note(info), info->priority,
               print_failures(info), print_time(since),
               print_time(info->wait_ns));
    print_key(print, key);
    print_line(print);
}

static bool
visit(void *ctx, wq_key key, const wq_key_info *info)
{
    struct listing *listing = ctx;

    if (listing->options->json)
        print_info(&listing->print, key, info);
    else if (listing->options->null)
        print_raw(&listing->print, key, '\0');
    else
        print_row(&listing->print, key, info);
    return !ferror(stdout);
}

int
verb_list(const struct options *options)
{
    struct listing listing = {.options = options};
    wq_queue      *q;

    if (!queue_open(options, WQ_CONFIG(.ages = true), &q))
        return STATUS_ERROR;
    print_init(&listing.print);
    if (!options->json && !options->null)
        printf("STATE    NOTE   PRIORITY  FAILURES   SINCE     DUE  KEY\n");
    const wq_err err = wq_each(q, options->states, visit, &listing);
    if (err)
        queue_fail(options, "list the keys", err);
    print_fini(&listing.print);
    wq_destroy(q);
    return err ? STATUS_ERROR : STATUS_OK;
}
