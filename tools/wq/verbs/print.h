/* SPDX-License-Identifier: MIT */
/* print.h: how do verbs print keys and numbers on stdout?
 *
 * For people, with aligned columns, and with colors if stdout is a terminal
 * (unless NO_COLOR is set or TERM is "dumb"); or for programs, as JSON lines.
 */
#ifndef WQ_TOOL_PRINT_H
#define WQ_TOOL_PRINT_H

#include <stdbool.h>
#include <stdint.h>

#include <wq/inspect.h>

#include "base/text.h"
#include "display/printable.h"

struct print {
    bool             terminal; /* stdout is one */
    bool             color;
    struct printable printable; /* what it can show */
    struct wq__text  line;      /* the current one */
};

void print_init(struct print *print);
void print_fini(struct print *print);

/* Add to the line: the key with only printable characters. */
void print_key(struct print *print, wq_key key);
/* Add to the line: a word, in the color of a state ("READY"). */
void print_state(struct print *print, const char *word);
/* Write the line and a newline to stdout, and begin a new one. An error is
 * reported at the end: see verbs_main(). */
void print_line(struct print *print);

/* Write the bytes of the key and `end` to stdout. A terminal gets only printable
 * characters. */
void print_raw(struct print *print, wq_key key, char end);

/* What is known about a key, as a line of JSON. */
void print_info(struct print *print, wq_key key, const wq_key_info *info);

/* How many runs of it have failed since its last success. */
unsigned print_failures(const wq_key_info *info);

/* "350ms", "12s", "1m20s", "3h05m", "2d04h"; in a static buffer that is valid
 * until the fourth call after it. "": below 0. */
const char *print_time(int64_t ns);

#endif
