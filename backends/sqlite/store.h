/* SPDX-License-Identifier: MIT */
/* store.h: what is an engine of an SQLite queue made of?
 *
 * An engine (shared/engine.h) whose store is a database file. Every batch is one
 * transaction. A key is a row, and shared/rows.h carries out the operations on
 * rows: SQL only finds and writes them.
 *
 *   open.c      opening a queue: options, URL, errors
 *   database.c  the file: schema, statements, what SQLite's errors mean
 *   time.c      the clock that all processes and boots agree on
 *   rows.c      how a row is found, read and written
 *   view.c      stats, depths, walks, the check of all invariants
 *   sessions.c  holders that have ended, and what becomes of their keys
 *   engine.c    transactions; durability; the verbs of an engine
 *   side.h      what the processes that use the file know of each other
 *
 * One thread at a time uses a struct wq__sqlite, but for renew(), wait(), kick()
 * and fd(), which use `side` and what never changes.
 */
#ifndef WQ_SQLITE_STORE_H
#define WQ_SQLITE_STORE_H

#include <stdatomic.h>

#include <sqlite3.h>

#include <wq/sqlite.h>

#include "clock/offset.h"
#include "port/lock.h"
#include "shared/rows.h"
#include "side.h"

/* ---- the file ------------------------------------------------------------- */

/* `PRAGMA application_id`: "wq", and `PRAGMA user_version`. */
enum { WQ__SQLITE_APPLICATION = 0x77710001, WQ__SQLITE_SCHEMA = 2 };

/* What a struct wq__row is read from, in this order: the columns of a statement
 * that finds keys `k`, and those of EXTRA. */
#define WQ__ROW_COLUMNS                                                        \
    "k.id, k.key, k.st, k.flags, k.rank, k.seq, k.prio, k.since, k.hprio, "    \
    "k.got"
#define WQ__EXTRA_COLUMNS                                                      \
    "due, arrival, dprio, cool, latest, cool_next, cool_wait, cool_until, "    \
    "fails, failed, expiries, tokens, tokens_ns"

/* Rows of `extra` that keys refer to. A row without its key, or whose key does
 * not know of it, is damage that wq_check() reports. Statements that look for the
 * next deadline must not find it if those that act on deadlines do not: the
 * deadline would have passed for ever, and gets would not sleep. */
#define WQ__EXTRA_OF_KEYS                                                      \
    "extra x CROSS JOIN key k ON k.id=x.id AND k.queue=x.queue AND k.flags&16"

