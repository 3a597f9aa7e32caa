/* SPDX-License-Identifier: MIT */
/* crash_inside.h: what do the parts of crash_vfs.h offer each other?
 *
 *     crash_vfs.c   the VFS: what does each call of SQLite do?
 *     crash_plan.c  which call is lost, killed or fails?
 *     crash_disk.c  what is on the disk?
 *
 * Everything between crash_enter() or crash_lock() and crash_leave().
 */
#ifndef WQ_TEST_CRASH_INSIDE_H
#define WQ_TEST_CRASH_INSIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sqlite/crash_vfs.h"

/* ---- crash_plan.c -------------------------------------------------------- */

void crash_lock(void);

/* The same. Every call of SQLite begins with this: it may kill the process. */
void crash_enter(void);

void crash_leave(void);

/* The disk has changed: the power may be lost now. */
void crash_count_change(void);

/* Does this call fail now? `name` and `path` are for crash_vfs_failed(); `path`
 * may be NULL. */
bool crash_fails(enum crash_vfs_call call, const char *name, const char *path);

/* How a call fails that does so. */
enum crash_vfs_how crash_how(void);

/* Is there no space for so many more bytes? */
bool crash_is_over_capacity(int64_t more);

/* A write-ahead log is synced. Is that to be ignored? */
bool crash_ignores_log_sync(void);

/* How long the next sync takes. */
unsigned crash_draw_sync_us(void);

/* ---- crash_disk.c -------------------------------------------------------- */

struct contents; /* of a file */

struct name {
    char            *path;
    struct contents *now;  /* NULL: there is no such file */
    struct contents *disk; /* the same, in the directory on disk */
};

/* A random number; crash_vfs_lose_power_at() sets the seed. */
uint64_t disk_draw(void);

/* From now on the disk does what the seed decides. */
void disk_set_chance(uint64_t seed);

/* Write `n` bytes at the offset `at`. */
void disk_put(struct contents *c, const void *bytes, size_t n, size_t at);

/* Truncate the file. */
void disk_cut(struct contents *c, size_t size);

size_t disk_size(const struct contents *c);

/* A sync makes durable what was written before it began. Of two at the same time
 * the later one may end first: it has more. The end frees it. */
struct sync *disk_begin_sync(const struct contents *c);
void         disk_end_sync(struct contents *c, struct sync *s);

/* NULL: there is no such name, and it is not to be made. */
struct name *disk_find_name(const char *path, bool make);

/* A file that is there already is durable. */
struct contents *disk_read_contents(const char *path);

/* Create the file, or delete it: NULL. */
void disk_change_name(struct name *n, struct contents *c);

/* A sync of the directory. */
void disk_sync_names(void);

/* How many bytes all files have now. */
int64_t disk_bytes(void);

void disk_forget_all(void);

/* Write what survives a power loss to the directory `to`. */
void disk_lose_power(uint64_t seed, const char *to);

#endif
