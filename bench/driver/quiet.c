/* SPDX-License-Identifier: MIT */
/* quiet.c: was the machine quiet enough for the figures to mean anything?
 *
 * The same small program, the row `cycle` of the side `floor`, runs a few times
 * before all rounds and a few times after them. It does the same work every time:
 * if it takes much longer at times, something else used the processors, or their
 * clock changed.
 */
#include <stdlib.h>
#include <string.h>

#include "driver.h"

enum { TIMES_EACH = 5, MOST_TIMES = 2 * TIMES_EACH };

/* The slowest may take this much longer than the fastest. */
#define QUIET 1.15

static double took[MOST_TIMES];
static size_t n_took;

static void
take(void *ctx, const char *name, const char *value)
{
    (void)ctx;
    if (!strcmp(name, "ns") && n_took < MOST_TIMES)
        took[n_took++] = strtod(value, NULL);
}

void
measure_quiet(const struct options *o)
{
    const char *const args[3] = {"cycle", o->quick ? "--quick" : NULL};

    for (size_t i = 0; i < TIMES_EACH; i++)
        (void)run_program("bench_floor", args, 0, take, NULL);
}

void
print_quiet(FILE *f)
{
    double least = 0, most = 0;

    for (size_t i = 0; i < n_took; i++) {
        least = i && least < took[i] ? least : took[i];
        most = most > took[i] ? most : took[i];
    }
    if (!n_took)
        (void)fprintf(f, "**Not known whether the machine was quiet**: the "
                         "side floor is missing.\n\n");
    else
        (void)fprintf(f,
                      "%s: the same program took %.1f to %.1f ns a cycle "
                      "before and after all rounds (quiet: at most %.2f "
                      "times as long).\n\n",
                      most <= QUIET * least
                          ? "The machine was quiet"
                          : "**The machine was not quiet; do not trust these "
                            "figures**",
                      least, most, QUIET);
}
