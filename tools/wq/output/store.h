/* SPDX-License-Identifier: MIT */
/* store.h: where is output kept until it may be printed?
 *
 * In memory, up to STORE_MAX bytes; more goes to an unnamed file in $TMPDIR
 * (default: /var/tmp, since /tmp is in memory on many systems), so that a child
 * that writes gigabytes uses disk. If the file cannot be written, memory is
 * used.
 */
#ifndef WQ_TOOL_STORE_H
#define WQ_TOOL_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

/* A run has two stores: 64 runs use up to 64 MiB. */
#define STORE_MAX (512 * (size_t)1024)

/* The bytes in the file come before those in memory. */
struct store {
    struct wq__text memory;
    int             fd;      /* the file; -1: none */
    uint64_t        in_file; /* bytes in the file */
    bool            refused; /* the file could not be created or written */
};

#define STORE_EMPTY                                                            \
    {                                                                          \
        .fd = -1                                                               \
    }

/* Append. False: out of memory. An error of a file is reported on stderr once in
 * the life of the program. */
bool store_add(struct store *store, const void *data, size_t len);
/* Append to the file, even if it is little. False: it cannot be written, which
 * is reported likewise, and a part of the bytes may be in the file. */
bool store_append(struct store *store, const void *data, size_t len);
/* Append what is in the pipe, without a copy in our memory, if there is a file
 * already. Returns the number of bytes; 0: not done; use store_add(). */
size_t store_move(struct store *store, int pipe);
bool   store_is_empty(const struct store *store);
/* Make it empty; frees the file and large memory. */
void store_clear(struct store *store);
/* Likewise, and frees all memory. */
void store_fini(struct store *store);
/* Read from offset `at` of the file. Returns the number of bytes; 0: an error,
 * reported on stderr. */
size_t store_read(const struct store *store, uint64_t at, void *data,
                  size_t len);

#endif
