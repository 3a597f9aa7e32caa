/* SPDX-License-Identifier: MIT */
/* wal.c: see wal.h.
 *
 * All functions are called by the thread that uses the database.
 */
#include "wal.h"

#include <stdlib.h>
#include <string.h>

/* FRAME is the size of SQLite's header of a page in the WAL, part of its file
 * format. LIMIT: most commits are smaller; larger ones take several writes. */
enum { FRAME = 24, SIZE_AT = 4, SIZE_LEN = 4, LIMIT = 32 * 1024 };

/* The file's functions are the first member of its struct wq__wal. */
static struct wq__wal *
wal_of(sqlite3_file *file)
{
    return (struct wq__wal *)(void *)file->pMethods;
}

/* Write what waits. After an error it is gone: the commit fails. */
static int
flush(struct wq__wal *w, sqlite3_file *file)
{
    const size_t len = w->len;

    w->len = 0;
    return len ? w->real->xWrite(file, w->bytes, (int)len, w->at) : SQLITE_OK;
}

static bool
follows(const struct wq__wal *w, int n, sqlite3_int64 at)
{
    return at == w->at + (sqlite3_int64)w->len && (size_t)n <= LIMIT - w->len;
}

static int
gather(struct wq__wal *w, sqlite3_file *file, const void *bytes, int n,
       sqlite3_int64 at)
{
    const int code = w->len && !follows(w, n, at) ? flush(w, file) : SQLITE_OK;

    if (code || n > LIMIT)
        return code ? code : w->real->xWrite(file, bytes, n, at);
    if (!w->len)
        w->at = at;
    memcpy(w->bytes + w->len, bytes, (size_t)n);
    w->len += (size_t)n;
    return SQLITE_OK;
}

static bool
has_size(const unsigned char *header)
{
    static const unsigned char none[SIZE_LEN];

    return memcmp(header + SIZE_AT, none, SIZE_LEN) != 0;
}

static int
write_wal(sqlite3_file *file, const void *bytes, int n, sqlite3_int64 at)
{
    struct wq__wal *w = wal_of(file);

    if (!w->gathers) {
        w->spilled = true;
        return w->real->xWrite(file, bytes, n, at);
    }
    const bool ends = n != FRAME && w->is_last;
    const int  code = gather(w, file, bytes, n, at);

    w->is_last = n == FRAME && has_size(bytes);
    return !code && ends ? flush(w, file) : code;
}

/* All that sees the file sees it as if nothing had been gathered. */

static int
read_wal(sqlite3_file *file, void *out, int n, sqlite3_int64 at)
{
    struct wq__wal *w = wal_of(file);
    const int       code = flush(w, file);

    return code ? code : w->real->xRead(file, out, n, at);
}

static int
truncate_wal(sqlite3_file *file, sqlite3_int64 size)
{
    struct wq__wal *w = wal_of(file);
    const int       code = flush(w, file);

    return code ? code : w->real->xTruncate(file, size);
}

static int
sync_wal(sqlite3_file *file, int flags)
{
    struct wq__wal *w = wal_of(file);
    const int       code = flush(w, file);

    return code ? code : w->real->xSync(file, flags);
}

static int
size_of_wal(sqlite3_file *file, sqlite3_int64 *size)
{
    struct wq__wal *w = wal_of(file);
    const int       code = flush(w, file);

    return code ? code : w->real->xFileSize(file, size);
}

void
wq__wal_attach(struct wq__wal *w, sqlite3 *sqlite)
{
    sqlite3_file *file = NULL;

    if (sqlite3_file_control(sqlite, "main", SQLITE_FCNTL_JOURNAL_POINTER,
                             &file) ||
        !file || !file->pMethods)
        return;
    w->bytes = malloc(LIMIT);
    if (!w->bytes)
        return;
    w->real = file->pMethods;
    w->methods = *w->real;
    w->methods.xWrite = write_wal;
    w->methods.xRead = read_wal;
    w->methods.xTruncate = truncate_wal;
    w->methods.xSync = sync_wal;
    w->methods.xFileSize = size_of_wal;
    file->pMethods = &w->methods;
}

void
wq__wal_free(struct wq__wal *w)
{
    free(w->bytes);
    *w = (struct wq__wal){.real = NULL};
}

void
wq__wal_begin(struct wq__wal *w)
{
    w->gathers = w->real && !w->spilled;
    w->is_last = false;
}

void
wq__wal_end(struct wq__wal *w)
{
    w->len = 0;
    w->gathers = w->spilled = false;
}
