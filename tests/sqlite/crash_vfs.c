/* SPDX-License-Identifier: MIT */
/* crash_vfs.c: how a disk forgets and fails; see crash_vfs.h.
 *
 * The shim keeps each file twice in memory: `now`, as programs see it, and
 * `disk`, as it would be after a power loss that keeps nothing. A sector whose
 * `changed` number is not 0 differs between the two.
 */
#include "sqlite/crash_vfs.h"

#include <assert.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    SECTOR = 512,
    NAMES = 16,     /* files of one directory */
    ENTRIES = 4096, /* changes of the directory between two of its syncs */
};

/* The contents of a file. Stays when the file is deleted: a loss may undo the
 * deletion. */
struct contents {
    struct contents *next;       /* in the list of all */
    unsigned char   *now, *disk; /* `room` bytes */
    size_t           now_size, disk_size;
    size_t           room;
    uint32_t        *changed; /* one for each sector: number of its last write
                               since the last sync; 0: synced */
    uint32_t        *on_disk; /* number of the write that `disk` has */
    uint32_t         sized;   /* number of the sync that `disk_size` is from */
};

struct name {
    char            *path;
    struct contents *now;  /* NULL: there is no such file */
    struct contents *disk; /* the same, in the directory on disk */
};

struct entry { /* a change of the directory that is not synced */
    struct name     *name;
    struct contents *contents;
};

struct file {
    sqlite3_file     base;
    struct contents *contents;  /* NULL: a file that is not watched */
    const char      *path;      /* of the name; NULL if it has none */
    bool             syncs_dir; /* its next sync does */
    bool             is_log;    /* a write-ahead log */
    _Alignas(8) char real_[]; /* the file of the real VFS: SQLite aligns to 8 */
};

static struct {
    pthread_mutex_t  mutex; /* guards all below */
    sqlite3_vfs     *real;
    struct contents *all; /* owned */
    struct name      names[NAMES];
    struct entry     entries[ENTRIES];
    size_t           n_entries;
    uint32_t         writes; /* numbers for `changed` */

    long        changes;
    long        lose_at; /* value of `changes`; 0: never */
    uint64_t    seed;
    const char *to;
    uint64_t    random;      /* state */
    bool        writes_back; /* the disk also writes what is not synced */
    bool        ignores_log_syncs;
    long        log_syncs;
    long        kill_in; /* calls until the process is killed; 0: it is not */
    unsigned    sync_us;

    unsigned           fail_calls;
    long               fail_in; /* calls until one fails; 0: none does */
    enum crash_vfs_how how;
    bool               for_good;
    long               failures;
    char               failed[128];
    int64_t            capacity;
} disk = {.mutex = PTHREAD_MUTEX_INITIALIZER, .random = 1};

static void
lock(void)
{
    (void)pthread_mutex_lock(&disk.mutex);
}

/* Every call of SQLite begins with this. */
static void
enter(void)
{
    lock();
    if (disk.kill_in && --disk.kill_in == 0)
        (void)kill(getpid(), SIGKILL);
}

static void
leave(void)
{
    (void)pthread_mutex_unlock(&disk.mutex);
}

/* For calls that only may kill the process. */
static void
pass(void)
{
    enter();
    leave();
}

static sqlite3_file *
real_of(sqlite3_file *f)
{
    return (sqlite3_file *)(void *)((struct file *)f)->real_;
}

static void *
must_alloc(void *p)
{
    if (!p)
        abort();
    return p;
}

/* ---- chance -------------------------------------------------------------- */

