/* SPDX-License-Identifier: MIT */
/* store.h: where is output kept until it may go out?
 *
 * In memory, up to STORE_MOST bytes; what is more goes to a file without a
 * name in $TMPDIR (/var/tmp if there is none: /tmp is memory on many systems),
 * so that a child that writes gigabytes costs disk. If the file cannot be
 * written memory has to do.
 */
#ifndef WQ_TOOL_STORE_H
#define WQ_TOOL_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Two for each run: with 64 slots all busy, 64 MiB. */
#define STORE_MOST (512 * (size_t)1024)

/* First what is in the file, then what is in memory. */
struct store {
    char    *data;    /* in memory */
    size_t   len;     /* so much of it */
    size_t   room;    /* so much it can be */
    int      fd;      /* the file; -1: none */
    uint64_t in_file; /* so much is there */
    bool     refused; /* a file could not be had, or written */
};

#define STORE_EMPTY                                                            \
    {                                                                          \
        .fd = -1                                                               \
    }

/* Keep these bytes, too. False: there is no memory. Errors of files are told on
 * stderr, once in the life of the program. */
bool store_add(struct store *store, const void *data, size_t len);
/* Is nothing in it? */
bool store_is_empty(const struct store *store);
/* Forget all, and give back files and much memory. */
void store_clear(struct store *store);
/* The same, and all memory. */
void store_fini(struct store *store);
/* Read what is at `at` of the file part. Returns how much; 0: it cannot be
 * read, which is told on stderr. */
size_t store_read(const struct store *store, uint64_t at, void *data,
                  size_t len);

#endif
