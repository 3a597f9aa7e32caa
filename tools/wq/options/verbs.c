/* SPDX-License-Identifier: MIT */
/* verbs.c: which verbs are there? See verbs.h. */
#include "options/verbs.h"

#include <string.h>

const struct verb_row verbs_table[VERBS] = {
    [VERB_RUN] = {"run", "[--] COMMAND [ARG]...", true,
                  "read keys and run COMMAND for each",
                  "Read keys and run COMMAND for each. A key never runs twice "
                  "at the same time; it\nruns once more if it was added again "
                  "meanwhile, and later again if it failed.\n"},
};

enum verb
verb_named(const char *name)
{
    enum verb verb = 0;

    while (verb < VERBS && strcmp(verbs_table[verb].name, name) != 0)
        verb++;
    return verb;
}
