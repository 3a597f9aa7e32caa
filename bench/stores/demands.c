/* SPDX-License-Identifier: MIT */
/* demands.c: what is asked of the figures, and is it reached? */
#include <stdarg.h>
#include <stdio.h>

#include "bench.h"
#include "stores/stores.h"

enum { MOST_DEMANDS = 64 };

static struct demand {
    char        what[96];
    const char *unit;
    double      limit, reached;
    bool        at_most;
} demands[MOST_DEMANDS];

static size_t len;

__attribute__((format(printf, 2, 0))) static void
note(struct demand d, const char *format, va_list args)
{
    must(len < MOST_DEMANDS, "space for demands");
    (void)vsnprintf(d.what, sizeof d.what, format, args);
    demands[len++] = d;
}

void
demand_at_most(double limit, double reached, const char *unit,
               const char *format, ...)
{
    va_list args;

    va_start(args, format);
    note(
        (struct demand){
            .unit = unit, .limit = limit, .reached = reached, .at_most = true},
        format, args);
    va_end(args);
}

void
demand_at_least(double limit, double reached, const char *unit,
                const char *format, ...)
{
    va_list args;

    va_start(args, format);
    note((struct demand){.unit = unit, .limit = limit, .reached = reached},
         format, args);
    va_end(args);
}

static bool
is_reached(const struct demand *d)
{
    return d->at_most ? d->reached <= d->limit : d->reached >= d->limit;
}

bool
demands_print(void)
{
    bool all = true;

    puts("\n### Asked, and reached\n\n"
         "| | asked | reached | |\n"
         "|---|--:|--:|---|");
    for (size_t i = 0; i < len; i++) {
        const struct demand *d = &demands[i];
        printf("| %s | %s %g%s | %.3g%s | %s |\n", d->what,
               d->at_most ? "≤" : "≥", d->limit, d->unit, d->reached, d->unit,
               is_reached(d) ? "ok" : "below");
        all &= is_reached(d);
    }
    return all;
}
