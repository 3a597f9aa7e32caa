/* SPDX-License-Identifier: MIT */
/* shown.h: how does a key look on a terminal?
 *
 * A key is bytes, and bytes can move the cursor, ring the bell or turn the
 * text around. What is shown is printable characters only; all else is shown
 * as \n, \x1b or \u202e. Text is measured in columns, of which a character
 * takes none, one or two, and cut in the middle: the ends of a key tell more.
 */
#ifndef WQ_TOOL_SHOWN_H
#define WQ_TOOL_SHOWN_H

#include <stdbool.h>
#include <stddef.h>

/* Of what a terminal can show; filled in by shown_init(). */
struct shown {
    bool  utf8;   /* it shows UTF-8; else ASCII */
    void *locale; /* by which characters are measured; owned */
};

/* The room that shown_key() needs for so many columns: a character of one
 * column has up to four bytes, and marks upon it are left out beyond that. */
#define SHOWN_ROOM(columns) ((columns) * (size_t)8 + 16)

/* Look at the environment: LC_ALL, LC_CTYPE or LANG, the first that is set,
 * says whether the terminal knows UTF-8; if none is, it does. */
void shown_init(struct shown *s);
void shown_fini(struct shown *s);

/* Write `key` to `out`, which has SHOWN_ROOM(columns) bytes, in at most so many
 * columns. Not terminated. Returns the number of bytes; *used: of columns. */
size_t shown_key(const struct shown *s, const void *key, size_t len,
                 size_t columns, char *out, size_t *used);

#endif
