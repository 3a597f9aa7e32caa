/* SPDX-License-Identifier: MIT */
/* crash_vfs.h: what is on the disk after a power loss, and what does a program
 * do when the disk fails?
 *
 * A VFS of SQLite over the real one ("unix"). Databases, their journals and
 * write-ahead logs are real files, and the shim remembers for each of them what
 * xSync has made durable:
 *
 *     crash_vfs_install();                 before the first use of SQLite
 *     crash_vfs_lose_power_at(17, seed, "after");
 *     ... use SQLite; the 17th change ends the process by _exit() ...
 *
 * The directory "after" then has the files as a disk would have them: of the
 * 512-byte sectors written since the last sync of their file, any subset; of a
 * file that grew, any size on the way; of one that was truncated, the size before,
 * or any since; of the files created and
 * deleted since the last sync of their directory, the first so many. Files of
 * shared memory (-shm) and everything else in the directory are lost.
 *
 * SQLite syncs the directory with the first sync of a journal or log that it
 * has opened, and when it deletes a file with that request; so does the shim.
 * It calls no fsync(), so a test that syncs often is fast.
 *
 * One directory, one process; any thread.
 */
#ifndef WQ_TEST_CRASH_VFS_H
#define WQ_TEST_CRASH_VFS_H

#include <stdbool.h>
#include <stdint.h>

/* Make it the default VFS; once is enough. Aborts if SQLite refuses. */
void crash_vfs_install(void);

/* Forget all files, none of which may be open, and let no call fail: for tests
 * that use one directory after the other. */
void crash_vfs_reset(void);

/* ---- power loss ---------------------------------------------------------- */

/* The exit status of a process that has lost its power. */
enum { CRASH_VFS_LOST = 42 };

/* The power is lost now: write what survives to the directory `to`, which
 * exists, and end the process. `seed` decides what survives: seeds 0 and 1 of
 * four keep nothing and all of what is not synced. */
_Noreturn void crash_vfs_power_loss(uint64_t seed, const char *to);

/* The same in the `nth` change from now: a write, sync, truncation, deletion or
 * creation. `to` must stay valid. Call it before the files are opened: the disk
 * then writes some sectors before they are synced, too. */
void crash_vfs_lose_power_at(long nth, uint64_t seed, const char *to);

/* How many changes there were so far. */
long crash_vfs_changes(void);

/* xSync of a write-ahead log only says that it was done. For a test of the
 * test. */
void crash_vfs_ignore_log_syncs(void);

/* A sync takes up to so many microseconds: 0 at the start. */
void crash_vfs_set_sync_time(unsigned max_us);

/* How often a write-ahead log was synced so far. */
long crash_vfs_log_syncs(void);

/* ---- deaths -------------------------------------------------------------- */

/* Kill the process by SIGKILL before the `nth` call from now of any kind, also of
 * those that lock and unlock. 0: do not. */
void crash_vfs_kill_at(long nth);

/* ---- failures ------------------------------------------------------------ */

/* Calls that can fail. */
enum crash_vfs_call {
    CRASH_VFS_WRITE = 1,
    CRASH_VFS_SYNC = 2,
    CRASH_VFS_TRUNCATE = 4,
    CRASH_VFS_OPEN = 8,
    CRASH_VFS_READ = 16,
    CRASH_VFS_SIZE = 32,
    CRASH_VFS_SHM_MAP = 64,
    CRASH_VFS_DELETE = 128,
    CRASH_VFS_LOCK = 256,
    CRASH_VFS_ANY = 511,
};

enum crash_vfs_how {
    CRASH_VFS_IOERR,     /* the call's SQLITE_IOERR_... */
    CRASH_VFS_FULL,      /* writes: SQLITE_FULL; others: as IOERR */
    CRASH_VFS_SHORT,     /* writes: half of the bytes, then SQLITE_FULL */
    CRASH_VFS_DONE_ONLY, /* the call is carried out, and then fails */
};

/* Fail the `nth` of these calls (enum crash_vfs_call, or'ed) from now; with
 * `for_good` also all later ones. */
void crash_vfs_fail(unsigned calls, long nth, enum crash_vfs_how how,
                    bool for_good);

/* From now on no call fails. How many have failed since crash_vfs_fail()? */
long crash_vfs_heal(void);

/* The call that failed last: "xWrite of queue.db-wal". A static string. */
const char *crash_vfs_failed(void);

/* The disk has so many bytes for all files together; a write beyond that is
 * SQLITE_FULL. 0: no limit. */
void crash_vfs_set_capacity(int64_t bytes);

/* How many bytes all files have now. */
int64_t crash_vfs_bytes(void);

#endif
