/* SPDX-License-Identifier: MIT */
/* database.c: what is in the file, and what do errors of SQLite mean?
 *
 * Tables: `meta` has one row, `queue` one per queue, `key` one per key that has a
 * state, a cooldown, or failures, and `extra` one per key that has a deadline, a
 * cooldown, failures or a bucket. docs/backends.md describes them for people.
 *
 * Most keys go through the queue without a row in `extra`. Each write of a row
 * costs for every tree that it may be in, and each tree has a page of its own to
 * write: so `key` has one index, for READY, HELD and DEAD keys, and is found by a
 * hash that is its rowid.
 *
 * Errors before a commit leave the file as it was: WQ_EAWAY. Whether a commit
 * that failed will be there after a crash is not known: WQ_EIO (engine.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "error/error.h"
#include "port/random.h"
#include "store.h"

/* FILTER and "PRAGMA data_version" are older; STRICT tables are 3.37. */
enum { OLDEST_SQLITE = 3037000 };

/* A page cache of 4 MB. A page that is not in it is in that of the kernel as a
 * rule, a microsecond away. A larger cache is no gain: SQLite searches all of it
 * after it has moved pages in a tree, which a queue of a million keys does often.
 * With 16 MB an add takes a quarter more there. */
#define CACHE "PRAGMA cache_size=-4096"

/* The pages of a new file. A transaction that moves one key writes two or three
 * pages, each as a whole, however little has changed in it. Half of SQLite's
 * usual 4 KB is half as much to sum up, to copy and to sync. With 1 KB a small
 * queue needs another tenth less, but one of a million keys twice as much: then
 * SQLite splits pages more often, and searches its whole cache after it. */
#define PAGE "PRAGMA page_size=2048"

static const char schema[] =
    "CREATE TABLE meta("
    "  one INTEGER PRIMARY KEY CHECK(one=1)," /* there is one row */
    "  secret BLOB NOT NULL,"                 /* for key.id */
    "  number INTEGER NOT NULL,"   /* seq, fence and arrival are below it */
    "  boot TEXT NOT NULL,"        /* of epoch_ns */
    "  epoch_ns INTEGER NOT NULL," /* the store's time minus CLOCK_BOOTTIME */
    "  seen_ns INTEGER NOT NULL"   /* the store's time was at least this */
    ") STRICT;"
    "CREATE TABLE queue("
    "  id INTEGER PRIMARY KEY,"
    "  name TEXT NOT NULL UNIQUE,"
    "  tokens REAL, tokens_ns INTEGER" /* the bucket of its limiter */
    ") STRICT;"
    "CREATE TABLE key("
    "  id INTEGER PRIMARY KEY," /* SipHash-1-3 of `queue` and `key` */
    "  queue INTEGER NOT NULL,"
    "  key BLOB NOT NULL,"
    "  st INTEGER NOT NULL,"       /* 1 READY 2 HELD 3 neither 4 DEAD */
    "  flags INTEGER NOT NULL,"    /* 1 DIRTY 2 BACKOFF 4 covers an add
                                   8 debounced 16 has a row in `extra` */
    "  rank INTEGER, seq INTEGER," /* READY, DEAD: priority, place
                                      HELD: session, fence */
    "  prio INTEGER,"              /* DIRTY: of the next run */
    "  since INTEGER,"             /* READY, DIRTY, DEAD */
    "  hprio INTEGER, got INTEGER" /* HELD: of the hand-out */
    ") STRICT;"
    "CREATE INDEX key_order ON key(queue, st, rank DESC, seq)"
    " WHERE rank IS NOT NULL;"
    "CREATE TABLE extra("
    "  id INTEGER PRIMARY KEY," /* of the key */
    "  queue INTEGER NOT NULL,"
    "  due INTEGER, arrival INTEGER, dprio INTEGER,"     /* WAITING */
    "  cool INTEGER, latest INTEGER, cool_next INTEGER," /* debounce and */
    "  cool_wait INTEGER, cool_until INTEGER,"           /* throttle */
    "  fails INTEGER, failed INTEGER, expiries INTEGER,"
    "  tokens REAL, tokens_ns INTEGER" /* the bucket of the key */
    ") STRICT;"
    "CREATE INDEX extra_due ON extra(queue, due, arrival)"
    " WHERE due IS NOT NULL;"
    "CREATE INDEX extra_cool ON extra(queue, cool) WHERE cool IS NOT NULL;"
    "CREATE INDEX extra_bucket ON extra(queue, tokens_ns)"
    " WHERE tokens_ns IS NOT NULL;";

