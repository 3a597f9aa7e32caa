/* SPDX-License-Identifier: MIT */
/* printable.h: how is a key shown on a terminal?
 *
 * The bytes of a key could move the cursor, ring the bell or reverse the text.
 * So only printable characters are shown as they are; others as \n, \x1b or
 * \u202e. Text is measured in columns: a character takes none, one or two. A
 * long key is shortened in the middle, since its ends say more.
 */
#ifndef WQ_TOOL_PRINTABLE_H
#define WQ_TOOL_PRINTABLE_H

#include <stdbool.h>
#include <stddef.h>

/* What the terminal can show. */
struct printable {
    bool  utf8;   /* UTF-8; else ASCII */
    void *locale; /* for the width of characters; owned */
};

/* The bytes that printable_key() needs for so many columns: a character has up
 * to four bytes; combining marks that do not fit are dropped. */
#define PRINTABLE_SIZE(columns) ((columns) * (size_t)8 + 16)

/* Read the environment: the first of LC_ALL, LC_CTYPE and LANG that is set says
 * whether the terminal shows UTF-8; if none is set, it does. */
void printable_init(struct printable *s);
void printable_fini(struct printable *s);

/* Write `key` in at most so many columns to `out`, which has
 * PRINTABLE_SIZE(columns) bytes. Not terminated. Returns the number of bytes;
 * *used is the number of columns. */
size_t printable_key(const struct printable *s, const void *key, size_t len,
                     size_t columns, char *out, size_t *used);

#endif
