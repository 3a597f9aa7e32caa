/* SPDX-License-Identifier: MIT */
/* crash_disk.c: what is on a disk that has not written everything yet? See
 * crash_vfs.h.
 *
 * Each file is kept twice in memory: `now`, as programs see it, and `disk`, as it
 * would be after a power loss that keeps nothing. A sector whose `changed` number
 * is not 0 differs between the two.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sqlite/crash_inside.h"

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
    size_t           cut_to; /* the smallest size since the last sync; not less
                                than disk_size: it was not truncated */
    uint32_t         cut;    /* number of that truncation */
    size_t           room;
    uint32_t        *changed; /* one for each sector: number of its last write
                               since the last sync; 0: synced */
    uint32_t        *on_disk; /* number of the write that `disk` has */
    uint32_t         sized;   /* number of the sync that `disk_size` is from */
};

struct entry { /* a change of the directory that is not synced */
    struct name     *name;
    struct contents *contents;
};

/* Guarded by the lock of crash_plan.c. */
static struct {
    struct contents *all; /* owned */
    struct name      names[NAMES];
    struct entry     entries[ENTRIES];
    size_t           n_entries;
    uint32_t         writes;      /* numbers for `changed` */
    uint64_t         random;      /* state */
    int              filler;      /* bytes of new space on the disk */
    bool             writes_back; /* also what is not synced */
} disk = {.random = 1};

static void *
must_alloc(void *p)
{
    if (!p)
        abort();
    return p;
}

/* ---- chance -------------------------------------------------------------- */

/* splitmix64 */
uint64_t
disk_draw(void)
{
    uint64_t z = (disk.random += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static bool
chance(unsigned of_16)
{
    return (disk_draw() & 15) < of_16;
}

void
disk_set_chance(uint64_t seed)
{
    disk.random = seed;
    disk.filler = seed & 16 ? 0xa5 : 0;
    disk.writes_back = seed % 4 > 1;
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
    memset(c->now + c->room, 0, room - c->room);
    memset(c->disk + c->room, disk.filler, room - c->room);
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

void
disk_put(struct contents *c, const void *bytes, size_t n, size_t at)
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
        if (now && chance(8) && i < c->cut_to / SECTOR)
            copy_sector(c, i);
    }
}

void
disk_cut(struct contents *c, size_t size)
{
    grow(c, size);
    if (size > c->now_size)
        memset(c->now + c->now_size, 0, size - c->now_size);
    c->now_size = size;
    if (size < c->cut_to) {
        c->cut_to = size;
        c->cut = ++disk.writes;
    }
    if (size % SECTOR != 0) {
        memset(c->now + size, 0, SECTOR - size % SECTOR);
        c->changed[size / SECTOR] = ++disk.writes;
    }
}

struct sync {
    uint32_t       number;
    size_t         size, n;
    unsigned char *now;
    uint32_t      *changed;
};

struct sync *
disk_begin_sync(const struct contents *c)
{
    struct sync *s = must_alloc(calloc(1, sizeof *s));

    s->number = ++disk.writes;
    s->size = c->now_size;
    s->n = sectors(c->now_size);
    s->now = must_alloc(malloc(s->n * SECTOR + 1));
    s->changed = must_alloc(malloc(s->n * sizeof *s->changed + 1));
    memcpy(s->changed, c->changed, s->n * sizeof *s->changed);
    for (size_t i = 0; i < s->n; i++)
        if (s->changed[i])
            memcpy(s->now + i * SECTOR, c->now + i * SECTOR, SECTOR);
    return s;
}

static void
apply(struct contents *c, const struct sync *s)
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
    if (c->cut < s->number)
        c->cut_to = s->size;
    c->sized = s->number;
}

void
disk_end_sync(struct contents *c, struct sync *s)
{
    apply(c, s);
    free(s->now);
    free(s->changed);
    free(s);
}

size_t
disk_size(const struct contents *c)
{
    return c->now_size;
}

/* The size of a file after the loss. Growing may get stuck halfway. A truncation
 * happens or it does not: file systems with a journal do it so, and SQLite's
 * journal_mode=TRUNCATE relies on it. */
static size_t
size_after(const struct contents *c, unsigned of_16)
{
    const size_t low = least(c->cut_to, c->now_size);

    if (of_16 == 16)
        return c->now_size;
    if (of_16 == 0 || chance(5))
        return c->disk_size;
    return chance(5) ? low + disk_draw() % (c->now_size - low + 1)
                     : c->now_size;
}

/* What is left of a file that the directory names after the loss. Behind a
 * truncation nothing old is left; without it, nothing that came later. */
static size_t
survive(struct contents *c, unsigned of_16)
{
    const size_t size = size_after(c, of_16);
    size_t       n = sectors(c->now_size);

    if (c->cut_to < c->disk_size && size == c->disk_size)
        n = c->cut_to / SECTOR;
    else if (c->cut_to < c->disk_size)
        memset(c->disk + c->cut_to, disk.filler, c->disk_size - c->cut_to);
    for (size_t i = 0; i < n; i++)
        if (c->changed[i] && chance(of_16))
            copy_sector(c, i);
    return size;
}

/* ---- names --------------------------------------------------------------- */

struct name *
disk_find_name(const char *path, bool make)
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

struct contents *
disk_read_contents(const char *path)
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
    c->disk_size = c->cut_to = c->now_size;
    c->next = disk.all;
    disk.all = c;
    return c;
}

void
disk_change_name(struct name *n, struct contents *c)
{
    if (disk.n_entries == ENTRIES)
        abort();
    n->now = c;
    disk.entries[disk.n_entries++] = (struct entry){n, c};
}

void
disk_sync_names(void)
{
    for (size_t i = 0; i < disk.n_entries; i++)
        disk.entries[i].name->disk = disk.entries[i].contents;
    disk.n_entries = 0;
}

int64_t
disk_bytes(void)
{
    int64_t sum = 0;

    for (size_t i = 0; i < NAMES; i++)
        if (disk.names[i].now)
            sum += (int64_t)disk.names[i].now->now_size;
    return sum;
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
disk_forget_all(void)
{
    free_all_contents();
    disk.n_entries = 0;
    for (size_t i = 0; i < NAMES; i++) {
        free(disk.names[i].path);
        disk.names[i] = (struct name){NULL, NULL, NULL};
    }
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
        return (unsigned[]){1, 4, 8, 14}[disk_draw() % 4];
    }
}

void
disk_lose_power(uint64_t seed, const char *to)
{
    disk.random = seed + 1;
    const unsigned share = share_that_survives(seed);
    size_t         kept = share == 0    ? 0
                          : share == 16 ? disk.n_entries
                                        : disk_draw() % (disk.n_entries + 1);

    disk.n_entries = kept;
    disk_sync_names();
    for (size_t i = 0; i < NAMES; i++) {
        struct contents *c = disk.names[i].disk;

        if (c) {
            const size_t size = survive(c, share);
            write_file(to, disk.names[i].path, c->disk, size);
        }
    }
}
