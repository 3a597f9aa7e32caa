/* SPDX-License-Identifier: MIT */
/* notes.h: what is remembered of a key besides what the queue knows?
 *
 * A hash table of notes. Without the options that need it (--key and its like,
 * --once, --keep-order) it is empty. A note costs about 80 bytes and the bytes of the key and of
 * its line; it lives as long as the key is in the queue or, with --once, after
 * the key has succeeded, until the program ends.
 */
#ifndef WQ_TOOL_NOTES_H
#define WQ_TOOL_NOTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <wq/wq.h>

struct note {
    struct note *next;      /* in its bucket */
    uint64_t     hash;      /* of the key */
    char        *line;      /* the latest line, owned; NULL: none */
    size_t       line_len;  /* of it, without the NUL behind it */
    uint64_t     lines;     /* so many lines have come */
    uint64_t     ticket;    /* --keep-order: of the next run; 0: none */
    bool         succeeded; /* --once */
    size_t       len;       /* of the key */
    char         key[];
};

/* Zero is an empty one. */
struct notes {
    struct note **buckets;
    size_t        n_buckets; /* a power of two, or 0 */
    size_t        n;         /* notes */
};

/* The note of a key; NULL: there is none. O(1). */
struct note *notes_find(const struct notes *notes, wq_key key);
/* Likewise, but makes it. NULL: out of memory. */
struct note *notes_get(struct notes *notes, wq_key key);
/* Replace the line of a note. False: out of memory. */
bool note_set_line(struct note *note, wq_key line);
/* Forget the line of a note. */
void note_drop_line(struct note *note);
void notes_drop(struct notes *notes, struct note *note);
void notes_fini(struct notes *notes);

#endif
