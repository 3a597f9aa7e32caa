/* SPDX-License-Identifier: MIT */
/* place.h: where does a test keep its database, and what is in its file?
 *
 *     struct place at = place_make();
 *     wq_sqlite_open(at.db, ...);
 *     place_remove(&at);
 *
 * Functions that fail end the process with a message: they are for children of
 * a test, too, which have no assertions.
 */
#ifndef WQ_TEST_PLACE_H
#define WQ_TEST_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "support/must.h"

enum { PLACE_PATH = 256 };

struct place {
    char dir[PLACE_PATH - 32]; /* of its own */
    char db[PLACE_PATH];       /* a path in it, where no file is yet */
};

struct place place_make(void);
/* Makes `dir`, below the directory of another place. */
struct place place_make_below(const struct place *parent, const char *name);
void         place_remove(const struct place *at);
/* Removes what is in the directory. */
void place_clear(const struct place *at);

/* Copies the database and what SQLite has beside it, but not the directory of
 * wq. */
void place_copy(const struct place *from, const struct place *to);

void place_remove_file(const char *path);
bool place_has(const char *path);
/* Of the file's bytes; 0: there is no file. */
uint64_t place_checksum(const char *path);
void     place_write(const char *path, const void *bytes, unsigned long n);

/* Run SQL in the file, by SQLite's own library; the first column of the first
 * row, as text, is in a static buffer. "" if there is no row; what SQLite says
 * after "error: " otherwise. */
const char *place_sql(const char *db, const char *sql);

/* "ok" if SQLite finds no fault in the file. */
const char *place_integrity(const char *db);

#endif
