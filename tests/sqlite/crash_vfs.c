/* SPDX-License-Identifier: MIT */
/* crash_vfs.c: what does each call of SQLite do on a disk that forgets and
 * fails? See crash_vfs.h.
 */
#include "sqlite/crash_vfs.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sqlite/crash_inside.h"

struct file {
    sqlite3_file     base;
    struct contents *contents;  /* NULL: a file that is not watched */
    const char      *path;      /* of the name; NULL if it has none */
    bool             syncs_dir; /* its next sync does */
    bool             is_log;    /* a write-ahead log */
    _Alignas(8) char real_[]; /* the file of the real VFS: SQLite aligns to 8 */
};

static sqlite3_vfs *real;

static sqlite3_file *
real_of(sqlite3_file *f)
{
    return (sqlite3_file *)(void *)((struct file *)f)->real_;
}

/* For calls that only may kill the process. */
static void
pass(void)
{
    crash_enter();
    crash_leave();
}

/* For calls that may also fail, but change no file. */
static bool
is_refused(sqlite3_file *f, enum crash_vfs_call call, const char *name)
{
    crash_enter();
    const bool fail = crash_fails(call, name, ((struct file *)f)->path);
    crash_leave();
    return fail;
}

/* The call that fails is carried out. */
static bool
only_says_so(void)
{
    return crash_how() == CRASH_VFS_DONE_ONLY;
}

/* ---- files --------------------------------------------------------------- */

static int
vfs_close(sqlite3_file *f)
{
    return real_of(f)->pMethods->xClose(real_of(f));
}

static int
vfs_read(sqlite3_file *f, void *to, int n, sqlite3_int64 at)
{
    return is_refused(f, CRASH_VFS_READ, "xRead")
               ? SQLITE_IOERR_READ
               : real_of(f)->pMethods->xRead(real_of(f), to, n, at);
}

static int
write_both(struct file *file, const void *from, int n, sqlite3_int64 at)
{
    const int rc = real_of(&file->base)
                       ->pMethods->xWrite(real_of(&file->base), from, n, at);

    if (rc == SQLITE_OK && file->contents)
        disk_put(file->contents, from, (size_t)n, (size_t)at);
    return rc;
}

static int
failing_write(struct file *file, const void *from, int n, sqlite3_int64 at)
{
    if (crash_how() == CRASH_VFS_SHORT)
        (void)write_both(file, from, n / 2, at);
    if (only_says_so())
        (void)write_both(file, from, n, at);
    return crash_how() == CRASH_VFS_IOERR || only_says_so() ? SQLITE_IOERR_WRITE
                                                            : SQLITE_FULL;
}

static bool
is_over_capacity(const struct file *file, int n, sqlite3_int64 at)
{
    return file->contents &&
           crash_is_over_capacity(at + n - (int64_t)disk_size(file->contents));
}

static int
vfs_write(sqlite3_file *f, const void *from, int n, sqlite3_int64 at)
{
    struct file *file = (struct file *)f;
    int          rc;

    crash_enter();
    if (crash_fails(CRASH_VFS_WRITE, "xWrite", file->path))
        rc = failing_write(file, from, n, at);
    else if (is_over_capacity(file, n, at))
        rc = SQLITE_FULL;
    else
        rc = write_both(file, from, n, at);
    if (file->contents)
        crash_count_change();
    crash_leave();
    return rc;
}

static int
vfs_truncate(sqlite3_file *f, sqlite3_int64 size)
{
    struct file *file = (struct file *)f;
    int          rc = SQLITE_OK;

    crash_enter();
    const bool fail = crash_fails(CRASH_VFS_TRUNCATE, "xTruncate", file->path);
    if (!fail || only_says_so())
        rc = real_of(f)->pMethods->xTruncate(real_of(f), size);
    if (rc == SQLITE_OK && file->contents && (!fail || only_says_so())) {
        disk_cut(file->contents, (size_t)size);
        crash_count_change();
    }
    crash_leave();
    return fail ? SQLITE_IOERR_TRUNCATE : rc;
}

static void
pause_us(unsigned us)
{
    const struct timespec t = {.tv_nsec = 1000L * us};

    if (us)
        (void)nanosleep(&t, NULL);
}

/* Called and returns with the mutex. */
static void
carry_out_sync(struct file *file)
{
    struct sync   *s = disk_begin_sync(file->contents);
    const unsigned us = crash_draw_sync_us();

    crash_leave();
    pause_us(us);
    crash_lock();
    disk_end_sync(file->contents, s);
    if (file->syncs_dir)
        disk_sync_names();
    file->syncs_dir = false;
}

static int
vfs_sync(sqlite3_file *f, int flags)
{
    struct file *file = (struct file *)f;

    (void)flags;
    crash_enter();
    const bool fail = crash_fails(CRASH_VFS_SYNC, "xSync", file->path);
    if (!file->contents || (fail && !only_says_so())) {
        crash_leave();
        return fail ? SQLITE_IOERR_FSYNC : SQLITE_OK;
    }
    const bool before =
        disk_draw() & 1; /* loss before it took effect, or after */
    if (before)
        crash_count_change();
    if (!(file->is_log && crash_ignores_log_sync()))
        carry_out_sync(file);
    if (!before)
        crash_count_change();
    crash_leave();
    return fail ? SQLITE_IOERR_FSYNC : SQLITE_OK;
}

static int
vfs_size(sqlite3_file *f, sqlite3_int64 *out)
{
    return is_refused(f, CRASH_VFS_SIZE, "xFileSize")
               ? SQLITE_IOERR_FSTAT
               : real_of(f)->pMethods->xFileSize(real_of(f), out);
}

