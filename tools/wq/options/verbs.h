/* SPDX-License-Identifier: MIT */
/* verbs.h: which verbs are there?
 *
 * verbs.c has one row for each verb; `wq help`, --help and the completions are
 * made from it. A row of table.c says which verbs take an option.
 */
#ifndef WQ_TOOL_VERBS_H
#define WQ_TOOL_VERBS_H

#include <stdbool.h>

enum verb {
    VERB_RUN,
    /* On a shared queue: */
    VERB_WORK,
    VERB_ADD,
    VERB_GET,
    VERB_DONE,
    VERB_STATUS,
    VERB_LIST,
    VERB_SHOW,
    VERB_REMOVE,
    VERB_RETRY,
    VERB_DRAIN,
    VERB_FSCK,
    VERBS, /* how many */
};

struct verb_row {
    const char *name;
    const char *operands; /* for usage; "": none; "KEY...": at least one */
    bool        runs;     /* the operands are COMMAND: options end there */
    const char *summary;  /* a line, for the list of verbs */
    const char *about;    /* lines, for --help */
};

extern const struct verb_row verbs_table[VERBS];

/* The verb with this name; VERBS: there is none. */
enum verb verb_named(const char *name);

#endif
