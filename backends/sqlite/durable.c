/* SPDX-License-Identifier: MIT */
/* durable.c: when is a commit on the disk, and in the database?
 *
 * COMMIT writes to the WAL; ALL lets SQLite sync it there, under the lock. ADDS
 * leaves it to settle(), which the shell calls for operations that have promised
 * something, while the next transaction runs. An add that finds its key READY
 * promises what another process may have committed but not synced: so a promise is
 * kept when all commits so far are synced, also with ALL. `commits` numbers them,
 * and `synced` is how far they are on disk, for all processes: who finds it far
 * enough need not sync.
 *
 * A sync that fails is reported once, and what it could not write may be gone
 * although later syncs succeed. So from then on nothing is durable for any process
 * (wq__side_is_unsure()), until a checkpoint has copied the whole WAL to the
 * database: the next batch tries that.
 */
#include <sys/stat.h>

#include "error/error.h"
#include "store.h"

/* Pages in the WAL from which on a batch moves them to the database: as many as
 * the database has, within these bounds (of 2 KB: 2 MB and 32 MB). In a small
 * database the same few pages are written again and again, and the time in which
 * SQLite finds a page in the WAL grows with the number of its copies there: 8192
 * pages cost a quarter more processor time than 1024. In a large one most pages
 * are there once: to move them more often is more writing. More than 32 MB take
 * long to read after a crash. */
enum { CHECKPOINT_LEAST = 1024, CHECKPOINT_MOST = 16384 };

/* After SQLite has failed: was it a sync? */
static void
note_failed_sync(struct wq__sqlite *e)
{
    const int code = sqlite3_extended_errcode(e->db.sqlite);

    if (code == SQLITE_IOERR_FSYNC || code == SQLITE_IOERR_DIR_FSYNC)
        wq__side_set_unsure(e->side, true);
}

/* Remember the WAL, which exists once there was a commit, or a look: SQLite must not
 * be asked while another thread uses the database. */
static void
note_wal(struct wq__sqlite *e)
{
    sqlite3_file *file = NULL;

    (void)sqlite3_file_control(e->db.sqlite, "main",
                               SQLITE_FCNTL_JOURNAL_POINTER, &file);
    atomic_store_explicit(&e->wal, file, memory_order_relaxed);
}

wq_err
wq__sqlite_run_commit(struct wq__sqlite *e)
{
    const bool syncs = e->sync == WQ_SQLITE_SYNC_ALL;

    if (syncs)
        wq__lock_take(&e->sync_lock);
    const wq_err err = wq__db_run(&e->db, WQ__SQL_COMMIT);
    if (err)
        note_failed_sync(e);
    if (syncs)
        wq__lock_release(&e->sync_lock);
    return err;
}

uint64_t
wq__sqlite_stamp(const struct wq__sqlite *e)
{
    struct stat st;

    if (stat(e->path, &st))
        return 0;
    return ((uint64_t)st.st_mtim.tv_sec * 1000000000U +
            (uint64_t)st.st_mtim.tv_nsec) ^
           (uint64_t)st.st_size << 40 ^ 1;
}

/* With the lock, in a checkpoint of this kind. A TRUNCATE that succeeds has moved
 * all pages, and synced them. Syncs take turns: the system reports a failure to one
 * of two that run at the same time. */
static void
move_pages(struct wq__sqlite *e, int kind)
{
    *wq__side_stamp(e->side) = 0;
    wq__lock_take(&e->sync_lock);
    const int rc =
        sqlite3_wal_checkpoint_v2(e->db.sqlite, NULL, kind, NULL, NULL);
    if (rc != SQLITE_OK)
        note_failed_sync(e);
    else if (kind == SQLITE_CHECKPOINT_TRUNCATE)
        wq__side_set_unsure(e->side, false);
    wq__lock_release(&e->sync_lock);
    *wq__side_stamp(e->side) = wq__sqlite_stamp(e);
}

/* With the lock, after a sync has failed: make all commits durable in another
 * way. */
static void
recover(struct wq__sqlite *e)
{
    if (!wq__side_is_unsure(e->side))
        return;
    move_pages(e, SQLITE_CHECKPOINT_TRUNCATE);
    if (wq__side_is_unsure(e->side))
        return;
    wq__side_raise_synced(e->side, *wq__side_commits(e->side));
    e->wal_frames = 0;
}

/* How many pages the WAL may have before they are moved. */
static int
checkpoint_limit(struct wq__sqlite *e)
{
    const int64_t pages = wq__db_pages(&e->db);

    return pages < CHECKPOINT_LEAST  ? CHECKPOINT_LEAST
           : pages > CHECKPOINT_MOST ? CHECKPOINT_MOST
                                     : (int)pages;
}

void
wq__sqlite_checkpoint(struct wq__sqlite *e)
{
    if (e->sync != WQ_SQLITE_SYNC_LAZY)
        note_wal(e);
    recover(e);
    if (e->wal_frames < e->checkpoint_at)
        return;
    e->checkpoint_at = checkpoint_limit(e);
    if (e->wal_frames < e->checkpoint_at)
        return;
    move_pages(e, SQLITE_CHECKPOINT_PASSIVE);
    e->wal_frames = 0;
    e->checkpoint_at = CHECKPOINT_LEAST;
}

/* With sync_lock and without the writer lock: another thread may write to the WAL,
 * which a sync does not change. In the file object of SQLite it changes the note
 * that the directory of a new file is to be synced, and the last error: nothing
 * that a write reads. */
static wq_err
sync_wal(struct wq__sqlite *e)
{
    sqlite3_file *file = atomic_load_explicit(&e->wal, memory_order_relaxed);

    if (!file || !file->pMethods ||
        file->pMethods->xSync(file, SQLITE_SYNC_NORMAL))
        return wq_fail(WQ_EIO, "sqlite: cannot sync '%s-wal' to the disk",
                       e->path);
    return WQ_OK;
}

bool
wq__sqlite_is_durable(const struct wq__sqlite *e, uint64_t commits)
{
    return e->sync == WQ_SQLITE_SYNC_LAZY ||
           (wq__side_synced(e->side) >= commits &&
            !wq__side_is_unsure(e->side));
}

/* With sync_lock. */
static wq_err
sync_commits(struct wq__sqlite *e, uint64_t commits)
{
    if (wq__side_is_unsure(e->side))
        return wq_fail(WQ_EIO,
                       "sqlite: an earlier sync of '%s-wal' to the disk has "
                       "failed",
                       e->path);
    const wq_err err = sync_wal(e);
    if (err)
        wq__side_set_unsure(e->side, true);
    else
        wq__side_raise_synced(e->side, commits);
    return err;
}

wq_err
wq__sqlite_make_durable(struct wq__sqlite *e, uint64_t commits)
{
    if (wq__sqlite_is_durable(e, commits))
        return WQ_OK;
    wq__lock_take(&e->sync_lock);
    const wq_err err = sync_commits(e, commits);
    wq__lock_release(&e->sync_lock);
    return err;
}

void
wq__sqlite_move_log(struct wq__sqlite *e)
{
    move_pages(e, SQLITE_CHECKPOINT_TRUNCATE);
}
