/* SPDX-License-Identifier: MIT */
/* words.h: which words stand for what a queue says? In JSON and for people. */
#ifndef WQ_TOOL_WORDS_H
#define WQ_TOOL_WORDS_H

#include <wq/inspect.h>

/* "new", "merged", ... */
const char *word_added(wq_added added);

/* The name of the lowest state in the set, "READY" for example, which is taken
 * out of it; NULL: the set is empty. */
const char *word_state(unsigned *states);

#endif
