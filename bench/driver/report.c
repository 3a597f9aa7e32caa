/* SPDX-License-Identifier: MIT */
/* report.c: how are results written for people? Markdown tables, which are also
 * readable as plain text. */
#include <string.h>

#include "driver.h"

static bool
measured(enum group g, size_t peer)
{
    for (size_t r = 0; r < n_rows; r++)
        for (size_t i = 0; rows[r].group == g && shown_of(r, i); i++)
            if (spread_of(r, i, peer).n)
                return true;
    return false;
}

static int
digits(double value)
{
    return value < 10 ? 1 : 0;
}

static void
print_cell(FILE *f, const struct shown *what, struct spread s)
{
    const double median = s.median / what->scale;
    const double least = s.least / what->scale, most = s.most / what->scale;

    if (!s.n)
        (void)fprintf(f, " – |");
    else if (s.n == 1)
        (void)fprintf(f, " %.*f |", digits(median), median);
    else
        (void)fprintf(f, " %.*f [%.*f..%.*f] |", digits(median), median,
                      digits(least), least, digits(most), most);
}

static void
print_ratio(FILE *f, const char *row, const char *figure)
{
    const struct spread ours = spread_at(row, figure, "wq");
    const struct spread theirs = spread_at(row, figure, "client-go");

    if (ours.n && theirs.n && ours.median > 0)
        (void)fprintf(f, " %.2f |\n", theirs.median / ours.median);
    else
        (void)fprintf(f, " – |\n");
}

static void
print_line(FILE *f, size_t r, size_t i)
{
    const struct shown *what = shown_of(r, i);
    bool                any = false;

    for (size_t p = 0; p < n_peers; p++)
        any |= spread_of(r, i, p).n > 0;
    if (!any)
        return;
    (void)fprintf(f, "| %s%s (`%s`) | %s |", rows[r].title, what->suffix,
                  rows[r].name, what->unit);
    for (size_t p = 0; p < n_peers; p++)
        if (measured(rows[r].group, p))
            print_cell(f, what, spread_of(r, i, p));
    print_ratio(f, rows[r].name, what->figure);
}

static void
print_group(FILE *f, enum group g, bool with_pictures)
{
    size_t columns = 0;

    for (size_t p = 0; p < n_peers; p++)
        columns += measured(g, p);
    if (!columns)
        return;
    (void)fprintf(f, "## %s\n\n| row | unit |", group_title(g));
    for (size_t p = 0; p < n_peers; p++)
        if (measured(g, p))
            (void)fprintf(f, " %s |", peers[p].name);
    (void)fprintf(f, " client-go / wq |\n|---|---|");
    for (size_t c = 0; c <= columns; c++)
        (void)fprintf(f, "--:|");
    (void)fprintf(f, "\n");
    for (size_t r = 0; r < n_rows; r++)
        for (size_t i = 0; rows[r].group == g && shown_of(r, i); i++)
            print_line(f, r, i);
    (void)fprintf(f, "\n");
    if (with_pictures)
        (void)fprintf(f, "![%s](%s.svg)\n\n", group_title(g), group_file(g));
}

static void
print_demands(FILE *f)
{
    const char          *head = "## Asked, and reached\n\n"
                                "| what | asked | reached | |\n"
                                "|---|--:|--:|---|\n";
    const struct demand *d;
    double               ratio;
    bool                 yes;

    for (size_t at = 0; (d = next_demand(&at, &ratio, &yes)); head = "") {
        const char *x = d->relation == NO_MORE ? "" : "x";
        (void)fprintf(f, "%s| %s | at %s %.10g%s | %.2f%s | %s |\n", head,
                      d->what, d->relation == AT_LEAST ? "least" : "most",
                      d->bound, x, ratio, x, yes ? "yes" : "**no**");
    }
    (void)fprintf(f, "\n");
}

void
report(FILE *f, const struct options *o, bool with_pictures)
{
    const char *name, *value;

    (void)fprintf(f, "# Results\n\n");
    print_quiet(f);
    (void)fprintf(f,
                  "Made by `make bench ARGS=\"%s\"`: %zu round%s, "
                  "a process for each row, side and round, the sides in turn. "
                  "Median [smallest..largest]; the last column is how often "
                  "wq's median goes into client-go's.%s\n\n",
                  o->command, o->rounds, o->rounds == 1 ? "" : "s",
                  o->quick ? " **A quick run: the figures mean nothing.**"
                           : "");
    for (size_t i = 0; (name = machine_fact(i, &value)); i++)
        (void)fprintf(f, "- %s: %s\n", name, value);
    (void)fprintf(f, "\n");
    for (int g = 0; g < GROUPS; g++)
        print_group(f, (enum group)g, with_pictures);
    print_demands(f);
}
