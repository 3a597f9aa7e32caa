/* SPDX-License-Identifier: MIT */
/* regex.h: what does a regular expression of the user match?
 *
 * POSIX extended regular expressions. The program does not set a locale, so they
 * read bytes.
 */
#ifndef WQ_TOOL_REGEX_H
#define WQ_TOOL_REGEX_H

#include <regex.h>
#include <stdbool.h>

#include <wq/wq.h>

/* Zero is one that was not given. */
struct regex {
    regex_t regex; /* owned */
    bool    set;   /* it was given */
};

/* Replace it. NULL, or what is wrong with the text. */
const char *regex_compile(struct regex *expression, const char *text);
void        regex_fini(struct regex *expression);

/* The part of the text that its first group matches or, if it has none, that it
 * matches. No bytes: it does not match, or the group takes no part in it. */
wq_key regex_find(const struct regex *expression, const char *text);

#endif
