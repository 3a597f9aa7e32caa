/* SPDX-License-Identifier: MIT */
/* wal.h: how do the pages of a commit reach the WAL?
 *
 * SQLite calls the kernel twice for each page that it appends: for a header of 24
 * bytes, and for the page. A commit of one key has two or three pages. Here, what
 * one COMMIT appends is gathered, and written with one call.
 *
 * What SQLite has opened is used as it is, with other functions beside its own: a
 * sqlite3_file begins with a pointer to its functions, and this is a copy of them
 * in which a few are replaced.
 *
 * Why a reader cannot miss what was not written yet: SQLite tells others of a
 * commit, in shared memory, after its last page was written. The header of that
 * page has the size of the database at its bytes 4 to 7, all others have 0 there:
 * when that page is written, all is, and errors are those of this last write.
 *
 * Why nothing is written later, over what another process has appended: it is
 * gathered within wq__wal_begin() and wq__wal_end() only, which are around COMMIT,
 * with the writer lock. What is left at the end belongs to a commit that failed,
 * and is forgotten.
 *
 * A transaction that is larger than SQLite's cache appends pages before COMMIT,
 * and COMMIT may then change them where they are: it is not gathered.
 */
#ifndef WQ_SQLITE_WAL_H
#define WQ_SQLITE_WAL_H

#include <stdbool.h>
#include <stddef.h>

#include <sqlite3.h>

struct wq__wal {
    sqlite3_io_methods        methods; /* first: the file refers to it */
    const sqlite3_io_methods *real;    /* NULL: not attached */
    unsigned char            *bytes;   /* owned; those that wait */
    size_t                    len;
    sqlite3_int64             at;      /* where in the file they belong */
    bool                      gathers; /* between begin and end */
    bool                      spilled; /* pages came before COMMIT */
    bool                      is_last; /* the next page is the commit's last */
};

/* Attach to the WAL of a database that is in WAL mode and was read from. If it
 * cannot, SQLite writes the pages one by one. `w` outlives the database. */
void wq__wal_attach(struct wq__wal *w, sqlite3 *sqlite);

/* After the database was closed. */
void wq__wal_free(struct wq__wal *w);

/* Around COMMIT. */
void wq__wal_begin(struct wq__wal *w);
void wq__wal_end(struct wq__wal *w);

#endif
