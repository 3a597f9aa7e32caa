/* SPDX-License-Identifier: MIT */
/* options.c: what is on the command line? */
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"

static const char usage[] =
    "usage: wq_bench [options]\n"
    "  --rounds N      measure everything N times, in turn (5)\n"
    "  --rows PATTERN  only rows whose name matches: 'fill-*'\n"
    "  --sides LIST    only these: wq,client-go\n"
    "  --json FILE     write all figures to FILE\n"
    "  --plots DIR     write pictures and results.md to DIR\n"
    "  --quick         small counts, to show that it works; the figures mean "
    "nothing\n"
    "  --features      print the cost of features of wq instead of the rows\n";

static void
refuse(const char *what, const char *text)
{
    (void)fprintf(stderr, "wq_bench: %s '%s'\n%s", what, text, usage);
    exit(2);
}

static size_t
parse_rounds(const char *text)
{
    char               *end;
    const unsigned long n = strtoul(text, &end, 10);

    if (*end || n < 1 || n > MOST_ROUNDS)
        refuse("--rounds takes 1 to 101, not", text);
    return n;
}

/* Keep the arguments, for the report. */
static void
remember(struct options *o, const char *word)
{
    const size_t at = strlen(o->command);
    const char  *quote = strpbrk(word, "*?[ ") ? "'" : "";

    (void)snprintf(o->command + at, sizeof o->command - at, "%s%s%s%s",
                   at ? " " : "", quote, word, quote);
}

static void
check_names(const struct options *o)
{
    size_t wanted_rows = 0;

    for (size_t r = 0; r < n_rows; r++)
        wanted_rows += wants_row(o, &rows[r]);
    if (!wanted_rows)
        refuse("no row matches", o->rows);
    for (const char *s = o->sides; s && *s; s += strspn(s, ",")) {
        const size_t len = strcspn(s, ",");
        bool         known = false;
        for (size_t p = 0; p < n_peers; p++)
            known |=
                strlen(peers[p].name) == len && !strncmp(peers[p].name, s, len);
        if (!known)
            refuse("no such side in", o->sides);
        s += len;
    }
}

struct options
read_options(int argc, char **argv)
{
    struct options o = {.rounds = 5};

    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        remember(&o, word);
        if (!strcmp(word, "--quick")) {
            o.quick = true;
            continue;
        }
        if (!strcmp(word, "--features")) {
            o.features = true;
            continue;
        }
        const char *value = argv[++i];
        if (!value)
            refuse("unknown option, or value missing:", word);
        remember(&o, value);
        if (!strcmp(word, "--rounds"))
            o.rounds = parse_rounds(value);
        else if (!strcmp(word, "--rows"))
            o.rows = value;
        else if (!strcmp(word, "--sides"))
            o.sides = value;
        else if (!strcmp(word, "--json"))
            o.json = value;
        else if (!strcmp(word, "--plots"))
            o.plots = value;
        else
            refuse("unknown option", word);
    }
    check_names(&o);
    return o;
}

bool
wants_row(const struct options *o, const struct row *r)
{
    return !o->rows || fnmatch(o->rows, r->name, 0) == 0;
}

bool
wants_peer(const struct options *o, const struct peer *p)
{
    const size_t len = strlen(p->name);

    for (const char *s = o->sides; s && *s; s += strspn(s, ",")) {
        const size_t n = strcspn(s, ",");
        if (n == len && !strncmp(s, p->name, n))
            return true;
        s += n;
    }
    return !o->sides;
}
