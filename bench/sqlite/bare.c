/* SPDX-License-Identifier: MIT */
/* bare.c: how much processor time does SQLite take without wq?
 *
 * Two floors, with the settings of wq. The lower one is what any queue in SQLite
 * must do: one transaction that inserts a row, one that deletes it. The upper one
 * is what wq_add() and wq_next_with() ask of SQLite: their own statements, in a
 * file that wq has made.
 */
#include <sqlite3.h>

#include "bench.h"
#include "measure.h"
#include "store.h"

static sqlite3 *
open_file(const char *path)
{
    sqlite3 *db = NULL;

    must(sqlite3_open_v2(path, &db,
                         SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE |
                             SQLITE_OPEN_NOMUTEX,
                         NULL) == SQLITE_OK,
         "sqlite3_open_v2");
    return db;
}

static void
execute(sqlite3 *db, const char *sql)
{
    must(sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK, sql);
}

static sqlite3_stmt *
prepare(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *s = NULL;

    must(sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, &s, NULL) ==
             SQLITE_OK,
         sql);
    return s;
}

static void
step(sqlite3_stmt *s)
{
    must(sqlite3_step(s) == SQLITE_DONE, "sqlite3_step");
    (void)sqlite3_reset(s);
}

#define SETTINGS                                                               \
    "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"                      \
    "PRAGMA wal_autocheckpoint=1024; PRAGMA cache_size=-4096;"

/* ---- INSERT and DELETE ------------------------------------------------------ */

double
bare_run_floor(size_t n)
{
    const char *path = files_new();
    sqlite3    *db = open_file(path);

    execute(db, "PRAGMA page_size=2048;" SETTINGS
                "CREATE TABLE t(id INTEGER PRIMARY KEY, key BLOB) STRICT");
    sqlite3_stmt *insert = prepare(db, "INSERT INTO t(key) VALUES(?1)");
    sqlite3_stmt *delete = prepare(db, "DELETE FROM t WHERE id=?1");
    const double begin = cpu_ns();
    for (size_t i = 0; i < n; i++) {
        (void)sqlite3_bind_blob(insert, 1, bench_key(i).data, KEY_LEN,
                                SQLITE_STATIC);
        step(insert);
        (void)sqlite3_bind_int64(delete, 1, sqlite3_last_insert_rowid(db));
        step(delete);
    }
    const double took = cpu_ns() - begin;
    (void)sqlite3_finalize(insert);
    (void)sqlite3_finalize(delete);
    (void)sqlite3_close(db);
    files_delete(path);
    return took;
}

/* ---- the statements of wq --------------------------------------------------- */

static const char *const texts[] = {
#define TEXT(name, text) text,
    WQ__STATEMENTS(TEXT)
#undef TEXT
};

static sqlite3_stmt *statements[WQ__STATEMENTS_LEN];

static void
run(enum wq__statement which)
{
    step(statements[which]);
}

/* An id as far from that of the next key as hashes are. */
static int64_t
place_of(size_t i)
{
    return (int64_t)((i + 1) * UINT64_C(0x9e3779b97f4a7c15) >> 1 & ~15ULL);
}

/* Reads all columns, as wq does. */
static void
look(enum wq__statement which, bool found)
{
    sqlite3_stmt *s = statements[which];
    const int     columns = sqlite3_column_count(s);

    must((sqlite3_step(s) == SQLITE_ROW) == found, "row of a key");
    for (int i = 0; found && i < columns; i++)
        (void)sqlite3_column_int64(s, i);
    (void)sqlite3_reset(s);
}

static void
find(size_t i, bool found)
{
    sqlite3_stmt *s = statements[WQ__SQL_BY_KEY];

    (void)sqlite3_bind_int64(s, 1, place_of(i));
    (void)sqlite3_bind_int64(s, 2, place_of(i) + 15);
    (void)sqlite3_bind_int64(s, 3, 1);
    (void)sqlite3_bind_blob(s, 4, bench_key(i).data, KEY_LEN, SQLITE_STATIC);
    look(WQ__SQL_BY_KEY, found);
}

static void
write_row(enum wq__statement which, size_t i, enum wq__row_state state,
          int64_t number)
{
    sqlite3_stmt *s = statements[which];
    const int     unused = state == WQ__ROW_READY ? 9 : 7;

    (void)sqlite3_bind_int64(s, 1, place_of(i));
    (void)sqlite3_bind_int64(s, 3, state);
    (void)sqlite3_bind_int64(s, 4, 0);
    (void)sqlite3_bind_int64(s, 5, state == WQ__ROW_READY ? 0 : number);
    (void)sqlite3_bind_int64(s, 6, number);
    for (int k = 7; k <= 10; k++)
        (void)sqlite3_bind_int64(s, k, number);
    (void)sqlite3_bind_null(s, unused);
    (void)sqlite3_bind_null(s, unused + 1);
    if (which == WQ__SQL_INSERT) {
        (void)sqlite3_bind_blob(s, 2, bench_key(i).data, KEY_LEN,
                                SQLITE_STATIC);
        (void)sqlite3_bind_int64(s, 11, 1);
    }
    step(s);
}

/* Add a key; finish the one before, and get this one. */
static void
add_next(size_t i)
{
    const int64_t number = INT64_C(1700000000000000000) + (int64_t)i;

    run(WQ__SQL_BEGIN_TO_LOOK);
    find(i, false);
    write_row(WQ__SQL_INSERT, i, WQ__ROW_READY, number);
    run(WQ__SQL_COMMIT);
    run(WQ__SQL_BEGIN);
    if (i) {
        find(i - 1, true);
        (void)sqlite3_bind_int64(statements[WQ__SQL_DELETE], 1,
                                 place_of(i - 1));
        run(WQ__SQL_DELETE);
    }
    (void)sqlite3_bind_int64(statements[WQ__SQL_FIRST_READY], 1, 1);
    look(WQ__SQL_FIRST_READY, true);
    write_row(WQ__SQL_UPDATE, i, WQ__ROW_HELD, number);
    run(WQ__SQL_COMMIT);
}

double
bare_run_statements(size_t n)
{
    const char *path = files_new();

    wq_destroy(files_open(path, WQ_SQLITE_SYNC_LAZY)); /* makes the tables */
    sqlite3 *db = open_file(path);
    execute(db, SETTINGS);
    for (size_t i = 0; i < WQ__STATEMENTS_LEN; i++)
        statements[i] = prepare(db, texts[i]);
    const double begin = cpu_ns();
    for (size_t i = 0; i < n; i++)
        add_next(i);
    const double took = cpu_ns() - begin;
    for (size_t i = 0; i < WQ__STATEMENTS_LEN; i++)
        (void)sqlite3_finalize(statements[i]);
    (void)sqlite3_close(db);
    files_delete(path);
    return took;
}
