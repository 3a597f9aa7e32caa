/* SPDX-License-Identifier: MIT */
/* list.c: what does `wq list` print? A line for each key.
 *
 * For people the lines are sorted: a store visits keys in any order. HELD keys
 * first, the longest held first; READY keys by priority and age; WAITING keys by
 * their deadlines; then DEAD keys. Keys that are equal in this are sorted by their
 * bytes. SORTED_MAX keys are kept for that. If there are more, or memory runs out,
 * all are printed as they are visited, as programs get them (--json, -0).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "queue/open.h"
#include "queue/words.h"
#include "verbs/print.h"
#include "verbs/verbs.h"

enum { SORTED_MAX = 65536 };

struct row {
    wq_key_info info;
    wq_key      key; /* a copy, owned */
};

struct listing {
    const struct options *options;
    struct print          print;
    struct row           *rows; /* to be sorted, owned */
    size_t                len, capacity;
    bool                  streams; /* rows are printed as they are visited */
};

/* A key can have several states: the first of these is the one that matters. */
static const unsigned order[] = {WQ_STATE_HELD, WQ_STATE_READY,
                                 WQ_STATE_WAITING, WQ_STATE_DEAD};
enum { STATES = sizeof order / sizeof *order };

/* Its place in `order`; STATES: it has none of them. */
static int
state_rank(unsigned states)
{
    int i = 0;

    while (i < STATES && !(states & order[i]))
        i++;
    return i;
}

/* 0: none of these. */
static unsigned
main_state(unsigned states)
{
    const int i = state_rank(states);

    return i < STATES ? order[i] : 0;
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

/* Only HELD keys are listed: their holders are, too. */
static bool
has_holders(const struct options *options)
{
    return options->states == WQ_STATE_HELD;
}

/* The color codes of the first column take no space on the screen. */
static void
print_row(struct listing *listing, wq_key key, const wq_key_info *info)
{
    struct print *print = &listing->print;
    unsigned      one = main_state(info->states);
    const char   *state = one ? word_state(&one) : "";
    const int64_t since =
        info->states & WQ_STATE_HELD ? info->held_ns : info->ready_ns;

    print_state(print, state);
    text_print(&print->line, "%*s  %-5s  %8d  %8u  %6s  %6s  ",
               (int)(7 - strlen(state)), "", note(info), info->priority,
               print_failures(info), print_time(since),
               print_time(info->wait_ns));
    if (has_holders(listing->options))
        text_print(&print->line, "%-20s  ", info->holder);
    print_key(print, key);
    print_line(print);
}

/* ---- sorting ------------------------------------------------------------- */

/* By what keys of one main state are sorted, smallest first. */
static int64_t
time_rank(const wq_key_info *info)
{
    switch (main_state(info->states)) {
    case WQ_STATE_HELD:
        return -info->held_ns;
    case WQ_STATE_WAITING:
        return info->wait_ns;
    default:
        return -info->ready_ns;
    }
}

static int
compare_numbers(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int
compare_keys(wq_key a, wq_key b)
{
    const int way = memcmp(a.data, b.data, a.len < b.len ? a.len : b.len);

    return way ? way : compare_numbers((int64_t)a.len, (int64_t)b.len);
}

static int
compare_rows(const void *left, const void *right)
{
    const struct row *a = left, *b = right;
    int way = state_rank(a->info.states) - state_rank(b->info.states);

    if (!way && main_state(a->info.states) == WQ_STATE_READY)
        way = compare_numbers(b->info.priority, a->info.priority);
    if (!way)
        way = compare_numbers(time_rank(&a->info), time_rank(&b->info));
    return way ? way : compare_keys(a->key, b->key);
}

static bool
reserve_row(struct listing *listing)
{
    if (listing->len < listing->capacity)
        return true;
    if (listing->len == SORTED_MAX)
        return false;
    const size_t capacity = listing->capacity ? 2 * listing->capacity : 64;
    struct row  *rows = realloc(listing->rows, capacity * sizeof *rows);
    if (!rows)
        return false;
    listing->rows = rows;
    listing->capacity = capacity;
    return true;
}

/* Keep a copy. False: there are too many, or memory is out. */
static bool
keep(struct listing *listing, wq_key key, const wq_key_info *info)
{
    void *copy = reserve_row(listing) ? malloc(key.len) : NULL;

    if (!copy)
        return false;
    memcpy(copy, key.data, key.len);
    listing->rows[listing->len++] =
        (struct row){.info = *info, .key = {copy, key.len}};
    return true;
}

/* Print the rows that were kept, and forget them. */
static void
print_kept(struct listing *listing)
{
    for (size_t i = 0; i < listing->len; i++) {
        const struct row *row = &listing->rows[i];

        print_row(listing, row->key, &row->info);
        free((void *)row->key.data);
    }
    free(listing->rows);
    listing->rows = NULL;
    listing->len = listing->capacity = 0;
}

/* ---- the verb ------------------------------------------------------------ */

static void
list_row(struct listing *listing, wq_key key, const wq_key_info *info)
{
    if (!listing->streams && keep(listing, key, info))
        return;
    if (!listing->streams)
        print_kept(listing);
    listing->streams = true;
    print_row(listing, key, info);
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
        list_row(listing, key, info);
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
        printf("STATE    NOTE   PRIORITY  FAILURES   SINCE     DUE  %sKEY\n",
               has_holders(options) ? "HOLDER                " : "");
    const wq_err err = wq_each(q, options->states, visit, &listing);
    if (listing.len)
        qsort(listing.rows, listing.len, sizeof *listing.rows, compare_rows);
    print_kept(&listing);
    if (err)
        queue_fail(options, "list the keys", err);
    print_fini(&listing.print);
    wq_destroy(q);
    return err ? STATUS_ERROR : STATUS_OK;
}