static int
vfs_lock(sqlite3_file *f, int level)
{
    return is_refused(f, CRASH_VFS_LOCK, "xLock")
               ? SQLITE_IOERR_LOCK
               : real_of(f)->pMethods->xLock(real_of(f), level);
}

static int
vfs_unlock(sqlite3_file *f, int level)
{
    pass();
    return real_of(f)->pMethods->xUnlock(real_of(f), level);
}

static int
vfs_check_reserved(sqlite3_file *f, int *out)
{
    pass();
    return real_of(f)->pMethods->xCheckReservedLock(real_of(f), out);
}

static int
vfs_control(sqlite3_file *f, int op, void *arg)
{
    return real_of(f)->pMethods->xFileControl(real_of(f), op, arg);
}

static int
vfs_sector_size(sqlite3_file *f)
{
    return real_of(f)->pMethods->xSectorSize(real_of(f));
}

static int
vfs_characteristics(sqlite3_file *f)
{
    return real_of(f)->pMethods->xDeviceCharacteristics(real_of(f));
}

static int
vfs_shm_map(sqlite3_file *f, int page, int size, int extend, void volatile **p)
{
    return is_refused(f, CRASH_VFS_SHM_MAP, "xShmMap")
               ? SQLITE_IOERR_SHMMAP
               : real_of(f)->pMethods->xShmMap(real_of(f), page, size, extend,
                                               p);
}

static int
vfs_shm_lock(sqlite3_file *f, int at, int n, int flags)
{
    pass();
    return real_of(f)->pMethods->xShmLock(real_of(f), at, n, flags);
}

static void
vfs_shm_barrier(sqlite3_file *f)
{
    real_of(f)->pMethods->xShmBarrier(real_of(f));
}

static int
vfs_shm_unmap(sqlite3_file *f, int and_delete)
{
    return real_of(f)->pMethods->xShmUnmap(real_of(f), and_delete);
}

/* Version 2: shared memory, but no mapped reads and writes of the file itself,
 * which the shim would not see. */
static const sqlite3_io_methods methods = {
    .iVersion = 2,
    .xClose = vfs_close,
    .xRead = vfs_read,
    .xWrite = vfs_write,
    .xTruncate = vfs_truncate,
    .xSync = vfs_sync,
    .xFileSize = vfs_size,
    .xLock = vfs_lock,
    .xUnlock = vfs_unlock,
    .xCheckReservedLock = vfs_check_reserved,
    .xFileControl = vfs_control,
    .xSectorSize = vfs_sector_size,
    .xDeviceCharacteristics = vfs_characteristics,
    .xShmMap = vfs_shm_map,
    .xShmLock = vfs_shm_lock,
    .xShmBarrier = vfs_shm_barrier,
    .xShmUnmap = vfs_shm_unmap,
};

/* ---- the directory ------------------------------------------------------- */

enum {
    JOURNAL = SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_WAL,
    WATCHED = SQLITE_OPEN_MAIN_DB | JOURNAL,
};

/* The file at `name` is open; `was_there` before. */
static void
watch(struct file *file, const char *path, bool was_there, int flags)
{
    struct name *name = disk_find_name(path, true);

    if (!name->now && was_there)
        name->now = name->disk = disk_read_contents(path);
    if (!name->now) {
        disk_change_name(name, disk_read_contents(path));
        crash_count_change();
    }
    file->contents = name->now;
    file->syncs_dir = (flags & JOURNAL) && (flags & SQLITE_OPEN_CREATE);
    file->is_log = flags & SQLITE_OPEN_WAL;
    file->path = name->path;
}

static int
vfs_open(sqlite3_vfs *vfs, const char *path, sqlite3_file *f, int flags,
         int *out_flags)
{
    struct file *file = (struct file *)f;

    (void)vfs;
    memset(file, 0, sizeof *file);
    crash_enter();
    if (crash_fails(CRASH_VFS_OPEN, "xOpen", path)) {
        crash_leave();
        return SQLITE_CANTOPEN;
    }
    const bool was_there = path && access(path, F_OK) == 0;
    const int  rc = real->xOpen(real, path, real_of(f), flags, out_flags);
    if (rc == SQLITE_OK && path && (flags & WATCHED))
        watch(file, path, was_there, flags);
    crash_leave();
    /* SQLite closes a file whose open failed, if it has methods. */
    file->base.pMethods = real_of(f)->pMethods ? &methods : NULL;
    return rc;
}

static int
vfs_delete(sqlite3_vfs *vfs, const char *path, int sync_dir)
{
    (void)vfs;
    crash_enter();
    const bool fail = crash_fails(CRASH_VFS_DELETE, "xDelete", path);
    int        rc = SQLITE_OK;
    if (!fail || only_says_so())
        rc = real->xDelete(real, path, sync_dir);
    struct name *name = disk_find_name(path, false);
    if (rc == SQLITE_OK && name && name->now && (!fail || only_says_so())) {
        disk_change_name(name, NULL);
        if (sync_dir)
            disk_sync_names();
        crash_count_change();
    }
    crash_leave();
    return fail ? SQLITE_IOERR_DELETE : rc;
}

/* ---- what it offers ------------------------------------------------------ */

void
crash_vfs_install(void)
{
    static sqlite3_vfs vfs;

    if (real)
        return;
    real = sqlite3_vfs_find("unix");
    if (!real)
        abort();
    vfs = *real; /* all else is the real one's, which ignores its self */
    vfs.pNext = NULL;
    vfs.zName = "crash";
    vfs.szOsFile = (int)sizeof(struct file) + real->szOsFile;
    vfs.xOpen = vfs_open;
    vfs.xDelete = vfs_delete;
    if (sqlite3_vfs_register(&vfs, 1) != SQLITE_OK)
        abort();
}
