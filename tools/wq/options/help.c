/* SPDX-License-Identifier: MIT */
/* help.c: what does --help print? A line for each row of table.c. */
#include "options/options.h"
#include "options/table.h"

/* The columns in which options and their explanations begin. */
enum { OPTION_COLUMN = 8, HELP_COLUMN = 27 };

/* "-P, --max-procs=N"; returns its length. */
static int
print_name(FILE *to, const struct row *row)
{
    int n = row->letter
                ? fprintf(to, "-%c%s", row->letter, row->name ? ", " : " ")
                : 0;

    if (row->name)
        n += fprintf(to, "--%s%s", row->name,
                     row->arg && !row_is_optional(row) ? "=" : "");
    return n + fprintf(to, "%s", row->arg ? row->arg : "");
}

void
options_help(FILE *to, enum verb verb)
{
    const struct verb_row *about = &verbs_table[verb];
    const char            *group = "";

    fprintf(to, "Usage: wq %s [OPTION]...%s%s\n%s", about->name,
            *about->operands ? " " : "", about->operands, about->about);
    for (const struct row *row = row_first(verb); row;
         row = row_next(row, verb)) {
        const char *heading = row_group(row);
        fprintf(to, "%-*s", OPTION_COLUMN, heading == group ? "" : heading);
        group = heading;
        int column = OPTION_COLUMN + print_name(to, row);
        for (; column < HELP_COLUMN; column++)
            fputc(' ', to);
        fprintf(to, " %s\n", row->help);
    }
}

void
options_help_all(FILE *to)
{
    fputs("Usage: wq VERB [OPTION]... [OPERAND]...\n", to);
    for (enum verb verb = 0; verb < VERBS; verb++)
        fprintf(to, "  %-8s %s\n", verbs_table[verb].name,
                verbs_table[verb].summary);
    fputs("  help     print this text, or that of a verb: wq help add\n"
          "wq --version prints the version, wq --completion=SHELL the "
          "completions for bash,\nzsh or fish. --queue=URL or $WQ_QUEUE names "
          "a shared queue:\nsqlite:PATH or redis://HOST\n",
          to);
}