/* ---- errors --------------------------------------------------------------- */

static wq_err
meaning(int code)
{
    switch (code & 0xff) {
    case SQLITE_OK:
    case SQLITE_ROW:
    case SQLITE_DONE:
        return WQ_OK;
    case SQLITE_NOTADB:
        return WQ_EINVAL;
    default:
        return WQ_EAWAY;
    }
}

/* What a person can do about it. */
static const char *
advice(int code)
{
    switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return ": another program has locked it; end that program";
    case SQLITE_FULL:
        return ": make space on the file system";
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
        return ": the file and its directory must be writable";
    case SQLITE_CORRUPT:
        return ": restore a copy of the file";
    default:
        return "";
    }
}

wq_err
wq__db_error(struct wq__db *db, const char *doing)
{
    const int code =
        db->sqlite ? sqlite3_extended_errcode(db->sqlite) : SQLITE_NOMEM;
    const wq_err err = meaning(code);

    return wq_fail(
        err ? err : WQ_EAWAY, "sqlite: cannot %s '%s': %s%s", doing, db->path,
        db->sqlite ? sqlite3_errmsg(db->sqlite) : sqlite3_errstr(code),
        advice(code));
}

/* ---- statements ----------------------------------------------------------- */

static const char *const sql[] = {
#define TEXT(name, text) text,
    WQ__STATEMENTS(TEXT)
#undef TEXT
};

sqlite3_stmt *
wq__db_statement(struct wq__db *db, enum wq__statement which)
{
    sqlite3_stmt **s = &db->statements[which];

    if (!*s)
        (void)sqlite3_prepare_v3(db->sqlite, sql[which], -1,
                                 SQLITE_PREPARE_PERSISTENT, s, NULL);
    return *s;
}

int
wq__db_step(sqlite3_stmt *s)
{
    const int code = sqlite3_step(s);

    if (code != SQLITE_ROW)
        (void)sqlite3_reset(s);
    return code;
}

wq_err
wq__db_run(struct wq__db *db, enum wq__statement which)
{
    sqlite3_stmt *s = wq__db_statement(db, which);

    return s && wq__db_step(s) == SQLITE_DONE ? WQ_OK : wq__db_error(db, "use");
}

static wq_err
execute(struct wq__db *db, const char *text)
{
    return sqlite3_exec(db->sqlite, text, NULL, NULL, NULL) == SQLITE_OK
               ? WQ_OK
               : wq__db_error(db, "use");
}

/* The number that a statement returns. */
static wq_err
read_number(struct wq__db *db, const char *text, int64_t *out)
{
    sqlite3_stmt *s = NULL;
    wq_err        err = WQ_OK;

    if (sqlite3_prepare_v2(db->sqlite, text, -1, &s, NULL) ||
        sqlite3_step(s) != SQLITE_ROW)
        err = wq__db_error(db, "read");
    else
        *out = sqlite3_column_int64(s, 0);
    (void)sqlite3_finalize(s);
    return err;
}

/* ---- opening -------------------------------------------------------------- */

/* The file exists. One that cannot be written is refused before anything is made
 * beside it: that would get the rights of the file, and could not be written
 * either when the file can be again. */
static wq_err
check_file(const char *path, mode_t mode)
{
    if (!S_ISREG(mode))
        return wq_fail(WQ_EINVAL, "sqlite: '%s' is %s", path,
                       S_ISDIR(mode) ? "a directory" : "not a regular file");
    if (faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0)
        return WQ_OK;
    return wq_fail(WQ_EAWAY,
                   "sqlite: cannot write '%s': %s; all that use the queue must "
                   "be able to write the file and its directory",
                   path, strerror(errno));
}

/* What SQLite would not say clearly. */
static wq_err
check_path(const char *path, bool create)
{
    char        copy[4096];
    struct stat st;

    (void)snprintf(copy, sizeof copy, "%s", path);
    if (stat(path, &st) == 0)
        return check_file(path, st.st_mode);
    if (errno == ENOENT && stat(dirname(copy), &st))
        return wq_fail(WQ_ENOTFOUND,
                       "sqlite: there is no directory for '%s'; make it first",
                       path);
    return create
               ? WQ_OK
               : wq_fail(WQ_ENOTFOUND,
                         "sqlite: there is no file '%s'; the first add to the "
                         "queue makes it",
                         path);
}

