/* SPDX-License-Identifier: MIT */
/* table.h: which options are there?
 *
 * A row is all that is known about an option. A new option is a row in table.c
 * and a field in struct options. An option that means different things to
 * different verbs has a row for each meaning.
 */
#ifndef WQ_TOOL_TABLE_H
#define WQ_TOOL_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "options/values.h"
#include "options/verbs.h"

/* What the option does with its field of struct options. */
enum kind {
    FLAG,     /* no value; a bool becomes true */
    CONSTANT, /* no value; an int becomes `constant` */
    CHOICE,   /* an int becomes the position of the value among `words` */
    VALUE,    /* `read` reads the value */
    DURATION, /* an int64_t of ns */
    STRING,   /* a const char *, not empty */
    REGEX,    /* a struct regex */
    OPTIONAL, /* a const char *, NULL if not given; the bool `flag` is set */
    ADDRESS,  /* a const char *, see address.h */
    URL,      /* a const char *, see url.h */
    APPEND,   /* one more file */
    HELP,
    VERSION,
    COMPLETION,
};

struct row {
    const char   *group;    /* heading; NULL: that of the row before, of
                               whatever verb */
    char          letter;   /* 0: none */
    char          alias;    /* another letter; 0: none */
    const char   *name;     /* NULL: only a letter */
    const char   *arg;      /* NULL: no value; "[=X]": an optional value */
    const char   *accepted; /* for messages; NULL: anything */
    const char   *words; /* for completion: words, or <file> <dir> <command> */
    const char   *help;
    enum kind     kind;
    size_t        field;    /* offset in struct options */
    value_reader *read;     /* VALUE */
    const char   *wrong;    /* VALUE, CHOICE: "is not a rate" */
    int           constant; /* CONSTANT */
    size_t        flag;     /* OPTIONAL: offset in struct options */
    unsigned      verbs;    /* VERB() of those that take it, or'ed; 0: those
                               that run COMMAND */
};

#define VERB(verb) (1U << (verb))

extern const struct row options_table[];

/* Upper bound of the number of rows, for arrays. */
enum { OPTIONS_MAX = 96 };

/* The first row of a verb, and the next one; NULL: there is none. */
const struct row *row_first(enum verb verb);
const struct row *row_next(const struct row *row, enum verb verb);
/* Its heading. */
const char *row_group(const struct row *row);

static inline bool
row_is_optional(const struct row *row)
{
    return row->arg && row->arg[0] == '[';
}

#endif
