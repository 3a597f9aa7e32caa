/* SPDX-License-Identifier: MIT */
/* help.c: what does `wq run --help` print? A line for each row of table.c. */
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
options_help(FILE *to)
{
    fputs("Usage: wq run [OPTION]... [--] COMMAND [ARG]...\n"
          "Read keys and run COMMAND for each. A key never runs twice at the "
          "same time; it\nruns once more if it was added again meanwhile, and "
          "later again if it failed.\n",
          to);
    for (const struct row *row = options_table; row < options_end; row++) {
        fprintf(to, "%-*s", OPTION_COLUMN, row->group ? row->group : "");
        int column = OPTION_COLUMN + print_name(to, row);
        for (; column < HELP_COLUMN; column++)
            fputc(' ', to);
        fprintf(to, " %s\n", row->help);
    }
}
