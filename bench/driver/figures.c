/* SPDX-License-Identifier: MIT */
/* figures.c: which figures were measured, and what are their medians? */
#include <stdlib.h>
#include <string.h>

#include "driver.h"

static struct {
    size_t n;
    double value[MOST_ROUNDS];
} figures[MOST_ROWS][MOST_SHOWN][MOST_SIDES];

void
keep(size_t row, size_t shown, size_t peer, double value)
{
    size_t *n = &figures[row][shown][peer].n;

    if (*n < MOST_ROUNDS)
        figures[row][shown][peer].value[(*n)++] = value;
}

double
figure_of(size_t row, size_t shown, size_t peer, size_t round)
{
    return figures[row][shown][peer].value[round];
}

static int
ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct spread
spread_of(size_t row, size_t shown, size_t peer)
{
    double        sorted[MOST_ROUNDS];
    struct spread s = {.n = figures[row][shown][peer].n};

    if (!s.n)
        return s;
    memcpy(sorted, figures[row][shown][peer].value, s.n * sizeof *sorted);
    qsort(sorted, s.n, sizeof *sorted, ascending);
    s.least = sorted[0];
    s.most = sorted[s.n - 1];
    s.median = (sorted[(s.n - 1) / 2] + sorted[s.n / 2]) / 2;
    return s;
}

struct spread
spread_at(const char *row, const char *figure, const char *side)
{
    const struct shown *what;

    for (size_t r = 0; r < n_rows; r++) {
        if (strcmp(rows[r].name, row) != 0)
            continue;
        for (size_t i = 0; (what = shown_of(r, i)); i++)
            for (size_t p = 0; p < n_peers; p++)
                if (!strcmp(what->figure, figure) &&
                    !strcmp(peers[p].name, side))
                    return spread_of(r, i, p);
    }
    return (struct spread){.n = 0};
}

/* False: not measured. */
static bool
compare(const struct demand *d, double *ratio)
{
    const struct spread ours = spread_at(d->row, d->figure, "wq");
    struct spread       theirs = {.n = 1, .median = 1};

    if (d->relation != NO_MORE)
        theirs = spread_at(d->base ? d->base : d->row, d->figure,
                           d->side ? d->side : "client-go");
    if (!ours.n || !theirs.n)
        return false;
    *ratio = d->relation == AT_LEAST ? theirs.median / ours.median
                                     : ours.median / theirs.median;
    return true;
}

const struct demand *
next_demand(size_t *at, double *ratio, bool *yes)
{
    while (*at < n_demands) {
        const struct demand *d = &demands[(*at)++];

        if (!compare(d, ratio))
            continue;
        *yes =
            d->relation == AT_LEAST ? *ratio >= d->bound : *ratio <= d->bound;
        return d;
    }
    return NULL;
}