/* Locks and shared memory of such file systems do not reach other machines, or
 * do not exist. */
static wq_err
refuse_network(const char *path)
{
    char          copy[4096];
    struct statfs fs;

    (void)snprintf(copy, sizeof copy, "%s", path);
    if (statfs(path, &fs) && statfs(dirname(copy), &fs))
        return WQ_OK; /* opening it will say why */
    switch ((unsigned long)fs.f_type) {
    case NFS_SUPER_MAGIC:
    case SMB_SUPER_MAGIC:
    case 0xff534d42: /* CIFS */
    case 0xfe534d42: /* SMB2 */
    case 0x65735546: /* FUSE: sshfs and the like; most have no shared locks */
        return wq_fail(WQ_ENOTSUP,
                       "sqlite: '%s' is on a network file system; keep the "
                       "queue on a disk of this machine",
                       path);
    default:
        return WQ_OK;
    }
}

static int
remember_frames(void *frames, sqlite3 *sqlite, const char *name, int n)
{
    (void)sqlite, (void)name;
    *(int *)frames = n;
    return SQLITE_OK;
}

void
wq__db_count_frames(struct wq__db *db, int *frames)
{
    (void)sqlite3_wal_hook(db->sqlite, remember_frames, frames);
}

int64_t
wq__db_pages(struct wq__db *db)
{
    int64_t pages = 0;

    return read_number(db, "PRAGMA page_count", &pages) ? 0 : pages;
}

wq_err
wq__db_open(struct wq__db *db, const char *path, bool create, int64_t busy_ns)
{
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX |
                      SQLITE_OPEN_EXRESCODE | (create ? SQLITE_OPEN_CREATE : 0);
    const int64_t busy_ms = busy_ns / 1000000;

    *db = (struct wq__db){.path = path};
    if (sqlite3_libversion_number() < OLDEST_SQLITE)
        return wq_fail(WQ_ENOTSUP,
                       "sqlite: SQLite %s is too old; 3.37 or later is needed",
                       sqlite3_libversion());
    wq_err err = check_path(path, create);
    if (!err)
        err = refuse_network(path);
    if (err)
        return err;
    if (!sqlite3_threadsafe())
        return wq_fail(WQ_ENOTSUP, "sqlite: SQLite was built without threads");
    if (sqlite3_open_v2(path, &db->sqlite, flags, NULL))
        return wq__db_error(db, "open");
    /* All checkpoints are ours, under the writer lock: releases of SQLite before
     * 3.51.3 can lose data if two processes checkpoint at the same time. And a
     * file of another program is not touched. */
    (void)sqlite3_db_config(db->sqlite, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1,
                            NULL);
    (void)sqlite3_busy_timeout(db->sqlite,
                               busy_ms < INT32_MAX ? (int)busy_ms : INT32_MAX);
    return WQ_OK;
}

void
wq__db_close(struct wq__db *db)
{
    for (size_t i = 0; i < WQ__STATEMENTS_LEN; i++)
        (void)sqlite3_finalize(db->statements[i]);
    (void)sqlite3_close(db->sqlite);
    *db = (struct wq__db){.path = db->path};
}

/* What tells a file of ours from others, as of one moment: another process may
 * be making the tables. */
static wq_err
read_marks(struct wq__db *db, int64_t *application, int64_t *version,
           int64_t *tables)
{
    wq_err err = execute(db, "BEGIN");

    if (err)
        return err;
    err = read_number(db, "PRAGMA application_id", application);
    if (!err)
        err = read_number(db, "PRAGMA user_version", version);
    if (!err)
        err = read_number(db, "SELECT count(*) FROM sqlite_schema", tables);
    (void)sqlite3_exec(db->sqlite, "ROLLBACK", NULL, NULL, NULL);
    return err;
}

/* A file without tables may be one whose making was interrupted: SQLite writes
 * its first page before we write ours. */
