/* SPDX-License-Identifier: MIT */
/* json.c: how are results written for programs? Every figure of every round. */
#include "driver.h"

static void
print_text(FILE *f, const char *text)
{
    (void)fputc('"', f);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            (void)fputc('\\', f);
        if ((unsigned char)*text >= ' ')
            (void)fputc(*text, f);
    }
    (void)fputc('"', f);
}

static void
print_machine(FILE *f)
{
    const char *name, *value;

    (void)fprintf(f, "  \"machine\": {");
    for (size_t i = 0; (name = machine_fact(i, &value)); i++) {
        (void)fprintf(f, "%s\n    ", i ? "," : "");
        print_text(f, name);
        (void)fprintf(f, ": ");
        print_text(f, value);
    }
    (void)fprintf(f, "\n  },\n");
}

static void
print_peer(FILE *f, size_t r, size_t i, size_t p)
{
    const struct spread s = spread_of(r, i, p);

    (void)fprintf(f,
                  "        \"%s\": {\"median\": %.3f, \"min\": %.3f, "
                  "\"max\": %.3f, \"rounds\": [",
                  peers[p].name, s.median, s.least, s.most);
    for (size_t n = 0; n < s.n; n++)
        (void)fprintf(f, "%s%.3f", n ? ", " : "", figure_of(r, i, p, n));
    (void)fprintf(f, "]}");
}

/* Returns false if there is nothing to print. */
static bool
print_figure(FILE *f, size_t r, size_t i, bool first)
{
    bool any = false;

    for (size_t p = 0; p < n_peers; p++) {
        if (!spread_of(r, i, p).n)
            continue;
        if (any) {
            (void)fprintf(f, ",\n");
        } else {
            (void)fprintf(f, "%s\n    {\n      \"row\": \"%s\",\n",
                          first ? "" : ",", rows[r].name);
            (void)fprintf(f, "      \"figure\": \"%s\",\n      \"title\": ",
                          shown_of(r, i)->figure);
            print_text(f, rows[r].title);
            (void)fprintf(f, ",\n      \"sides\": {\n");
        }
        print_peer(f, r, i, p);
        any = true;
    }
    if (any)
        (void)fprintf(f, "\n      }\n    }");
    return any;
}

static void
print_demands(FILE *f)
{
    const struct demand *d;
    double               ratio;
    bool                 yes;
    const char          *comma = "";

    (void)fprintf(f, "  \"asked\": [");
    for (size_t at = 0; (d = next_demand(&at, &ratio, &yes)); comma = ",") {
        (void)fprintf(f, "%s\n    {\"what\": ", comma);
        print_text(f, d->what);
        (void)fprintf(f, ", \"%s\": %.1f, \"reached\": %.3f, \"yes\": %s}",
                      d->relation == AT_LEAST ? "at_least" : "at_most",
                      d->bound, ratio, yes ? "true" : "false");
    }
    (void)fprintf(f, "\n  ]\n");
}

bool
write_json(const struct options *o)
{
    FILE *f = fopen(o->json, "w");
    bool  first = true;

    if (!f) {
        perror(o->json);
        return false;
    }
    (void)fprintf(f, "{\n  \"command\": ");
    print_text(f, o->command);
    (void)fprintf(f, ",\n  \"rounds\": %zu,\n  \"quick\": %s,\n", o->rounds,
                  o->quick ? "true" : "false");
    print_machine(f);
    (void)fprintf(f, "  \"figures\": [");
    for (size_t r = 0; r < n_rows; r++)
        for (size_t i = 0; shown_of(r, i); i++)
            if (print_figure(f, r, i, first))
                first = false;
    (void)fprintf(f, "\n  ],\n");
    print_demands(f);
    (void)fprintf(f, "}\n");
    return fclose(f) == 0;
}