/* splitmix64 */
static uint64_t
draw(void)
{
    uint64_t z = (disk.random += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static bool
chance(unsigned of_16)
{
    return (draw() & 15) < of_16;
}

/* ---- contents ------------------------------------------------------------ */

static size_t
sectors(size_t bytes)
{
    return (bytes + SECTOR - 1) / SECTOR;
}

static size_t
least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* New space has zeroes, or, with some seeds, what was there before. */
static void
grow(struct contents *c, size_t size)
{
    if (size <= c->room)
        return;
    size_t room = c->room ? c->room : 64 * SECTOR;
    while (room < size)
        room *= 2;
    c->now = must_alloc(realloc(c->now, room));
    c->disk = must_alloc(realloc(c->disk, room));
    c->changed =
        must_alloc(realloc(c->changed, sectors(room) * sizeof *c->changed));
    c->on_disk =
        must_alloc(realloc(c->on_disk, sectors(room) * sizeof *c->on_disk));
    const int filler = disk.seed & 16 ? 0xa5 : 0;
    memset(c->now + c->room, 0, room - c->room);
    memset(c->disk + c->room, filler, room - c->room);
    memset(c->changed + sectors(c->room), 0,
           (sectors(room) - sectors(c->room)) * sizeof *c->changed);
    memset(c->on_disk + sectors(c->room), 0,
           (sectors(room) - sectors(c->room)) * sizeof *c->on_disk);
    c->room = room;
}

static void
copy_sector(struct contents *c, size_t i)
{
    c->on_disk[i] = c->changed[i];
    memcpy(c->disk + i * SECTOR, c->now + i * SECTOR, SECTOR);
}

static void
put(struct contents *c, const void *bytes, size_t n, size_t at)
{
    grow(c, at + n);
    if (at > c->now_size)
        memset(c->now + c->now_size, 0, at - c->now_size);
    memcpy(c->now + at, bytes, n);
    if (at + n > c->now_size)
        c->now_size = at + n;
    const bool now = disk.writes_back && chance(1);
    for (size_t i = at / SECTOR; i < sectors(at + n); i++) {
        c->changed[i] = ++disk.writes;
        if (now && chance(8))
            copy_sector(c, i);
    }
}

static void
cut(struct contents *c, size_t size)
{
    grow(c, size);
    if (size > c->now_size)
        memset(c->now + c->now_size, 0, size - c->now_size);
    c->now_size = size;
    if (size % SECTOR != 0) {
        memset(c->now + size, 0, SECTOR - size % SECTOR);
        c->changed[size / SECTOR] = ++disk.writes;
    }
}

/* A sync makes durable what was written before it began. Of two at the same time
 * the later one may end first: it has more. */
struct sync {
    uint32_t       number;
    size_t         size, n;
    unsigned char *now;
    uint32_t      *changed;
};

static void
begin_sync(const struct contents *c, struct sync *s)
{
    s->number = ++disk.writes;
    s->size = c->now_size;
    s->n = sectors(c->now_size);
    s->now = must_alloc(malloc(s->n * SECTOR + 1));
    s->changed = must_alloc(malloc(s->n * sizeof *s->changed + 1));
    memcpy(s->changed, c->changed, s->n * sizeof *s->changed);
    for (size_t i = 0; i < s->n; i++)
        if (s->changed[i])
            memcpy(s->now + i * SECTOR, c->now + i * SECTOR, SECTOR);
}

static void
apply_sync(struct contents *c, struct sync *s)
{
    for (size_t i = 0; i < s->n; i++) {
        if (!s->changed[i])
            continue;
        if (s->changed[i] > c->on_disk[i]) {
            memcpy(c->disk + i * SECTOR, s->now + i * SECTOR, SECTOR);
            c->on_disk[i] = s->changed[i];
        }
        if (c->changed[i] == s->changed[i])
            c->changed[i] = 0;
    }
    if (s->number < c->sized)
        return;
    if (s->size < c->disk_size)
        memset(c->disk + s->size, 0, c->disk_size - s->size);
    c->disk_size = s->size;
    c->sized = s->number;
}

static void
end_sync(struct sync *s)
{
    free(s->now);
    free(s->changed);
}

/* What is left of a file that the directory names after the loss. */
static size_t
survive(struct contents *c, unsigned of_16)
{
    const size_t low = least(c->now_size, c->disk_size);
    const size_t high = c->now_size + c->disk_size - low;
    size_t       size = of_16 == 0 ? c->disk_size : c->now_size;

    if (of_16 != 0 && of_16 != 16 && high > low) {
        if (chance(5))
            size = c->disk_size;
        else if (chance(5))
            size = low + draw() % (high - low + 1);
    }
    for (size_t i = 0; i < sectors(c->now_size); i++)
        if (c->changed[i] && chance(of_16))
            copy_sector(c, i);
    return size;
}

/* ---- names --------------------------------------------------------------- */

static struct name *
find_name(const char *path, bool make)
{
    for (size_t i = 0; i < NAMES; i++) {
        struct name *n = &disk.names[i];

        if (n->path && strcmp(n->path, path) == 0)
            return n;
        if (!n->path && !make)
            return NULL;
        if (!n->path) {
            n->path = must_alloc(strdup(path));
            return n;
        }
    }
    abort(); /* more than a test of one directory needs */
}

/* A file that is there already is durable. */
static struct contents *
read_contents(const char *path)
{
    struct contents *c = must_alloc(calloc(1, sizeof *c));
    FILE            *f = fopen(path, "rb");
    unsigned char    bytes[4096];
    size_t           n;

    while (f && (n = fread(bytes, 1, sizeof bytes, f)) > 0) {
        grow(c, c->now_size + n);
        memcpy(c->now + c->now_size, bytes, n);
        memcpy(c->disk + c->now_size, bytes, n);
        c->now_size += n;
    }
    if (f)
        (void)fclose(f);
    grow(c, 1);
    c->disk_size = c->now_size;
    c->next = disk.all;
    disk.all = c;
    return c;
}

static void
change_name(struct name *n, struct contents *c)
{
    if (disk.n_entries == ENTRIES)
        abort();
    n->now = c;
    disk.entries[disk.n_entries++] = (struct entry){n, c};
}

static void
sync_names(void)
{
    for (size_t i = 0; i < disk.n_entries; i++)
        disk.entries[i].name->disk = disk.entries[i].contents;
    disk.n_entries = 0;
}

/* ---- power loss ---------------------------------------------------------- */

static void
write_file(const char *to, const char *path, const unsigned char *bytes,
           size_t size)
{
    const char *base = strrchr(path, '/');
    char        name[512];

    (void)snprintf(name, sizeof name, "%s/%s", to, base ? base + 1 : path);
    FILE *f = fopen(name, "wb");
    if (!f || fwrite(bytes, 1, size, f) != size || fclose(f) != 0) {
        perror(name);
        _exit(1);
    }
}

static unsigned
share_that_survives(uint64_t seed)
{
    switch (seed % 4) {
    case 0:
        return 0;
    case 1:
        return 16;
    default:
        return (unsigned[]){1, 4, 8, 14}[draw() % 4];
    }
}

static _Noreturn void
lose_power(uint64_t seed, const char *to)
{
    disk.random = seed + 1;
    const unsigned share = share_that_survives(seed);
    size_t         kept = share == 0    ? 0
                          : share == 16 ? disk.n_entries
                                        : draw() % (disk.n_entries + 1);

    disk.n_entries = kept;
    sync_names();
    for (size_t i = 0; i < NAMES; i++) {
        struct contents *c = disk.names[i].disk;

        if (c) {
            const size_t size = survive(c, share);
            write_file(to, disk.names[i].path, c->disk, size);
        }
    }
    _exit(CRASH_VFS_LOST);
}

static void
count_change(void)
{
    if (++disk.changes == disk.lose_at)
        lose_power(disk.seed, disk.to);
}

/* ---- failures ------------------------------------------------------------ */

/* Does this call fail now? */
static bool
fails(enum crash_vfs_call call, const char *name, const char *path)
{
    if (disk.fail_in == 0 || !(disk.fail_calls & call) || --disk.fail_in > 0)
        return false;
    disk.fail_in = disk.for_good ? 1 : 0;
    disk.failures++;
    const char *base = path ? strrchr(path, '/') : NULL;
    (void)snprintf(disk.failed, sizeof disk.failed, "%s of %s", name,
                   base ? base + 1 : "a file");
    return true;
}

static bool
only_says_so(void)
{
    return disk.how == CRASH_VFS_DONE_ONLY;
}

static int64_t
bytes_now(void)
{
    int64_t sum = 0;

    for (size_t i = 0; i < NAMES; i++)
        if (disk.names[i].now)
            sum += (int64_t)disk.names[i].now->now_size;
    return sum;
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
    const struct file *file = (struct file *)f;

    enter();
    const bool fail = fails(CRASH_VFS_READ, "xRead", file->path);
    leave();
    return fail ? SQLITE_IOERR_READ
                : real_of(f)->pMethods->xRead(real_of(f), to, n, at);
}

static int
write_both(struct file *file, const void *from, int n, sqlite3_int64 at)
{
    const int rc = real_of(&file->base)
                       ->pMethods->xWrite(real_of(&file->base), from, n, at);

    if (rc == SQLITE_OK && file->contents)
        put(file->contents, from, (size_t)n, (size_t)at);
    return rc;
}

static int
failing_write(struct file *file, const void *from, int n, sqlite3_int64 at)
{
    if (disk.how == CRASH_VFS_SHORT)
        (void)write_both(file, from, n / 2, at);
    if (only_says_so())
        (void)write_both(file, from, n, at);
    return disk.how == CRASH_VFS_IOERR || only_says_so() ? SQLITE_IOERR_WRITE
                                                         : SQLITE_FULL;
}

static bool
is_over_capacity(const struct file *file, int n, sqlite3_int64 at)
{
    const int64_t grows =
        file->contents ? at + n - (int64_t)file->contents->now_size : 0;

    return disk.capacity && grows > 0 && bytes_now() + grows > disk.capacity;
}

static int
vfs_write(sqlite3_file *f, const void *from, int n, sqlite3_int64 at)
{
    struct file *file = (struct file *)f;
    int          rc;

    enter();
    if (fails(CRASH_VFS_WRITE, "xWrite", file->path))
        rc = failing_write(file, from, n, at);
    else if (is_over_capacity(file, n, at))
        rc = SQLITE_FULL;
    else
        rc = write_both(file, from, n, at);
    if (file->contents)
        count_change();
    leave();
    return rc;
}

static int
vfs_truncate(sqlite3_file *f, sqlite3_int64 size)
{
    struct file *file = (struct file *)f;
    int          rc = SQLITE_OK;

    enter();
    const bool fail = fails(CRASH_VFS_TRUNCATE, "xTruncate", file->path);
    if (!fail || only_says_so())
        rc = real_of(f)->pMethods->xTruncate(real_of(f), size);
    if (rc == SQLITE_OK && file->contents && (!fail || only_says_so())) {
        cut(file->contents, (size_t)size);
        count_change();
    }
    leave();
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
    struct contents *c = file->contents;
    struct sync      s;

    begin_sync(c, &s);
    const unsigned us = disk.sync_us ? (unsigned)(draw() % disk.sync_us) : 0;
    leave();
    pause_us(us);
    lock();
    apply_sync(c, &s);
    end_sync(&s);
    if (file->syncs_dir)
        sync_names();
    file->syncs_dir = false;
}

static int
vfs_sync(sqlite3_file *f, int flags)
{
    struct file *file = (struct file *)f;

    (void)flags;
    enter();
    const bool fail = fails(CRASH_VFS_SYNC, "xSync", file->path);
    if (!file->contents || (fail && !only_says_so())) {
        leave();
        return fail ? SQLITE_IOERR_FSYNC : SQLITE_OK;
    }
    const bool before = draw() & 1; /* loss before it took effect, or after */
    if (before)
        count_change();
    disk.log_syncs += file->is_log;
    if (!(disk.ignores_log_syncs && file->is_log))
        carry_out_sync(file);
    if (!before)
        count_change();
    leave();
    return fail ? SQLITE_IOERR_FSYNC : SQLITE_OK;
}

static int
vfs_size(sqlite3_file *f, sqlite3_int64 *out)
{
    const struct file *file = (struct file *)f;

    enter();
    const bool fail = fails(CRASH_VFS_SIZE, "xFileSize", file->path);
    leave();
    return fail ? SQLITE_IOERR_FSTAT
                : real_of(f)->pMethods->xFileSize(real_of(f), out);
}

static int
vfs_lock(sqlite3_file *f, int level)
{
    const struct file *file = (struct file *)f;

    enter();
    const bool fail = fails(CRASH_VFS_LOCK, "xLock", file->path);
    leave();
    return fail ? SQLITE_IOERR_LOCK
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
    const struct file *file = (struct file *)f;

    enter();
    const bool fail = fails(CRASH_VFS_SHM_MAP, "xShmMap", file->path);
    leave();
    return fail ? SQLITE_IOERR_SHMMAP
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
    struct name *name = find_name(path, true);

    if (!name->now && was_there)
        name->now = name->disk = read_contents(path);
    if (!name->now) {
        change_name(name, read_contents(path));
        count_change();
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
    enter();
    if (fails(CRASH_VFS_OPEN, "xOpen", path)) {
        leave();
        return SQLITE_CANTOPEN;
    }
    const bool was_there = path && access(path, F_OK) == 0;
    const int  rc =
        disk.real->xOpen(disk.real, path, real_of(f), flags, out_flags);
    if (rc == SQLITE_OK && path && (flags & WATCHED))
        watch(file, path, was_there, flags);
    leave();
    /* SQLite closes a file whose open failed, if it has methods. */
    file->base.pMethods = real_of(f)->pMethods ? &methods : NULL;
    return rc;
}

static int
vfs_delete(sqlite3_vfs *vfs, const char *path, int sync_dir)
{
    (void)vfs;
    enter();
    const bool fail = fails(CRASH_VFS_DELETE, "xDelete", path);
    int        rc = SQLITE_OK;
    if (!fail || only_says_so())
        rc = disk.real->xDelete(disk.real, path, sync_dir);
    struct name *name = find_name(path, false);
    if (rc == SQLITE_OK && name && name->now && (!fail || only_says_so())) {
        change_name(name, NULL);
        if (sync_dir)
            sync_names();
        count_change();
    }
    leave();
    return fail ? SQLITE_IOERR_DELETE : rc;
}

/* ---- what it offers ------------------------------------------------------ */

void
crash_vfs_install(void)
{
    static sqlite3_vfs vfs;

    if (disk.real)
        return;
    disk.real = sqlite3_vfs_find("unix");
    if (!disk.real)
        abort();
    vfs = *disk.real; /* all else is the real one's, which ignores its self */
    vfs.pNext = NULL;
    vfs.zName = "crash";
    vfs.szOsFile = (int)sizeof(struct file) + disk.real->szOsFile;
    vfs.xOpen = vfs_open;
    vfs.xDelete = vfs_delete;
    if (sqlite3_vfs_register(&vfs, 1) != SQLITE_OK)
        abort();
}

static void
free_all_contents(void)
{
    for (struct contents *c; (c = disk.all);) {
        disk.all = c->next;
        free(c->now);
        free(c->disk);
        free(c->changed);
        free(c->on_disk);
        free(c);
    }
}

void
crash_vfs_reset(void)
{
    lock();
    free_all_contents();
    disk.n_entries = 0;
    for (size_t i = 0; i < NAMES; i++) {
        free(disk.names[i].path);
        disk.names[i] = (struct name){NULL, NULL, NULL};
    }
    disk.fail_in = 0;
    disk.capacity = 0;
    leave();
}

void
crash_vfs_power_loss(uint64_t seed, const char *to)
{
    lock();
    lose_power(seed, to);
}

void
crash_vfs_lose_power_at(long nth, uint64_t seed, const char *to)
{
    lock();
    disk.lose_at = disk.changes + nth;
    disk.seed = seed;
    disk.random = seed;
    disk.to = to;
    disk.writes_back = seed % 4 > 1;
    leave();
}

long
crash_vfs_changes(void)
{
    lock();
    const long n = disk.changes;
    leave();
    return n;
}

long
crash_vfs_log_syncs(void)
{
    lock();
    const long n = disk.log_syncs;
    leave();
    return n;
}

void
crash_vfs_kill_at(long nth)
{
    lock();
    disk.kill_in = nth;
    leave();
}

void
crash_vfs_ignore_log_syncs(void)
{
    lock();
    disk.ignores_log_syncs = true;
    leave();
}

void
crash_vfs_set_sync_time(unsigned max_us)
{
    lock();
    disk.sync_us = max_us;
    leave();
}

void
crash_vfs_fail(unsigned calls, long nth, enum crash_vfs_how how, bool for_good)
{
    lock();
    disk.fail_calls = calls;
    disk.fail_in = nth;
    disk.how = how;
    disk.for_good = for_good;
    disk.failures = 0;
    leave();
}

long
crash_vfs_heal(void)
{
    lock();
    disk.fail_in = 0;
    const long n = disk.failures;
    leave();
    return n;
}

const char *
crash_vfs_failed(void)
{
    return disk.failed;
}

void
crash_vfs_set_capacity(int64_t bytes)
{
    lock();
    disk.capacity = bytes;
    leave();
}

int64_t
crash_vfs_bytes(void)
{
    lock();
    const int64_t n = bytes_now();
    leave();
    return n;
}