wq_err
wq__db_check(struct wq__db *db, bool *empty)
{
    int64_t      application = 0, version = 0, tables = 0;
    const wq_err err = read_marks(db, &application, &version, &tables);

    if (err == WQ_EINVAL)
        return wq_fail(WQ_EINVAL,
                       "sqlite: '%s' is not an SQLite database; choose another "
                       "file",
                       db->path);
    if (err)
        return err;
    *empty = !application && !version && !tables;
    if (*empty)
        return WQ_OK;
    if (application != WQ__SQLITE_APPLICATION)
        return wq_fail(WQ_EINVAL,
                       "sqlite: '%s' is a database of another program; choose "
                       "another file",
                       db->path);
    if (version > WQ__SQLITE_SCHEMA)
        return wq_fail(WQ_EVERSION,
                       "sqlite: '%s' was written by a newer release of wq "
                       "(schema %" PRId64 ", this one knows %d); update wq",
                       db->path, version, WQ__SQLITE_SCHEMA);
    if (version < WQ__SQLITE_SCHEMA)
        return wq_fail(WQ_EVERSION,
                       "sqlite: '%s' was written before the first release of "
                       "wq (schema %" PRId64 ", this one knows %d); process "
                       "its keys with the wq that made it, or choose another "
                       "file",
                       db->path, version, WQ__SQLITE_SCHEMA);
    return WQ_OK;
}