/* Statements that are prepared once. */
#define WQ__STATEMENTS(X)                                                      \
    X(BEGIN, "BEGIN IMMEDIATE")                                                \
    X(BEGIN_TO_LOOK, "BEGIN")                                                  \
    X(COMMIT, "COMMIT")                                                        \
    X(ROLLBACK, "ROLLBACK")                                                    \
    X(SAVEPOINT, "SAVEPOINT op")                                               \
    X(RELEASE, "RELEASE op")                                                   \
    X(ROLLBACK_TO, "ROLLBACK TO op")                                           \
    X(BY_KEY, "SELECT " WQ__ROW_COLUMNS " FROM key k NOT INDEXED"              \
              " WHERE id BETWEEN ?1 AND ?2 AND queue=?3 AND key=?4")           \
    X(EXTRA, "SELECT " WQ__EXTRA_COLUMNS " FROM extra WHERE id=?1")            \
    X(FIRST_READY,                                                             \
      "SELECT " WQ__ROW_COLUMNS " FROM key k WHERE queue=?1 AND st=1"          \
      " AND rank IS NOT NULL ORDER BY rank DESC, seq LIMIT 1")                 \
    X(FIRST_DUE, "SELECT " WQ__ROW_COLUMNS " FROM " WQ__EXTRA_OF_KEYS          \
                 " WHERE x.queue=?1 AND due<=?2 AND due IS NOT NULL"           \
                 " ORDER BY due, arrival LIMIT 1")                             \
    X(FIRST_COOL, "SELECT " WQ__ROW_COLUMNS " FROM " WQ__EXTRA_OF_KEYS         \
                  " WHERE x.queue=?1 AND cool<=?2 AND cool IS NOT NULL"        \
                  " ORDER BY cool LIMIT 1")                                    \
    X(FIRST_FULL, "SELECT " WQ__ROW_COLUMNS " FROM " WQ__EXTRA_OF_KEYS         \
                  " WHERE x.queue=?1 AND tokens_ns IS NOT NULL"                \
                  " AND tokens_ns>?2 ORDER BY tokens_ns LIMIT 1")              \
    X(HELD_BY, "SELECT " WQ__ROW_COLUMNS                                       \
               " FROM key k WHERE queue=?1 AND st=2 AND rank=?2 AND seq>?3"    \
               " ORDER BY seq LIMIT 1")                                        \
    X(OWNER_AFTER, "SELECT rank FROM key WHERE queue=?1 AND st=2"              \
                   " AND rank>?2 ORDER BY rank LIMIT 1")                       \
    X(WALK, "SELECT " WQ__ROW_COLUMNS " FROM key k NOT INDEXED"                \
            " WHERE id>?1 AND queue=?2 ORDER BY id LIMIT ?3")                  \
    X(NEXT_DUE, "SELECT due FROM " WQ__EXTRA_OF_KEYS                           \
                " WHERE x.queue=?1 AND due IS NOT NULL ORDER BY due LIMIT 1")  \
    X(NEXT_COOL,                                                               \
      "SELECT cool FROM " WQ__EXTRA_OF_KEYS                                    \
      " WHERE x.queue=?1 AND cool IS NOT NULL ORDER BY cool LIMIT 1")          \
    X(INSERT,                                                                  \
      "INSERT INTO key(id, key, st, flags, rank, seq, prio, since,"            \
      " hprio, got, queue) VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11)")        \
    X(UPDATE, "UPDATE key SET st=?3, flags=?4, rank=?5, seq=?6, prio=?7,"      \
              " since=?8, hprio=?9, got=?10 WHERE id=?1")                      \
    X(DELETE, "DELETE FROM key WHERE id=?1")                                   \
    X(SET_EXTRA,                                                               \
      "INSERT OR REPLACE INTO extra(" WQ__EXTRA_COLUMNS ", id, queue)"         \
      " VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15)")           \
    X(DELETE_EXTRA, "DELETE FROM extra WHERE id=?1")                           \
    X(COUNT, "SELECT count(*) FILTER (WHERE st=1), count(*) FILTER (WHERE"     \
             " st=2), count(*) FILTER (WHERE st=2 AND flags&1),"               \
             " (SELECT count(due) FROM extra WHERE queue=?1),"                 \
             " count(*) FILTER (WHERE st=4), count(*) FILTER (WHERE st<>3)"    \
             " + (SELECT count(*) FROM extra x CROSS JOIN key k ON k.id=x.id"  \
             " WHERE x.queue=?1 AND st=3"                                      \
             " AND (due IS NOT NULL OR cool IS NOT NULL))"                     \
             " FROM key NOT INDEXED WHERE queue=?1")                           \
    X(HELD_TIMES, "SELECT count(*), min(got), total(got) FROM key"             \
                  " WHERE queue=?1 AND st=2 AND rank IS NOT NULL")             \
    X(HOLDERS, "SELECT count(DISTINCT rank) FROM key"                          \
               " WHERE queue=?1 AND st=2 AND rank IS NOT NULL")                \
    X(DEPTHS, "SELECT rank, count(*) FROM key WHERE queue=?1 AND st=1"         \
              " AND rank IS NOT NULL GROUP BY rank"                            \
              " UNION ALL SELECT prio, count(*) FROM key WHERE queue=?1"       \
              " AND st=2 AND rank IS NOT NULL AND flags&1 GROUP BY prio"       \
              " UNION ALL SELECT dprio, 0 FROM extra"                          \
              " WHERE queue=?1 AND due IS NOT NULL GROUP BY dprio")            \
    X(GET_BUCKET, "SELECT tokens, tokens_ns FROM queue WHERE id=?1")           \
    X(SET_BUCKET, "UPDATE queue SET tokens=?2, tokens_ns=?3 WHERE id=?1")      \
    X(GET_META, "SELECT number, boot, epoch_ns, seen_ns FROM meta")            \
    X(SET_META, "UPDATE meta SET number=?1, boot=?2, epoch_ns=?3, seen_ns=?4")

enum wq__statement {
#define WQ__STATEMENT_NUMBER(name, sql) WQ__SQL_##name,
    WQ__STATEMENTS(WQ__STATEMENT_NUMBER)
#undef WQ__STATEMENT_NUMBER
        WQ__STATEMENTS_LEN
};

struct wq__db {
    sqlite3      *sqlite;
    sqlite3_stmt *statements[WQ__STATEMENTS_LEN]; /* made at the first use */
    const char   *path;
};

/* ---- one row -------------------------------------------------------------- */

