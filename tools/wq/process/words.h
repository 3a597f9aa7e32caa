/* SPDX-License-Identifier: MIT */
/* words.h: which words in COMMAND and in --tag are replaced, and by what?
 *
 *     {}    the key (-I chooses another text)
 *     {.}   ... without its extension       {/}   its last part: basename
 *     {/.}  ... both                        {//}  its directory: dirname
 *     {line}      the input line that the key was found in
 *     {1} {2} ... its columns; only with --colsep or --key-column
 *     {#}   the number of the run           {%}   the number of its slot
 *
 * Their meaning is that of GNU parallel.
 */
#ifndef WQ_TOOL_WORDS_H
#define WQ_TOOL_WORDS_H

#include <stdbool.h>
#include <stddef.h>

#include <wq/wq.h>

#include "options/options.h"
#include "process/run.h"

enum word_kind {
    WORD_KEY,
    WORD_WITHOUT_EXTENSION,
    WORD_BASENAME,
    WORD_BASENAME_WITHOUT_EXTENSION,
    WORD_DIRNAME,
    WORD_LINE,
    WORD_COLUMN,
    WORD_NUMBER,
    WORD_SLOT,
};

struct word {
    enum word_kind kind;
    unsigned       column; /* WORD_COLUMN: from 1 */
    size_t         len;    /* of the word itself */
};

/* The longest value of a word that does not come from the key or its line. */
enum { WORD_MAX = 24 };

/* Find the first word in the text; NULL: there is none. */
const char *word_find(const struct options *options, const char *text,
                      struct word *out);
/* Does it differ between the keys of a batch? */
bool word_is_of_key(const struct word *word);
/* Is it the same in every run of a key? */
bool word_is_constant(const struct options *options, const struct word *word);
/* What it stands for in this run, of which the key, line, number and slot are
 * needed; `buffer` is for numbers. */
wq_key word_value(const struct options *options, const struct word *word,
                  const struct run *run, char buffer[WORD_MAX]);

/* Column `n` (from 1) of the line, which is followed by a NUL; empty if it has
 * fewer. */
wq_key column_of(const struct options *options, wq_key line, unsigned n);

#endif
