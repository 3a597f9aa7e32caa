/* SPDX-License-Identifier: MIT */
/* plot.c: how are results drawn? One bar chart per group, by gnuplot.
 *
 * The scale is logarithmic, since the figures of a chart differ by orders of
 * magnitude. There is no background and text is grey, so that a chart can be
 * read on a light page and on a dark one.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "driver.h"

/* The palette of Okabe and Ito, which colour-blind readers can distinguish. */
static const char *const colours[] = {"#e69f00", "#0072b2", "#56b4e9",
                                      "#009e73", "#cc79a7", "#999999",
                                      "#d55e00"};
_Static_assert(sizeof colours / sizeof colours[0] <= MOST_SIDES, "colours");

/* A chart has rows of one unit: ns per key, or bytes. */
static bool
drawn(size_t r, enum group g)
{
    return rows[r].group == g &&
           rows[r].kind == (g == MEMORY ? BYTES : PER_KEY);
}

static bool
has_bars(enum group g, size_t peer)
{
    for (size_t r = 0; r < n_rows; r++)
        if (drawn(r, g) && spread_of(r, 0, peer).n)
            return true;
    return false;
}

/* gnuplot's data block: one line per row, one column per side. */
static void
print_data(FILE *f, enum group g)
{
    (void)fprintf(f, "$data << EOD\n");
    for (size_t r = 0; r < n_rows; r++) {
        if (!drawn(r, g))
            continue;
        (void)fprintf(f, "\"%s\"", rows[r].name);
        for (size_t p = 0; p < n_peers; p++) {
            const struct spread s = spread_of(r, 0, p);
            if (s.n)
                (void)fprintf(f, " %.3f", s.median);
            else
                (void)fprintf(f, " -");
        }
        (void)fprintf(f, "\n");
    }
    (void)fprintf(f, "EOD\n");
}

static void
print_script(FILE *f, enum group g, const char *dir)
{
    (void)fprintf(f,
                  "set terminal svg size 960,400 dynamic font "
                  "'sans-serif,13' name 'wq'\n"
                  "set output '%s/%s.svg'\n"
                  "set datafile missing '-'\n"
                  "set style data histogram\n"
                  "set style histogram clustered gap 1\n"
                  "set style fill solid 0.9 noborder\n"
                  "set boxwidth 0.9\n"
                  "set logscale y\n"
                  "set format y '%%g'\n"
                  "set border 3 lc rgb '#808080'\n"
                  "set grid ytics lc rgb '#80808080'\n"
                  "set xtics nomirror scale 0 textcolor rgb '#808080'\n"
                  "set ytics nomirror textcolor rgb '#808080'\n"
                  "set key outside top center horizontal reverse Left "
                  "textcolor rgb '#808080'\n"
                  "set ylabel '%s' textcolor rgb '#808080'\n"
                  "set yrange [%s:*]\n",
                  dir, group_file(g),
                  g == MEMORY ? "bytes for each key"
                              : "ns for each key (log scale)",
                  g == MEMORY ? "0" : "1");
    if (g == MEMORY)
        (void)fprintf(f, "unset logscale y\n");
    print_data(f, g);
    for (size_t p = 0, n = 0; p < n_peers; p++) {
        if (!has_bars(g, p))
            continue;
        (void)fprintf(f, "%s $data using %zu:xtic(1) title '%s' lc rgb '%s'",
                      n++ ? ", \\\n    " : "plot", p + 2, peers[p].name,
                      colours[p]);
    }
    (void)fprintf(f, "\n");
}

static bool
plot(enum group g, const char *dir)
{
    FILE *gnuplot = popen("gnuplot", "w");

    if (!gnuplot)
        return false;
    print_script(gnuplot, g, dir);
    return pclose(gnuplot) == 0;
}

static bool
have_gnuplot(void)
{
    return system("command -v gnuplot >/dev/null") == 0; /* NOLINT */
}

static bool
write_results(const struct options *o, bool with_pictures)
{
    char  path[4000];
    FILE *f;

    (void)snprintf(path, sizeof path, "%s/results.md", o->plots);
    f = fopen(path, "w");
    if (!f) {
        perror(path);
        return false;
    }
    report(f, o, with_pictures);
    return fclose(f) == 0;
}

bool
write_plots(const struct options *o)
{
    const bool can = have_gnuplot();
    bool       ok = true;

    if (!can)
        (void)fprintf(stderr,
                      "wq_bench: gnuplot not found; writing no pictures\n");
    for (int g = 0; can && g < GROUPS; g++)
        for (size_t p = 0; p < n_peers; p++)
            if (has_bars((enum group)g, p)) {
                ok &= plot((enum group)g, o->plots);
                break;
            }
    return write_results(o, can) && ok;
}