/* `key.st` */
enum wq__row_state {
    WQ__ROW_READY = 1,
    WQ__ROW_HELD = 2,
    WQ__ROW_OTHER = 3, /* WAITING, in a cooldown, or only with failures */
    WQ__ROW_DEAD = 4,
};

/* `key.flags`. Numbers of the file format: never change them. */
enum wq__row_flag {
    WQ__ROW_DIRTY = 1,
    WQ__ROW_BACKOFF = 2,
    WQ__ROW_COVERS_ADD = 4,
    WQ__ROW_DEBOUNCED = 8,
    WQ__ROW_EXTRA = 16, /* it has a row in the table `extra` */
};

/* ---- the engine ----------------------------------------------------------- */

struct wq__sqlite {
    struct wq__engine       base;
    struct wq__rows         rows; /* the queue's */
    wq_sqlite_sync          sync;
    int                     holder_pid; /* 0: holds belong to the session */
    char                   *path;       /* owned */
    uint32_t                queue;      /* its id in the file */
    uint64_t                secret[2];  /* of the file: for hashes of keys */
    struct wq__db           db;
    struct wq__side        *side;
    struct wq__offset_clock clock;

    /* The own session; 0: none. That of holder_pid, if there is one, is
     * rows.holder. */
    int64_t session;
    /* It began in a batch that the shell has not heard of. Written by run() and
     * reconcile(), read by renew(): sequentially consistent, it is rare. */
    atomic_bool unreported;

    /* ---- the transaction under way, beside what `rows` has of it ---- */
    bool     counted; /* rows.counts are known */
    bool     wrote;
    bool     locked;     /* ... nothing, because another program has the lock */
    int64_t  ceiling;    /* numbers up to here are reserved */
    int64_t  buries;     /* a session that holds nothing any more; 0: none */
    bool     sync_first; /* it is durable before anybody learns of it */
    uint64_t commits;    /* the number of the last one, when it has ended */

    /* The WAL, for settle(). It is the same from the first commit until the
     * database is closed; written by run(), so relaxed: what settle() syncs was
     * written before the shell called it. */
    _Atomic(sqlite3_file *) wal;
    struct wq__lock         sync_lock; /* around every sync of the WAL */

    int wal_frames;    /* in the WAL after the last commit */
    int checkpoint_at; /* wal_frames from which on a checkpoint may be due */

    unsigned char key[WQ_KEY_MAX]; /* of the row that was fetched last */
};

/* ---- database.c ----------------------------------------------------------- */

/* Open the file, which may be empty. `create` makes it. */
wq_err wq__db_open(struct wq__db *db, const char *path, bool create,
                   int64_t busy_ns);
void   wq__db_close(struct wq__db *db);

/* Keep *frames, the number of pages in the WAL, up to date. */
void wq__db_count_frames(struct wq__db *db, int *frames);

/* How many pages the database has; 0: not known. */
int64_t wq__db_pages(struct wq__db *db);

/* Is it one of ours? *empty: it is new. WQ_EINVAL, WQ_EVERSION, ... Reads
 * only. */
wq_err wq__db_check(struct wq__db *db, bool *empty);

/* Make the tables of an empty file; then it is durable, unless LAZY. */
wq_err wq__db_make(struct wq__db *db, wq_sqlite_sync sync);

/* Set the connection up: WAL, no automatic checkpoints, and so on. */
wq_err wq__db_set_up(struct wq__db *db, wq_sqlite_sync sync);

/* The id of a queue by name. WQ_ENOTFOUND, unless `create`. */
wq_err wq__db_queue(struct wq__db *db, const char *name, bool create,
                    uint32_t *id);
wq_err wq__db_secret(struct wq__db *db, uint64_t secret[2]);

/* A statement, ready to be bound. NULL: see wq__db_error(). */
sqlite3_stmt *wq__db_statement(struct wq__db *db, enum wq__statement which);

/* Run a bound statement that returns no row, or at most one: SQLITE_DONE,
 * SQLITE_ROW, or an error. After SQLITE_ROW call sqlite3_reset(). */
int wq__db_step(sqlite3_stmt *s);

/* Run a statement without arguments and results. */
wq_err wq__db_run(struct wq__db *db, enum wq__statement which);

/* What the last error of SQLite means, with a sentence, if nothing was
 * committed: WQ_EAWAY; WQ_EINVAL: it is not a database. */
wq_err wq__db_error(struct wq__db *db, const char *doing);

/* ---- time.c --------------------------------------------------------------- */