wq_err
wq__db_set_up(struct wq__db *db, wq_sqlite_sync sync)
{
    wq_err err = WQ_OK;

    (void)sqlite3_db_config(db->sqlite, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    (void)sqlite3_db_config(db->sqlite, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0,
                            NULL);
    err = execute(db, "PRAGMA journal_mode=WAL");
    if (!err)
        err = execute(db, sync == WQ_SQLITE_SYNC_ALL
                              ? "PRAGMA synchronous=FULL"
                              : "PRAGMA synchronous=NORMAL");
    if (!err)
        err = execute(db, "PRAGMA wal_autocheckpoint=0");
    if (!err)
        err = execute(db, "PRAGMA temp_store=MEMORY");
    return err ? err : execute(db, CACHE);
}

/* ---- making --------------------------------------------------------------- */

static wq_err
insert_meta(struct wq__db *db)
{
    unsigned char secret[16];
    sqlite3_stmt *s = NULL;

    if (wq__random(secret, sizeof secret))
        return wq_fail(WQ_EIO, "sqlite: the system has no random numbers");
    (void)sqlite3_prepare_v2(db->sqlite,
                             "INSERT INTO meta VALUES(1, ?1, 0, '', 0, 0)", -1,
                             &s, NULL);
    if (s)
        (void)sqlite3_bind_blob(s, 1, secret, sizeof secret, SQLITE_STATIC);
    const bool   done = s && sqlite3_step(s) == SQLITE_DONE;
    const wq_err err = done ? WQ_OK : wq__db_error(db, "initialise");
    (void)sqlite3_finalize(s);
    return err;
}

/* The name of a new file is durable when its directory is. */
static wq_err
sync_directory(const char *path)
{
    char copy[4096];

    (void)snprintf(copy, sizeof copy, "%s", path);
    const int  fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bool synced = fd >= 0 && fsync(fd) == 0;
    if (fd >= 0)
        (void)close(fd);
    return synced ? WQ_OK
                  : wq_fail(WQ_EIO, "sqlite: cannot sync the directory of '%s'",
                            path);
}

wq_err
wq__db_make(struct wq__db *db, wq_sqlite_sync sync)
{
    char       text[128];
    const bool syncs = sync != WQ_SQLITE_SYNC_LAZY;
    wq_err     err = execute(db, PAGE);

    if (!err)
        err = execute(db, "PRAGMA journal_mode=WAL");
    if (!err)
        err = execute(db, syncs ? "PRAGMA synchronous=FULL"
                                : "PRAGMA synchronous=NORMAL");
    if (!err)
        err = execute(db, "BEGIN IMMEDIATE");
    if (err)
        return err;
    (void)snprintf(text, sizeof text,
                   "PRAGMA application_id=%d; PRAGMA user_version=%d",
                   WQ__SQLITE_APPLICATION, WQ__SQLITE_SCHEMA);
    err = execute(db, schema);
    if (!err)
        err = insert_meta(db);
    if (!err)
        err = execute(db, text);
    if (!err)
        err = execute(db, "COMMIT");
    if (err) {
        (void)sqlite3_exec(db->sqlite, "ROLLBACK", NULL, NULL, NULL);
        return err;
    }
    return syncs ? sync_directory(db->path) : WQ_OK;
}

/* ---- what does not change ------------------------------------------------- */

static wq_err
find_queue(struct wq__db *db, const char *name, uint32_t *id)
{
    sqlite3_stmt *s = NULL;
    wq_err        err = WQ_OK;

    (void)sqlite3_prepare_v2(db->sqlite, "SELECT id FROM queue WHERE name=?1",
                             -1, &s, NULL);
    if (s)
        (void)sqlite3_bind_text(s, 1, name, -1, SQLITE_STATIC);
    const int     code = s ? sqlite3_step(s) : SQLITE_ERROR;
    const int64_t found = code == SQLITE_ROW ? sqlite3_column_int64(s, 0) : 0;
    if (found > 0 && found <= WQ__SIDE_QUEUES)
        *id = (uint32_t)found;
    else if (code == SQLITE_ROW)
        err = wq_fail(WQ_EAWAY, "sqlite: the table 'queue' in '%s' is damaged",
                      db->path);
    else
        err = code == SQLITE_DONE ? WQ_ENOTFOUND : wq__db_error(db, "read");
    (void)sqlite3_finalize(s);
    return err;
}

static wq_err
make_queue(struct wq__db *db, const char *name)
{
    int64_t       n = 0;
    sqlite3_stmt *s = NULL;
    wq_err        err = read_number(db, "SELECT count(*) FROM queue", &n);

    if (err)
        return err;
    if (n >= WQ__SIDE_QUEUES)
        return wq_fail(WQ_EFULL, "sqlite: there are %d queues in '%s' already",
                       WQ__SIDE_QUEUES, db->path);
    (void)sqlite3_prepare_v2(db->sqlite, "INSERT INTO queue(name) VALUES(?1)",
                             -1, &s, NULL);
    if (s)
        (void)sqlite3_bind_text(s, 1, name, -1, SQLITE_STATIC);
    if (!s || sqlite3_step(s) != SQLITE_DONE)
        err = wq__db_error(db, "make a queue in");
    (void)sqlite3_finalize(s);
    return err;
}

/* "; it has 'images', 'mail'", as far as it fits; "" for none. */
static void
list_queues(struct wq__db *db, char *out, size_t size)
{
    sqlite3_stmt *s = NULL;
    size_t        len = 0;

    *out = '\0';
    (void)sqlite3_prepare_v2(db->sqlite, "SELECT name FROM queue ORDER BY name",
                             -1, &s, NULL);
    while (s && len < size && sqlite3_step(s) == SQLITE_ROW)
        len += (size_t)snprintf(out + len, size - len, "%s'%s'",
                                len ? ", " : "; it has ",
                                (const char *)sqlite3_column_text(s, 0));
    (void)sqlite3_finalize(s);
}

static wq_err
fail_to_find(struct wq__db *db, const char *name)
{
    char others[200];

    list_queues(db, others, sizeof others);
    return wq_fail(WQ_ENOTFOUND, "sqlite: there is no queue '%s' in '%s'%s",
                   name, db->path, others);
}

wq_err
wq__db_queue(struct wq__db *db, const char *name, bool create, uint32_t *id)
{
    wq_err err = find_queue(db, name, id);

    if (err == WQ_ENOTFOUND && create) {
        err = make_queue(db, name);
        if (!err)
            err = find_queue(db, name, id);
    }
    return err == WQ_ENOTFOUND ? fail_to_find(db, name) : err;
}

wq_err
wq__db_secret(struct wq__db *db, uint64_t secret[2])
{
    sqlite3_stmt *s = NULL;
    bool          found = false;

    (void)sqlite3_prepare_v2(db->sqlite, "SELECT secret FROM meta", -1, &s,
                             NULL);
    if (s && sqlite3_step(s) == SQLITE_ROW &&
        sqlite3_column_bytes(s, 0) == 16) {
        const unsigned char *bytes = sqlite3_column_blob(s, 0);

        found = true;
        secret[0] = secret[1] = 0;
        for (unsigned i = 0; i < 16; i++) /* the same on every machine */
            secret[i / 8] |= (uint64_t)bytes[i] << (8 * (i % 8));
    }
    const wq_err err = found ? WQ_OK : wq__db_error(db, "read");
    (void)sqlite3_finalize(s);
    return err;
}