/* The clock `given` by the user, or that of the store. */
void wq__sqlite_clock_init(struct wq__sqlite *e, wq_clock *given);

/* In a transaction: agree on the time with all that have used the file, and
 * reserve numbers. `fresh`: nobody uses the file. */
wq_err wq__sqlite_begin_epoch(struct wq__sqlite *e, bool fresh);

/* Before a commit: the file reserves all numbers that are in use. */
wq_err wq__sqlite_reserve(struct wq__sqlite *e);

/* ---- rows.c --------------------------------------------------------------- */

extern const struct wq__row_store wq__sqlite_rows;

/* The engine that rows belong to. */
struct wq__sqlite *wq__sqlite_of(struct wq__rows *r);

/* Read the row that a statement has arrived at. The key is valid until the
 * statement is reset. */
wq_err wq__row_read(struct wq__sqlite *e, sqlite3_stmt *s, struct wq__row *row,
                    wq_key *key);

/* Is the id of a row one of those that its key may have? */
bool wq__row_is_in_place(const struct wq__sqlite *e, wq_key key, int64_t id);

/* Read the row that a bound statement finds, if it finds one, and reset it. The
 * key is valid until the next call. WQ_ENOTFOUND: it finds none. */
wq_err wq__row_fetch(struct wq__sqlite *e, sqlite3_stmt *s, struct wq__row *row,
                     wq_key *key);

/* Before a commit: write the queue's bucket if it has changed. */
wq_err wq__sqlite_save_bucket(struct wq__sqlite *e);

/* ---- view.c --------------------------------------------------------------- */

wq_err wq__sqlite_recount(struct wq__sqlite *e);
wq_err wq__sqlite_read_stats(struct wq__sqlite *e, wq_stats *out);
wq_err wq__sqlite_read_depths(struct wq__sqlite *e, wq_depth *out, size_t max,
                              size_t *n);
wq_err wq__sqlite_walk(struct wq__sqlite *e, struct wq__op *op);
wq_err wq__sqlite_check(struct wq__sqlite *e,
                        void (*problem)(void *ctx, const char *text),
                        void *ctx);
/* The first time that NEXT_DUE or NEXT_COOL finds. */
wq_err wq__sqlite_next(struct wq__sqlite *e, enum wq__statement which,
                       int64_t *out);
/* Before a commit: find counts.next_ns anew if it is stale. */
wq_err wq__sqlite_refresh_next(struct wq__sqlite *e);

/* ---- sessions.c ----------------------------------------------------------- */

/* Another session that has ended gives back its keys. */
wq_err wq__sqlite_settle_others(struct wq__sqlite *e, struct wq__did *did);

/* Give back all that the own session holds. */
wq_err wq__sqlite_return_own(struct wq__sqlite *e, bool expired);

/* Give back what the own session holds and `known` does not name, without an
 * expiry. */
wq_err wq__sqlite_release(struct wq__sqlite *e, const struct wq__known *known,
                          size_t n);

/* Keys whose owner no process knows: after a loss of power, or of the
 * directory. */
wq_err wq__sqlite_adopt_orphans(struct wq__sqlite *e);

/* ---- durable.c ------------------------------------------------------------ */

/* With the lock: COMMIT. With ALL, SQLite syncs all commits so far. */
wq_err wq__sqlite_run_commit(struct wq__sqlite *e);

/* With the lock, at the end of a transaction: move pages from the WAL to the
 * database, if there are many, or if a sync has failed. */
void wq__sqlite_checkpoint(struct wq__sqlite *e);

/* With the lock: move all of them. */
void wq__sqlite_move_log(struct wq__sqlite *e);

/* Are `commits` of them on the disk? */
bool wq__sqlite_is_durable(const struct wq__sqlite *e, uint64_t commits);

/* Without the lock, any thread: they are when this returns WQ_OK. */
wq_err wq__sqlite_make_durable(struct wq__sqlite *e, uint64_t commits);

/* Time and size of the database file. Only checkpoints write to it, so between
 * them this does not change, unless somebody restores a copy of it. */
uint64_t wq__sqlite_stamp(const struct wq__sqlite *e);

/* ---- engine.c ------------------------------------------------------------- */

extern const struct wq__engine_ops wq__sqlite_ops;

/* The engine has its file and its side: begin the first session. `fresh`: as by
 * wq__side_open(). */
wq_err wq__sqlite_join(struct wq__sqlite *e, bool fresh);

/* Free an engine, joined or not. */
void wq__sqlite_free(struct wq__sqlite *e, bool forked);

#endif
